//! JSON Schema's formats: their checks, and other spellings of a date that have one reading.

use jiff::civil;
use jiff::tz::TimeZone;

use crate::words::Say;

/// Formats that are checked; others are annotations, as in JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    DateTime,
    Date,
    Time,
    Duration,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Uuid,
    /// Must be absolute; otherwise it is kept with an issue (B6).
    Uri,
}

impl Format {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "date-time" => Self::DateTime,
            "date" => Self::Date,
            "time" => Self::Time,
            "duration" => Self::Duration,
            "email" => Self::Email,
            "hostname" => Self::Hostname,
            "ipv4" => Self::Ipv4,
            "ipv6" => Self::Ipv6,
            "uuid" => Self::Uuid,
            "uri" => Self::Uri,
            _ => return None,
        })
    }

    pub(crate) const fn expected(self) -> Say {
        match self {
            Self::DateTime => Say::DateTime,
            Self::Date => Say::Date,
            Self::Time => Say::Time,
            Self::Duration => Say::Duration,
            Self::Email => Say::Email,
            Self::Hostname => Say::Hostname,
            Self::Ipv4 => Say::Ipv4,
            Self::Ipv6 => Say::Ipv6,
            Self::Uuid => Say::Uuid,
            Self::Uri => Say::Uri,
        }
    }

    /// True if a string that does not match is refused; a URI is kept with an issue instead.
    pub(crate) const fn is_binding(self) -> bool {
        !matches!(self, Self::Uri)
    }

    pub(crate) fn matches(self, text: &str) -> bool {
        match self {
            Self::DateTime => is_date_time(text),
            Self::Date => is_date(text),
            Self::Time => is_time(text),
            Self::Duration => is_duration(text),
            Self::Email => is_email(text),
            Self::Hostname => is_hostname(text),
            Self::Ipv4 => text.parse::<std::net::Ipv4Addr>().is_ok(),
            Self::Ipv6 => text.parse::<std::net::Ipv6Addr>().is_ok(),
            Self::Uuid => is_uuid(text),
            Self::Uri => is_absolute_uri(text),
        }
    }

    /// Returns the only other reading of a string that does not match, in the format's own form. A date that
    /// could be day-first or month-first has none.
    ///
    /// A date is a time at midnight: in the time zone of the request, or, where `fills_in`, in UTC.
    pub(crate) fn normalise(
        self,
        text: &str,
        timezone: Option<&TimeZone>,
        fills_in: bool,
    ) -> Option<String> {
        let text = text.trim();
        let fixed = match self {
            Self::Date => {
                let date = slashes_to_dashes(text);
                match date
                    .strip_suffix("T00:00:00Z")
                    .or_else(|| date.strip_suffix("T00:00:00.000Z"))
                {
                    Some(date) => date.to_owned(),
                    None => date,
                }
            }
            Self::DateTime => {
                let spelt = extended(text).unwrap_or_else(|| slashes_to_dashes(text));
                if !is_date(&spelt) {
                    date_time(&spelt, timezone)?
                } else if timezone.is_none() && fills_in {
                    format!("{spelt}T00:00:00Z")
                } else {
                    date_time(&format!("{spelt}T00:00:00"), timezone)?
                }
            }
            Self::Uuid | Self::Ipv4 | Self::Ipv6 | Self::Hostname | Self::Email => text.to_owned(),
            Self::Time | Self::Duration | Self::Uri => return None,
        };
        self.matches(&fixed).then_some(fixed)
    }
}

/// True for an ISO 8601 duration of any length: units in their order, each at most once, and a fraction at the end only.
fn is_duration(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('P') else {
        return false;
    };
    let (days, time) = match rest.split_once(['T', 't']) {
        Some((days, time)) => (days, Some(time)),
        None => (rest, None),
    };
    let time_fits = time.is_none_or(|time| !time.is_empty() && are_parts(time, "HMS", true));
    let is_some = !days.is_empty() || time.is_some();
    is_some && time_fits && are_parts(days, "YMWD", false)
}

/// True for numbers with units of these in their order.
fn are_parts(text: &str, units: &str, may_have_fraction: bool) -> bool {
    let mut rest = text;
    let mut left = units;
    while !rest.is_empty() {
        let is_digit = |c: char| c.is_ascii_digit();
        let number = rest.trim_start_matches(is_digit);
        let fraction = number.strip_prefix(['.', ',']);
        let behind = fraction.map_or(number, |it| it.trim_start_matches(is_digit));
        let has_digits =
            number.len() < rest.len() && fraction.is_none_or(|it| behind.len() < it.len());
        let mut letters = behind.chars();
        let unit = letters.next().map(|unit| unit.to_ascii_uppercase());
        let Some(at) = unit.and_then(|unit| left.find(unit)).filter(|_| has_digits) else {
            return false;
        };
        rest = letters.as_str();
        if fraction.is_some() && !(may_have_fraction && rest.is_empty()) {
            return false;
        }
        left = left.get(at + 1..).unwrap_or_default();
    }
    true
}

