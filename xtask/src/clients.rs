//! A Python with the MCP clients and the providers' packages that the tests drive, and the TypeScript SDK of MCP: packages of the
//! Python package index and of npm, pinned, in folders under `target/`.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::set_up::says;
use crate::step::{Step, root};

/// The variable that tells the tests which Python has the clients.
pub(crate) const VARIABLE: &str = "COUNTERSIGN_TEST_MCP_PYTHON";

/// The variable that tells the tests which folder has the TypeScript SDK.
pub(crate) const NODE_VARIABLE: &str = "COUNTERSIGN_TEST_MCP_NODE";

/// The TypeScript SDK that most servers are made with.
const SDK: (&str, &str) = ("@modelcontextprotocol/sdk", "1.32.2");

/// The issuer that client tokens are fetched from. Later versions want a newer Node than most systems have.
const ISSUER: (&str, &str) = ("oidc-provider", "8.8.1");

/// The variable that tells the tests which folder has that issuer.
pub(crate) const ISSUER_VARIABLE: &str = "COUNTERSIGN_TEST_ISSUER_NODE";

/// With `idpyoidc`, an issuer that exchanges tokens.
const PACKAGES: [&str; 6] = [
    "mcp==2.3.0",
    "fastmcp==4.1.2",
    "openai==3.49.0",
    "anthropic==2.8.0",
    "google-genai==3.1.0",
    "idpyoidc==5.0.0",
];

/// Says which versions there are, in the form in which they are asked for.
const PROBE: &str = "from importlib.metadata import version; \
                     print(*(f'{name}=={version(name)}' for name in \
                     ('mcp', 'fastmcp', 'openai', 'anthropic', 'google-genai', 'idpyoidc')))";

/// The Python, made where it is missing.
pub(crate) fn prepare() -> Result<String> {
    let python = folder().join("bin/python3").display().to_string();
    if says(&python, &["-c", PROBE]).as_deref() != Some(&PACKAGES.join(" ")) {
        let folder = folder().display().to_string();
        let make = Step::program("set-up", "python3", &["-m", "venv", &folder]);
        if make.run().is_err() {
            // Debian keeps the module apart from its Python.
            let install = ["install", "-y", "--no-install-recommends", "python3-venv"];
            Step::program("set-up", "apt-get", &install)
                .env("DEBIAN_FRONTEND", "noninteractive")
                .run()
                .context("an environment of its own needs `apt-get install python3-venv`")?;
            make.run()?;
        }
        let install = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ];
        Step::program("set-up", &python, &[&install[..], &PACKAGES].concat()).run()?;
    }
    Ok(python)
}

/// The folder with the TypeScript SDK, made where it is missing.
pub(crate) fn prepare_node() -> Result<String> {
    from_npm("target/test-mcp-node", SDK)
}

/// The folder with the issuer, made where it is missing.
pub(crate) fn prepare_issuer() -> Result<String> {
    from_npm("target/test-issuer-node", ISSUER)
}

/// A folder with one package of npm, made where it is missing.
fn from_npm(folder: &str, (name, version): (&str, &str)) -> Result<String> {
    let folder = root().join(folder);
    let package = folder.join("node_modules").join(name).join("package.json");
    let installed = std::fs::read_to_string(package).unwrap_or_default();
    let folder = folder.display().to_string();
    if !installed.contains(&format!("\"version\": \"{version}\"")) {
        std::fs::create_dir_all(&folder)?;
        let wanted = format!("{name}@{version}");
        let words = ["install", "--prefix", &folder, "--silent", &wanted];
        Step::program("set-up", "npm", &words).run()?;
    }
    Ok(folder)
}

/// axe-core, which finds what keeps people from using a page.
const AXE: (&str, &str) = ("axe-core", "4.14.0");

/// The variable that tells the tests which folder has axe-core.
pub(crate) const AXE_VARIABLE: &str = "COUNTERSIGN_TEST_AXE";

/// The folder with axe-core, made where it is missing.
pub(crate) fn prepare_axe() -> Result<String> {
    from_npm("target/test-axe", AXE)
}

fn folder() -> PathBuf {
    root().join("target/test-mcp-python")
}
