//! Credentials: keys and tokens with a known prefix, values after `Bearer` or `password=`, signed tokens and blocks of
//! private keys.

use super::Kind;
use super::scan::{Span, Text, is_word};

/// Prefixes of keys of well-known services, and the minimum number of characters that follow.
const KEYS: &[(&str, usize)] = &[
    ("AIza", 30),
    ("AKIA", 16),
    ("AKID", 24),
    ("ASIA", 16),
    ("EAAC", 40),
    ("GOCSPX-", 20),
    ("LTAI", 12),
    ("SG.", 30),
    ("csk_", 24),
    ("dop_v1_", 32),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghr_", 20),
    ("ghs_", 20),
    ("ghu_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("gsk_", 24),
    ("hf_", 20),
    ("npm_", 24),
    ("pypi-", 24),
    ("rk_live_", 16),
    ("rk_test_", 16),
    ("shpat_", 20),
    ("shpss_", 20),
    ("sk-", 20),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("sq0atp-", 20),
    ("whsec_", 20),
    ("xai-", 24),
    ("xapp-", 20),
    ("xoxa-", 12),
    ("xoxb-", 12),
    ("xoxe-", 12),
    ("xoxp-", 12),
    ("xoxs-", 12),
    ("ya29.", 20),
];

/// Names of credentials in assignments and members of objects.
const NAMES: &[&str] = &[
    "access_key",
    "access_token",
    "accesskey",
    "accesstoken",
    "api-key",
    "api_key",
    "apikey",
    "auth_token",
    "client_secret",
    "clientsecret",
    "id_token",
    "passphrase",
    "passwd",
    "password",
    "private_key",
    "privatekey",
    "pwd",
    "refresh_token",
    "refreshtoken",
    "secret_key",
    "secretkey",
    "x-api-key",
];

/// Minimum length of a value that counts as a credential because of its name.
const VALUE_MIN: usize = 4;

/// Maximum length of a word that is read. Words may start inside of longer ones, so this bound keeps the time linear.
const WORD_MAX: usize = 64;

/// Maximum length of the first part of a signed token.
const HEADER_MAX: usize = 512;

/// Minimum length of a key, with its prefix.
const KEY_MIN: usize = 16;

/// Minimum length of a token after `Bearer`.
const BEARER_MIN: usize = 16;

/// True if a member of this name holds a credential.
pub(super) fn is_name(name: &str) -> bool {
    NAMES.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// The credential that the word here is, or names.
pub(super) fn find(text: Text<'_>, place: usize) -> Option<Span> {
    if is_word(text.before(place)) {
        return None;
    }
    let end = text.some_at(place, WORD_MAX, is_key);
    // Hardly a word is as long as a key, so hardly one is compared with their beginnings.
    if end - place >= KEY_MIN {
        return jwt(text, place).or_else(|| key(text, place));
    }
    match text.at(end) {
        b' ' => bearer(text, place).or_else(|| assigned(text, place, end)),
        b'=' | b':' | b'"' | b'\'' | b'`' => assigned(text, place, end),
        _ => None,
    }
}

/// From `-----BEGIN … PRIVATE KEY` to its end, or to the end of the text.
pub(super) fn private_key(text: Text<'_>, place: usize) -> Option<Span> {
    const HEAD_MAX: usize = 64;
    if text.before(place) == b'-' || !text.has(place, "-----BEGIN ") {
        return None;
    }
    let head = text.slice(place, text.len().min(place + HEAD_MAX));
    let private = b"PRIVATE KEY";
    let named = head
        .windows(private.len())
        .position(|part| part == private)?;
    let body = place + named + private.len();
    let tail = b"-----END ";
    let mut rest = text.slice(body, text.len()).windows(tail.len());
    let end = rest.position(|part| part == tail);
    let end = end.map_or(text.len(), |at| {
        let name = body + at + tail.len();
        let dashes = text.while_at(name, |byte| byte.is_ascii_uppercase() || byte == b' ');
        text.while_at(dashes, |byte| byte == b'-')
    });
    Some(Span {
        start: place,
        end,
        kind: Kind::PrivateKey,
    })
}

/// Three parts with points between them, of which the first is an object in base 64.
fn jwt(text: Text<'_>, place: usize) -> Option<Span> {
    if text.slice(place, place + 3) != b"eyJ" {
        return None;
    }
    let header = text.some_at(place, HEADER_MAX, is_base64_url);
    if header - place < 10 || text.at(header) != b'.' {
        return None;
    }
    let claims = text.while_at(header + 1, is_base64_url);
    let shape = claims > header + 4 && text.at(claims) == b'.';
    shape.then(|| Span {
        start: place,
        end: text.while_at(claims + 1, is_key),
        kind: Kind::Jwt,
    })
}

fn key(text: Text<'_>, place: usize) -> Option<Span> {
    let starts = |word: &str| text.slice(place, place + word.len()) == word.as_bytes();
    let (word, count) = KEYS.iter().find(|(word, _)| starts(word))?;
    let start = place + word.len();
    let body = text.slice(start, text.some_at(start, WORD_MAX, is_key));
    // `sk-learn-is-a-great-library` has no digit.
    let drawn = body.iter().any(u8::is_ascii_digit) || body.iter().any(u8::is_ascii_uppercase);
    (body.len() >= *count && drawn).then(|| Span {
        start: place,
        end: text.while_at(start, is_key),
        kind: Kind::Token,
    })
}

/// `Bearer …` and `Basic …`: the word stays.
fn bearer(text: Text<'_>, place: usize) -> Option<Span> {
    let word = ["Bearer ", "Basic "]
        .into_iter()
        .find(|word| text.has(place, word))?;
    let start = place + word.len();
    let end = text.while_at(start, |byte| byte.is_ascii_graphic() && !is_quote(byte));
    let token = text.slice(start, end);
    let drawn = token.iter().any(u8::is_ascii_digit) || token.ends_with(b"=");
    (token.len() >= BEARER_MIN && drawn).then_some(Span {
        start,
        end,
        kind: Kind::Token,
    })
}

/// `password=…`: the name, which ends here, stays. Prose may follow a colon, so there the value has to look random.
fn assigned(text: Text<'_>, place: usize, end: usize) -> Option<Span> {
    let is_gap = |byte: u8| byte == b' ' || is_quote(byte);
    let sign = text.while_at(end, is_gap);
    if !matches!(text.at(sign), b'=' | b':') || sign > end + 2 {
        return None;
    }
    let name = text.slice(place, end);
    NAMES
        .iter()
        .find(|own| own.as_bytes().eq_ignore_ascii_case(name))?;
    let start = text.while_at(sign + 1, is_gap);
    let is_value = |byte: u8| {
        byte.is_ascii_graphic()
            && !is_quote(byte)
            && !matches!(byte, b'&' | b';' | b',' | b'[' | b'{')
    };
    let end = text.while_at(start, is_value);
    let value = text.slice(start, end);
    let drawn = value.iter().any(|byte| !byte.is_ascii_alphabetic());
    let told = text.at(sign) == b'=' || drawn;
    (value.len() >= VALUE_MIN && told).then_some(Span {
        start,
        end,
        kind: Kind::Token,
    })
}

fn is_base64_url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

fn is_key(byte: u8) -> bool {
    is_base64_url(byte) || byte == b'.'
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}
