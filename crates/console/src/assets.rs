//! Stylesheet, script and icon: files of the program, under an address that changes with them.

use std::sync::LazyLock;

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use countersign::contract::Digest;
use http::HeaderValue;
use http::header::CACHE_CONTROL;

use crate::Shared;
use crate::answer::typed;

const STYLE: &[u8] = include_bytes!("../static/console.css");
const SCRIPT: &[u8] = include_bytes!("../static/console.js");
const FORM: &[u8] = include_bytes!("../static/form.js");
const ICON: &[u8] = include_bytes!("../static/icon.svg");

/// htmx 4.0.0 as its authors publish it (npm `htmx.org`, `dist/htmx.min.js`, 0BSD). A test compares its SHA-256.
pub(crate) const HTMX: &[u8] = include_bytes!("../static/htmx.min.js");

/// Changes with every file.
pub(crate) static VERSION: LazyLock<String> = LazyLock::new(|| {
    let all: Vec<u8> = [STYLE, SCRIPT, FORM, ICON, HTMX].concat();
    let digest = Digest::of_bytes(&all).to_string();
    let digest = digest.trim_start_matches("sha256:");
    digest.chars().take(12).collect()
});

pub(crate) fn routes() -> Router<Shared> {
    Router::new()
        .route(
            "/console/console.css",
            get(async || file(STYLE, "text/css")),
        )
        .route(
            "/console/console.js",
            get(async || file(SCRIPT, "text/javascript")),
        )
        .route(
            "/console/form.js",
            get(async || file(FORM, "text/javascript")),
        )
        .route(
            "/console/htmx.js",
            get(async || file(HTMX, "text/javascript")),
        )
        .route(
            "/console/icon.svg",
            get(async || file(ICON, "image/svg+xml")),
        )
        .route("/favicon.ico", get(async || file(ICON, "image/svg+xml")))
}

fn file(bytes: &'static [u8], kind: &'static str) -> Response {
    let mut response = typed(bytes, kind);
    let kept = HeaderValue::from_static("public, max-age=31536000, immutable");
    response.headers_mut().insert(CACHE_CONTROL, kept);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Third-party code is what its authors published, byte for byte.
    #[test]
    fn htmx_is_the_published_file() {
        assert_eq!(
            Digest::of_bytes(HTMX).to_string(),
            "sha256:e484d9171a9db30a39c8f16e3d709d4137f3211c659f8e6125816635033d593f"
        );
    }

    /// B17: a script stays small enough to be read at once, and nothing in it makes code of text.
    #[test]
    fn the_scripts_are_short() {
        for script in [SCRIPT, FORM] {
            let script = std::str::from_utf8(script).unwrap();
            assert!(script.lines().count() <= 200);
            for forbidden in [
                "eval(",
                "new Function",
                ".innerHTML",
                "insertAdjacentHTML",
                "http://",
            ] {
                assert!(!script.contains(forbidden), "{forbidden}");
            }
        }
    }

    /// Contrast AA (4.5 : 1) of every text colour on every paper, in light and in dark.
    #[test]
    fn texts_stand_out_from_their_paper() {
        let style = std::str::from_utf8(STYLE).unwrap();
        let (light, dark) = style.split_once("/* dark */").unwrap();
        let mut compared = 0;
        for (name, part) in [("light", light), ("dark", dark)] {
            let colour = |token: &str| colour(part, token);
            let texts = ["ink", "ink-2", "ink-3", "seal", "ok", "warn", "info"];
            for text in texts {
                let soft = format!("{text}-soft");
                let own = part
                    .contains(&format!("--{soft}: #"))
                    .then_some(soft.as_str());
                for paper in ["paper", "paper-2", "paper-3"].into_iter().chain(own) {
                    let (a, b) = (colour(text), colour(paper));
                    let ratio = (a.max(b) + 0.05) / (a.min(b) + 0.05);
                    assert!(ratio >= 4.5, "{name}: {text} on {paper} is {ratio:.2}");
                    compared += 1;
                }
            }
        }
        assert!(compared >= 42);
    }

    /// B17: the edge of everything that can be filled in or pressed stands out from its paper (WCAG 1.4.11, 3 : 1), in light and in dark.
    #[test]
    fn edges_of_inputs_stand_out_from_their_paper() {
        let style = std::str::from_utf8(STYLE).unwrap();
        let (light, dark) = style.split_once("/* dark */").unwrap();
        for (name, part) in [("light", light), ("dark", dark)] {
            for paper in ["paper", "paper-2", "paper-3"] {
                let (a, b) = (colour(part, "edge"), colour(part, paper));
                let ratio = (a.max(b) + 0.05) / (a.min(b) + 0.05);
                assert!(ratio >= 3.0, "{name}: edge on {paper} is {ratio:.2}");
            }
        }
        for rule in ["\ninput, select, textarea {", "\nbutton, .btn {"] {
            let rule = style.split_once(rule).unwrap().1;
            let rule = rule.split_once('}').unwrap().0;
            assert!(rule.contains("1px solid var(--edge)"), "{rule}");
        }
    }

    /// B17: `?` lists every key that does something.
    #[test]
    fn the_help_lists_every_key() {
        let script = std::str::from_utf8(SCRIPT).unwrap();
        let between = |from: &str, to: &str| {
            let rest = script.split_once(from).unwrap().1;
            rest.split_once(to).unwrap().0
        };
        let layout = include_str!("../templates/layout.html");
        let help = layout.split_once("<dialog id=\"keyboard-help\"").unwrap().1;
        let mut pressed = 0;
        for line in between("const press = {", "\n  };").lines() {
            let Some((key, _)) = line.trim().split_once(": ()") else {
                continue;
            };
            let key = key.trim_matches('"');
            assert!(help.contains(&format!("<kbd>{key}</kbd>")), "no {key}");
            pressed += 1;
        }
        for place in between("const places = {", "};").split(',') {
            let Some((key, _)) = place.trim().split_once(": ") else {
                continue;
            };
            let listed = format!("<kbd>g</kbd> <kbd>{key}</kbd>");
            assert!(help.contains(&listed), "no g {key}");
            pressed += 1;
        }
        assert!(pressed >= 19, "{pressed}");
        assert!(help.contains("<kbd>Esc</kbd>") && help.contains("<kbd>↵</kbd>"));
    }

    /// The luminance of a token in a part of the stylesheet.
    fn colour(part: &str, token: &str) -> f64 {
        let found = part.split(&format!("--{token}: #")).nth(1);
        let digits = found.unwrap_or_else(|| panic!("no --{token}"));
        luminance(&digits[..6])
    }

    fn luminance(digits: &str) -> f64 {
        let part = |at: usize| {
            let value = f64::from(u8::from_str_radix(&digits[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.03928 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * part(0) + 0.7152 * part(2) + 0.0722 * part(4)
    }
}
