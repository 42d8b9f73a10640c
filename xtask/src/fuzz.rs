//! `cargo xtask fuzz`: each target for some time. Not part of `test`: it needs a nightly toolchain and
//! never ends by itself.

use anyhow::{Context as _, Result, ensure};

use crate::step::{Step, has_cargo_command, root};

/// Runs these targets, or all there are.
pub(crate) fn run(seconds: u32, wanted: &[&str]) -> Result<()> {
    let targets = targets()?;
    for name in wanted {
        let known = targets.iter().any(|target| target == name);
        ensure!(
            known,
            "there is no fuzz target {name:?}; there are {}",
            targets.join(", ")
        );
    }
    if !has_cargo_command("fuzz") {
        Step::cargo("set-up", &["install", "--locked", "cargo-fuzz"]).run()?;
    }
    let limit = format!("-max_total_time={seconds}");
    for target in targets
        .iter()
        .filter(|target| wanted.is_empty() || wanted.contains(&target.as_str()))
    {
        // Without AddressSanitizer: there is no unsafe code to watch, and it is several times faster.
        let args = [
            "+nightly",
            "fuzz",
            "run",
            "--sanitizer",
            "none",
            target,
            "--",
            &limit,
        ];
        Step::cargo("fuzz", &args).run()?;
    }
    Ok(())
}

/// The targets are the files of their folder.
fn targets() -> Result<Vec<String>> {
    let folder = root().join("fuzz/fuzz_targets");
    let entries = folder
        .read_dir()
        .with_context(|| format!("cannot read {}", folder.display()))?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| {
            entry
                .file_name()
                .to_str()?
                .strip_suffix(".rs")
                .map(str::to_owned)
        })
        .collect();
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_found_and_unknown_ones_refused() {
        assert!(targets().unwrap().contains(&"canonical".to_owned()));
        let error = run(1, &["canonicle"]).unwrap_err().to_string();
        assert!(
            error.contains("no fuzz target \"canonicle\"") && error.contains("canonical"),
            "{error}"
        );
    }
}
