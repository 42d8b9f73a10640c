//! What is found in bundles that hold and in bundles that do not, down to the single byte.

use std::collections::BTreeSet;

use crate::common::cases::{self, Case};
use crate::common::sample::{ORDER, QUOTE, SHIPPING, log, public_key};
use countersign_contract::canonical;
use countersign_evidence::bundle::{
    BUNDLE_BYTES_MAX, Bundle, BundleError, BundledRecord, Consistency, Content, RECORDS_MAX,
    Report, Trust,
};
use countersign_evidence::note::VerifyingKey;

fn report(case: &Case) -> Result<Report, BundleError> {
    let key: Option<VerifyingKey> = case.key.as_ref().map(|key| key.parse().unwrap());
    let bundle = Bundle::parse(&case.bundle)?;
    Ok(bundle.verify(key.as_ref(), case.held.as_deref()))
}

fn found(case: &Case) -> Vec<(&'static str, Option<u64>)> {
    match report(case) {
        Err(error) => vec![(error.code(), None)],
        Ok(report) => {
            assert_eq!(report.is_valid(), report.findings.is_empty());
            let place = |(index, _): &(u64, Option<String>)| *index;
            let finding = report.findings.iter();
            finding
                .map(|finding| (finding.fault.code(), finding.record.as_ref().map(place)))
                .collect()
        }
    }
}

/// Every case is found to have its faults, exactly these.
#[test]
fn every_case_has_its_faults_and_no_others() {
    for case in cases::all() {
        assert_eq!(found(&case), case.findings, "{}", case.name);
    }
}

/// Every fault that the specification names has a case, and every case's faults are specified.
#[test]
fn every_fault_has_a_case_and_a_row() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/evidence-format.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (_, table) = page.split_once("| code | ").expect("the table of faults");
    let rows: BTreeSet<&str> = table
        .lines()
        .skip(2)
        .map_while(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    let all = cases::all();
    // A bundle beyond its limit is tested below, and not kept as a file.
    let mut shown: BTreeSet<&str> = all
        .iter()
        .flat_map(|case| &case.findings)
        .map(|f| f.0)
        .collect();
    shown.insert("too_large");
    assert_eq!(rows, shown);
}

/// Every byte of a bundle counts, but for white space and spelling that mean nothing.
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
        let case = cases::all()
            .into_iter()
            .find(|case| case.name == name)
            .unwrap();
        let records = report(&case).unwrap().records;
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
    let witnessed = cases::all()
        .into_iter()
        .find(|case| case.name == "valid-witnessed")
        .unwrap();
    assert_eq!(self::report(&witnessed).unwrap().further_signatures, 1);
}

/// A finding names the record, what was expected and what was there.
#[test]
fn findings_say_what_differed() {
    let message = |name: &str| -> String {
        let case = cases::all()
            .into_iter()
            .find(|case| case.name == name)
            .unwrap();
        match report(&case) {
            Ok(report) => report.findings[0].to_string(),
            Err(error) => error.to_string(),
        }
    };
    insta::assert_snapshot!(message("record-moved"), @"record 5 (ev_order): it is not shown to be in the log: the proof leads to another root");
    insta::assert_snapshot!(message("value-altered"), @"record 1 (ev_quote): its data do not match the commitment: they give sha256:879ecfcba439efa8aad44f9e3cdc107a100bd5d2c3329c5332a1e4dcf72b8690, not sha256:8812a50eaf1ec8f4171df10a038ddd261bddfd02e063f49010bbd37165b35471");
    insta::assert_snapshot!(message("link-expired"), @r#"record 4 (ev_order): it is of 2026-11-15T12:01:00.250000001Z and rests on "ev_quote", which was valid until 2026-11-15T12:01:00.25Z"#);
    insta::assert_snapshot!(message("held-forked"), @"the log was rewritten: at 3 leaves it has another root than the held checkpoint");
    insta::assert_snapshot!(message("checkpoint-resized"), @r#"the checkpoint does not hold: the signature of "log.example.com/orders" is not of this text"#);
    insta::assert_snapshot!(message("later-format"), @r#"the format "countersign.dev/bundle@v2" is not known; expected "countersign.dev/bundle@v1""#);
    insta::assert_snapshot!(message("member-twice"), @r#"the bundle cannot be read: the member "/summary" stands there twice; send it once"#);
    insta::assert_snapshot!(message("missing-member"), @"this is no evidence bundle: unknown field `leave`, expected one of `index`, `leaf`, `proof`, `payload`, `opened`");
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
