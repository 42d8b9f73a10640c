//! `cargo xtask screens demo`: a picture of the terminal demo, drawn from the real output of `countersign demo`.

use std::fmt::Write as _;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::step;

/// Part of a step in the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Every line.
    Whole,
    /// The heading and the checks.
    Checks,
    /// Nothing.
    None,
}

/// Steps of the demo in the picture, by the start of their heading. The others are left out, so that it can be read in the README.
const STEPS: [(&str, Part); 6] = [
    ("[ 1/", Part::Whole),
    ("[ 8/", Part::Checks),
    ("[11/", Part::Checks),
    ("[12/", Part::Checks),
    ("[13/", Part::Checks),
    ("[15/", Part::Checks),
];

/// Command that the picture shows in its first line.
const COMMAND: &str = "countersign demo";

const FONT_PX: usize = 14;
const LINE_PX: usize = 20;
const MARGIN_PX: usize = 20;
/// Width of a character of most monospaced fonts, in thousandths of the font size.
const CHARACTER_WIDTH: usize = 610;

/// Runs the demo and writes `docs/screens/demo.svg`.
pub(crate) fn demo() -> Result<()> {
    let mut run = Command::new("cargo");
    run.args([
        "run",
        "--locked",
        "--quiet",
        "--package",
        "countersign-cli",
        "--",
        "demo",
    ]);
    let output = run.current_dir(step::root()).output();
    let output = output.context("cannot start cargo")?;
    if !output.status.success() {
        bail!(
            "the demo failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let text = String::from_utf8(output.stdout).context("the demo writes UTF-8")?;
    let lines = chosen(&text);
    if lines.len() <= STEPS.len() {
        bail!("the demo's output has no such steps; see STEPS in xtask/src/picture.rs");
    }
    let path = step::root().join("docs/screens/demo.svg");
    std::fs::write(&path, svg(&lines)).with_context(|| format!("cannot write {}", path.display()))
}

/// Lines of the chosen steps, with `…` for steps that are left out.
fn chosen(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut part = Part::None;
    for line in text.lines() {
        let is_heading = line.starts_with('[');
        if is_heading {
            let step = STEPS.iter().find(|(start, _)| line.starts_with(start));
            part = step.map_or(Part::None, |(_, part)| *part);
        }
        let is_check = line.trim_start().starts_with('✓');
        match part {
            Part::Whole if !line.is_empty() => lines.push(line),
            Part::Checks if is_heading || is_check => lines.push(line),
            Part::None if is_heading && lines.last().is_some_and(|last| *last != "…") => {
                lines.push("…");
            }
            Part::Whole | Part::Checks | Part::None => {}
        }
    }
    lines
}

/// Draws the lines as a terminal.
fn svg(lines: &[&str]) -> String {
    let columns = lines.iter().map(|line| line.chars().count()).max();
    let columns = columns.unwrap_or_default().max(COMMAND.len() + 2);
    let width = columns * FONT_PX * CHARACTER_WIDTH / 1000 + 2 * MARGIN_PX;
    let height = (lines.len() + 2) * LINE_PX + 2 * MARGIN_PX;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
         <title>{COMMAND}</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#14171c\"/>\n\
         <g font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"{FONT_PX}\" fill=\"#d7dce3\">\n"
    );
    let prompt = format!("$ {COMMAND}");
    for (place, line) in std::iter::once(prompt.as_str())
        .chain(lines.iter().copied())
        .enumerate()
    {
        let y = MARGIN_PX + (place + 1) * LINE_PX;
        let colour = match line.trim_start().chars().next() {
            Some('✓') => " fill=\"#7fd69b\"",
            Some('…') => " fill=\"#6b7480\"",
            Some('[') => " font-weight=\"bold\"",
            _ => "",
        };
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "<text x=\"{MARGIN_PX}\" y=\"{y}\"{colour}>{}</text>",
            escaped(line)
        );
    }
    text.push_str("</g>\n</svg>\n");
    text
}

/// Escapes a line. Spaces become no-break spaces, because a renderer of SVG joins the others.
fn escaped(line: &str) -> String {
    line.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace(' ', "\u{a0}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_has_the_chosen_steps() {
        let text = "[ 1/15] A\n  ✓ a < b\n[ 2/15] B\n  ✓ b\n[ 8/15] C\n  ✓ c\n";
        assert_eq!(
            chosen(text),
            ["[ 1/15] A", "  ✓ a < b", "…", "[ 8/15] C", "  ✓ c"]
        );
        let drawn = svg(&chosen(text));
        assert!(
            drawn.contains("a\u{a0}&lt;\u{a0}b") && !drawn.contains("2/15]"),
            "{drawn}"
        );
        assert_eq!(drawn.matches("<text ").count(), 6);
    }
}
