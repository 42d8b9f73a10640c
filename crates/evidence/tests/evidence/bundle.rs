//! Verification of valid and invalid bundles, down to the single byte.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::common::cases::{self, Case};
use crate::common::sample::{ORDER, QUOTE, SHIPPING, log, public_key};
use countersign_contract::canonical;
use countersign_evidence::bundle::{
    BUNDLE_BYTES_MAX, Bundle, BundleError, BundledRecord, Consistency, Content, NotChecked,
    RECORDS_MAX, Report, Trust, Verdict,
};
use countersign_evidence::note::VerifyingKey;
use serde_json::json;

fn report(case: &Case) -> Result<Report, BundleError> {
    let key: Option<VerifyingKey> = case.key.as_ref().map(|key| key.parse().unwrap());
    let bundle = Bundle::parse(&case.bundle)?;
    Ok(bundle.verify(key.as_ref(), case.held.as_deref()))
}

/// All cases, built once: each signs checkpoints and seals payloads.
static CASES: LazyLock<Vec<Case>> = LazyLock::new(cases::all);

fn named(name: &str) -> &'static Case {
    CASES.iter().find(|case| case.name == name).unwrap()
}

fn found(case: &Case) -> Vec<(&'static str, Option<u64>)> {
    match report(case) {
        Err(error) => vec![(error.code(), None)],
        Ok(report) => {
            let expected = match (report.findings.is_empty(), &case.key) {
                (false, _) => Verdict::Invalid,
                (true, Some(_)) => Verdict::Valid,
                (true, None) => Verdict::Consistent,
            };
            assert_eq!(report.verdict, expected, "{}", case.name);
            let place = |(index, _): &(u64, Option<String>)| *index;
            let finding = report.findings.iter();
            finding
                .map(|finding| (finding.fault.code(), finding.record.as_ref().map(place)))
                .collect()
        }
    }
}

/// Verification finds exactly the faults of every case.
#[test]
fn every_case_has_its_faults_and_no_others() {
    for case in &*CASES {
        assert_eq!(found(case), case.findings, "{}", case.name);
    }
}

