//! Which of the known names was probably meant.

/// The known name that is nearest, where one is near enough to be worth a hint.
pub(crate) fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
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

    #[track_caller]
    fn check(name: &str, expected: Option<&str>) {
        assert_eq!(
            nearest(name, ["memory.search", "diagnostics.echo"]),
            expected
        );
    }

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        check("memory.serach", Some("memory.search"));
        check("Memory_Search", Some("memory.search"));
        check("diagnostic.echo", Some("diagnostics.echo"));
        check("weather", None);
        check("", None);
    }
}
