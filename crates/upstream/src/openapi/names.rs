//! Names of tools and arguments: legal for every provider, unique, and the same on the next import.

use std::collections::{BTreeMap, BTreeSet};

use countersign::alias::ALIAS_LENGTH_MAX;
use countersign_contract::Digest;

/// The longest name of an argument that every provider takes.
const ARGUMENT_CHARS_MAX: usize = 64;

/// The longest part of a name that is the upstream's.
const PREFIX_CHARS_MAX: usize = 16;

/// The names of the tools of one document.
#[derive(Debug)]
pub(crate) struct ToolNames<'k> {
    prefix: String,
    /// Names that operations have from an earlier import.
    known: &'k BTreeMap<String, String>,
    taken: BTreeSet<String>,
}

impl<'k> ToolNames<'k> {
    pub(crate) fn new(upstream: &str, known: &'k BTreeMap<String, String>) -> Self {
        let words = snake(upstream);
        let prefix = match cut(&words, PREFIX_CHARS_MAX).trim_end_matches('_') {
            "" => "api".to_owned(),
            prefix => prefix.to_owned(),
        };
        Self {
            prefix,
            known,
            taken: known.values().map(|name| folded(name)).collect(),
        }
    }

    /// Returns the name of an operation: the one that it had before, or one made of its id, or of its method and path.
    ///
    /// It is no longer than a provider's alias, so that every provider shows the same name.
    pub(crate) fn name(&mut self, operation: &str, id: Option<&str>) -> String {
        if let Some(name) = self.known.get(operation) {
            return name.clone();
        }
        let words = id.map(snake).filter(|words| !words.is_empty());
        let words = words.unwrap_or_else(|| snake(operation));
        let most = ALIAS_LENGTH_MAX - self.prefix.len() - 1;
        let mut name = format!(
            "{}.{}",
            self.prefix,
            shortened(&words, most, operation, false)
        );
        if !self.taken.insert(folded(&name)) {
            name = format!(
                "{}.{}",
                self.prefix,
                shortened(&words, most, operation, true)
            );
            // Two digests of six digits that meet are told apart by a number.
            let base = name.clone();
            let mut number = 2;
            while !self.taken.insert(folded(&name)) {
                let suffix = format!("_{number}");
                name = format!("{}{suffix}", cut(&base, ALIAS_LENGTH_MAX - suffix.len()));
                number += 1;
            }
        }
        name
    }
}

/// Names that a provider cannot tell apart.
fn folded(name: &str) -> String {
    name.replace('.', "_").to_ascii_lowercase()
}

/// The words, cut between two words and with a digest of the operation, if they are too long or taken.
fn shortened(words: &str, most: usize, operation: &str, is_taken: bool) -> String {
    if words.len() <= most && !is_taken {
        return words.to_owned();
    }
    let digest = Digest::of_bytes(operation.as_bytes()).to_string();
    let digest = digest.rsplit(':').next().unwrap_or_default();
    let digest: String = digest.chars().take(6).collect();
    let kept = cut(words, most.saturating_sub(digest.len() + 1));
    let whole = kept
        .rfind('_')
        .filter(|at| kept.len() < words.len() && *at * 2 > kept.len());
    let kept = kept.get(..whole.unwrap_or(kept.len())).unwrap_or_default();
    format!("{}_{digest}", kept.trim_end_matches('_'))
}

fn cut(text: &str, most: usize) -> &str {
    text.get(..most.min(text.len())).unwrap_or(text)
}

/// Small letters and digits with `_` between the words: `reposListForOrg` and `repos/list-for-org` are `repos_list_for_org`. A letter
/// comes first.
pub(crate) fn snake(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut last = ' ';
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        if !c.is_ascii_alphanumeric() {
            last = c;
            continue;
        }
        let ends_capitals = last.is_ascii_uppercase()
            && c.is_ascii_uppercase()
            && characters.peek().is_some_and(char::is_ascii_lowercase);
        let starts_word = !last.is_ascii_alphanumeric()
            || (c.is_ascii_uppercase() && !last.is_ascii_uppercase())
            || ends_capitals;
        if starts_word && !out.is_empty() && !out.ends_with('_') {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
        last = c;
    }
    let has_letter_first = out.starts_with(|c: char| c.is_ascii_alphabetic());
    match has_letter_first {
        true => out,
        false if out.is_empty() => out,
        false => format!("n{out}"),
    }
}

/// The names of the arguments of one tool.
#[derive(Debug, Default)]
pub(crate) struct ArgumentNames {
    taken: BTreeSet<String>,
}

