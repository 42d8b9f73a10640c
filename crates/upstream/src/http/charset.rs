//! The text of an answer: decoded by the charset that it names, without a byte order mark.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8};
use reqwest::header::HeaderMap;

/// The text of a body.
pub(crate) struct Decoded<'b> {
    pub(crate) text: Cow<'b, str>,
    /// True if bytes that are not valid in the charset were replaced.
    pub(crate) is_damaged: bool,
}

/// The byte order mark of UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Decodes a body by its byte order mark, else by the charset of its media type, else as UTF-8, which is only checked. A charset
/// that is not known is read as UTF-8, and so is JSON that is valid as such: it has no other encoding (RFC 8259).
pub(crate) fn decoded<'b>(bytes: &'b [u8], headers: &HeaderMap) -> Decoded<'b> {
    let plain = bytes.strip_prefix(MARK).unwrap_or(bytes);
    let declared = Encoding::for_bom(bytes).map(|(encoding, _)| encoding);
    let declared = declared.or_else(|| charset_of(headers)).unwrap_or(UTF_8);
    if (declared == UTF_8 || is_json(headers))
        && let Ok(text) = std::str::from_utf8(plain)
    {
        return Decoded {
            text: Cow::Borrowed(text),
            is_damaged: false,
        };
    }
    let (text, _, is_damaged) = declared.decode(bytes);
    Decoded { text, is_damaged }
}

/// The charset of a media type; `None` if it names none that is known.
fn charset_of(headers: &HeaderMap) -> Option<&'static Encoding> {
    let kind = headers.get("content-type")?.to_str().ok()?;
    kind.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let label = value.trim().trim_matches('"');
        let is_charset = name.trim().eq_ignore_ascii_case("charset");
        Encoding::for_label(label.as_bytes()).filter(|_| is_charset)
    })
}

/// True if the media type is one of JSON.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get("content-type").and_then(|it| it.to_str().ok());
    kind.is_some_and(|kind| kind.to_ascii_lowercase().contains("json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(kind: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", kind.parse().unwrap());
        headers
    }

    #[test]
    fn the_charset_decides() {
        let check = |kind: &str, bytes: &[u8], text: &str, is_damaged: bool| {
            let read = decoded(bytes, &headers(kind));
            assert_eq!((&*read.text, read.is_damaged), (text, is_damaged), "{kind}");
        };
        check("text/plain", b"caf\xc3\xa9", "caf\u{e9}", false);
        check("text/plain", b"\xef\xbb\xbfa", "a", false);
        check("text/plain", b"caf\xe9", "caf\u{fffd}", true);
        check(
            "text/plain; charset=ISO-8859-1",
            b"caf\xe9",
            "caf\u{e9}",
            false,
        );
        check(
            "text/csv; header=present; Charset=\"windows-1252\"",
            b"\x80 9",
            "\u{20ac} 9",
            false,
        );
        check("text/plain; charset=gbk", b"\xc4\xe3", "\u{4f60}", false);
        check("text/plain; charset=klingon", b"a\xff", "a\u{fffd}", true);
        check("text/plain", b"\xff\xfea\0", "a", false);
    }

    #[test]
    fn json_is_utf_8_first() {
        let check = |kind: &str, bytes: &[u8], text: &str, is_damaged: bool| {
            let read = decoded(bytes, &headers(kind));
            assert_eq!((&*read.text, read.is_damaged), (text, is_damaged), "{kind}");
        };
        let latin = "application/json; charset=latin1";
        check("application/json", b"\xef\xbb\xbf{}", "{}", false);
        check(latin, "\"\u{e9}\"".as_bytes(), "\"\u{e9}\"", false);
        check(latin, b"\"\xe9\"", "\"\u{e9}\"", false);
        check("application/json", b"\"\xe9\"", "\"\u{fffd}\"", true);
    }
}
