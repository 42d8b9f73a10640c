//! The key that was probably meant.

/// Minimum likeness of two names for one to be suggested for the other.
const LIKENESS_MIN: f64 = 0.8;

/// The longest name that is compared: comparing takes time by length times length.
const NAME_BYTES_MAX: usize = 128;

/// The known name that is nearest, where one is near enough to be worth a hint.
pub(crate) fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let folded = fold(name);
    known
        .into_iter()
        .map(|known| (strsim::jaro_winkler(&folded, &fold(known)), known))
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, known)| known)
}

/// `publicURL`, `public-url` and `public_url` are one name to people.
fn fold(name: &str) -> String {
    name.to_lowercase().replace(['-', '_'], "")
}
