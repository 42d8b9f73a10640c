//! E-mail addresses, and the passwords in URLs.

use super::Kind;
use super::fold::LETTER;
use super::scan::{Span, Text};

/// Maximum length of the part before the `@`.
const LOCAL_MAX: usize = 64;

/// Maximum length of a host name.
const HOST_MAX: usize = 253;

/// All e-mail addresses. They are found first, because the part before the `@` looks like other kinds of data.
pub(super) fn spans(text: Text<'_>) -> Vec<Span> {
    let ats = text.0.iter().enumerate().filter(|(_, byte)| **byte == b'@');
    let mut found: Vec<Span> = Vec::new();
    for (at, _) in ats {
        let floor = found.last().map_or(0, |last| last.end);
        found.extend(around(text, at, floor));
    }
    found
}

/// `https://user:password@host`: the part between the slashes and the `@`.
pub(super) fn user_info(text: Text<'_>, place: usize) -> Option<Span> {
    if !text.has(place, "://") {
        return None;
    }
    let start = place + 3;
    let is_part = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'@' | b'/' | b'"' | b'?');
    let limit = LOCAL_MAX * 4;
    let rest = text.slice(start, text.len().min(start + limit));
    let end = start + rest.iter().take_while(|byte| is_part(**byte)).count();
    let has_password = text.slice(start, end).contains(&b':');
    (has_password && text.at(end) == b'@').then_some(Span {
        start,
        end,
        kind: Kind::Token,
    })
}

fn around(text: Text<'_>, at: usize, floor: usize) -> Option<Span> {
    let earliest = floor.max(at.saturating_sub(LOCAL_MAX));
    let local = text.slice(earliest, at);
    let count = local.iter().rev().take_while(|byte| is_local(**byte));
    let start = at - count.count();
    let start = text.while_at(start, |byte| matches!(byte, b'.' | b'-' | b'+' | b'\''));
    if start >= at || text.before(at) == b'.' {
        return None;
    }
    let end = host_end(text, at + 1)?;
    Some(Span {
        start,
        end,
        kind: Kind::Email,
    })
}

fn is_local(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'.' | b'_' | b'%' | b'+' | b'-' | b'\'' | LETTER)
}

/// End of the host: the last label that can be a top-level one.
fn host_end(text: Text<'_>, start: usize) -> Option<usize> {
    let mut end = None;
    let mut labels = 0;
    let mut numeric = 0;
    let mut at = start;
    loop {
        let label_end = text.while_at(at, is_host).min(start + HOST_MAX);
        let label = text.slice(at, label_end);
        if label.is_empty() {
            break;
        }
        labels += 1;
        numeric += usize::from(label.iter().all(u8::is_ascii_digit));
        let top = label.len() >= 2 && label.iter().all(|byte| is_letter(*byte));
        if labels >= 2 && (top || label.starts_with(b"xn--")) {
            end = Some(label_end);
        }
        if text.at(label_end) != b'.' {
            break;
        }
        at = label_end + 1;
    }
    // `tool@1.0.0-beta.rc` is a version, `icon@2x.png` a picture.
    let host = text.slice(start, end?);
    let picture = host.get(1..3) == Some(b"x.") && labels == 2;
    (numeric < 2 && !picture).then_some(end?)
}

fn is_host(byte: u8) -> bool {
    is_letter(byte) || byte.is_ascii_digit() || byte == b'-'
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == LETTER
}
