//! Rules as files, by the real command: the rules of a folder are in force, and versions that were in force stay loadable, even if the
//! folder is changed or removed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::PathBuf;
use std::process::{Command, Output};

use countersign_testkit::patience::Watchdog;
use serde_json::Value;
use tempfile::TempDir;

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn rules(&self) -> PathBuf {
        self.folder.path().join("rules")
    }

    /// Writes a version into the folder of rules.
    fn write(&self, name: &str, label: &str, text: &str) {
        let area = self.rules().join(name);
        std::fs::create_dir_all(&area).unwrap();
        std::fs::write(area.join(format!("{label}.toml")), text).unwrap();
    }

    fn run(&self, args: &[&str]) -> Output {
        let _watchdog = Watchdog::start();
        Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(args)
            .env("COUNTERSIGN_DATA", self.data())
            .env("COUNTERSIGN_OPERATOR", "tester")
            .env_remove("COUNTERSIGN_STORE")
            .env_remove("COUNTERSIGN_MASTER_KEY")
            .output()
            .unwrap()
    }

    #[track_caller]
    fn ask(&self, code: i32, args: &[&str]) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The text of a version.
    #[track_caller]
    fn shown(&self, args: &[&str]) -> String {
        let output = self.run(&[&["rules", "show"], args].concat());
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns the versions of a rule set, each with its digest, label and origin, and whether it is in force.
    fn versions(&self, name: &str, more: &[&str]) -> Vec<Value> {
        let all = self.ask(0, &[&["rules"], more].concat());
        let all = all.as_array().unwrap().iter();
        all.filter(|one| one["name"] == name).cloned().collect()
    }
}

/// The version in force, of which there is one.
#[track_caller]
fn in_force(versions: &[Value]) -> &Value {
    let mut found = versions.iter().filter(|one| one["in_force"] == true);
    let one = found.next().unwrap();
    assert!(found.next().is_none(), "{versions:?}");
    one
}

/// A15, A16: a version in force is kept before a call rests on it, under the digest that its record names; an edited or deleted file takes
/// nothing away.
#[test]
fn what_was_in_force_stays_loadable() {
    let place = Place::new();
    let rules = place.rules();
    let folder = ["--rules", rules.to_str().unwrap()];
    let of_program = place.versions("fx", &[]).len();
    let text = place.shown(&["fx"]);
    let first = format!("# first\n{text}");
    place.write("fx", "2030-01-01", &first);
    place.ask(0, &[&["call", "notes.list"][..], &folder].concat());
    let digest = in_force(&place.versions("fx", &folder))["version"].clone();

    place.write("fx", "2030-01-01", &format!("# second\n{text}"));
    place.ask(0, &[&["call", "notes.list"][..], &folder].concat());
    let versions = place.versions("fx", &folder);
    let kept = versions.iter().find(|one| one["version"] == digest);
    let kept = kept.unwrap();
    assert_eq!(
        (&kept["from"], &kept["in_force"]),
        (&"kept".into(), &false.into())
    );
    assert_eq!(in_force(&versions)["label"], "2030-01-01");
    assert_eq!(in_force(&versions)["from"], "folder");
    // It is still known what it was called, and that name means the file that is there.
    assert_eq!(kept["label"], "2030-01-01");
    let named = place.shown(&[&["fx", "2030-01-01"][..], &folder].concat());
    assert!(named.starts_with("# second"), "{named}");

    std::fs::remove_dir_all(&rules).unwrap();
    let versions = place.versions("fx", &[]);
    assert_eq!(versions.len(), of_program + 2, "both are kept");
    assert_eq!(in_force(&versions)["from"], "program", "as before");
    assert_eq!(place.shown(&["fx", digest.as_str().unwrap()]), first);
}

/// A kept file that does not match its name is not used, the doctor reports it, and the version in force is written anew.
#[test]
fn a_damaged_kept_file_is_told_and_not_used() {
    let place = Place::new();
    let rules = place.rules();
    let folder = ["--rules", rules.to_str().unwrap()];
    place.write(
        "fx",
        "2030-01-01",
        &format!("# mine\n{}", place.shown(&["fx"])),
    );
    place.ask(0, &[&["call", "notes.list"][..], &folder].concat());
    place.ask(0, &["doctor"]);
    for file in std::fs::read_dir(place.data().join("rules/fx")).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replacen('#', "%", 1)).unwrap();
    }
    let doctor = place.ask(1, &["doctor"]);
    let points = doctor.as_array().unwrap();
    let point = points
        .iter()
        .find(|one| one["what"] == "kept rules")
        .unwrap();
    assert_eq!(point["state"], "wrong");
    assert!(
        point["found"].as_str().unwrap().contains("are damaged"),
        "{point}"
    );
    let versions = place.versions("fx", &[]);
    let is_of_program = |one: &Value| one["from"] == "program";
    assert!(
        !versions.is_empty() && versions.iter().all(is_of_program),
        "{versions:?}"
    );

    let output = place.run(&[&["call", "notes.list"][..], &folder].concat());
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        told.contains("the kept rules fx were damaged and are written again"),
        "{told}"
    );
    let doctor = place.ask(0, &["doctor"]);
    let points = doctor.as_array().unwrap();
    let point = points
        .iter()
        .find(|one| one["what"] == "kept rules")
        .unwrap();
    assert_eq!(point["state"], "ok");
}

