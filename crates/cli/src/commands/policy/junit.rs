//! Results of tests as `JUnit` XML, which CI systems read.

use std::fmt::Write as _;

/// One test.
pub(super) struct Case {
    pub(super) name: String,
    /// What is wrong; `None` if it passed.
    pub(super) failure: Option<String>,
}

/// The XML of a suite.
pub(super) fn xml(suite: &str, cases: &[Case]) -> String {
    let failed = cases.iter().filter(|case| case.failure.is_some()).count();
    let (suite, tests) = (escaped(suite), cases.len());
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a text cannot fail.
    let _ = writeln!(
        out,
        "<testsuites>\n  <testsuite name=\"{suite}\" tests=\"{tests}\" failures=\"{failed}\">"
    );
    for case in cases {
        let name = escaped(&case.name);
        let _ = match &case.failure {
            None => writeln!(out, "    <testcase classname=\"{suite}\" name=\"{name}\"/>"),
            Some(failure) => writeln!(
                out,
                "    <testcase classname=\"{suite}\" name=\"{name}\"><failure message=\"{}\"/></testcase>",
                escaped(failure)
            ),
        };
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

/// A text as the value of an attribute; characters that XML does not have are replaced.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(' '),
            c if c < ' ' || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_end_its_attribute() {
        let case = Case {
            name: "a\"/><evil>&\u{1}\n".to_owned(),
            failure: Some("<b>".to_owned()),
        };
        let xml = xml("cases.toml", &[case]);
        assert!(
            xml.contains("name=\"a&quot;/&gt;&lt;evil&gt;&amp;\u{fffd} \""),
            "{xml}"
        );
        assert!(xml.contains("tests=\"1\" failures=\"1\""), "{xml}");
    }
}
