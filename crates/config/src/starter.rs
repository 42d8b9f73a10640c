//! A new `countersign.toml`: the usual settings with their texts as comments.

use std::fmt::Write as _;

use serde_json::Value;

use crate::page::in_toml;
use crate::schema::{self, Section, Setting};
use crate::value::{Listen, StoreAddress, WebUrl};

/// Values that a new file starts with.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    /// The address to listen on.
    pub listen: Listen,
    /// The store; none for the usual one.
    pub store: Option<StoreAddress>,
    /// The address of a service whose tools are offered.
    pub upstream: Option<WebUrl>,
    /// True if the sample shop is offered.
    pub shop: bool,
    /// True if a user has to confirm calls that change something.
    pub confirm_writes: bool,
}

/// Extent of the settings in a new file.
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
    // Editors read the first line, and find the schema beside the file.
    let mut text = format!(
        "#:schema ./{}\n\
         # The configuration of Countersign. A line that begins with # shows the default.\n\
         # Every setting: docs/configuration.md. Check this file: countersign lint.\n",
        schema::FILE_NAME
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
    write_upstream(answers, &mut text);
    text
}

/// A service and a tool of it: the service where there is one, and the rest as an example to take the `#` from.
fn write_upstream(answers: &Answers, text: &mut String) {
    text.push_str(
        "\n# A service whose functions are tools: docs/http-tool.md. Secrets are named here, and never written.\n",
    );
    let url = answers.upstream.as_ref().map(ToString::to_string);
    let (mark, url) = match &url {
        Some(url) => ("", url.as_str()),
        None => ("# ", "http://127.0.0.1:8000"),
    };
    let _ = write!(
        text,
        "{mark}[[upstream]]\n{mark}name = \"app\"\n{mark}base_url = {url:?}\n"
    );
    if is_local(url) {
        let _ = writeln!(text, "{mark}allow_private = [\"loopback\"]");
    }
    text.push_str("# auth.bearer.token = \"env:APP_TOKEN\"\n");
    text.push_str(
        "\n# A tool of it: a call is POST /tools/app.greet with the arguments as JSON.\n\
         # [[tool]]\n# name = \"app.greet\"\n# upstream = \"app\"\n# description = \"Greets a person by name.\"\n\
         # effect = \"read\"\n# parameters = [{ name = \"name\", description = \"Name of the person.\" }]\n",
    );
}

/// True if an address is on this machine: that has to be said of an upstream.
fn is_local(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    let local = ["127.", "localhost", "[::1]"];
    local.iter().any(|start| host.starts_with(start))
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
    text.push_str("\n# Which caller may call which tool: docs/policy.md. Without [policy], every caller may call everything.\n");
    if !answers.confirm_writes {
        text.push_str("# [policy]\n# revision = \"1\"\n# [[policy.tools]]\n# match = \"*\"\n");
        return;
    }
    let tools = if answers.upstream.is_some() {
        "app.*"
    } else {
        "notes.*"
    };
    let _ = write!(
        text,
        "[policy]\nrevision = \"1\"\n\n\
         # Every tool may be called.\n[[policy.tools]]\nmatch = \"*\"\n\n\
         # A user confirms each call of these; write the names of your tools.\n\
         [[policy.tools]]\nmatch = {tools:?}\nconfirm = \"always\"\n",
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
