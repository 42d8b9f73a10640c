//! Programs that speak MCP, for metrics. The name that a program gives is any text, so only known ones are passed on.

/// Label of every other program.
const OTHER: &str = "other";

/// Beginnings of names, in lower case, with the label of their program.
const KNOWN: [(&str, &str); 20] = [
    ("chatgpt", "chatgpt"),
    ("claude-ai", "claude"),
    ("claude-code", "claude-code"),
    ("claude", "claude"),
    ("cline", "cline"),
    ("codex", "codex"),
    ("continue", "continue"),
    ("copilot", "copilot"),
    ("cursor", "cursor"),
    ("gemini-cli", "gemini-cli"),
    ("github-copilot", "copilot"),
    ("goose", "goose"),
    ("librechat", "librechat"),
    ("lm-studio", "lm-studio"),
    ("mcp-inspector", "inspector"),
    ("openai-mcp", "chatgpt"),
    ("visual studio code", "vscode"),
    ("windsurf", "windsurf"),
    ("zed", "zed"),
    ("inspector", "inspector"),
];

/// Returns the label of the program that calls itself so.
pub(super) fn known(name: &str) -> &'static str {
    let name = name.to_ascii_lowercase();
    let found = KNOWN.iter().find(|(start, _)| name.starts_with(start));
    found.map_or(OTHER, |(_, label)| label)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B19: a known program has a label of its own, and no text of a caller becomes one.
    #[test]
    fn only_known_programs_have_a_label() {
        assert_eq!(known("Claude-Code"), "claude-code");
        assert_eq!(known("claude-ai"), "claude");
        assert_eq!(known("Visual Studio Code - Insiders"), "vscode");
        assert_eq!(known("ann@example.com"), OTHER);
    }
}
