//! A call as people copy it: for a shell, for the command line, and in three languages. The user and the key of the call are those
//! of the form. The credential is the caller's own, so only its place is written, and nothing where the server asks for none.

use countersign::contract::ToolSpec;
use serde_json::{Map, Value, json};

use super::Filled;
use crate::form::digits;

/// A call to be written down.
struct Copied<'a> {
    url: String,
    body: String,
    spec: &'a ToolSpec,
    filled: &'a Filled,
    /// True if the server wants a credential.
    with_key: bool,
}

/// Every form, each with its name.
pub(super) fn all(
    spec: &ToolSpec,
    filled: &Filled,
    url: &str,
    with_key: bool,
) -> Vec<(&'static str, String)> {
    let copied = Copied {
        url: format!("{url}/v1/tools/{}", spec.name),
        body: body(filled).to_string(),
        spec,
        filled,
        with_key,
    };
    vec![
        ("curl", copied.curl()),
        ("CLI", copied.cli()),
        ("Python", copied.python()),
        ("TypeScript", copied.typescript()),
        ("Rust", copied.rust()),
    ]
}

/// The body of the request, as the form sends it.
pub(super) fn body(filled: &Filled) -> Value {
    let mut body = Map::new();
    let arguments = match &filled.raw {
        Some(raw) => json!(raw),
        None => digits::sent(&filled.arguments),
    };
    body.insert("arguments".to_owned(), arguments);
    for (name, text) in [("user_id", &filled.user), ("idempotency_key", &filled.key)] {
        if !text.is_empty() {
            body.insert(name.to_owned(), text.as_str().into());
        }
    }
    if filled.dry_run {
        body.insert("dry_run".to_owned(), true.into());
    }
    Value::Object(body)
}

impl Copied<'_> {
    /// A text that names the credential; nothing where the server asks for none.
    fn where_asked<'t>(&self, text: &'t str) -> &'t str {
        if self.with_key { text } else { "" }
    }

    fn curl(&self) -> String {
        let credential = self.where_asked("  -H \"Authorization: Bearer $COUNTERSIGN_KEY\" \\\n");
        format!(
            "curl {} \\\n{credential}  -d {}",
            self.url,
            quoted(&self.body)
        )
    }

    /// The same call by the command, which asks the server of this machine.
    fn cli(&self) -> String {
        let filled = self.filled;
        let arguments = match &filled.raw {
            Some(raw) => raw.clone(),
            None => digits::text(&filled.arguments),
        };
        let mut words = format!("countersign call {}", self.spec.name);
        for (name, text) in [("--user", &filled.user), ("--key", &filled.key)] {
            if !text.is_empty() {
                words = format!("{words} {name}={}", quoted(text));
            }
        }
        if filled.dry_run {
            words.push_str(" --dry-run");
        }
        format!("{words} \\\n  --args {}", quoted(&arguments))
    }

    /// The standard library only. A JSON string is a string of Python too.
    fn python(&self) -> String {
        let import = if self.with_key {
            "import json, os, urllib.request"
        } else {
            "import json, urllib.request"
        };
        let headers = self.where_asked(
            "    headers={\"Authorization\": \"Bearer \" + os.environ[\"COUNTERSIGN_KEY\"]},\n",
        );
        format!(
            "{import}\n\n\
             request = urllib.request.Request(\n    {url},\n    data={body}.encode(),\n{headers})\n\
             reply = json.load(urllib.request.urlopen(request))\nprint(json.dumps(reply, indent=2))",
            url = json!(self.url),
            body = json!(self.body)
        )
    }

    /// JSON is an expression of TypeScript. Without a type, `fetch` calls a text plain, which the gateway takes for the arguments alone.
    fn typescript(&self) -> String {
        let credential =
            self.where_asked(", Authorization: `Bearer ${process.env.COUNTERSIGN_KEY}`");
        format!(
            "const answer = await fetch({url}, {{\n  method: \"POST\",\n  \
             headers: {{ \"Content-Type\": \"application/json\"{credential} }},\n  \
             body: JSON.stringify({body}),\n}});\nconst reply = await answer.json();",
            url = json!(self.url),
            body = self.body
        )
    }

    fn rust(&self) -> String {
        // As many signs as it takes that the text does not end the literal.
        let pieces = self.body.split('"').skip(1).map(hashes);
        let fence = "#".repeat(pieces.max().unwrap_or_default() + 1);
        let credential =
            self.where_asked("    .bearer_auth(std::env::var(\"COUNTERSIGN_KEY\")?)\n");
        format!(
            "let reply: serde_json::Value = reqwest::Client::new()\n    .post({url})\n{credential}    \
             .body(r{fence}\"{body}\"{fence})\n    .send()\n    .await?\n    .json()\n    .await?;",
            url = json!(self.url),
            body = self.body
        )
    }
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
    use countersign::contract::ToolName;

    use super::*;

    fn filled(arguments: Value) -> Filled {
        Filled {
            arguments,
            raw: None,
            dry_run: true,
            user: "u_anna".to_owned(),
            key: "order 7's".to_owned(),
        }
    }

    #[test]
    fn a_shell_reads_one_word() {
        assert_eq!(quoted("a'b $(x)"), r"'a'\''b $(x)'");
    }

    /// The user, the key and the dry run are in every form; the credential is where one is asked for.
    #[test]
    fn every_form_has_the_whole_call() {
        let spec = ToolSpec::new(ToolName::new("notes.add").unwrap(), "");
        for with_key in [false, true] {
            for (name, text) in all(&spec, &filled(json!({"text": "x"})), "http://h", with_key) {
                for part in ["u_anna", "order 7", "x"] {
                    assert!(text.contains(part), "{name} has no {part}: {text}");
                }
                assert!(
                    text.contains("dry_run") || text.contains("--dry-run"),
                    "{text}"
                );
                let names_key = text.contains("COUNTERSIGN_KEY");
                assert_eq!(names_key, with_key && name != "CLI", "{text}");
            }
        }
    }

    /// No text ends the literal that it stands in.
    #[test]
    fn a_text_stays_in_its_literal() {
        let filled = filled(json!({"q": "a\"#b'\n"}));
        let body = body(&filled).to_string();
        let spec = ToolSpec::new(ToolName::new("notes.add").unwrap(), "");
        let copies = all(&spec, &filled, "http://h", true);
        let of = |wanted: &str| {
            let found = copies.iter().find(|(name, _)| *name == wanted);
            found.unwrap().1.clone()
        };
        assert!(of("Rust").contains(&format!("r##\"{body}\"##")));
        assert!(of("Python").contains(&format!("data={}.encode()", json!(body))));
        assert!(of("TypeScript").contains(&format!("JSON.stringify({body})")));
    }
}
