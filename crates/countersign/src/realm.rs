//! Realms: the users that a credential can speak for, and the rules for valid user ids.
//!
//! A user is (realm, id). The home realm has bare ids, such as `ann`: those of API keys, and of the issuer that the policy
//! gives the home realm. The users of any other realm have its name in front: `corp::ann`. So two issuers never share a user
//! unless the policy gives them the same realm.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::is_nfc;

use crate::visible::is_visible;

/// The text between the name of a realm and the id in it.
const SEPARATOR: &str = "::";

/// Maximum length of an id, in characters, and of a realm name.
const ID_CHARS_MAX: usize = 255;
const NAME_BYTES_MAX: usize = 32;

/// The users that a credential can speak for.
///
/// # Example
///
/// ```
/// use countersign::realm::Realm;
///
/// let corp = Realm::named("corp").expect("a short name");
/// assert_eq!(corp.id("ann").as_deref(), Some("corp::ann"));
/// assert_eq!(Realm::Home.id("ann").as_deref(), Some("ann"));
/// assert_eq!(Realm::Home.id("corp::ann"), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Realm {
    /// All users: for a program that vouches for its users, and for a key that the operator has made for it.
    #[default]
    Any,
    /// Users with bare ids.
    Home,
    /// Users with this name in front.
    Named(RealmName),
}

/// The name of a realm: up to 32 small letters, digits, `-` and `_`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealmName(String);

impl RealmName {
    /// The name as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Realm {
    /// The realm of this name; `None` if the name is invalid. `home` is the home realm.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "home" => Some(Self::Home),
            name if is_realm_name(name) => Some(Self::Named(RealmName(name.to_owned()))),
            _ => None,
        }
    }

    /// The id of a user of this realm; `None` if the text is not a valid id, or would be a user of another realm.
    pub fn id(&self, text: &str) -> Option<String> {
        let id = normalized(text)?;
        let is_bare = realm_of(&id).is_none();
        let id = match self {
            Self::Any => id,
            Self::Home if is_bare => id,
            Self::Named(name) if is_bare => format!("{}{SEPARATOR}{id}", name.as_str()),
            Self::Home | Self::Named(_) => return None,
        };
        normalized(&id)
    }

    /// True if the user with this id is of the realm.
    pub fn has(&self, id: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Home => realm_of(id).is_none(),
            Self::Named(name) => realm_of(id) == Some(name.as_str()),
        }
    }
}

/// The name of the realm that an id has in front; `None` for a bare one.
fn realm_of(id: &str) -> Option<&str> {
    // A program that acts for nobody keeps its state under such a name.
    let programs = ["agent/", "system/", "user/"];
    let id = programs
        .iter()
        .find_map(|kind| id.strip_prefix(kind))
        .unwrap_or(id);
    let (name, _) = id.split_once(SEPARATOR)?;
    is_realm_name(name).then_some(name)
}

/// The name of the realm of a user: `home` for a bare id.
///
/// ```
/// use countersign::realm::realm_name;
///
/// assert_eq!((realm_name("ann"), realm_name("corp::ann")), ("home", "corp"));
/// ```
pub fn realm_name(id: &str) -> &str {
    realm_of(id).unwrap_or("home")
}

fn is_realm_name(name: &str) -> bool {
    let is_letter =
        |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_');
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_letter)
}

/// The normalized id; `None` if the text is not a valid id. Two texts that people read as the same are the same id
/// (NFC), and every character of an id is visible.
///
/// ```
/// use countersign::realm::normalized;
///
/// assert_eq!(normalized("e\u{301}lan").as_deref(), Some("\u{e9}lan"));
/// assert_eq!(normalized("ann\u{202e}"), None);
/// ```
pub fn normalized(text: &str) -> Option<String> {
    // A character has four bytes at most, so a long text is never read to its end.
    if text.is_empty() || text.len() > 4 * ID_CHARS_MAX {
        return None;
    }
    let id: String = if is_nfc(text) {
        text.to_owned()
    } else {
        text.nfc().collect()
    };
    let is_bounded = id.chars().count() <= ID_CHARS_MAX;
    let has_edges = id.starts_with(char::is_whitespace) || id.ends_with(char::is_whitespace);
    // Any other space looks like this one.
    let is_one_space = |c: char| c == ' ' || !c.is_whitespace();
    let is_seen = |c: char| is_visible(c) && is_one_space(c);
    let is_somebody = realm_of(&id).is_none() || !id.ends_with(SEPARATOR);
    (is_bounded && !has_edges && is_somebody && id.chars().all(is_seen)).then_some(id)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_id_is_what_people_can_tell_apart() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(normalized(text).as_deref(), expected, "{text:?}");
        };
        check("ann", Some("ann"));
        check("auth0|5f7c", Some("auth0|5f7c"));
        check("安娜", Some("安娜"));
        check("e\u{301}", Some("\u{e9}"));
        check(&"é".repeat(255), Some(&"é".repeat(255)));
        check("first last", Some("first last"));
        for refused in [
            "",
            " ann",
            "ann ",
            "an\u{202e}n",
            "ann\u{200b}",
            "a\nb",
            "\u{feff}ann",
            "\u{2066}ann\u{2069}",
            "ann\u{e0041}",
            "\u{3164}",
            "a\u{3000}b",
            "a\u{2800}b",
            "corp::",
            "a\u{1bca0}",
            "\u{70f}a",
        ] {
            check(refused, None);
        }
        check(&"a".repeat(256), None);
    }

    /// No user of one realm has the id of a user of another (A3).
    #[test]
    fn realms_do_not_meet() {
        let corp = Realm::named("corp").unwrap();
        assert_eq!(corp.id("ann").as_deref(), Some("corp::ann"));
        assert_eq!(corp.id("corp::ann"), None);
        assert_eq!(Realm::Home.id("corp::ann"), None);
        assert_eq!(Realm::Any.id("corp::ann").as_deref(), Some("corp::ann"));
        // What looks like a realm and is none is part of the id.
        assert_eq!(Realm::Home.id("A::b").as_deref(), Some("A::b"));
        assert!(corp.has("corp::ann") && !corp.has("ann") && !corp.has("other::ann"));
        assert!(corp.has("agent/corp::bot") && !Realm::Home.has("agent/corp::bot"));
        assert!(Realm::Home.has("ann") && !Realm::Home.has("corp::ann"));
        for name in ["", "Corp", "a b", "a::b", &"a".repeat(33)] {
            assert_eq!(Realm::named(name), None, "{name:?}");
        }
    }

    proptest! {
        /// Users of an issuer are of its realm and of no other, whatever the issuer writes (A3).
        #[test]
        fn an_id_of_a_realm_is_of_that_realm_only(text in "\\PC{0,40}(::)?\\PC{0,40}") {
            let realms = ["home", "corp", "co"].map(|name| Realm::named(name).unwrap());
            for realm in &realms {
                if let Some(id) = realm.id(&text) {
                    let homes = realms.iter().filter(|realm| realm.has(&id)).count();
                    prop_assert!(realm.has(&id) && homes == 1, "{id:?}");
                    let again = normalized(&id);
                    prop_assert_eq!(again.as_deref(), Some(&*id));
                }
            }
        }
    }
}
