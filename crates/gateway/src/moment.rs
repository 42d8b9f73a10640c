//! Points in time as people type them: a date, a time, or how long ago. The command line, the addresses of the API and the forms of the console
//! read them alike.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// The forms of a moment, for messages.
pub const FORM: &str = "a time such as 2026-11-15T12:00:00Z, a date, or 2h for two hours ago";

/// A time as people type it: RFC 3339, a date in UTC, or a number with s, m, h, d or w for "ago".
///
/// # Example
///
/// ```
/// use countersign_gateway::moment::Moment;
///
/// let now = "2026-11-15T12:00:00Z".parse()?;
/// let moment: Moment = "2h".parse()?;
/// assert_eq!(moment.before(now).to_string(), "2026-11-15T10:00:00Z");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Moment {
    /// A fixed time.
    At(Timestamp),
    /// A time before now.
    Ago(SignedDuration),
}

impl Moment {
    /// The time that is meant, seen from now.
    pub fn before(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::Ago(by) => now.checked_sub(by).unwrap_or(Timestamp::MIN),
        }
    }
}

impl std::str::FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        ago(text)
            .map(Self::Ago)
            .or_else(|| text.parse().ok().map(Self::At))
            .or_else(|| {
                let date: Date = text.parse().ok()?;
                let midnight = date.to_zoned(TimeZone::UTC).ok()?;
                Some(Self::At(midnight.timestamp()))
            })
            .ok_or_else(|| format!("expected {FORM}"))
    }
}

fn ago(text: &str) -> Option<SignedDuration> {
    let split = text.len().checked_sub(1)?;
    let (number, unit) = text.split_at_checked(split)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        "w" => 7 * 24 * 60 * 60,
        _ => return None,
    };
    let number: u32 = number.parse().ok()?;
    Some(SignedDuration::from_secs(i64::from(number) * seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_type_them() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let check = |text: &str, expected: Option<&str>| {
            let moment: Result<Moment, _> = text.parse();
            let moment = moment.ok().map(|moment| moment.before(now).to_string());
            assert_eq!(moment.as_deref(), expected, "{text}");
        };
        check("90s", Some("2026-11-15T11:58:30Z"));
        check("2h", Some("2026-11-15T10:00:00Z"));
        check("1w", Some("2026-11-08T12:00:00Z"));
        check("2026-11-14", Some("2026-11-14T00:00:00Z"));
        check("2026-11-14T10:00:00+02:00", Some("2026-11-14T08:00:00Z"));
        for text in ["", "h", "-2h", "2y", "yesterday", "2h时"] {
            check(text, None);
        }
    }
}
