//! Path and query of an address.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use countersign::contract::ErrorCode;
use jiff::Timestamp;

use super::answer::Refusal;
use crate::moment::{self, Moment};
use crate::nearest::nearest;
use crate::words::Say;

/// Decodes one or more parts of the path.
pub(super) fn segment<T>(part: Result<Path<T>, PathRejection>) -> Result<T, Refusal> {
    match part {
        Ok(Path(text)) => Ok(text),
        Err(_) => {
            Err(Refusal::new(ErrorCode::InvalidArgument, Say::PathNotUtf8).hint(Say::PercentEncode))
        }
    }
}

/// Options of the query, each at most once and all of them known.
pub(super) struct Options<'k, const N: usize> {
    known: [&'k str; N],
    given: [Option<String>; N],
}

impl<'k, const N: usize> Options<'k, N> {
    /// Reads `a=1&b=2`. An unknown option is refused, because it would be ignored.
    pub(super) fn read(query: Option<&str>, known: [&'k str; N]) -> Result<Self, Refusal> {
        let mut given = [const { None }; N];
        for (name, value) in form_urlencoded(query.unwrap_or_default()) {
            let at = known.iter().position(|known| *known == name);
            let Some(place) = at.and_then(|at| given.get_mut(at)) else {
                let shown: String = name.chars().take(80).collect();
                let message = Say::UnknownOption { name: shown };
                return Err(Refusal::new(ErrorCode::InvalidArgument, message)
                    .hint(Say::KnownNames {
                        names: known.join(", "),
                    })
                    .did_you_mean(nearest(&name, known)));
            };
            if place.replace(value).is_some() {
                let message = Say::OccursTwice { name };
                return Err(Refusal::new(ErrorCode::InvalidArgument, message));
            }
        }
        Ok(Self { known, given })
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let at = self.known.iter().position(|known| *known == name)?;
        let value = self.given.get(at)?.as_deref();
        value.filter(|value| !value.is_empty())
    }

    /// Parses an option to its type.
    pub(super) fn parsed<T: std::str::FromStr>(
        &self,
        name: &str,
        form: &str,
    ) -> Result<Option<T>, Refusal> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        match text.parse() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(wrong(name, form)),
        }
    }

    /// Parses a time as people type it, seen from now.
    pub(super) fn time(&self, name: &str, now: Timestamp) -> Result<Option<Timestamp>, Refusal> {
        let moment: Option<Moment> = self.parsed(name, moment::FORM)?;
        Ok(moment.map(|moment| moment.before(now)))
    }

    /// Finds an option among the values that it can have.
    pub(super) fn one_of<T: Copy, const M: usize>(
        &self,
        name: &str,
        all: [T; M],
        as_str: fn(T) -> &'static str,
    ) -> Result<Option<T>, Refusal> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        match all.into_iter().find(|known| as_str(*known) == text) {
            Some(value) => Ok(Some(value)),
            None => Err(wrong(
                name,
                &format!("one of {}", all.map(as_str).join(", ")),
            )),
        }
    }

    /// Reads the `limit` of a list.
    pub(super) fn limit(
        &self,
        default: usize,
        least: usize,
        most: usize,
    ) -> Result<usize, Refusal> {
        let form = match least {
            0 => format!("a number up to {most}"),
            least => format!("a number from {least} to {most}"),
        };
        let limit = self.parsed("limit", &form)?.unwrap_or(default);
        if !(least..=most).contains(&limit) {
            return Err(wrong("limit", &form));
        }
        Ok(limit)
    }

    /// Reads the `cursor` of a list, in the form that the list gives it.
    pub(super) fn cursor<C>(&self, read: fn(&str) -> Option<C>) -> Result<Option<C>, Refusal> {
        let Some(text) = self.get("cursor") else {
            return Ok(None);
        };
        match read(text) {
            Some(cursor) => Ok(Some(cursor)),
            None => Err(wrong("cursor", "the next_cursor of an earlier page")),
        }
    }
}

/// Cuts a list to a page. `found` has one more than the limit if there is another page; then the last of this page is
/// returned, for the cursor.
pub(super) fn cut<T>(found: &mut Vec<T>, limit: usize) -> Option<&T> {
    let has_more = found.len() > limit;
    found.truncate(limit);
    found.last().filter(|_| has_more)
}

/// Builds the cursor behind an item that has a time in RFC 3339 and an id. It is opaque to callers.
pub(super) fn behind(at: &str, id: &str) -> Option<String> {
    let at: Timestamp = at.parse().ok()?;
    Some(format!("{}.{id}", at.as_nanosecond()))
}

/// Reads a cursor of [`behind`].
pub(super) fn read_behind(text: &str) -> Option<(Timestamp, String)> {
    let (at, id) = text.split_once('.')?;
    let at = Timestamp::from_nanosecond(at.parse().ok()?).ok()?;
    Some((at, id.to_owned()))
}

/// Refuses an option with a wrong value.
pub(super) fn wrong(name: &str, form: &str) -> Refusal {
    Refusal::new(ErrorCode::InvalidArgument, format!("{name} is not {form}"))
        .field(format!("/{name}"))
        .hint(Say::CorrectOrLeaveOut)
}

/// Decodes names and values. Bytes that are not UTF-8 become the replacement character, which no option has.
fn form_urlencoded(query: &str) -> impl Iterator<Item = (String, String)> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        })
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        let digits = (*first == b'%').then(|| tail.get(..2)).flatten();
        let decoded = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (decoded, first) {
            (Some(byte), _) => {
                bytes.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            (None, b'+') => bytes.push(b' '),
            (None, byte) => bytes.push(*byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_decoded_and_unknown_ones_refused() {
        let read = |query| Options::read(Some(query), ["user", "limit"]);
        let options = read("user=a%20b+c%2Fd%zz%4&&limit=").ok().unwrap();
        assert_eq!(options.get("user"), Some("a b c/d%zz%4"));
        assert_eq!(options.get("limit"), None);
        assert!(read("usr=a").is_err() && read("user=a&user=b").is_err());
        assert!(read("user").is_ok() && read("%FF=1").is_err());
    }
}
