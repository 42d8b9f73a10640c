//! Rules as files: versions, and what is refused.

use countersign_commerce::rulebook::RuleFiles;

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

/// What comes with the program is not looked at when it starts, so it is looked at here.
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
}
