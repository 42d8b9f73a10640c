//! A call as people copy it: for a shell, for the command line, and in three languages. The key is the caller's own, so only its place is
//! written.

use countersign::contract::ToolSpec;
use serde_json::{Value, json};

use super::Filled;

/// Every form, each with its name.
pub(super) fn all(spec: &ToolSpec, filled: &Filled, url: &str) -> Vec<(&'static str, String)> {
    let url = format!("{url}/v1/tools/{}", spec.name);
    let body = body(filled).to_string();
    vec![
        ("curl", curl(&url, &body)),
        ("CLI", cli(spec, filled)),
        ("Python", python(&url, &body)),
        ("TypeScript", typescript(&url, &body)),
        ("Rust", rust(&url, &body)),
    ]
}

fn body(filled: &Filled) -> Value {
    let mut body = match &filled.raw {
        Some(raw) => json!({"arguments": raw}),
        None => json!({"arguments": filled.arguments}),
    };
    if let (true, Some(members)) = (filled.dry_run, body.as_object_mut()) {
        members.insert("dry_run".to_owned(), true.into());
    }
    body
}

fn curl(url: &str, body: &str) -> String {
    let body = quoted(body);
    format!("curl {url} \\\n  -H \"Authorization: Bearer $COUNTERSIGN_KEY\" \\\n  -d {body}")
}

fn cli(spec: &ToolSpec, filled: &Filled) -> String {
    let arguments = filled
        .raw
        .clone()
        .unwrap_or_else(|| filled.arguments.to_string());
    let dry_run = if filled.dry_run { " --dry-run" } else { "" };
    let user = match filled.user.as_str() {
        "" | "u_local" => String::new(),
        user => format!(" --user {}", quoted(user)),
    };
    format!(
        "countersign call {}{user}{dry_run} --args {}",
        spec.name,
        quoted(&arguments)
    )
}

/// The standard library only. A JSON string is a string of Python too.
fn python(url: &str, body: &str) -> String {
    format!(
        "import json, os, urllib.request\n\n\
         request = urllib.request.Request(\n    {url},\n    data={body}.encode(),\n    headers={{\"Authorization\": \"Bearer \" + os.environ[\"COUNTERSIGN_KEY\"]}},\n)\n\
         reply = json.load(urllib.request.urlopen(request))",
        url = json!(url),
        body = json!(body)
    )
}

/// JSON is an expression of TypeScript.
fn typescript(url: &str, body: &str) -> String {
    format!(
        "const answer = await fetch({url}, {{\n  method: \"POST\",\n  headers: {{ Authorization: `Bearer ${{process.env.COUNTERSIGN_KEY}}` }},\n  \
         body: JSON.stringify({body}),\n}});\nconst reply = await answer.json();",
        url = json!(url)
    )
}

fn rust(url: &str, body: &str) -> String {
    // As many signs as it takes that the text does not end the literal.
    let longest = body
        .split('"')
        .skip(1)
        .map(hashes)
        .max()
        .unwrap_or_default();
    let fence = "#".repeat(longest + 1);
    format!(
        "let reply: serde_json::Value = reqwest::Client::new()\n    .post({url})\n    .bearer_auth(std::env::var(\"COUNTERSIGN_KEY\")?)\n    \
         .body(r{fence}\"{body}\"{fence})\n    .send()\n    .await?\n    .json()\n    .await?;",
        url = json!(url)
    )
}

/// The signs `#` with which a text begins.
fn hashes(text: &str) -> usize {
    text.len() - text.trim_start_matches('#').len()
}

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_one_word() {
        assert_eq!(quoted("a'b $(x)"), r"'a'\''b $(x)'");
    }

    /// No text ends the literal that it stands in.
    #[test]
    fn a_text_stays_in_its_literal() {
        let body = json!({"arguments": {"q": "a\"#b'\n"}}).to_string();
        assert!(rust("u", &body).contains(&format!("r##\"{body}\"##")));
        assert!(python("u", &body).contains(&format!("data={}.encode()", json!(body))));
        assert!(typescript("u", &body).contains(&format!("JSON.stringify({body})")));
    }
}
