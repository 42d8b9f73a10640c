//! MCP servers that another client knows, as entries of a manifest: its configuration file, read without running anything in it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};
use url::{Host, Url};

use super::{Definition, tool_name};
use crate::manifest::{Auth, SecretRef, Upstream};
use crate::openapi::write::{comment, upstream_entry};

/// A server that was found, as an entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The entry.
    pub upstream: Upstream,
    /// Remarks for the operator: what to check or to do.
    pub notes: Vec<String>,
}

/// The servers of a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Read {
    /// Tools that became entries.
    pub found: Vec<Found>,
    /// Tools that cannot be entries, each with the reason.
    pub refused: Vec<(String, String)>,
}

/// A file that lists no MCP servers.
#[derive(Debug, thiserror::Error)]
pub enum NoServers {
    /// It is no JSON. Usually the file of another program was given, or it has comments.
    #[error("it is not valid JSON")]
    NotJson(#[source] serde_json::Error),
    /// It has none of the members that list servers. Usually the settings of another part of the client were given.
    #[error("it has no member mcpServers or servers, as the files of MCP clients have")]
    NotAList,
}

/// Reads the configuration of an MCP client: the member `mcpServers` (Claude, Cursor, Windsurf, Gemini CLI) or `servers` (VS Code).
/// A value of an environment variable or of a header may be a secret, so none is taken over: the entry refers to a variable.
pub fn read(text: &str) -> Result<Read, NoServers> {
    let file: Value = serde_json::from_str(text).map_err(NoServers::NotJson)?;
    let places = ["/mcpServers", "/servers", "/mcp/servers"];
    let mut places = places.iter().filter_map(|at| file.pointer(at)?.as_object());
    let servers = places.next().ok_or(NoServers::NotAList)?;
    let mut read = Read::default();
    for (name, server) in servers {
        let own = name_of(name);
        let is_taken = read.found.iter().any(|found| found.upstream.name == own);
        let made = if is_taken {
            Err(format!("another server is called {own} already"))
        } else {
            entry(&own, server)
        };
        match made {
            Ok(mut found) => {
                if own != *name {
                    let note = format!("it is called {name:?} in the file");
                    found.notes.insert(0, note);
                }
                read.found.push(found);
            }
            Err(why) => read.refused.push((name.clone(), why)),
        }
    }
    Ok(read)
}

/// A name that an upstream can have, made from a text.
pub fn name_of(text: &str) -> String {
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let letters = text.to_ascii_lowercase();
    let letters = letters
        .chars()
        .map(|c| if is_letter(c) { c } else { '-' })
        .take(NAME_CHARS_MAX);
    let letters: String = letters.collect();
    let name = letters.trim_matches(['-', '_']);
    match name.chars().next() {
        Some('a'..='z') => name.to_owned(),
        Some(_) => format!("s{name}"),
        None => "server".to_owned(),
    }
}

const NAME_CHARS_MAX: usize = 40;

fn entry(name: &str, server: &Value) -> Result<Found, String> {
    let text = |key: &str| server.get(key).and_then(Value::as_str);
    let url = ["url", "serverUrl", "httpUrl"]
        .iter()
        .find_map(|key| text(key));
    let mut notes = Vec::new();
    if server.get("disabled") == Some(&Value::Bool(true)) {
        return Err("it is disabled there".to_owned());
    }
    let upstream = match (text("command"), url) {
        (Some(program), None) => child(name, program, server, &mut notes)?,
        (None, Some(url)) => {
            if text("type") == Some("sse") {
                let why = "it speaks the transport \"sse\", which the protocol has given up; ask for its Streamable HTTP address";
                return Err(why.to_owned());
            }
            at(name, url, server.get("headers"), &mut notes)?
        }
        (Some(_), Some(_)) => return Err("it has a command and an address".to_owned()),
        (None, None) => return Err("it has neither a command nor an address".to_owned()),
    };
    Ok(Found { upstream, notes })
}

fn child(
    name: &str,
    program: &str,
    server: &Value,
    notes: &mut Vec<String>,
) -> Result<Upstream, String> {
    let mut command = vec![program.to_owned()];
    for argument in server
        .get("args")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let argument = argument.as_str().ok_or("an argument is not a string")?;
        if argument.contains("${") {
            notes.push(format!(
                "{argument:?} is passed on unchanged: write the value"
            ));
        }
        if is_secret(command.last().map_or("", String::as_str), argument) {
            notes.push(
                "an argument looks like a secret: give it to the server through env".to_owned(),
            );
        }
        command.push(argument.to_owned());
    }
    if let Some(folder) = server.get("cwd").and_then(Value::as_str) {
        command.splice(0..0, ["env".to_owned(), "-C".to_owned(), folder.to_owned()]);
    }
    let mut upstream = Upstream::mcp_child(name, command);
    let empty = Map::new();
    let env = server
        .get("env")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    for (variable, value) in env {
        let value = value.as_str().unwrap_or_default();
        let reference = variable_in(value).unwrap_or(variable);
        if variable_in(value).is_none() {
            let note = format!(
                "set the environment variable {variable} of the gateway: its value stays in the file"
            );
            notes.push(note);
        }
        let reference = SecretRef::Env(reference.to_owned());
        upstream.env.insert(variable.clone(), reference);
    }
    Ok(upstream)
}

