//! One command of a chore: it is announced, run with its output shown, timed, and, if it fails, named with the words that run it alone.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// One command.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) name: &'static str,
    program: String,
    args: Vec<String>,
    env: Vec<(&'static str, &'static str)>,
    /// Variables of this run of ours only: they mean nothing to who runs the step alone.
    run_env: Vec<(&'static str, String)>,
}

impl Step {
    /// A step that cargo does. The cargo of this very run is used, so that one toolchain does all.
    pub(crate) fn cargo(name: &'static str, args: &[&str]) -> Self {
        Self::program(name, "cargo", args)
    }

    /// A step that another program does.
    pub(crate) fn program(name: &'static str, program: &str, args: &[&str]) -> Self {
        Self {
            name,
            program: program.to_owned(),
            args: args.iter().map(ToString::to_string).collect(),
            env: Vec::new(),
            run_env: Vec::new(),
        }
    }

    /// Sets this variable.
    pub(crate) fn env(mut self, name: &'static str, value: &'static str) -> Self {
        self.env.push((name, value));
        self
    }

    /// Sets these variables, which its line does not show.
    pub(crate) fn run_env(mut self, variables: &[(&'static str, String)]) -> Self {
        self.run_env.extend_from_slice(variables);
        self
    }

    /// Runs it in the workspace's folder.
    pub(crate) fn run(&self) -> Result<()> {
        self.timed().map(|_| ())
    }

    /// Runs it and says how long it took.
    pub(crate) fn timed(&self) -> Result<Duration> {
        eprintln!("\n=== {}: {}", self.name, self.line());
        let started = Instant::now();
        let status = Command::new(self.executable())
            .args(&self.args)
            .envs(self.env.iter().copied())
            .envs(self.run_env.iter().map(|(name, value)| (name, value)))
            .current_dir(root())
            .status()
            .with_context(|| format!("cannot start {}", self.program))?;
        if !status.success() {
            bail!(
                "{} failed ({status})\nrun it alone with: {}",
                self.name,
                self.line()
            );
        }
        Ok(started.elapsed())
    }

    /// The command as a person types it.
    pub(crate) fn line(&self) -> String {
        let quoted = |word: &String| {
            if word.contains(' ') {
                format!("'{word}'")
            } else {
                word.clone()
            }
        };
        let env = self
            .env
            .iter()
            .map(|(name, value)| format!("{name}='{value}'"));
        let words = env
            .chain([self.program.clone()])
            .chain(self.args.iter().map(quoted));
        words.collect::<Vec<_>>().join(" ")
    }

    /// A step that names a toolchain (`+nightly`) needs rustup's cargo, which knows toolchains.
    fn executable(&self) -> PathBuf {
        let named = self.args.first().is_some_and(|word| word.starts_with('+'));
        match std::env::var_os("CARGO") {
            Some(cargo) if !named && self.program == "cargo" => cargo.into(),
            Some(_) | None => PathBuf::from(&self.program),
        }
    }
}

/// True if cargo has this command.
pub(crate) fn has_cargo_command(name: &str) -> bool {
    let found = Command::new("cargo").args([name, "--version"]).output();
    found.is_ok_and(|output| output.status.success())
}

/// The folder that cargo builds in: that of `CARGO_TARGET_DIR`, if it is set.
pub(crate) fn target() -> PathBuf {
    let folder = std::env::var_os("CARGO_TARGET_DIR");
    root().join(folder.unwrap_or_else(|| "target".into()))
}

/// The workspace's folder.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_shows_the_line_that_runs_it_alone() {
        let step = Step::cargo("documentation", &["doc", "--no-deps"])
            .env("RUSTDOCFLAGS", "-D warnings")
            .run_env(&[("SERVER", "here".to_owned())]);
        assert_eq!(
            step.line(),
            "RUSTDOCFLAGS='-D warnings' cargo doc --no-deps"
        );
    }

    #[test]
    fn a_failed_step_names_itself_and_its_command() {
        let step = Step::cargo("nonsense", &["no-such-command"]);
        let error = step.run().unwrap_err().to_string();
        assert!(
            error.contains("nonsense failed") && error.ends_with("cargo no-such-command"),
            "{error}"
        );
    }
}
