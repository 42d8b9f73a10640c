//! A new `countersign.toml`: the usual settings with their texts as comments.

use std::fmt::Write as _;

use serde_json::Value;

use crate::page::in_toml;
use crate::schema::{self, Section, Setting};
use crate::value::{Listen, StoreAddress};

/// What a new file says.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    /// The address to listen on.
    pub listen: Listen,
    /// The store; none for the usual one.
    pub store: Option<StoreAddress>,
    /// Whether the shop is there to be tried.
    pub shop: bool,
    /// Whether a user has to confirm what changes something.
    pub confirm_writes: bool,
}

/// Which settings a new file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The usual ones.
    Usual,
    /// All of them.
    Everything,
}

/// The settings that people change first.
const USUAL: &[&str] = &[
    "server.listen",
    "server.public_url",
    "server.calls_max",
    "store.data",
    "store.url",
    "retention.short",
    "retention.standard",
    "retention.long",
    "keys.master",
    "telemetry.log",
    "telemetry.otlp",
    "approvals.url",
    "shop.enabled",
];

/// The longest line of a comment.
const COLUMNS: usize = 100;

/// The text of a new file.
///
/// # Example
///
/// ```
/// use countersign_config::starter::{Answers, Extent, text};
/// use countersign_config::Document;
///
/// let text = text(&Answers::default(), Extent::Usual);
/// Document::parse("countersign.toml", &text)?;
/// # Ok::<(), countersign_config::Mistakes>(())
/// ```
pub fn text(answers: &Answers, extent: Extent) -> String {
    let mut text = String::from(
        "# The configuration of Countersign. A line that begins with # shows the default.\n\
         # Every setting: docs/configuration.md. Check this file: countersign lint.\n",
    );
    let set = values(answers);
    for section in schema::sections() {
        let wanted = |setting: &&Setting| {
            extent == Extent::Everything || USUAL.contains(&setting.key.as_str())
        };
        let settings: Vec<&Setting> = section.settings.iter().filter(wanted).collect();
        if section.is_list || section.key.is_empty() || settings.is_empty() {
            continue;
        }
        write_section(section, &settings, &set, &mut text);
    }
    write_policy(answers, &mut text);
    text
}

/// The settings that the answers decide.
fn values(answers: &Answers) -> Vec<(&'static str, Value)> {
    let mut set = vec![
        ("server.listen", answers.listen.to_string().into()),
        ("shop.enabled", answers.shop.into()),
    ];
    if let Some(store) = &answers.store {
        set.push(("store.url", store.to_string().into()));
    }
    set
}

fn write_section(
    section: &Section,
    settings: &[&Setting],
    set: &[(&'static str, Value)],
    text: &mut String,
) {
    let _ = write!(text, "\n[{}]\n", section.key);
    for setting in settings {
        comment(&setting.text, text);
        let name = setting.key.rsplit('.').next().unwrap_or_default();
        let value = set.iter().find(|(key, _)| *key == setting.key);
        let _ = match (value, &setting.default) {
            (Some((_, value)), _) => writeln!(text, "{name} = {}", in_toml(value)),
            (None, Some(default)) => writeln!(text, "# {name} = {}", in_toml(default)),
            (None, None) => writeln!(text, "# {name} ="),
        };
    }
}

/// The policy, inline: tools that a rule names, and what an unlisted one gets.
fn write_policy(answers: &Answers, text: &mut String) {
    text.push_str("\n# Who may call what: docs/identity.md. Without [policy], every caller may call everything.\n");
    if !answers.confirm_writes {
        text.push_str("# [policy]\n# revision = \"1\"\n# [[policy.tools]]\n# match = \"*\"\n");
        return;
    }
    text.push_str(
        "[policy]\nrevision = \"1\"\n\n\
         # Every tool may be called.\n[[policy.tools]]\nmatch = \"*\"\n\n\
         # A user confirms each call of these; write the names of your tools.\n\
         [[policy.tools]]\nmatch = \"notes.*\"\nconfirm = \"always\"\n",
    );
}

/// A text as lines of a comment.
fn comment(words: &str, text: &mut String) {
    let mut line = String::from("#");
    for word in words.split_whitespace() {
        if line.len() > 1 && line.len() + 1 + word.len() > COLUMNS {
            let _ = writeln!(text, "{line}");
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(text, "{line}");
}
