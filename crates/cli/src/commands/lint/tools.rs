//! The tools and upstreams of a configuration.

use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;

use countersign::catalog::Entry;
use countersign::contract::Effect;
use countersign_config::{Config, Loaded, Mistakes};
use countersign_upstream::manifest::{OnMismatch, SecretRef, Trust, Upstream, UpstreamKind};
use countersign_upstream::mcp::pins::{Difference, Pin, Pins};
use countersign_upstream::mcp::{Definition, Server, tool_name};
use countersign_upstream::output::unchecked;
use countersign_upstream::{ToolEntry, Upstreams};

use super::super::counted;
use super::Findings;
use crate::catalog::assemble;
use crate::config::secret;
use crate::failure::Failure;

/// Looks at every tool; the catalog that they make is the answer, as far as it can be made.
pub(super) fn look(
    loaded: &Loaded,
    is_to_connect: bool,
    findings: &mut Findings,
) -> Result<Vec<Arc<Entry>>, Failure> {
    let declared = assemble::declared(loaded);
    let catalog = declared.and_then(|tools| assemble::catalog(loaded, tools));
    let entries = match catalog {
        Ok(catalog) => catalog.list(),
        Err(mistakes) => {
            findings.errors(mistakes);
            Vec::new()
        }
    };
    let missing = assemble::missing_secrets(loaded);
    if missing.is_empty() {
        match assemble::ready(loaded, None) {
            Ok(assembled) if is_to_connect => connect(loaded, &assembled.upstreams, findings)?,
            Ok(_) => {}
            Err(mistakes) => findings.errors(mistakes),
        }
    } else {
        findings.errors(Mistakes(missing));
    }
    guesses(loaded, findings);
    answers(loaded, findings);
    upstreams(loaded, findings);
    Ok(entries)
}

/// Warns about settings of imported tools that the importer has guessed and no entry has confirmed.
fn guesses(loaded: &Loaded, findings: &mut Findings) {
    let config = loaded.config();
    for tool in config.manifest().tools() {
        let key = assemble::entry_key(config, &tool.name, |entry| !entry.guessed.is_empty());
        for name in &tool.guessed {
            let message = format!(
                "{name} of {} was guessed by the import and is not confirmed",
                tool.name
            );
            let mut mistake = loaded.mistake(&format!("{key}.guessed"), message);
            let value = match (name.as_str(), tool.effect) {
                ("effect", Some(effect)) => format!("{:?}", effect.as_str()),
                _ => "…".to_owned(),
            };
            mistake.expected = Some(confirming(&tool.name, name, &value));
            findings.warn(mistake);
        }
    }
}

/// Names the lines that confirm a setting of a tool, to be copied.
fn confirming(tool: impl std::fmt::Display, setting: &str, value: &str) -> String {
    format!(
        "three lines in your own file, with the right value: `[[tool]]`, `name = \"{tool}\"`, `{setting} = {value}`"
    )
}

/// Warns about answers that cannot be checked against their declared schema.
fn answers(loaded: &Loaded, findings: &mut Findings) {
    let config = loaded.config();
    for tool in config.manifest().tools() {
        let key = assemble::entry_key(config, &tool.name, |entry| entry.output.is_some());
        if let Some(message) = unchecked_answers(&tool) {
            findings.warn(loaded.mistake(&format!("{key}.output"), message));
        }
    }
}

/// Describes the answers of a tool that cannot be checked; `None` if they can.
fn unchecked_answers(tool: &ToolEntry) -> Option<String> {
    let why = unchecked(tool.output.as_ref()?)?;
    let rule = tool.response.as_ref().map(|own| own.on_mismatch);
    let told = match rule.unwrap_or_default() {
        OnMismatch::Refuse if tool.effect() == Effect::Read => "so each of its calls is refused",
        OnMismatch::Refuse | OnMismatch::Warn => "so each gets the warning ANSWER_NOT_CHECKED",
    };
    let name = &tool.name;
    Some(format!(
        "answers of {name} cannot be checked, {told}: {why}"
    ))
}

/// Upstreams that no tool calls, secrets that others can read, and headers that look like secrets.
fn upstreams(loaded: &Loaded, findings: &mut Findings) {
    let config = loaded.config();
    for (place, upstream) in config.upstream.iter().enumerate() {
        let key = format!("upstream[{place}]");
        let name = Some(upstream.name.as_str());
        let is_used = config
            .tool
            .iter()
            .any(|tool| tool.upstream.as_deref() == name);
        let is_server = upstream.kind == UpstreamKind::Mcp;
        if is_server {
            server(loaded, upstream, &key, findings);
        }
        if upstream.has_placeholder() {
            let message = "this address is a placeholder, because the imported document names no server that can be used: every call of its tools fails";
            let mut mistake = loaded.mistake(&format!("{key}.base_url"), message);
            mistake.expected =
                Some("the address of the service, such as https://api.example.com".to_owned());
            findings.warn(mistake);
        }
        if !is_used && !is_server {
            let message = "no tool calls this upstream";
            findings.warn(loaded.mistake(&format!("{key}.name"), message));
        }
        for (steps, reference) in upstream.secrets() {
            if let SecretRef::File(path) = reference {
                let path = loaded.folder().join(path);
                let mode = std::fs::metadata(&path).map(|file| file.mode());
                let exposed = mode.ok().and_then(|mode| secret::exposed(&path, mode));
                if let Some(message) = exposed {
                    let key = format!("{key}.{}", steps.join("."));
                    findings.warn(loaded.mistake(&key, message));
                }
            }
        }
        for header in upstream.headers.keys().filter(|name| is_secret(name)) {
            let key = format!("{key}.headers.{header}");
            findings.warn(loaded.mistake(&key, SECRET_HEADER));
        }
    }
    for (place, tool) in config.tool.iter().enumerate() {
        let headers = tool
            .request
            .iter()
            .flat_map(|request| request.headers.keys());
        for header in headers.filter(|name| is_secret(name)) {
            let key = format!("tool[{place}].request.headers.{header}");
            findings.warn(loaded.mistake(&key, SECRET_HEADER));
        }
    }
}