fn at(
    name: &str,
    url: &str,
    headers: Option<&Value>,
    notes: &mut Vec<String>,
) -> Result<Upstream, String> {
    let mut upstream = server_at(name, url)?;
    let headers = headers.and_then(Value::as_object);
    let mut auths = Vec::new();
    for (header, value) in headers.into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        let usual = if auths.is_empty() {
            format!("{}_TOKEN", name.to_uppercase().replace('-', "_"))
        } else {
            format!("{name}_{header}").to_uppercase().replace('-', "_")
        };
        let variable = variable_in(value).map_or_else(|| usual.clone(), str::to_owned);
        let token = SecretRef::Env(variable.clone());
        let is_bearer = header.eq_ignore_ascii_case("authorization")
            && value
                .get(..7)
                .is_some_and(|it| it.eq_ignore_ascii_case("bearer "));
        if variable_in(value).is_none() {
            notes.push(format!(
                "set the environment variable {variable} of the gateway to the value of the header {header}, which stays in the file"
            ));
        }
        auths.push(if is_bearer {
            Auth::Bearer { token }
        } else {
            Auth::Header {
                name: header.clone(),
                value: token,
                prefix: String::new(),
            }
        });
    }
    upstream.auth = auths.into_iter().collect();
    Ok(upstream)
}

/// The entry of a server at an address.
pub fn server_at(name: &str, url: &str) -> Result<Upstream, String> {
    let parsed = Url::parse(url).map_err(|error| format!("{url:?} is not an address: {error}"))?;
    let mut upstream = Upstream::mcp_at(name, url);
    let is_loopback = match parsed.host() {
        Some(Host::Domain(host)) => host == "localhost",
        Some(Host::Ipv4(host)) => host.is_loopback(),
        Some(Host::Ipv6(host)) => host.is_loopback(),
        None => return Err(format!("{url:?} has no host")),
    };
    if is_loopback {
        upstream.allow_private.push("loopback".to_owned());
    }
    Ok(upstream)
}

/// The environment variable that a value refers to: `${NAME}` or `${env:NAME}`, alone or behind a word.
fn variable_in(value: &str) -> Option<&str> {
    let inner = value.split_once("${")?.1.split_once('}')?.0;
    let inner = inner.strip_prefix("env:").unwrap_or(inner);
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    (!inner.is_empty() && inner.bytes().all(is_name)).then_some(inner)
}

/// True if an argument, or the option before it, looks like a secret.
fn is_secret(before: &str, argument: &str) -> bool {
    let names = [
        "token", "secret", "password", "api-key", "apikey", "api_key",
    ];
    let says = |text: &str| {
        names
            .iter()
            .any(|name| text.to_ascii_lowercase().contains(name))
    };
    match argument.split_once('=') {
        Some((option, value)) => says(option) && !value.starts_with('$'),
        None => before.starts_with('-') && says(before) && !argument.starts_with(['-', '$']),
    }
}

