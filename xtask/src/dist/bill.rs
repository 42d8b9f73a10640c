//! The bill of materials: every crate in the programs, as `CycloneDX` 1.5.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value, json};

use super::says;
use crate::step::root;

/// Package whose programs are handed out.
const ROOT: &str = "countersign-cli";

/// Fewest crates of a bill: fewer mean that something was not read.
const CRATES_MIN: usize = 100;

/// Writes the bill; returns its path.
pub(super) fn write(out: &Path, time: &str) -> Result<PathBuf> {
    let target = says("rustc", &["--print", "host-tuple"])?;
    let words = [
        "metadata",
        "--locked",
        "--format-version",
        "1",
        "--filter-platform",
        &target,
    ];
    let metadata: Value = serde_json::from_str(&says("cargo", &words)?)?;
    let checksums = checksums(&fs::read_to_string(root().join("Cargo.lock"))?);
    let bill = bill(&metadata, &checksums, time)?;
    let path = out.join("countersign.cdx.json");
    fs::write(&path, format!("{bill:#}\n"))?;
    Ok(path)
}

fn bill(
    metadata: &Value,
    checksums: &BTreeMap<(String, String), String>,
    time: &str,
) -> Result<Value> {
    let packages: BTreeMap<&str, &Value> = list(metadata, "/packages")
        .filter_map(|package| Some((package["id"].as_str()?, package)))
        .collect();
    let edges = edges(metadata);
    let root = packages
        .iter()
        .find(|(_, package)| package["name"] == ROOT)
        .map(|(id, _)| *id)
        .context("the command is a package")?;
    let mut reached = BTreeSet::new();
    let mut waiting = vec![root];
    while let Some(id) = waiting.pop() {
        if reached.insert(id) {
            waiting.extend(edges.get(id).into_iter().flatten());
        }
    }
    let named = |id: &str| packages.get(id).map(|package| purl(package));
    let mut components = Vec::new();
    let mut dependencies = Vec::new();
    for id in &reached {
        let package = packages.get(id).context("every node is a package")?;
        let below: BTreeSet<String> = edges
            .get(id)
            .into_iter()
            .flatten()
            .filter_map(|id| named(id))
            .collect();
        dependencies.push(json!({"ref": purl(package), "dependsOn": below}));
        if *id != root {
            components.push(component(package, checksums));
        }
    }
    ensure!(
        components.len() >= CRATES_MIN,
        "only {} crates",
        components.len()
    );
    components.sort_by_key(|component| component["bom-ref"].as_str().map(str::to_owned));
    dependencies.sort_by_key(|dependency| dependency["ref"].as_str().map(str::to_owned));
    eprintln!("bill of materials: {} crates", components.len());
    let program = packages.get(root).context("the command is a package")?;
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": says("date", &["-u", "-d", &format!("@{time}"), "+%Y-%m-%dT%H:%M:%SZ"])?,
            "component": {
                "type": "application",
                "bom-ref": purl(program),
                "name": "countersign",
                "version": program["version"],
                "licenses": [{"expression": program["license"]}],
            },
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

/// Dependencies of the programs, without those of tests and builds.
fn edges(metadata: &Value) -> BTreeMap<&str, Vec<&str>> {
    let is_normal =
        |dependency: &&Value| list(dependency, "/dep_kinds").any(|kind| kind["kind"].is_null());
    list(metadata, "/resolve/nodes")
        .filter_map(|node| {
            let below = list(node, "/deps").filter(is_normal);
            let below = below.filter_map(|dependency| dependency["pkg"].as_str());
            Some((node["id"].as_str()?, below.collect()))
        })
        .collect()
}

fn component(package: &Value, checksums: &BTreeMap<(String, String), String>) -> Value {
    let text = |name: &str| package[name].as_str().unwrap_or_default().to_owned();
    let mut component = Map::new();
    let mut set = |name: &str, value: Value| drop(component.insert(name.to_owned(), value));
    set("type", json!("library"));
    set("bom-ref", json!(purl(package)));
    set("purl", json!(purl(package)));
    set("name", package["name"].clone());
    set("version", package["version"].clone());
    if let Some(license) = package["license"].as_str() {
        // The old way to write a choice is no expression of SPDX.
        let expression = license.replace('/', " OR ").replace("  ", " ");
        set("licenses", json!([{"expression": expression}]));
    }
    if let Some(checksum) = checksums.get(&(text("name"), text("version"))) {
        set("hashes", json!([{"alg": "SHA-256", "content": checksum}]));
    }
    Value::Object(component)
}

fn purl(package: &Value) -> String {
    let text = |name: &str| package[name].as_str().unwrap_or_default();
    format!("pkg:cargo/{}@{}", text("name"), text("version"))
}

fn list<'v>(value: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> {
    value
        .pointer(pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// Checksums of packages in the lock file, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut found = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let value = |name: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.trim_start_matches(" = ").trim_matches('"').to_owned())
        };
        if let (Some(name), Some(version), Some(checksum)) =
            (value("name"), value("version"), value("checksum"))
        {
            found.insert((name, version), checksum);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_read_by_name_and_version() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"registry\"\n\
                    checksum = \"aa\"\n\n[[package]]\nname = \"b\"\nversion = \"0.1.0\"\n";
        let found = checksums(lock);
        let expected = (("a".to_owned(), "1.0.0".to_owned()), "aa".to_owned());
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [expected]);
    }
}
