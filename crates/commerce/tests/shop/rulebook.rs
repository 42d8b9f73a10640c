//! Rule files: versions, and refusals.

use countersign::rules::Rules;
use countersign_commerce::rulebook::RuleFiles;
use serde_json::json;

use crate::world::World;

const OLD: &str = include_str!("../../rules/fx/2024-12-31.toml");

/// A15: one changed byte is another version, and the old one stays loadable.
#[test]
fn a_changed_byte_is_another_version() {
    let embedded = RuleFiles::embedded().unwrap();
    let before = embedded.rules().unwrap().current("fx").unwrap().version;
    let edited = OLD.replace("# Reference", "# reference");
    let changed = embedded
        .with("fx", "2025", edited)
        .unwrap()
        .rules()
        .unwrap();
    let after = changed.current("fx").unwrap().version;
    assert_ne!(before, after, "a comment is part of the file");
    assert!(changed.version("fx", before).is_some());
}

/// Files of the program are not checked when it starts, so they are checked here.
#[test]
fn every_file_of_the_program_can_be_used() {
    let embedded = RuleFiles::embedded().unwrap();
    for file in embedded.files() {
        file.check().unwrap();
        assert!(file.data().is_object(), "{}/{}", file.name, file.label);
    }
    assert!(embedded.files().len() >= 5);
}

#[test]
fn what_cannot_be_used_says_why() {
    #[track_caller]
    fn check(name: &str, text: &str, expected: &str) {
        let files = RuleFiles::embedded().unwrap();
        let error = files.with(name, "x", text.to_owned()).unwrap_err();
        let message = error.to_string();
        assert!(message.contains(expected), "{message}");
    }
    check("weather", "", "there is no rule set \"weather\"");
    check("fx", "base = 1", "invalid type");
    check(
        "fx",
        &OLD.replace("1.0389", "-1"),
        "the rate of USD has to be above zero",
    );
    // In one line, with the line that is wrong.
    let line = |of: &str| OLD.lines().position(|line| line.starts_with(of)).unwrap() + 1;
    let usd = OLD.replace("USD = \"1.0389\"", "USD = 1.0389");
    let told = format!(
        "fx/x cannot be used: line {}: write decimals as text: \"1.0389\"",
        line("USD = ")
    );
    check("fx", &usd, &told);
    let open = OLD.replace("USD = \"1.0389\"", "USD = \"1.0389");
    check("fx", &open, &format!("line {}: ", line("USD = ")));
    for (name, text) in [("fx", &*open), ("fx", "base = ["), ("tax", "a = 1\na = 2")] {
        let files = RuleFiles::embedded().unwrap();
        let error = files.with(name, "x", text.to_owned()).unwrap_err();
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
    }
}

/// The check reads a file as a call does: an accepted file can be used.
#[test]
fn unquoted_decimals_are_refused_in_every_rule_set() {
    let quoted = |text: &str| {
        let at = text
            .match_indices('"')
            .map(|(at, _)| at)
            .collect::<Vec<_>>();
        at.windows(2).find_map(|ends| {
            let number = &text[ends[0] + 1..ends[1]];
            let is_decimal = number.contains('.') && number.parse::<f64>().is_ok();
            is_decimal.then(|| (format!("\"{number}\""), number.to_owned()))
        })
    };
    let embedded = RuleFiles::embedded().unwrap();
    let mut checked = Vec::new();
    for file in embedded.files() {
        let Some((quoted, number)) = quoted(&file.text) else {
            continue;
        };
        let text = file.text.replacen(&quoted, &number, 1);
        let error = embedded.clone().with(&file.name, "x", text).unwrap_err();
        let told = format!("write decimals as text: {quoted}");
        assert!(error.to_string().contains(&told), "{error}");
        checked.push(&*file.name);
    }
    assert!(
        checked.contains(&"fx") && checked.contains(&"tax"),
        "{checked:?}"
    );
}

/// A call with invalid rules that did not come from a checked file is not retryable, because they stay the same.
#[tokio::test]
async fn rules_that_cannot_be_read_are_no_reason_to_try_again() {
    let rules = RuleFiles::embedded().unwrap().rules().unwrap();
    let broken = Rules::builder()
        .also(&rules)
        .version("fx", json!({"base": 1}));
    let rules = broken.unwrap().build();
    let world = World::new();
    let world = World::on(world.store, world.clock, |builder| builder.rules(rules));
    let args = json!({"items": [{"sku": "SKU-0001-01"}], "currency": "EUR"});
    let reply = world.call("pricing.get_realtime_quote", args).await;
    assert_eq!(reply["error"]["code"], "UPSTREAM_ERROR", "{reply}");
    assert_eq!(reply["error"]["details"]["retryable"], false, "{reply}");
}

/// The operator expects the files of a folder to be loaded: a folder without rules, or with misplaced ones, is an
/// error.
#[test]
fn a_folder_that_brings_nothing_is_refused() {
    #[track_caller]
    fn check(files: &[&str], expected: &str) {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            if file.ends_with('/') {
                std::fs::create_dir_all(path).unwrap();
            } else {
                std::fs::write(path, OLD).unwrap();
            }
        }
        let loaded = RuleFiles::embedded().unwrap().folder(folder.path());
        let told = loaded.map_or_else(|error| error.to_string(), |_| "loaded".to_owned());
        assert!(told.contains(expected), "{files:?}: {told}");
        if expected != "loaded" && !expected.starts_with("there is no") {
            assert!(told.contains("NAME/LABEL.toml"), "{told}");
        }
    }
    check(&["fx/2027-01-01.toml"], "loaded");
    check(
        &["fx/2027-01-01.toml", "README.md", ".git/x", "fx/notes.md"],
        "loaded",
    );
    check(&[], "has no rules");
    check(&["README.md"], "has no rules");
    check(&["fx/"], "fx has no rules");
    check(&["fx/2027-01-01.json"], "fx has no rules");
    check(
        &["fx/2027-01-01.TOML"],
        "2027-01-01.TOML is not named after a day",
    );
    check(&["2027-01-01.toml"], "is in the folder of no rule set");
    check(
        &["fx/2027-01-01.toml", "fx.toml"],
        "is in the folder of no rule set",
    );
    check(
        &["fx/2027-01-01.toml", "weather/"],
        "there is no rule set \"weather\"",
    );
    for label in [
        "2027",
        "2027-13-01",
        "2027-1-1",
        "new",
        "20270101",
        "2027-01-01.old",
    ] {
        check(&[&format!("fx/{label}.toml")], "is not named after a day");
    }
}

/// A label gives the order within a folder, and no more: a folder takes precedence over the program whatever its labels
/// are.
#[test]
fn the_last_label_of_a_folder_is_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let area = folder.path().join("fx");
    std::fs::create_dir_all(&area).unwrap();
    let write = |label: &str| {
        let text = format!("# {label}\n{OLD}");
        std::fs::write(area.join(format!("{label}.toml")), &text).unwrap();
        countersign::contract::Digest::of_bytes(text.as_bytes())
    };
    let in_force = || {
        let files = RuleFiles::embedded()
            .unwrap()
            .folder(folder.path())
            .unwrap();
        files.rules().unwrap().in_force("fx").unwrap()
    };
    let ahead = write("2999-01-01");
    assert_eq!(in_force(), ahead);
    write("1999-12-31");
    assert_eq!(in_force(), ahead);
    std::fs::remove_file(area.join("2999-01-01.toml")).unwrap();
    assert_eq!(in_force(), write("1999-12-31"), "before the program's own");
}
