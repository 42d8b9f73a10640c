//! Dependencies of the tests other than Rust and a C compiler: a PostgreSQL server, a Python with the package `cryptography`, with which
//! evidence is checked by code that is not ours, npm, from which the MCP conformance suite comes, Chromium, in which the console is
//! tried, `curl` and `jq`, which the pages of the documentation use, and the frameworks that tools of others are written with.
//!
//! A missing one is installed if that is possible without asking; else the error says what to type.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use countersign_testkit::postgres::{Programs, TempPostgres, VARIABLE};

use crate::outside::{self, Outside};
use crate::step::{Step, root};
use crate::{clients, sdk};

/// The variable that tells the tests which Python to use.
const PYTHON: &str = "COUNTERSIGN_TEST_PYTHON";

/// Says its own path, so that a launcher on the path is not asked again.
const PROBE: &str = "import cryptography, sys; print(sys.executable)";

/// Environment of one run of the tests. The server is stopped with it.
pub(crate) struct World {
    server: TempPostgres,
    python: String,
    clients: String,
    sdk: [String; 2],
    node: String,
    issuer: String,
    axe: String,
    outside: Outside,
}

impl World {
    /// Returns the environment variables of the tests.
    pub(crate) fn variables(&self) -> [(&'static str, String); 10] {
        let [python, node] = &self.sdk;
        [
            (VARIABLE, self.server.url()),
            (PYTHON, self.python.clone()),
            (clients::VARIABLE, self.clients.clone()),
            (sdk::PYTHON, python.clone()),
            (sdk::NODE, node.clone()),
            (clients::NODE_VARIABLE, self.node.clone()),
            (clients::ISSUER_VARIABLE, self.issuer.clone()),
            (clients::AXE_VARIABLE, self.axe.clone()),
            (outside::PYTHON_VARIABLE, self.outside.python.clone()),
            (outside::SUITE_VARIABLE, self.outside.suite.clone()),
        ]
    }
}

/// Checks the dependencies, installs those that are missing, and starts the server of the run.
pub(crate) fn prepare() -> Result<World> {
    let lacking = Lacking {
        server: Programs::find().is_err(),
        pooler: says("pgbouncer", &["--version"]).is_none(),
        python: python().is_none(),
        npm: says("npm", &["--version"]).is_none(),
        browser: says("chromedriver", &["--version"]).is_none(),
        shell: ["curl", "jq"]
            .iter()
            .any(|name| says(name, &["--version"]).is_none()),
    };
    for step in lacking.steps(&Means::found())? {
        step.run()?;
    }
    let python = python().context("python3 was installed, but does not find `cryptography`")?;
    let clients = clients::prepare()?;
    let sdk = sdk::prepare()?;
    let node = clients::prepare_node()?;
    let issuer = clients::prepare_issuer()?;
    let axe = clients::prepare_axe()?;
    let outside = outside::prepare()?;
    let server = TempPostgres::try_start()?;
    eprintln!("\n=== set-up: {} and {python}", server.url());
    Ok(World {
        server,
        python,
        clients,
        sdk,
        node,
        issuer,
        axe,
        outside,
    })
}

/// Installs what pictures of the console need: a browser, a font with Chinese characters, and a library that gives the server a past.
pub(crate) fn for_pictures() -> Result<()> {
    let has_browser = says("chromedriver", &["--version"]).is_some();
    let has_font = says("fc-list", &[":lang=zh"]).is_some_and(|fonts| !fonts.is_empty());
    let mut packages = Vec::new();
    if !has_browser {
        packages.extend(["chromium", "chromium-driver"]);
    }
    if !has_font {
        packages.push("fonts-wqy-zenhei");
    }
    if !has_past() {
        packages.push("libfaketime");
    }
    for step in install(&packages, &Means::found())? {
        step.run()?;
    }
    Ok(())
}

/// Installs what failovers need: PostgreSQL, and the two programs that keep several of it as one.
pub(crate) fn for_failover() -> Result<()> {
    let mut packages = Vec::new();
    if Programs::find().is_err() {
        packages.push("postgresql");
    }
    for (program, package) in [("etcd", "etcd-server"), ("patroni", "patroni")] {
        if says(program, &["--version"]).is_none() {
            packages.push(package);
        }
    }
    for step in install(&packages, &Means::found())? {
        step.run()?;
    }
    Ok(())
}

/// True if the library is there that gives a program another time of day.
fn has_past() -> bool {
    let places = std::fs::read_dir("/usr/lib")
        .into_iter()
        .flatten()
        .flatten();
    let mut places = places.map(|place| place.path().join("faketime"));
    places.any(|path| path.is_dir())
}

/// The commands that install packages; an error that says what to type where that is not possible without asking.
fn install(packages: &[&str], means: &Means) -> Result<Vec<Step>> {
    if packages.is_empty() {
        return Ok(Vec::new());
    }
    if !means.packages {
        let packages = packages.join(" ");
        bail!("more is needed: `sudo apt-get install {packages}`");
    }
    let fixed = ["install", "-y", "--no-install-recommends"];
    let install = [&fixed[..], packages].concat();
    Ok([&["update"], &install[..]]
        .map(|args| {
            let step = Step::program("set-up", "apt-get", args);
            step.env("DEBIAN_FRONTEND", "noninteractive")
        })
        .into())
}

/// Dependencies that a machine lacks.
#[expect(
    clippy::struct_excessive_bools,
    reason = "a list of programs, each there or not"
)]
struct Lacking {
    server: bool,
    pooler: bool,
    python: bool,
    npm: bool,
    browser: bool,
    shell: bool,
}

