//! Unique personal data and credentials, and the needles to search for in a sink.

use std::fmt::Write as _;

use countersign::contract::RequestId;

/// User id of the calls. A store files by it; nothing else may name it.
pub(crate) const USER: &str = "u_zacharias.quux@example.org";

/// Values that are sent: as typed, in two languages, and in one long text.
pub(crate) const PERSONAL: [&str; 14] = [
    "Zacharias Quuxington",
    "欧阳张伟",
    "742 Evergreen Terrace, Springfield",
    "北京市朝阳区建国路88号",
    "zacharias.quux@example.com",
    "+1 (415) 555-0132",
    "13812345678",
    "11010519491231002X",
    "078-05-1120",
    "4111 1111 1111 1111",
    "DE89370400440532013000",
    JWT,
    "sk-live-9f8e7d6c5b4a39281706f5e4d3c2b1a0",
    "the knee operation is on Monday, 请送到欧阳张伟家",
];

const JWT: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJ6YWNoYXJpYXMifQ.c2lnbmF0dXJlLW9mLW5vYm9keS1hdC1hbGw";

/// A passport number looks like any other code: only its declaration protects it.
pub(crate) const PASSPORT: &str = "X98765432";

/// Needles that must be found nowhere.
pub(crate) const NEEDLES: [&str; 17] = [
    "Quuxington",
    "张伟",
    "Evergreen",
    "朝阳区",
    "zacharias.quux",
    "555-0132",
    "13812345678",
    "11010519491231002",
    "078-05-1120",
    "4111 1111",
    "4111111111111111",
    "370400440532013000",
    "c2lnbmF0dXJlLW9m",
    "9f8e7d6c5b4a",
    "knee operation",
    "kneeoperation",
    PASSPORT,
];

/// Returns all values as one text.
pub(crate) fn everything() -> String {
    PERSONAL.join("; ")
}

/// Converts a value to a request id, without characters that an id cannot have. `None` if nothing personal is
/// left.
pub(crate) fn as_request_id(text: &str) -> Option<RequestId> {
    let compact: String = text.chars().filter(char::is_ascii_graphic).collect();
    let is_personal = !found_in(compact.as_bytes()).is_empty();
    RequestId::new(compact).ok().filter(|_| is_personal)
}

/// Returns the needles that the bytes contain. Bytes are searched as they are and as JSON would escape them.
pub(crate) fn found_in(bytes: &[u8]) -> Vec<&'static str> {
    let text = String::from_utf8_lossy(bytes);
    let is_in = |needle: &str| {
        let escaped: String = needle.chars().map(escape).collect();
        let forms = [
            needle.to_lowercase(),
            escaped.to_lowercase(),
            needle.to_owned(),
            escaped,
        ];
        forms.iter().any(|form| text.contains(form.as_str()))
    };
    NEEDLES.into_iter().filter(|needle| is_in(needle)).collect()
}

fn escape(character: char) -> String {
    let mut escaped = String::new();
    if character.is_ascii() {
        escaped.push(character);
        return escaped;
    }
    for unit in character.encode_utf16(&mut [0; 2]) {
        write!(escaped, "\\u{unit:04X}").unwrap();
    }
    escaped
}

#[test]
fn what_is_sent_is_found() {
    for text in PERSONAL {
        assert!(!found_in(text.as_bytes()).is_empty(), "{text}");
        let json = serde_json::to_string(text).unwrap();
        assert!(!found_in(json.as_bytes()).is_empty(), "{json}");
    }
    let ids = PERSONAL.into_iter().filter_map(as_request_id).count();
    assert!(ids >= 11, "{ids}");
    assert!(!found_in(br"\u5f20\u4f1f").is_empty());
    assert_eq!(found_in(b"nobody"), [""; 0]);
}