impl ArgumentNames {
    /// A name that every provider takes, and that no other argument has. `place` tells two of one name apart.
    pub(crate) fn name(&mut self, wire: &str, place: &str) -> String {
        let legal = legal(wire);
        let short = cut(&legal, ARGUMENT_CHARS_MAX - 10).to_owned();
        let legal = if legal.len() > ARGUMENT_CHARS_MAX {
            short.clone()
        } else {
            legal
        };
        let candidates = [legal, format!("{short}_{place}")];
        let numbered = (2..).map(|number| format!("{short}_{number}"));
        let mut all = candidates.into_iter().chain(numbered);
        all.find(|name| self.taken.insert(name.clone()))
            .unwrap_or_default()
    }
}

/// A name with letters, digits, `_`, `.` and `-` only: `filter[name]` is `filter_name`, `$top` is `top`.
fn legal(wire: &str) -> String {
    let mut out = String::with_capacity(wire.len());
    for c in wire.chars() {
        if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with('_') {
            out.push('_');
        }
    }
    let trimmed = if out.len() < wire.len() || wire.ends_with(']') {
        out.trim_end_matches('_')
    } else {
        &out
    };
    match trimmed {
        "" => "argument".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_of_every_spelling() {
        let check = |text: &str, expected: &str| assert_eq!(snake(text), expected);
        check("reposListForOrg", "repos_list_for_org");
        check("repos/list-for-org", "repos_list_for_org");
        check("GET /users/{id}/posts", "get_users_id_posts");
        check("HTTPServer.getURL2", "http_server_get_url2");
        check("2fa/enable", "n2fa_enable");
        check("获取", "");
        check("__a__B", "a_b");
    }

    #[test]
    fn arguments_of_one_name_stay_apart() {
        let mut names = ArgumentNames::default();
        let made: Vec<String> = [
            ("id", "path"),
            ("id", "query"),
            ("id", "body"),
            ("filter[a]", "query"),
            ("$top", "query"),
            ("获取", "query"),
        ]
        .map(|(wire, place)| names.name(wire, place))
        .into();
        assert_eq!(
            made,
            ["id", "id_query", "id_body", "filter_a", "top", "argument"]
        );
    }

    /// An operation keeps its name when others come or go.
    #[test]
    fn a_name_is_kept() {
        let none = BTreeMap::new();
        let mut first = ToolNames::new("crm", &none);
        let old = first.name("GET /a", Some("list"));
        assert_eq!(old, "crm.list");
        let known = BTreeMap::from([("GET /a".to_owned(), old.clone())]);
        let mut second = ToolNames::new("crm", &known);
        let other = second.name("GET /b", Some("List"));
        assert_ne!(other, old);
        assert_eq!(second.name("GET /a", Some("renamed")), old);
    }

    proptest! {
        /// Names are unique, legal for every provider, and the same for the same document.
        #[test]
        fn names_are_legal_unique_and_stable(
            upstream in "\\PC{0,40}",
            operations in prop::collection::btree_set(("\\PC{0,80}", prop::option::of("\\PC{0,90}|[a-zA-Z]{60,90}|list|List")), 1..40),
        ) {
            let none = BTreeMap::new();
            let make = || {
                let mut names = ToolNames::new(&upstream, &none);
                let name = |(at, (path, id)): (usize, &(String, Option<String>))| names.name(&format!("GET /{path}{at}"), id.as_deref());
                operations.iter().enumerate().map(name).collect::<Vec<_>>()
            };
            let made = make();
            prop_assert_eq!(&made, &make());
            let mut aliases = BTreeSet::new();
            for name in &made {
                let legal = countersign_contract::ToolName::new(name.as_str());
                prop_assert!(legal.is_ok(), "{name}");
                let alias = countersign::alias::alias(&legal.unwrap());
                prop_assert_eq!(&alias, &name.replace('.', "_"), "no provider sees a cut name");
                prop_assert!(alias.len() <= 64 && alias.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')));
                prop_assert!(aliases.insert(alias));
            }
        }

        #[test]
        fn names_of_arguments_are_legal_and_unique(wires in prop::collection::vec("\\PC{0,90}|id|[a-z]{70,80}", 1..40)) {
            let mut names = ArgumentNames::default();
            let mut all = BTreeSet::new();
            for wire in &wires {
                let name = names.name(wire, "query");
                prop_assert!((1..=64).contains(&name.len()), "{name}");
                prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')));
                prop_assert!(all.insert(name));
            }
        }
    }
}
