//! The two files by themselves: their own tests, their packages, and the builds from them.

use std::path::Path;
use std::process::Command;

use crate::world::{node_folder, python, python_command, root, run};

/// The types, the identity, the answers, and the bound of 300 lines.
#[test]
fn the_python_file_passes_its_own_tests() {
    run(python_command()
        .args(["-m", "unittest", "discover", "sdk/python"])
        .current_dir(root()));
}

/// Bounds and models of `FastAPI` and pydantic are part of the schema.
#[test]
fn types_of_fastapi_are_taken_over() {
    let own = root().join("crates/cli/tests/sdk/framework_types.py");
    assert_eq!(run(python_command().arg(own)), "good\n");
}

#[test]
fn the_typescript_file_passes_its_own_tests() {
    run(Command::new("node")
        .args(["--test", "sdk/typescript/countersign-tool.test.mjs"])
        .current_dir(root()));
}

/// `pip install ./sdk/python`. A copy is installed, because the build writes into its folder.
#[test]
fn the_python_package_can_be_installed() {
    let folder = tempfile::tempdir().unwrap();
    let (copy, made) = (folder.path().join("python"), folder.path().join("made"));
    std::fs::create_dir(&copy).unwrap();
    for name in ["pyproject.toml", "README.md", "countersign_tool.py"] {
        std::fs::copy(root().join("sdk/python").join(name), copy.join(name)).unwrap();
    }
    run(Command::new(python())
        .args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps"])
        .args(["--no-build-isolation", "--disable-pip-version-check"])
        .arg("--target")
        .args([&made, &copy]));
    let entries = run(Command::new(python())
        .arg(root().join("examples/python/orders.py"))
        .arg("--countersign")
        .current_dir(folder.path())
        .env("PYTHONPATH", &made));
    assert!(entries.contains("name = \"orders.place\"\n"), "{entries}");
    assert!(made.join("countersign_tool.py").exists());
}

/// `npm install ./sdk/typescript` works without a build, from ES modules and `CommonJS`.
#[test]
fn the_node_package_can_be_installed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("package.json"), "{}").unwrap();
    run(Command::new("npm")
        .args(["install", "--offline", "--no-audit", "--no-fund"])
        .arg(root().join("sdk/typescript"))
        .current_dir(folder.path()));
    for (name, text) in [
        (
            "es.mjs",
            "import { tool } from 'countersign-tool'; console.log(typeof tool)",
        ),
        (
            "common.cjs",
            "const { tool } = require('countersign-tool'); console.log(typeof tool)",
        ),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
        let said = run(Command::new("node").arg(name).current_dir(folder.path()));
        assert_eq!(said, "function\n");
    }
}

/// The committed JavaScript and declarations are those of the source.
#[test]
fn the_built_files_are_current() {
    let folder = tempfile::tempdir().unwrap();
    let types = node_folder().join("node_modules/@types");
    run(compiler()
        .arg("-p")
        .arg(root().join("sdk/typescript"))
        .arg("--outDir")
        .arg(folder.path())
        .arg("--typeRoots")
        .arg(types));
    for name in ["countersign-tool.js", "countersign-tool.d.ts"] {
        let read = |folder: &Path| std::fs::read_to_string(folder.join(name)).unwrap();
        let (committed, built) = (read(&root().join("sdk/typescript")), read(folder.path()));
        assert!(
            committed == built,
            "{name} is older than its source: `npm run build` in sdk/typescript writes it anew"
        );
    }
}

/// The TypeScript compiler.
pub(crate) fn compiler() -> Command {
    let mut command = Command::new("node");
    command.arg(node_folder().join("node_modules/typescript/bin/tsc"));
    command
}