/// Converts `2024/01/02…` to `2024-01-02…`; the year comes first, so there is one reading.
fn slashes_to_dashes(text: &str) -> String {
    let bytes = text.as_bytes();
    let year_first = bytes.get(4) == Some(&b'/') && bytes.get(7) == Some(&b'/');
    if year_first {
        text.replacen('/', "-", 2)
    } else {
        text.to_owned()
    }
}

/// Converts ISO 8601's basic form to the extended one: `20251013T120000Z` is `2025-10-13T12:00:00Z`.
fn extended(text: &str) -> Option<String> {
    let (date, time) = text.split_at_checked(8)?;
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(date) {
        return None;
    }
    let day = format!("{}-{}-{}", date.get(..4)?, date.get(4..6)?, date.get(6..)?);
    let Some(time) = time.strip_prefix(['T', 't']) else {
        return time.is_empty().then_some(day);
    };
    let clock = time.get(..6).filter(|clock| digits(clock))?;
    let mut behind = time.get(6..)?.to_owned();
    // `+0200` is `+02:00`.
    if let Some(sign) = behind.rfind(['+', '-'])
        && behind.len() == sign + 5
        && behind.get(sign + 1..).is_some_and(digits)
    {
        behind.insert(sign + 3, ':');
    }
    let (hour, minute, second) = (clock.get(..2)?, clock.get(2..4)?, clock.get(4..)?);
    Some(format!("{day}T{hour}:{minute}:{second}{behind}"))
}

fn date_time(text: &str, timezone: Option<&TimeZone>) -> Option<String> {
    let mut fixed = text.to_ascii_uppercase();
    if fixed.as_bytes().get(10) == Some(&b' ') {
        fixed.replace_range(10..11, "T");
    }
    if let Some(rest) = fixed
        .strip_suffix(" UTC")
        .or_else(|| fixed.strip_suffix(" Z"))
    {
        fixed = format!("{rest}Z");
    }
    if is_date_time(&fixed) {
        return Some(fixed);
    }
    // Without an offset, a time has a meaning only if the request names a time zone. Anything else behind it
    // may be an offset of its own.
    let clock = fixed.get(11..)?;
    let is_whole = is_time_of_day(clock) && clock.get(6..8) != Some("60");
    if fixed.as_bytes().get(10) != Some(&b'T') || !(is_whole || is_hours_and_minutes(clock)) {
        return None;
    }
    let local: civil::DateTime = fixed.parse().ok()?;
    let zoned = timezone?.to_ambiguous_zoned(local).unambiguous().ok()?;
    Some(zoned.strftime("%Y-%m-%dT%H:%M:%S%.f%:z").to_string())
}

fn is_date_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let Some((date, time)) = text.split_at_checked(10) else {
        return false;
    };
    if !matches!(bytes.get(10), Some(b'T' | b't')) || !is_date(date) {
        return false;
    }
    let Some(offset_at) = time.rfind(['Z', 'z', '+', '-']) else {
        return false;
    };
    let (clock, offset) = (time.get(1..offset_at), time.get(offset_at..));
    clock.is_some_and(is_time_of_day) && offset.is_some_and(is_offset)
}

fn is_date(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(i, b)| match i {
            4 | 7 => b == b'-',
            _ => b.is_ascii_digit(),
        })
        && text.parse::<civil::Date>().is_ok()
}

fn is_time(text: &str) -> bool {
    let clock = match text.rfind(['Z', 'z', '+', '-']) {
        Some(at) if text.get(at..).is_some_and(is_offset) => text.get(..at).unwrap_or_default(),
        Some(_) => return false,
        None => text,
    };
    is_time_of_day(clock)
}

/// True for `hh:mm`.
fn is_hours_and_minutes(text: &str) -> bool {
    text.len() == 5 && is_time_of_day(&format!("{text}:00"))
}

