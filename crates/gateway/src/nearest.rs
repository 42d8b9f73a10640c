//! Suggestions: the known name that was probably meant.

/// Returns the most similar known name, if one is similar enough for a hint.
pub fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    // Longer than any name; comparing takes quadratic time.
    if name.len() > 128 {
        return None;
    }
    let folded = name.to_lowercase();
    known
        .into_iter()
        .map(|known| (strsim::jaro_winkler(&folded, &known.to_lowercase()), known))
        .filter(|(likeness, _)| *likeness >= 0.75)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let known = ["arguments", "idempotency_key", "user_id"];
        assert_eq!(nearest("argument", known), Some("arguments"));
        assert_eq!(nearest("IdempotencyKey", known), Some("idempotency_key"));
        assert_eq!(nearest("query", known), None);
        assert_eq!(nearest(&"a".repeat(1000), known), None);
    }
}
