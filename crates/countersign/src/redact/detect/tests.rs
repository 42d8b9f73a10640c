//! A corpus of texts to redact and texts to keep, and the laws of scrubbing.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Corpus: one text a line, with its redacted form; a text alone stays as it is.
const CORPUS: &str = include_str!("corpus.jsonl");

fn corpus() -> impl Iterator<Item = (String, Option<String>)> {
    CORPUS.lines().map(|line| {
        let mut row: Vec<String> =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        let expected = (row.len() > 1).then(|| row.remove(1));
        (row.remove(0), expected)
    })
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(Detector::new().scrub(text), expected, "of {text:?}");
}

/// The corpus is redacted as it says, and harmless texts of commerce stay (A21).
#[test]
fn the_corpus_comes_out_as_it_says() {
    let mut wrong = Vec::new();
    for (text, expected) in corpus() {
        let clean = Detector::new().scrub(&text);
        if clean != expected.as_deref().unwrap_or(&text) {
            wrong.push(format!("{text}\n  became {clean}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let found = corpus().filter(|(_, expected)| expected.is_some()).count();
    let harmless = corpus().count() - found;
    assert!(found >= 60 && harmless >= 60, "{found} and {harmless}");
}

#[test]
fn the_corpus_has_every_kind() {
    for kind in Kind::ALL {
        let has = |expected: String| expected.contains(kind.label());
        assert!(
            corpus().filter_map(|(_, expected)| expected).any(has),
            "{kind}"
        );
    }
}

/// Numbers with one wrong check digit stay: they may be order numbers.
#[test]
fn a_wrong_check_digit_is_left_alone() {
    for text in [
        "4111 1111 1111 1112",
        "6222 0212 3456 7891",
        "110105194912310021",
        "11010519491231003X",
        "DE89370400440532013001",
        "185057800608437",
        "86095742718",
        "529.982.247-26",
        "2341 2341 2347",
        "800101-1234561",
        "A123456788",
        "A123456(4)",
    ] {
        check(text, text);
    }
}

/// A21: texts, numbers, names of members and lists, at any depth.
#[test]
fn values_are_scrubbed_everywhere() {
    let mut value = json!({
        "note": "write to li@example.com",
        "n": [13_812_345_678_u64, 4_111_111_111_111_111_u64, 42, -13_812_345_678_i64, 0.411_111_111_111_111_1],
        "to": {"li@example.com": {"cc": ["wang@example.com"]}, "wang@example.com": 1},
        "password": "hunter2",
        "flag": true,
        "none": null,
    });
    Detector::new().scrub_value(&mut value);
    let expected = json!({
        "note": "write to [email]",
        "n": ["[phone]", "[card]", 42, -13_812_345_678_i64, 0.411_111_111_111_111_1],
        "to": {"[email]": {"cc": ["[email]"]}, "[email]#2": 1},
        "password": "[token]",
        "flag": true,
        "none": null,
    });
    assert_eq!(value, expected);
}

#[test]
fn a_clean_text_is_not_copied() {
    let text = "two boxes of SKU-10023, 上海仓";
    assert!(matches!(Detector::new().scrub(text), Cow::Borrowed(_)));
}

/// Pieces that the generators put together: everything that a scanner looks at.
fn piece() -> impl Strategy<Value = String> {
    let corpus: Vec<String> = corpus().map(|(text, _)| text).collect();
    prop_oneof![
        proptest::sample::select(corpus),
        "[0-9 .+()-]{0,40}",
        "[a-zA-Z0-9@._-]{0,40}",
        "[省市区路号栋一1-9 到]{0,20}",
        any::<String>(),
    ]
}

proptest! {
    /// Any text comes out as a text, and everything but the labels was in the input in that order.
    #[test]
    fn what_stays_stands_in_the_text(text in proptest::collection::vec(piece(), 0..6).prop_map(|pieces| pieces.concat())) {
        let clean = Detector::new().scrub(&text);
        let mut rest = text.as_str();
        let mut parts = vec![clean.as_ref()];
        for kind in Kind::ALL {
            parts = parts.iter().flat_map(|part| part.split(kind.label())).collect();
        }
        // A label that the text had itself is not told from one of ours, so the parts are only looked for.
        for part in parts {
            let at = rest.find(part);
            prop_assert!(at.is_some(), "{part:?} of {clean:?}");
            rest = rest.get(at.unwrap_or(0) + part.len()..).unwrap_or_default();
        }
    }

    /// A value is found at any place, as long as words keep a distance.
    #[test]
    fn the_surroundings_hide_nothing(index in any::<prop::sample::Index>(), before in "[,;!?\n\"]{0,8}", after in "[,;!?\n\"]{0,8}") {
        let found: Vec<_> = corpus().filter_map(|(text, expected)| Some((text, expected?))).collect();
        let (text, expected) = index.get(&found);
        let clean = Detector::new().scrub(&format!("{before} {text} {after}")).into_owned();
        // A block without an end goes on to the end of the text.
        let open = text.contains("BEGIN") && !text.contains("END");
        let around = if open { format!("{before} {expected}") } else { format!("{before} {expected} {after}") };
        prop_assert_eq!(clean, around);
    }
}

/// Long and hostile texts end in time: no text is read again and again.
#[test]
fn long_and_hostile_texts_end() {
    for piece in [
        "1",
        "1 ",
        "a@",
        "@",
        "eyJ",
        "-----BEGIN PRIVATE KEY",
        "-",
        "路1",
        "市",
        "12 a ",
        "DE00 ",
        "password=",
        "(",
        "+1",
        "://a:",
        "a.",
        "Bearer ",
        "sk-",
        "eyJ-",
        "pwd:",
        "1-",
    ] {
        let text = piece.repeat(40_000 / piece.len());
        let clean = Detector::new().scrub(&text);
        assert!(clean.len() <= text.len() * 8, "{piece}");
    }
}