/// True for `hh:mm:ss` with an optional fraction; 60 seconds are a leap second.
fn is_time_of_day(text: &str) -> bool {
    let (clock, fraction) = text
        .split_once('.')
        .map_or((text, None), |(c, f)| (c, Some(f)));
    let well_formed = clock.len() == 8
        && clock.bytes().enumerate().all(|(i, b)| match i {
            2 | 5 => b == b':',
            _ => b.is_ascii_digit(),
        });
    let part = |range| {
        clock
            .get(range)
            .and_then(|part: &str| part.parse::<u8>().ok())
            .unwrap_or(99)
    };
    well_formed
        && part(0..2) < 24
        && part(3..5) < 60
        && part(6..8) <= 60
        && fraction.is_none_or(|f| !f.is_empty() && f.bytes().all(|b| b.is_ascii_digit()))
}

fn is_offset(text: &str) -> bool {
    if text.eq_ignore_ascii_case("z") {
        return true;
    }
    let Some(clock) = text.strip_prefix(['+', '-']) else {
        return false;
    };
    let (hours, minutes) = clock.split_once(':').unwrap_or_default();
    let below = |part: &str, limit: u8| {
        part.len() == 2 && part.parse::<u8>().is_ok_and(|value| value < limit)
    };
    below(hours, 24) && below(minutes, 60)
}

fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    !local.is_empty()
        && local.len() <= 64
        && !local.contains(|c: char| c.is_whitespace() || c.is_control() || c == '@')
        && is_hostname(domain)
}

fn is_hostname(text: &str) -> bool {
    (1..=253).contains(&text.len())
        && text.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-')
        })
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(i, b)| match i {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

/// True for a scheme, a colon and something behind it, without white space.
fn is_absolute_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    !rest.is_empty()
        && scheme
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
        && !text.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '<' | '>'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times() {
        for text in [
            "2024-02-29T10:00:00Z",
            "2024-01-02t03:04:05.678+02:00",
            "2016-12-31T23:59:60Z",
        ] {
            assert!(Format::DateTime.matches(text), "{text}");
        }
        for text in [
            "2024-02-30T10:00:00Z",
            "2024-01-02T10:00:00",
            "2024-01-02 10:00:00Z",
            "",
            "x",
        ] {
            assert!(!Format::DateTime.matches(text), "{text}");
        }
        assert!(!Format::Date.matches("2023-02-29"));
    }

    /// B6: other spellings of a date are read only if they have one meaning.
    #[test]
    fn one_reading_or_none() {
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        let read = |format: Format, text, zone| format.normalise(text, zone, false);
        assert_eq!(
            read(Format::Date, "2024/01/02", None).as_deref(),
            Some("2024-01-02")
        );
        assert_eq!(
            read(Format::Date, "2024-01-02T00:00:00Z", None).as_deref(),
            Some("2024-01-02")
        );
        assert_eq!(read(Format::Date, "01/02/2024", None), None);
        assert_eq!(
            read(Format::DateTime, "2024-01-02 10:00:00Z", None).as_deref(),
            Some("2024-01-02T10:00:00Z")
        );
        assert_eq!(read(Format::DateTime, "2024-01-02T10:00:00", None), None);
        // A time with an offset in another form has its own meaning, whatever the zone of the request.
        for text in [
            "2024-01-02T10:00:00-0800",
            "2024-01-02T10:00-08:00",
            "2024-01-02T10:00:00-08",
            "2024-01-02T10:00:00[America/New_York]",
            "2024-01-02T10:00:00+25:00",
            "2024-01-02T23:59:60",
            "2024-01-02T10:00:00 EST",
        ] {
            assert_eq!(read(Format::DateTime, text, Some(&berlin)), None, "{text}");
        }
        assert_eq!(
            read(Format::DateTime, "2024-01-02T10:00:00.999", Some(&berlin)).as_deref(),
            Some("2024-01-02T10:00:00.999+01:00")
        );
        assert_eq!(
            read(Format::DateTime, "2024-07-02 10:00:00", Some(&berlin)).as_deref(),
            Some("2024-07-02T10:00:00+02:00")
        );
        // The hour that is skipped in spring has no reading.
        assert_eq!(
            read(Format::DateTime, "2024-03-31T02:30:00", Some(&berlin)),
            None
        );
        assert_eq!(read(Format::DateTime, "1700000000", None), None);
    }

    #[test]
    fn uris() {
        for text in ["https://example.com/a?b#c", "urn:isbn:1", "mailto:a@b.c"] {
            assert!(Format::Uri.matches(text), "{text}");
        }
        for text in ["/relative", "example.com", "1http://x", "http:// x", "://"] {
            assert!(!Format::Uri.matches(text), "{text}");
        }
    }
}