/// Means of this machine to install something.
struct Means {
    /// True if Debian's packages can be installed: `apt-get` is there and we are root.
    packages: bool,
    /// True if there is a Python at all, to make an environment with.
    python: bool,
}

impl Means {
    fn found() -> Self {
        let root = says("id", &["-u"]).as_deref() == Some("0");
        Self {
            packages: root && says("apt-get", &["--version"]).is_some(),
            python: says("python3", &["--version"]).is_some(),
        }
    }
}

impl Lacking {
    /// Returns the commands that install the missing dependencies.
    fn steps(&self, means: &Means) -> Result<Vec<Step>> {
        let mut packages = Vec::new();
        if self.server {
            packages.push("postgresql");
        }
        if self.pooler {
            packages.push("pgbouncer");
        }
        if self.python {
            packages.extend(["python3", "python3-cryptography"]);
        }
        if self.npm {
            packages.push("npm");
        }
        if self.browser {
            packages.extend(["chromium", "chromium-driver"]);
        }
        if self.shell {
            packages.extend(["curl", "jq"]);
        }
        if packages.is_empty() {
            return Ok(Vec::new());
        }
        if means.packages {
            return install(&packages, means);
        }
        if self.server || self.pooler || self.npm || self.browser || self.shell || !means.python {
            bail!(
                "the tests need {}: install what is missing with `sudo apt-get install {}`",
                "a PostgreSQL server, PgBouncer, npm, Chromium with its driver, curl, jq and python3 with the package `cryptography`",
                packages.join(" ")
            );
        }
        let (folder, own) = (environment(), environment().join("bin/python3"));
        let (folder, own) = (folder.to_string_lossy(), own.to_string_lossy());
        Ok(vec![
            Step::program("set-up", "python3", &["-m", "venv", &folder]),
            Step::program("set-up", &own, &["-m", "pip", "install", "cryptography"]),
        ])
    }
}

/// A Python that has the package: the one that is named, the one on the path, the system's, ours.
fn python() -> Option<String> {
    let named = std::env::var(PYTHON).ok();
    let own = environment().join("bin/python3").display().to_string();
    let known = ["python3", "/usr/bin/python3", &own].map(str::to_owned);
    let mut programs = named.into_iter().chain(known);
    programs.find_map(|program| says(&program, &["-c", PROBE]))
}

/// Returns the path of our own Python environment, which is made if it is needed.
fn environment() -> PathBuf {
    root().join(Path::new("target/test-python"))
}

/// Returns the output of a program; `None` if it is missing or fails.
pub(crate) fn says(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the steps, or the error, for the dependencies that are lacking (server, python, npm, browser, shell) and the means there are (packages,
    /// python).
    fn plan(lacking: [bool; 5], means: [bool; 2]) -> String {
        let lacking = Lacking {
            server: lacking[0],
            pooler: lacking[0],
            python: lacking[1],
            npm: lacking[2],
            browser: lacking[3],
            shell: lacking[4],
        };
        let means = Means {
            packages: means[0],
            python: means[1],
        };
        match lacking.steps(&means) {
            Ok(steps) => steps
                .iter()
                .map(Step::line)
                .collect::<Vec<_>>()
                .join("; ")
                .replace(&environment().display().to_string(), "OWN")
                .replace("DEBIAN_FRONTEND='noninteractive' ", ""),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_is_missing_is_installed_or_named() {
        let apt = "apt-get update; apt-get install -y --no-install-recommends";
        let need = "the tests need a PostgreSQL server, PgBouncer, npm, Chromium with its driver, curl, jq and python3 with the package `cryptography`: \
                    install what is missing with `sudo apt-get install";
        for (lacking, means, expected) in [
            ([false; 5], [false, false], String::new()),
            (
                [true, false, true, false, false],
                [true, true],
                format!("{apt} postgresql pgbouncer npm"),
            ),
            (
                [true, true, false, true, true],
                [true, false],
                format!(
                    "{apt} postgresql pgbouncer python3 python3-cryptography chromium chromium-driver curl jq"
                ),
            ),
            (
                [true, false, false, false, false],
                [false, true],
                format!("{need} postgresql pgbouncer`"),
            ),
            (
                [false, false, true, false, false],
                [false, true],
                format!("{need} npm`"),
            ),
            (
                [false, true, false, false, false],
                [false, false],
                format!("{need} python3 python3-cryptography`"),
            ),
            (
                [false, true, false, false, false],
                [false, true],
                "python3 -m venv OWN; OWN/bin/python3 -m pip install cryptography".to_owned(),
            ),
        ] {
            assert_eq!(plan(lacking, means), expected);
        }
    }
}