/// Warns about an MCP server without approved tools, and about tools whose effects no entry has confirmed.
fn server(loaded: &Loaded, upstream: &Upstream, key: &str, findings: &mut Findings) {
    let name = &upstream.name;
    // A file that cannot be read is an error already.
    let pins = Pins::read(loaded.folder()).unwrap_or_default();
    let Some(pin) = pins.upstreams.get(name) else {
        if upstream.trust == Trust::Approved {
            let message = format!(
                "none of its tools is approved; review them with `countersign upstreams diff {name}`, then approve them"
            );
            findings.warn(loaded.mistake(&format!("{key}.name"), message));
        }
        return;
    };
    let config = loaded.config();
    for definition in pin.tools.values() {
        let mut tool = definition.entry(upstream);
        let name = tool.name.clone();
        for said in config.tool.iter().filter(|entry| entry.name == name) {
            tool.join(said.clone());
        }
        if let Some(message) = unchecked_answers(&tool).filter(|_| tool.enabled != Some(false)) {
            findings.warn(loaded.mistake(&format!("{key}.name"), message));
        }
    }
    let guessed = unconfirmed(config, upstream, pin);
    if let Some((first, definition)) = guessed.first() {
        let names: Vec<&str> = guessed.iter().map(|(name, _)| name.as_str()).collect();
        let message = format!(
            "the effect of {} is not confirmed, so each call counts as a write: {}",
            counted(names.len(), "tool", "tools"),
            names.join(", ")
        );
        let mut mistake = loaded.mistake(&format!("{key}.name"), message);
        // Only what the server itself calls a read is proposed as one: a write that is taken for a read may run twice.
        let effect = match definition.annotations.read_only_hint {
            Some(true) => "\"read\"",
            Some(false) | None => "\"external\"",
        };
        mistake.expected = Some(confirming(first, "effect", effect));
        findings.warn(mistake);
    }
}

/// The approved tools of an MCP server whose effect no entry says, by the names that callers use.
pub(crate) fn unconfirmed<'p>(
    config: &Config,
    upstream: &Upstream,
    pin: &'p Pin,
) -> Vec<(String, &'p Definition)> {
    let is_confirmed = |tool: &String| {
        let mut said = config.tool.iter().filter(|entry| entry.name == *tool);
        said.any(|entry| entry.effect.is_some() || entry.enabled == Some(false))
    };
    let tools = pin.tools.iter();
    let named = tools.map(|(tool, definition)| (tool_name(&upstream.prefix(), tool), definition));
    named.filter(|(tool, _)| !is_confirmed(tool)).collect()
}

const SECRET_HEADER: &str =
    "a header of this name usually holds a secret; name the secret in auth of the upstream";

fn is_secret(header: &str) -> bool {
    let name = header.to_lowercase();
    let secrets = [
        "authorization",
        "cookie",
        "token",
        "api-key",
        "apikey",
        "secret",
    ];
    secrets.iter().any(|secret| name.contains(secret))
}

/// Warns about each tool that an MCP server lists in another way than it was approved.
fn differences(loaded: &Loaded, server: &Server, key: &str, findings: &mut Findings) {
    let state = server.state();
    // Where nothing is approved, every tool would be new.
    if state.pin.is_none() {
        return;
    }
    for Difference { tool, change } in &state.differences {
        let message = format!("{tool} is not as it was approved: {change}");
        let mut mistake = loaded.mistake(key, message);
        let name = server.name();
        mistake.expected = Some(format!(
            "an approval: `countersign upstreams diff {name}`, then `countersign upstreams approve {name}`"
        ));
        findings.warn(mistake);
    }
}

/// Looks whether each upstream can be reached, and whether each MCP server lists what was approved.
fn connect(loaded: &Loaded, upstreams: &Upstreams, findings: &mut Findings) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    for (place, upstream) in loaded.config().upstream.iter().enumerate() {
        if let Some(server) = upstreams.server(&upstream.name) {
            let listed = runtime.block_on(server.discover());
            runtime.block_on(server.close());
            let key = format!("upstream[{place}].name");
            match listed {
                Ok(_) => differences(loaded, server, &key, findings),
                Err(error) => findings.error(loaded.mistake(&key, error.to_string())),
            }
        }
        let Some(service) = upstreams.service(&upstream.name) else {
            continue;
        };
        if let Err(error) = runtime.block_on(service.reach()) {
            let message = format!("cannot be reached: {error}");
            let key = format!("upstream[{place}].base_url");
            findings.error(loaded.mistake(&key, message));
        }
    }
    Ok(())
}
