//! One ZIP for a dispute: the case to read, the bundle, the page that verifies it, and what to do with them.

use std::collections::BTreeSet;
use std::io::{Cursor, Write as _};

use countersign::contract::{EvidenceRecord, Language, SnapshotId};
use countersign_evidence::bundle::Bundle;
use countersign_evidence::page::{VERIFIER, VERIFIER_NAME};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::{Material, file, tell};

/// Number of lines of a step's details in a file; the bundle has all of them.
const DETAILS_MAX: usize = 400;

/// Instructions for the files.
const README: &str = include_str!("../../templates/case_readme.txt");

/// Reasons why a ZIP could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ZipError {
    /// The case could not be written as a page.
    /// Usually a record of the case has a form that this version does not know.
    #[error("the case could not be written as a page")]
    Page(#[from] askama::Error),
    /// The archive could not be written, usually because it is too large.
    #[error("the archive could not be written")]
    Archive(#[from] zip::result::ZipError),
    /// The archive could not be written, usually because it is too large.
    #[error("the archive could not be written")]
    Io(#[from] std::io::Error),
}

/// A ZIP, and the name under which it is handed out.
#[derive(Debug)]
pub struct Archived {
    /// Such as `case-order_1.zip`.
    pub name: String,
    /// The file.
    pub bytes: Vec<u8>,
}

/// Makes the ZIP of a case. The case is written from `bundle`, so it shows what the bundle proves.
pub fn zip(material: Material<'_>, bundle: &Bundle, now: Timestamp) -> Result<Archived, ZipError> {
    // The access that made the bundle is recorded after it, so no bundle holds its own.
    let bundled: BTreeSet<SnapshotId> = bundle
        .records
        .iter()
        .filter_map(|record| serde_json::from_str::<EvidenceRecord>(&record.leaf).ok())
        .map(|record| record.id)
        .collect();
    let mut case = material.case.clone();
    case.records
        .retain(|part| bundled.contains(&part.record.id));
    let case = &case;
    let name = folder_of(case.things.first().unwrap_or(&case.name));
    let told = |language| {
        let material = Material {
            case,
            bundle: material.bundle.map(|_| bundle),
            details_max: DETAILS_MAX,
            ..material
        };
        file::html(&tell(material, language))
    };
    let readme = README.replace("{key}", &bundle.public_key);
    let files = [
        ("README.txt", readme),
        ("case.html", told(Language::English)?),
        ("case.zh.html", told(Language::Chinese)?),
        ("bundle.json", bundle.to_json()),
        (VERIFIER_NAME, VERIFIER.to_owned()),
    ];
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .last_modified_time(moment(now))
        .unix_permissions(0o600);
    for (file, content) in files {
        writer.start_file(format!("{name}/{file}"), options)?;
        writer.write_all(content.as_bytes())?;
    }
    Ok(Archived {
        bytes: writer.finish()?.into_inner(),
        name: format!("{name}.zip"),
    })
}

/// A name that every file system takes: what was named may hold anything.
fn folder_of(name: &str) -> String {
    let safe = |c: char| {
        let is_safe = c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if is_safe { c } else { '-' }
    };
    let name: String = name.chars().take(80).map(safe).collect();
    format!("case-{name}")
}

fn moment(now: Timestamp) -> DateTime {
    let now = now.to_zoned(TimeZone::UTC);
    let small = |value: i8| u8::try_from(value).unwrap_or_default();
    let year = u16::try_from(now.year()).unwrap_or_default();
    let time = DateTime::from_date_and_time(
        year,
        small(now.month()),
        small(now.day()),
        small(now.hour()),
        small(now.minute()),
        small(now.second()),
    );
    time.unwrap_or_default()
}
