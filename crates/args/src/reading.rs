//! Locale settings for strings that mean different things in different places.

use countersign_contract::Language;
use jiff::tz::TimeZone;

/// Locale, time zone and language of the request: numbers and dates are read by them, and issues are written in
/// the language.
///
/// # Example
///
/// ```
/// use countersign_args::Reading;
///
/// let reading = Reading::new(Some("de-DE"), Some("Europe/Berlin"));
/// assert!(reading.has_decimal_comma());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// `None` if the locale, and with it the meaning of a comma, is unknown.
    decimal_comma: Option<bool>,
    timezone: Option<TimeZone>,
    language: Language,
}

/// Languages with a decimal comma; English, Chinese, Japanese and Korean are not among them.
const DECIMAL_COMMA: [&str; 33] = [
    "af", "be", "bg", "bs", "ca", "cs", "da", "de", "el", "es", "et", "eu", "fi", "fr", "gl", "hr",
    "hu", "id", "is", "it", "lt", "lv", "nb", "nl", "nn", "no", "pl", "pt", "ro", "ru", "sk", "sv",
    "tr",
];

/// Regions of those languages with a decimal point.
const DECIMAL_POINT_REGIONS: [&str; 5] = ["MX", "US", "GT", "PR", "CH"];

impl Reading {
    /// Creates a reading from a BCP 47 locale and an IANA time zone; unknown ones are ignored.
    pub fn new(locale: Option<&str>, timezone: Option<&str>) -> Self {
        let decimal_comma = locale.map(|locale| {
            let mut parts = locale.split(['-', '_']);
            let language = parts.next().unwrap_or_default().to_ascii_lowercase();
            let region = parts
                .find(|part| part.len() == 2)
                .map(str::to_ascii_uppercase);
            DECIMAL_COMMA.contains(&language.as_str())
                && !region.is_some_and(|region| DECIMAL_POINT_REGIONS.contains(&region.as_str()))
        });
        let timezone = timezone.and_then(|name| TimeZone::get(name).ok());
        Self {
            decimal_comma,
            timezone,
            language: Language::of(locale),
        }
    }

    /// Sets another language for the issues than that of the locale.
    pub fn speaking(self, language: Language) -> Self {
        Self { language, ..self }
    }

    /// True if `3,14` is a number in this locale.
    pub fn has_decimal_comma(&self) -> bool {
        self.decimal_comma == Some(true)
    }

    /// True if `1,234` may be either a grouped number or a decimal, because the locale is unknown.
    pub(crate) fn is_comma_unknown(&self) -> bool {
        self.decimal_comma.is_none()
    }

    /// Returns the language of the issues' messages; codes and values have none.
    pub fn language(&self) -> Language {
        self.language
    }

    pub(crate) fn timezone(&self) -> Option<&TimeZone> {
        self.timezone.as_ref()
    }
}