/// Returns the first cells of the table whose head starts like this.
fn rows<'a>(page: &'a str, head: &str) -> BTreeSet<&'a str> {
    let (_, table) = page.split_once(head).expect(head);
    let cell = |line: &'a str| line.strip_prefix("| `")?.split('`').next();
    table.lines().skip(2).map_while(cell).collect()
}

fn page() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/evidence-format.md");
    std::fs::read_to_string(path).unwrap()
}

/// Returns the codes in the program's own source: those behind an arrow in `fn code`.
fn codes(source: &'static str) -> BTreeSet<&'static str> {
    let (_, body) = source.split_once("fn code(&self)").expect("fn code");
    let (body, _) = body.split_once("\n    }\n").expect("its end");
    let code = |line: &'static str| line.split_once("=> \"")?.1.split('"').next();
    body.lines().filter_map(code).collect()
}

/// A22: every fault in the code has a row in the specification and a vector, and there are no others.
#[test]
fn every_fault_has_a_case_and_a_row() {
    let known: BTreeSet<&str> = [
        codes(include_str!("../../src/bundle.rs")),
        codes(include_str!("../../src/bundle/fault.rs")),
        codes(include_str!("../../src/freshness.rs")),
    ]
    .into_iter()
    .flatten()
    .collect();
    let findings = CASES.iter().flat_map(|case| &case.findings);
    // A bundle beyond its limit is tested below, and not kept as a file.
    let shown: BTreeSet<&str> = findings.map(|f| f.0).chain(["too_large"]).collect();
    assert_eq!(shown, known);
    assert_eq!(rows(&page(), "| code | "), known);
}

/// Every aspect that can be left unchecked has a row, a vector that leaves it open, and one that does not.
#[test]
fn everything_that_can_be_left_open_has_a_case_and_a_row() {
    let names: BTreeSet<&str> = NotChecked::ALL.map(NotChecked::as_str).into();
    assert_eq!(rows(&page(), "| not checked | "), names);
    let reports: Vec<Report> = CASES.iter().filter_map(|case| report(case).ok()).collect();
    for what in NotChecked::ALL {
        let is_open = |report: &&Report| report.not_checked.contains(&what);
        let open = reports.iter().filter(is_open).count();
        assert!(0 < open && open < reports.len(), "{what:?}");
        assert_eq!(json!(what), what.as_str());
    }
}

/// A22: a report lists the aspects that were not checked, case by case.
#[test]
fn a_report_says_what_it_did_not_check() {
    let check = |name: &str, expected: &[&str]| {
        let report = report(named(name)).unwrap();
        let found: Vec<&str> = report
            .not_checked
            .iter()
            .map(|what| what.as_str())
            .collect();
        assert_eq!(found, expected, "{name}");
    };
    check(
        "valid-opened",
        &["rewriting", "freshness", "sealed_payloads"],
    );
    check(
        "valid-erased",
        &["rewriting", "freshness", "absent_content"],
    );
    check(
        "valid-key-of-the-bundle",
        &["signer", "rewriting", "freshness", "absent_content"],
    );
    check(
        "valid-link-expired",
        &["rewriting", "freshness", "absent_content"],
    );
    check("held-same", &["freshness", "absent_content"]);
    check(
        "valid-witnessed",
        &[
            "rewriting",
            "further_signatures",
            "freshness",
            "absent_content",
        ],
    );
    check("v2-valid-opened", &["rewriting", "sealed_payloads"]);
    check("v2-valid-raw-opened", &["rewriting", "absent_content"]);
    check(
        "v2-valid-looked-at-expired",
        &["rewriting", "sealed_payloads"],
    );
    check(
        "v2-valid-without-a-claim",
        &["rewriting", "freshness", "absent_content"],
    );
    check(
        "v2-valid-claim-outside",
        &["rewriting", "links_outside", "freshness", "sealed_payloads"],
    );
    check(
        "v2-valid-grown-from-version-1",
        &["links_outside", "sealed_payloads"],
    );
    // A held checkpoint cannot be compared with a log whose signature is not valid.
    let forged = Bundle::parse(&named("key-exchanged").bundle).unwrap();
    let open = forged.verify(None, Some(&log().checkpoint(7))).not_checked;
    assert!(open.contains(&NotChecked::Rewriting), "{open:?}");
}

/// A8, A22: a late refusal, payment and dispute are valid; a claim that contradicts itself is not.
#[test]
fn a_verifier_checks_claims_and_never_judges_freshness() {
    let check = |name: &str, verdict: Verdict| {
        assert_eq!(report(named(name)).unwrap().verdict, verdict, "{name}");
    };
    check("v2-valid-looked-at-expired", Verdict::Valid);
    check("valid-link-expired", Verdict::Valid);
    check("v2-valid-without-a-claim", Verdict::Valid);
    check("claim-expired", Verdict::Invalid);
    check("claim-expired-outside", Verdict::Invalid);
    check("valid-key-of-the-bundle", Verdict::Consistent);
}

#[test]
fn a_verdict_has_a_word_a_line_and_an_exit_code() {
    let all = [Verdict::Valid, Verdict::Consistent, Verdict::Invalid];
    let said = all.map(|verdict| (verdict.as_str(), verdict.line(), verdict.exit_code()));
    let expected = [
        ("valid", "valid", 0),
        ("consistent", "consistent, signer not checked", 4),
        ("invalid", "not valid", 3),
    ];
    assert_eq!(said, expected);
    let report = log().bundle(&[QUOTE]).verify(None, None);
    let report = json!(report);
    assert_eq!(
        (&report["verdict"], &report["valid"]),
        (&json!("consistent"), &json!(false))
    );
    let report = json!(log().bundle(&[QUOTE]).verify(Some(&public_key()), None));
    assert_eq!(
        (&report["verdict"], &report["valid"]),
        (&json!("valid"), &json!(true))
    );
}

/// Every flipped byte of a bundle is detected, except in white space and spelling without meaning.
#[test]
fn every_flipped_byte_is_found() {
    let bundle = log().bundle(&[ORDER]);
    let bundle = bundle.with_earlier(log().checkpoint(3), &log().growth_from(3));
    let text = bundle.to_json();
    let meaning = canonical::from_json_text(&text).unwrap();
    let (mut refused, mut harmless) = (0, 0);
    for at in 0..text.len() {
        for bit in [0x01, 0x20] {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= bit;
            let valid = Bundle::parse(&bytes)
                .is_ok_and(|bundle| bundle.verify(Some(&public_key()), None).is_valid());
            let flipped = String::from_utf8(bytes).unwrap_or_default();
            let same = canonical::from_json_text(&flipped).as_ref() == Ok(&meaning);
            assert_eq!(
                valid,
                same,
                "byte {at} ({:?})",
                &text[at.saturating_sub(9)..=at]
            );
            if same { harmless += 1 } else { refused += 1 }
        }
    }
    assert_eq!(refused + harmless, text.len() * 2);
    assert!(harmless * 20 < refused, "{harmless} of {refused}");
}

#[test]
fn a_report_says_what_is_known_of_the_content() {
    use Content::{Absent, Mismatch, Nothing, Opened, PartlyOpened, Sealed};

    let content = |name: &str| -> Vec<Content> {
        let records = report(named(name)).unwrap().records;
        records.iter().map(|record| record.content).collect()
    };
    assert_eq!(content("valid-opened"), [Opened; 3]);
    assert_eq!(content("valid-sealed"), [Sealed; 3]);
    assert_eq!(content("valid-erased"), [Absent; 3]);
    assert_eq!(content("value-altered"), [Mismatch, Opened, Opened]);
    assert_eq!(content("payload-of-another"), [Mismatch, Opened, Opened]);
    assert_eq!(
        content("valid-partly-opened"),
        [PartlyOpened, Opened, Opened]
    );
    assert_eq!(content("v2-valid-opened"), [Opened; 4]);
    assert_eq!(content("v2-valid-raw-opened"), [PartlyOpened]);
    assert_eq!(content("shown-altered"), [Mismatch]);
    assert_eq!(
        content("valid-everything"),
        [Nothing, Opened, Opened, Nothing, Opened, Nothing, Nothing]
    );
}

#[test]
fn a_report_says_what_it_rests_on() {
    let bundle = log().bundle(&[QUOTE, ORDER]);
    let report = bundle.verify(None, None);
    assert_eq!(report.trust, Trust::Bundle);
    assert_eq!(report.consistency, Consistency::NotAsked);
    assert_eq!(report.records[1].links, ["ev_quote"]);
    assert_eq!(report.records[1].not_included, ["ev_shipping"]);
    let held = log().checkpoint(3);
    let grown = bundle.with_earlier(held.clone(), &log().growth_from(3));
    let report = grown.verify(Some(&public_key()), Some(&held));
    assert_eq!(
        (report.trust, report.consistency),
        (Trust::Given, Consistency::Grown)
    );
    let witnessed = self::report(named("valid-witnessed")).unwrap();
    assert_eq!(witnessed.further_signatures, 1);
}

/// A finding names the record, the expected and the actual value.
#[test]
fn findings_say_what_differed() {
    let message = |name: &str| -> String {
        match report(named(name)) {
            Ok(report) => report.findings[0].to_string(),
            Err(error) => error.to_string(),
        }
    };
    insta::assert_snapshot!(message("record-moved"), @"record 5 (ev_order): it is not shown to be in the log: the proof leads to another root");
    insta::assert_snapshot!(message("value-altered"), @"record 1 (ev_quote): its data does not match the commitment: it gives sha256:879ecfcba439efa8aad44f9e3cdc107a100bd5d2c3329c5332a1e4dcf72b8690, not sha256:8812a50eaf1ec8f4171df10a038ddd261bddfd02e063f49010bbd37165b35471");
    insta::assert_snapshot!(message("claim-expired"), @r#"record 11 (ev_draft): it claims that "ev_offer" was fresh and used it at 2026-11-16T09:05:00.250000001Z, after 2026-11-16T09:05:00.25Z"#);
    insta::assert_snapshot!(message("claim-of-another-window"), @r#"record 11 (ev_draft): it claims that "ev_offer" was fresh until 2026-11-16T09:05:00.250000001Z, and that record says 2026-11-16T09:05:00.25Z"#);
    insta::assert_snapshot!(message("claim-without-a-window"), @r#"record 11 (ev_draft): it claims that "ev_allowed" was fresh until 2026-11-16T09:05:00.25Z, and that record says nothing"#);
    insta::assert_snapshot!(message("claim-on-looked-at"), @r#"record 11 (ev_draft): it claims that "ev_offer" was fresh and does not rest on it"#);
    insta::assert_snapshot!(message("claim-time-malformed"), @r#"record 11 (ev_draft): it claims that "ev_offer" was fresh with "2026-11-16T10:05:00+01:00", which isn't a time of the form 2026-11-15T12:00:00Z"#);
    insta::assert_snapshot!(message("link-to-a-later-record"), @r#"record 8 (ev_offer): it links "ev_freight", which stands at 9, not before it"#);
    insta::assert_snapshot!(message("opening-with-both"), @"record 11 (ev_draft): its data is opened with both a value and a text, or with neither");
    insta::assert_snapshot!(message("leaf-of-a-later-version"), @"record 11: its leaf isn't a record: version 3 is not known; 1 to 2 are read");
    insta::assert_snapshot!(message("role-in-version-1"), @r#"record 4: its leaf isn't a record: a record of version 1 has no member "links.role""#);
    insta::assert_snapshot!(message("held-forked"), @"the log was rewritten: at 3 leaves it has another root than the held checkpoint");
    insta::assert_snapshot!(message("checkpoint-resized"), @r#"the checkpoint is not valid: the signature of "log.example.com/orders" is not of this text"#);
    insta::assert_snapshot!(message("later-format"), @r#"the format "countersign.dev/bundle@v2" is not known; expected "countersign.dev/bundle@v1""#);
    insta::assert_snapshot!(message("member-twice"), @r#"the bundle cannot be read: the member "/summary" is there twice; send it once"#);
    insta::assert_snapshot!(message("missing-member"), @"this is not an evidence bundle: unknown field `leave`, expected one of `index`, `leaf`, `proof`, `payload`, `opened`");
}

#[test]
fn the_summary_is_for_people() {
    insta::assert_snapshot!(log().bundle(&[QUOTE, SHIPPING, ORDER, 5]).summary, @r"
    Log: log.example.com/orders, 7 leaves
    Records: 4 (call 3, denial 1), 2026-11-15T12:00:00.25Z to 2026-11-15T12:02:00Z
    Tools: order.create_draft, payment.charge, pricing.get_quote, shipping.estimate
    ");
}

#[test]
fn limits_are_kept() {
    let mut bundle = log().bundle(&[QUOTE]);
    let record: BundledRecord = BundledRecord::new(0, "", &[]);
    bundle.records = vec![record; RECORDS_MAX];
    assert!(Bundle::parse(bundle.to_json()).is_ok());
    bundle.records.push(bundle.records[0].clone());
    let found = RECORDS_MAX + 1;
    assert_eq!(
        Bundle::parse(bundle.to_json()),
        Err(BundleError::RecordCount { found })
    );
    let found = BUNDLE_BYTES_MAX + 1;
    let error = Bundle::parse(" ".repeat(found)).unwrap_err();
    assert_eq!(
        (error.code(), error),
        ("too_large", BundleError::TooLarge { found })
    );
}

/// A22: a list in the place of an object is refused, as other implementations do.
#[test]
fn a_list_is_no_object() {
    let file = include_str!("../../../../docs/evidence-vectors/bundles/v2-valid-opened.json");
    let sound: serde_json::Value = serde_json::from_str(file).unwrap();
    assert!(Bundle::parse(sound.to_string()).is_ok());
    for (place, members) in [
        (
            "/records/0",
            &["index", "leaf", "proof", "payload", "opened"][..],
        ),
        ("/records/0/opened", &["arguments", "data", "raw", "shown"]),
        ("/records/0/opened/arguments", &["salt", "value", "text"]),
    ] {
        let mut altered = sound.clone();
        let object = altered.pointer_mut(place).unwrap();
        *object = members.iter().map(|name| object[*name].clone()).collect();
        let refused = Bundle::parse(altered.to_string()).map_err(|error| error.code());
        assert_eq!(refused.map(|_| ()), Err("not_a_bundle"), "{place}");
    }
}