/// A16: a recorded call is computed again with its own rules, also when their file is gone; with those of another
/// folder the difference is shown.
#[test]
fn a_call_is_computed_again_with_the_rules_of_then() {
    let place = Place::new();
    let rules = place.rules();
    let folder = ["--rules", rules.to_str().unwrap()];
    place.write(
        "fx",
        "2030-01-01",
        &with_rate(&place.shown(&["fx"]), "2.0000"),
    );
    let quote = "{items: [{sku: 'SKU-0001-01'}], currency: 'EUR'}";
    let call = ["call", "pricing.get_realtime_quote", "--args", quote];
    let quote = place.ask(0, &[&call[..], &folder].concat());
    let list_price = quote["data"]["lines"][0]["list_price"]["amount"].as_i64();
    assert_eq!(
        quote["data"]["subtotal"]["amount"]
            .as_i64()
            .map(|cents| cents * 2),
        list_price.map(|cents| cents + cents % 2)
    );

    // Edited in place, and no call was made under it.
    place.write(
        "fx",
        "2030-01-01",
        &with_rate(&place.shown(&["fx"]), "4.0000"),
    );
    let replay = ["replay", "--since", "1h", "--mode"];
    let recomputed = place.ask(0, &[&replay[..], &["recompute"]].concat());
    assert_eq!(recomputed[0]["result"], "identical");
    let against = [&replay[..], &["against"], &folder].concat();
    let differs = place.ask(1, &against);
    assert_eq!(differs[0]["result"], "drift");
    let paths = differs[0]["differences"].as_array().unwrap().iter();
    assert!(
        paths.clone().any(|one| one["path"] == "/subtotal/amount"),
        "{differs}"
    );
    let shown = String::from_utf8(place.run(&against).stdout).unwrap();
    assert!(shown.starts_with("RESULT"), "{shown}");

    // Not what is meant.
    place.write("weather", "2030-01-01", "");
    let told = String::from_utf8(place.run(&against).stderr).unwrap();
    assert!(told.contains("there is no rule set \"weather\""), "{told}");
    std::fs::remove_dir_all(&rules).unwrap();
    place.ask(0, &[&replay[..], &["recompute"]].concat());
    let file = place.folder.path().join("new.json");
    let against = [&replay[..], &["against", "--rules", file.to_str().unwrap()]].concat();
    for (text, expected) in [
        ("{\"vta\": {}}", "rule set \"vta\" does not exist"),
        ("{}", "has no rules"),
    ] {
        std::fs::write(&file, text).unwrap();
        let output = place.run(&against);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains(expected), "{told}");
    }
}

/// A folder that cannot be used says why in one sentence, and a command that was given it does nothing.
#[test]
fn a_folder_that_cannot_be_used_is_told() {
    let place = Place::new();
    let rules = place.rules();
    std::fs::create_dir_all(&rules).unwrap();
    let list = ["rules", "--rules", rules.to_str().unwrap()];
    let told = || {
        let output = place.run(&list);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(!told.contains("\\n") && told.lines().count() == 2, "{told}");
        told
    };
    assert!(told().contains("has no rules: rules are NAME/LABEL.toml"));
    place.write("fx", "2030", "");
    assert!(told().contains("2030.toml is not named after a day"));
    std::fs::remove_dir_all(&rules).unwrap();
    let text = place.shown(&["fx"]);
    place.write(
        "fx",
        "2030-01-01",
        &with_rate(&text, "1").replace("\"1\"", "1.1"),
    );
    assert!(told().contains("write decimals as text: \"1.1\""));
    place.write(
        "fx",
        "2030-01-01",
        &with_rate(&text, "1").replace("\"1\"", "\"1"),
    );
    assert!(told().contains("the rules fx/2030-01-01 cannot be used: line "));
}

/// Rows come by name, then by label, with the one in force last, every time.
#[test]
fn versions_are_listed_in_order() {
    let place = Place::new();
    let all = place.ask(0, &["rules"]);
    let key = |one: &Value| {
        let text = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
        let in_force = one["in_force"].as_bool().unwrap();
        (text("name"), in_force, text("label"), text("version"))
    };
    let rows: Vec<_> = all.as_array().unwrap().iter().map(key).collect();
    assert!(rows.is_sorted(), "{rows:#?}");
}

/// The same rates with another one for the dollar.
fn with_rate(text: &str, rate: &str) -> String {
    let line = |line: &str| {
        if line.starts_with("USD = ") {
            format!("USD = \"{rate}\"\n")
        } else {
            format!("{line}\n")
        }
    };
    let changed: String = text.lines().map(line).collect();
    assert_ne!(changed, text, "there is a rate for the dollar");
    changed
}

/// Texts of one's own are searched in place of the shop's, and are a version like every other rule set.
#[test]
fn texts_of_a_folder_are_searched() {
    let place = Place::new();
    let texts = place.folder.path().join("texts");
    std::fs::create_dir_all(&texts).unwrap();
    let head =
        "<!-- id: pickup.en; language: en; date: 2026-11-16; title: Pick-up; source: the shop -->";
    let text = format!("{head}\n# Pick-up\n\nParcels wait at the lighthouse.\n");
    std::fs::write(texts.join("pickup.en.md"), text).unwrap();
    let search = [
        "call",
        "knowledge.search",
        "--args",
        "{query: 'lighthouse'}",
    ];
    let folder = ["--knowledge", texts.to_str().unwrap()];
    let found = place.ask(0, &[&search[..], &folder].concat());
    assert!(found["data"].to_string().contains("lighthouse"), "{found}");
    let versions = place.versions("knowledge", &folder);
    assert_eq!(versions.len(), 2, "{versions:?}");
    assert_eq!(in_force(&versions)["from"], "folder");
    // Without the folder they are kept, and not in force.
    let versions = place.versions("knowledge", &[]);
    assert_eq!(in_force(&versions)["from"], "program");
    assert!(
        versions.iter().any(|one| one["from"] == "kept"),
        "{versions:?}"
    );
    let gone = place.ask(0, &search);
    assert!(
        !gone["data"].to_string().contains("the lighthouse"),
        "{gone}"
    );
}
