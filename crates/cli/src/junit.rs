//! Results of tests as `JUnit` XML, which CI systems read.

use std::fmt::Write as _;

/// One test.
pub(crate) struct Case {
    pub(crate) name: String,
    /// Result of the test.
    pub(crate) result: CaseResult,
}

impl Case {
    /// The reason why it failed; `None` if it did not.
    pub(crate) fn failure(&self) -> Option<&str> {
        match &self.result {
            CaseResult::Failed(why) => Some(why),
            CaseResult::Passed | CaseResult::Skipped(_) => None,
        }
    }
}

/// Result of a test. Closed.
pub(crate) enum CaseResult {
    /// It passed.
    Passed,
    /// It failed, and why.
    Failed(String),
    /// It was not run, and why.
    Skipped(String),
}

/// The XML of a suite.
pub(crate) fn xml(suite: &str, cases: &[Case]) -> String {
    let count =
        |is_it: fn(&CaseResult) -> bool| cases.iter().filter(|case| is_it(&case.result)).count();
    let failed = count(|result| matches!(result, CaseResult::Failed(_)));
    let skipped = count(|result| matches!(result, CaseResult::Skipped(_)));
    let (suite, tests) = (escaped(suite), cases.len());
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a text cannot fail.
    let _ = writeln!(
        out,
        "<testsuites>\n  <testsuite name=\"{suite}\" tests=\"{tests}\" failures=\"{failed}\" skipped=\"{skipped}\">"
    );
    for case in cases {
        let name = escaped(&case.name);
        let (tag, why) = match &case.result {
            CaseResult::Passed => {
                let _ = writeln!(out, "    <testcase classname=\"{suite}\" name=\"{name}\"/>");
                continue;
            }
            CaseResult::Failed(why) => ("failure", why),
            CaseResult::Skipped(why) => ("skipped", why),
        };
        let _ = writeln!(
            out,
            "    <testcase classname=\"{suite}\" name=\"{name}\"><{tag} message=\"{}\"/></testcase>",
            escaped(why)
        );
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
            result: CaseResult::Failed("<b>".to_owned()),
        };
        let xml = xml("cases.toml", &[case]);
        assert!(
            xml.contains("name=\"a&quot;/&gt;&lt;evil&gt;&amp;\u{fffd} \""),
            "{xml}"
        );
        assert!(
            xml.contains("tests=\"1\" failures=\"1\" skipped=\"0\""),
            "{xml}"
        );
    }
}