/// The text of a file with these servers and what they list, by name. A server that is not in `listed` was not asked.
pub fn toml(found: &[Found], listed: &BTreeMap<String, Vec<Definition>>) -> String {
    let mut out = String::new();
    for line in [
        "Imported by countersign: MCP servers.",
        "Nothing of them is called before `countersign upstreams approve NAME`.",
        "The next import into this file adds new servers, and changes nothing else.",
    ] {
        comment(line, &mut out);
    }
    for Found { upstream, notes } in found {
        out.push('\n');
        for note in notes {
            comment(note, &mut out);
        }
        upstream_entry(upstream, &mut out);
        for definition in listed.get(&upstream.name).into_iter().flatten() {
            tool(upstream, definition, &mut out);
        }
    }
    out
}

/// A tool as a comment, with the entry that confirms what the server hints.
fn tool(upstream: &Upstream, definition: &Definition, out: &mut String) {
    let name = tool_name(&upstream.prefix(), &definition.name);
    let told = definition.description.as_deref().unwrap_or_default();
    let told: String = told
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(100)
        .collect();
    let hints = definition.annotations;
    let hint = match (hints.read_only_hint, hints.destructive_hint) {
        (Some(true), _) => " The server hints that it only reads.",
        (_, Some(true)) => " The server hints that it removes or replaces.",
        (_, _) => "",
    };
    let _ = writeln!(out, "#");
    comment(&format!("{name}: {told}{hint}"), out);
    if hints.read_only_hint == Some(true) {
        comment("If that is so, confirm it:", out);
        comment("[[tool]]", out);
        comment(&format!("name = {name:?}"), out);
        comment("effect = \"read\"", out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Manifest;

    const FILE: &str = r#"{"mcpServers": {
        "Files": {"command": "npx", "args": ["-y", "server-filesystem", "/srv"], "env": {"LOG": "debug", "TOKEN": "${FILES_TOKEN}"}},
        "crm": {"type": "http", "url": "https://crm.example.com/mcp", "headers": {"Authorization": "Bearer hunter2"}},
        "local": {"url": "http://127.0.0.1:9/mcp", "headers": {"X-Key": "${env:LOCAL_KEY}"}},
        "old": {"type": "sse", "url": "https://old.example.com/sse"},
        "off": {"command": "x", "disabled": true}
    }}"#;

    /// What a client's file says becomes entries that are right, without any secret of it.
    #[test]
    fn a_clients_file_becomes_entries_without_secrets() {
        let read = read(FILE).unwrap();
        let text = toml(&read.found, &BTreeMap::new());
        assert!(
            !text.contains("hunter2") && !text.contains("debug"),
            "{text}"
        );
        let manifest: Manifest =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(manifest.check(), []);
        let names: Vec<&str> = manifest
            .upstream
            .iter()
            .map(|own| own.name.as_str())
            .collect();
        assert_eq!(names, ["files", "crm", "local"]);
        let [files, crm, local] = &manifest.upstream[..] else {
            panic!("{text}");
        };
        assert_eq!(files.command, ["npx", "-y", "server-filesystem", "/srv"]);
        let env = |name: &str| SecretRef::Env(name.to_owned());
        assert_eq!(files.env["LOG"], env("LOG"));
        assert_eq!(files.env["TOKEN"], env("FILES_TOKEN"));
        assert_eq!(
            crm.auth,
            Auth::Bearer {
                token: env("CRM_TOKEN")
            }
            .into()
        );
        assert_eq!(local.allow_private, ["loopback"]);
        let mut refused: Vec<&str> = read.refused.iter().map(|(name, _)| name.as_str()).collect();
        refused.sort_unstable();
        assert_eq!(refused, ["off", "old"]);
    }

    #[test]
    fn a_file_of_something_else_is_refused() {
        assert!(matches!(read("{"), Err(NoServers::NotJson(_))));
        assert!(matches!(read("{\"a\": 1}"), Err(NoServers::NotAList)));
    }

    /// A secret on a command line is noticed.
    #[test]
    fn an_argument_that_looks_like_a_secret_is_noticed() {
        for (before, argument, is) in [
            ("--api-key", "sk-1", true),
            ("x", "--token=abc", true),
            ("--token", "$TOKEN", false),
            ("--path", "/srv/token", false),
        ] {
            assert_eq!(is_secret(before, argument), is, "{before} {argument}");
        }
    }
}
