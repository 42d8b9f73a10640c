//! The Debian package: programs, manual pages, completions, the unit and a configuration.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::says;
use crate::step::{Step, root};

/// Shells, with the place of their completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/countersign"),
    ("zsh", "usr/share/zsh/vendor-completions/_countersign"),
    (
        "fish",
        "usr/share/fish/vendor_completions.d/countersign.fish",
    ),
];

/// Scripts of the maintainer.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Makes the package; returns its path.
pub(super) fn write(out: &Path, time: &str) -> Result<PathBuf> {
    let tree = root().join("target/dist-deb");
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    for program in super::PROGRAMS {
        install(
            &out.join(program),
            &tree.join("usr/bin").join(program),
            0o755,
        )?;
    }
    documentation(out, &tree)?;
    let packaging = root().join("packaging");
    let unit = "lib/systemd/system/countersign.service";
    install(
        &packaging.join("countersign.service"),
        &tree.join(unit),
        0o644,
    )?;
    configuration(out, &tree)?;
    let (version, architecture) = (version(), says("dpkg", &["--print-architecture"])?);
    control(&tree, &version, &architecture)?;
    let package = out.join(format!("countersign_{version}_{architecture}.deb"));
    let words = [
        "--root-owner-group",
        "-Zxz",
        "--build",
        &tree.display().to_string(),
        &package.display().to_string(),
    ];
    // Files of the package have no later time than this.
    Step::program("package", "dpkg-deb", &words)
        .run_env(&[("SOURCE_DATE_EPOCH", time.to_owned())])
        .run()?;
    Ok(package)
}

/// The version of the workspace.
fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// Manual pages and completions, as the program itself writes them, and the papers of the package.
fn documentation(out: &Path, tree: &Path) -> Result<()> {
    let program = out.join("countersign").display().to_string();
    let manual = tree.join("usr/share/man/man1");
    says(&program, &["man", &manual.display().to_string()])?;
    for page in fs::read_dir(&manual)? {
        compress(&page?.path())?;
    }
    for (shell, path) in COMPLETIONS {
        let script = says(&program, &["completions", shell])?;
        put(&tree.join(path), &format!("{script}\n"), 0o644)?;
    }
    let papers = tree.join("usr/share/doc/countersign");
    let license = fs::read_to_string(root().join("LICENSE-MIT"))?;
    let lines: Vec<String> = license
        .lines()
        .map(|line| match line.trim() {
            "" => " .".to_owned(),
            line => format!(" {line}"),
        })
        .collect();
    let copyright = fs::read_to_string(root().join("packaging/debian/copyright"))?;
    let copyright = copyright.replace("@MIT@", &lines.join("\n"));
    put(&papers.join("copyright"), &copyright, 0o644)?;
    let changes = papers.join("changelog.gz");
    install(
        &root().join("CHANGELOG.md"),
        &changes.with_extension(""),
        0o644,
    )?;
    compress(&changes.with_extension(""))
}

/// The configuration that `countersign init` writes, which an operator changes and an upgrade leaves alone.
fn configuration(out: &Path, tree: &Path) -> Result<()> {
    let made = root().join("target/dist-init");
    if made.exists() {
        fs::remove_dir_all(&made)?;
    }
    fs::create_dir_all(&made)?;
    let file = made.join("countersign.toml").display().to_string();
    let program = out.join("countersign").display().to_string();
    says(&program, &["init", "--yes", "--config", &file])?;
    install(
        &made.join("countersign.toml"),
        &tree.join("etc/countersign/countersign.toml"),
        0o644,
    )
}

fn control(tree: &Path, version: &str, architecture: &str) -> Result<()> {
    let size = says("du", &["-sk", &tree.display().to_string()])?;
    let size = size.split_whitespace().next().unwrap_or("0").to_owned();
    let text = fs::read_to_string(root().join("packaging/debian/control"))?
        .replace("@VERSION@", version)
        .replace("@ARCHITECTURE@", architecture)
        .replace("@SIZE@", &size)
        .replace("@DEPENDS@", &dependencies(tree)?);
    ensure!(
        !text.contains('@') || text.contains("<countersign@"),
        "{text}"
    );
    put(&tree.join("DEBIAN/control"), &text, 0o644)?;
    put(
        &tree.join("DEBIAN/conffiles"),
        "/etc/countersign/countersign.toml\n",
        0o644,
    )?;
    for script in SCRIPTS {
        let from = root().join("packaging/debian").join(script);
        install(&from, &tree.join("DEBIAN").join(script), 0o755)?;
    }
    Ok(())
}

/// The version of the C library that the programs need: the newest symbol that they name.
fn dependencies(tree: &Path) -> Result<String> {
    let program = tree.join("usr/bin/countersign").display().to_string();
    let symbols = says("objdump", &["-T", &program])?;
    let newest = symbols
        .split("GLIBC_")
        .skip(1)
        .filter_map(|rest| {
            let number = rest
                .split(|c: char| c != '.' && !c.is_ascii_digit())
                .next()?;
            let mut parts = number.split('.').map(str::parse::<u32>);
            Some((parts.next()?.ok()?, parts.next()?.ok()?))
        })
        .max();
    let (major, minor) = newest.unwrap_or((2, 36));
    Ok(format!(
        "libc6 (>= {major}.{minor}), libgcc-s1 (>= 4.2), ca-certificates"
    ))
}

fn put(path: &Path, text: &str, mode: u32) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    Ok(())
}

fn install(from: &Path, to: &Path, mode: u32) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to)?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode))?;
    Ok(())
}

/// Compresses a file in its place, without its name and time.
fn compress(path: &Path) -> Result<()> {
    says("gzip", &["-9", "-n", &path.display().to_string()]).map(|_| ())
}
