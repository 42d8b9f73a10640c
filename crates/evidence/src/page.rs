//! The verifier that is one HTML file: a person opens it in a browser, without a network, and drops a bundle on it.
//!
//! It implements `docs/evidence-format.md` a third time, in JavaScript on the cryptography of the browser, and shares no
//! code with [`crate::bundle`]. It must not load or send anything; the policy in its head allows this one script and
//! this one style by their hashes.

/// The file, as it is handed out.
pub const VERIFIER: &str = include_str!("../page/verify.html");

/// The name under which it is handed out.
pub const VERIFIER_NAME: &str = "verify.html";

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use countersign_contract::evidence::RecordKind;
    use countersign_contract::{Digest, ErrorCode};

    use super::VERIFIER;
    use crate::bundle::NotChecked;

    fn inside(tag: &str) -> &'static str {
        let (_, rest) = VERIFIER.split_once(&format!("<{tag}>")).unwrap();
        let (content, rest) = rest.split_once(&format!("</{tag}>")).unwrap();
        assert!(!rest.contains(&format!("<{tag}")), "there is one {tag}");
        content
    }

    /// A22: the policy of the page allows its own script and style, by their hashes, and no request.
    #[test]
    fn the_policy_allows_this_script_and_nothing_else() {
        let hash = |tag: &str| {
            let digest = Digest::of_bytes(inside(tag).as_bytes());
            format!("'sha256-{}'", STANDARD.encode(digest.0))
        };
        let policy = format!(
            "content=\"default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'\"",
            hash("script"),
            hash("style"),
        );
        assert!(VERIFIER.contains(&policy), "the head needs {policy}");
    }

    /// The script neither asks for anything nor makes code or markup of text.
    #[test]
    fn the_script_reaches_nothing() {
        let script = inside("script");
        for forbidden in [
            "fetch(",
            "XMLHttpRequest",
            "WebSocket",
            "EventSource",
            "sendBeacon",
            "import(",
            "eval(",
            "new Function",
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "location",
            "window.open",
            "localStorage",
            "cookie",
        ] {
            assert!(!script.contains(forbidden), "{forbidden}");
        }
        for outside in ["http://", "https://", "src=", "href=", "@import", "url("] {
            assert!(!VERIFIER.contains(outside), "{outside}");
        }
    }

    /// Closed lists of the format stand in the page, and everything that it may say in both languages.
    #[test]
    fn closed_lists_are_complete() {
        let script = inside("script");
        // A word may be a kind and a fault; each table has it in both languages.
        let is_said = |name: &str| {
            let count = script.matches(&format!(" {name}: \"")).count();
            count > 0 && count.is_multiple_of(2)
        };
        for code in ErrorCode::ALL {
            assert!(script.contains(&format!("\"{}\"", code.as_str())), "{code}");
        }
        for kind in RecordKind::ALL {
            let name = kind.as_str();
            assert!(
                script.contains(&format!("\"{name}\"")) && is_said(name),
                "{name}"
            );
        }
        for open in NotChecked::ALL {
            assert!(is_said(open.as_str()), "{open:?}");
        }
        let page = include_str!("../../../docs/evidence-format.md");
        let (_, faults) = page.split_once("### Faults").unwrap();
        let (faults, _) = faults.split_once("\n## ").unwrap();
        let codes: Vec<&str> = faults
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
            .collect();
        assert!(codes.len() >= 34, "{codes:?}");
        for code in codes {
            assert!(is_said(code), "{code}");
        }
    }
}
