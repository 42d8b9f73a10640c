//! Reading a leaf of the log as a record, with the rules of its version.

use serde::Deserialize;
use serde_json::Value;

use super::{EvidenceRecord, VERSION};
use crate::canonical;

/// Reason for which a leaf is not a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeafError {
    /// The leaf has another canonical text, or none. Usually the leaf was written or edited by another program.
    #[error("the text isn't canonical JSON{}", reason(.0.as_ref()))]
    NotCanonical(Option<canonical::Error>),
    /// The version is not known, usually because a later program has written the leaf.
    #[error("version {found} is not known; 1 to {VERSION} are read")]
    UnknownVersion {
        /// The version in the leaf.
        found: u64,
    },
    /// Members are missing, unknown or of another type.
    /// Usually a newer version has written the record, or it was edited.
    #[error("{reason}")]
    Shape {
        /// Message of the JSON reader.
        reason: String,
    },
    /// A member that only other versions have. Usually the number of the version was edited.
    #[error("a record of version {version} has no member {member:?}")]
    Foreign {
        /// The version of the record.
        version: u8,
        /// The member.
        member: &'static str,
    },
    /// A member that this version always has. Usually the record was edited.
    #[error("a record of version {version} needs the member {member:?}")]
    Missing {
        /// The version of the record.
        version: u8,
        /// The member.
        member: &'static str,
    },
    /// An inner member is unknown, or a member is there although it is empty.
    /// Usually another program has written the record.
    #[error("an inner member is not known, or an empty member is not left out")]
    Spelling,
}

impl EvidenceRecord {
    /// Reads a leaf. A record has exactly one leaf: members that are unknown, empty or of another version
    /// are refused at every depth, except inside `act`, `arguments.public` and `arguments.redacted`.
    pub fn from_leaf(leaf: &str) -> Result<Self, LeafError> {
        #[derive(Deserialize)]
        struct Head {
            v: u64,
        }

        match canonical::from_json_text(leaf) {
            Ok(canonical) if canonical == leaf => {}
            Ok(_) => return Err(LeafError::NotCanonical(None)),
            Err(error) => return Err(LeafError::NotCanonical(Some(error))),
        }
        let shape = |error: serde_json::Error| LeafError::Shape {
            reason: error.to_string(),
        };
        // The version comes first: what a later version says cannot be judged by these types.
        let Head { v: found } = serde_json::from_str(leaf).map_err(shape)?;
        if !(1..=u64::from(VERSION)).contains(&found) {
            return Err(LeafError::UnknownVersion { found });
        }
        let record: Self = serde_json::from_str(leaf).map_err(shape)?;
        record.check_version()?;
        // What the types don't know, and members that are empty, are lost on the way back.
        let value = serde_json::to_value(&record).map_err(shape)?;
        match canonical::to_string(&value) {
            Ok(again) if again == leaf => Ok(record),
            Ok(_) | Err(_) => Err(LeafError::Spelling),
        }
    }

    /// Checks that every member belongs to the version that the record names.
    fn check_version(&self) -> Result<(), LeafError> {
        let version = self.v;
        let arguments = self.arguments.as_ref();
        let redacted = arguments.map_or(&Value::Null, |arguments| &arguments.redacted);
        let public = arguments.map_or(&Value::Null, |arguments| &arguments.public);
        let raw = arguments.and_then(|arguments| arguments.raw);
        let first = [
            ("trace_id", self.trace_id.is_some()),
            ("sources", !self.sources.is_empty()),
            ("arguments.redacted", !redacted.is_null()),
        ];
        let second = [
            ("credential", self.credential.is_some()),
            ("inherited_rules", !self.inherited_rules.is_empty()),
            ("shown", self.shown.is_some()),
            ("arguments.raw", raw.is_some()),
            ("arguments.public", !public.is_null()),
            ("links.role", self.links.iter().any(|l| l.role.is_some())),
            ("links.fresh", self.links.iter().any(|l| l.fresh.is_some())),
        ];
        let unbound = arguments.is_some_and(|arguments| arguments.commitment.is_none());
        let silent = self.links.iter().any(|link| link.role.is_none());
        let (foreign, missing) = if version == 1 {
            (&second[..], unbound.then_some("arguments.commitment"))
        } else {
            (&first[..], silent.then_some("links.role"))
        };
        if let Some((member, _)) = foreign.iter().find(|(_, is_there)| *is_there) {
            return Err(LeafError::Foreign { version, member });
        }
        match missing {
            Some(member) => Err(LeafError::Missing { version, member }),
            None => Ok(()),
        }
    }
}

