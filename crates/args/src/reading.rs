//! How texts are read that mean different things in different places.

use countersign_contract::Language;
use jiff::tz::TimeZone;

/// What the request says about its author: numbers and dates are read by it, and issues are written in its
/// language.
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
    /// `None` where nobody knows what a comma means.
    decimal_comma: Option<bool>,
    timezone: Option<TimeZone>,
    language: Language,
}

/// Languages whose people write a decimal comma; English, Chinese, Japanese and Korean are not here.
const DECIMAL_COMMA: [&str; 33] = [
    "af", "be", "bg", "bs", "ca", "cs", "da", "de", "el", "es", "et", "eu", "fi", "fr", "gl", "hr",
    "hu", "id", "is", "it", "lt", "lv", "nb", "nl", "nn", "no", "pl", "pt", "ro", "ru", "sk", "sv",
    "tr",
];

/// Regions of those languages that write a decimal point.
const DECIMAL_POINT_REGIONS: [&str; 5] = ["MX", "US", "GT", "PR", "CH"];

impl Reading {
    /// From a BCP 47 locale and an IANA time zone; what is not known is left out.
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

    /// With issues in another language than that of the locale.
    pub fn speaking(self, language: Language) -> Self {
        Self { language, ..self }
    }

    /// Whether `3,14` is a number here.
    pub fn has_decimal_comma(&self) -> bool {
        self.decimal_comma == Some(true)
    }

    /// Whether `1,234` may mean a thousand and more as well as one and a bit: nothing says whose number it is.
    pub(crate) fn is_comma_unknown(&self) -> bool {
        self.decimal_comma.is_none()
    }

    /// The language of the issues; of their messages only, never of a code or a value.
    pub fn language(&self) -> Language {
        self.language
    }

    pub(crate) fn timezone(&self) -> Option<&TimeZone> {
        self.timezone.as_ref()
    }
}