fn reason(error: Option<&canonical::Error>) -> String {
    error.map_or_else(String::new, |error| format!(": {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(leaf: &str, expected: Result<(), &str>) {
        let found = EvidenceRecord::from_leaf(leaf).map(drop);
        let found = found.map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned), "{leaf}");
    }

    /// A22: a verifier refuses unknown members, at every depth and in every version.
    #[test]
    fn a_record_has_one_leaf_and_the_members_of_its_version() {
        let leaf = |members: &str, v: u8| {
            let text = format!(r#"{{"at":"","id":"ev_1","kind":"call"{members},"v":{v}}}"#);
            canonical::from_json_text(&text).unwrap()
        };
        let digest = format!("sha256:{}", "0".repeat(64));
        let link =
            |members: &str| format!(r#","links":[{{"id":"ev_2","leaf":"{digest}"{members}}}]"#);
        let arguments = |members: &str| format!(r#","arguments":{{{members}}}"#);
        let commitment = format!(r#""commitment":"{digest}""#);
        let role = r#","role":"rests_on""#;
        let spelling = Err("an inner member is not known, or an empty member is not left out");

        check(&leaf("", 1), Ok(()));
        check(&leaf("", 2), Ok(()));
        check(&leaf("", 0), Err("version 0 is not known; 1 to 2 are read"));
        check(
            &leaf(r#","gift":1"#, 3),
            Err("version 3 is not known; 1 to 2 are read"),
        );
        check(&leaf(&link(""), 1), Ok(()));
        check(&leaf(&link(role), 2), Ok(()));
        check(
            &leaf(&link(""), 2),
            Err(r#"a record of version 2 needs the member "links.role""#),
        );
        check(
            &leaf(&link(role), 1),
            Err(r#"a record of version 1 has no member "links.role""#),
        );
        check(&leaf(&arguments(&commitment), 1), Ok(()));
        check(&leaf(&arguments(""), 2), Ok(()));
        check(
            &leaf(&arguments(""), 1),
            Err(r#"a record of version 1 needs the member "arguments.commitment""#),
        );
        check(
            &leaf(&arguments(r#""redacted":{"a":1}"#), 2),
            Err(r#"a record of version 2 has no member "arguments.redacted""#),
        );
        for member in [
            format!(r#","shown":"{digest}""#),
            r#","credential":{"id":"k","type":"api_key"}"#.to_owned(),
            r#","inherited_rules":{"tax":["1"]}"#.to_owned(),
            arguments(&format!(r#"{commitment},"raw":"{digest}""#)),
            arguments(&format!(r#"{commitment},"public":1"#)),
        ] {
            check(&leaf(&member, 2), Ok(()));
            let refused = EvidenceRecord::from_leaf(&leaf(&member, 1));
            assert!(
                matches!(refused, Err(LeafError::Foreign { .. })),
                "{member}"
            );
        }
        for member in [
            r#","links":[]"#,
            r#","dry_run":false"#,
            r#","subject":null"#,
            r#","retention":"standard""#,
            r#","binding":{"gift":1}"#,
            r#","inherited_rules":{"tax":["2","1"]}"#,
        ] {
            check(&leaf(member, 2), spelling);
        }
        check(r#"{"v": 2}"#, Err("the text isn't canonical JSON"));
    }
}
