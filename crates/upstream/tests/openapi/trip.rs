//! The round trip of an operation: arguments that its schema accepts, sent by the real tool, read back by the document itself.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::clock::{Clock, SystemClock};
use countersign::contract::ReplyEnvelope;
use countersign::ledger::{MemoryStore, Store};
use countersign::{Catalog, Executor, Principal, ToolCall};
use countersign_upstream::manifest::{Auth, BodyFormat, Place, SecretRef};
use countersign_upstream::{Manifest, ToolEntry, Upstreams};
use serde_json::{Map, Value, json};

use crate::original::{Leaves, Original, Unfit, collect};
use crate::sample::Sampler;
use crate::service::{Seen, Service};

/// Result of a round trip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trip {
    /// The request is the one that the document describes, and has every argument; nothing was sent that must not be.
    Good,
    /// No arguments were found that the document itself accepts.
    NoArguments(String),
    /// Something is wrong.
    Wrong(String),
}

/// Number of attempts to draw valid arguments.
const DRAWS: u64 = 60;

/// A file with a credential; every one is this one.
const SECRET_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/openapi/secret.txt");
const SECRET: &str = "credential-of-the-test";

/// The tools of a document behind an executor, in front of a capturing service.
pub(crate) struct World<'s> {
    executor: Executor,
    service: &'s Service,
    /// Path of the base address.
    base: String,
}

impl<'s> World<'s> {
    /// The tools of these entries. Their upstream is the service, below the path that the document has.
    pub(crate) fn new(manifest: &Manifest, entries: &[&ToolEntry], service: &'s Service) -> Self {
        let mut manifest = Manifest {
            upstream: manifest.upstream.clone(),
            tool: entries.iter().map(|it| (*it).clone()).collect(),
        };
        let base = "/base v1".replace(' ', "-");
        for upstream in &mut manifest.upstream {
            upstream.base_url = format!("{}{base}", service.url);
            upstream.allow_private = vec!["loopback".to_owned()];
            upstream.send_context = false;
            let secret = SecretRef::File(SECRET_FILE.into());
            upstream.auth = match upstream.auth.take() {
                Some(Auth::Header { name, prefix, .. }) => Some(Auth::Header {
                    name,
                    value: secret,
                    prefix,
                }),
                Some(Auth::Query { name, .. }) => Some(Auth::Query {
                    name,
                    value: secret,
                }),
                Some(Auth::Cookie { name, .. }) => Some(Auth::Cookie {
                    name,
                    value: secret,
                }),
                Some(_) | None => None,
            };
        }
        for tool in &mut manifest.tool {
            tool.enabled = Some(true);
        }
        let upstreams = Upstreams::prepare(&manifest, Path::new(".")).unwrap();
        let catalog = Catalog::builder().build().unwrap();
        for tool in upstreams.tools().unwrap() {
            catalog.add(tool).unwrap();
        }
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let store = Arc::new(MemoryStore::with_clock(clock.clone()).keeping_log());
        let executor = Executor::builder(catalog)
            .store(store as Arc<dyn Store>)
            .clock(clock)
            .build();
        Self {
            executor,
            service,
            base,
        }
    }

    /// Calls a tool; the requests that left.
    async fn call(&self, tool: &str, arguments: &Value) -> (ReplyEnvelope, Vec<Seen>) {
        let before = self.service.seen().len();
        let call = ToolCall::new(tool, arguments.to_string(), Principal::user("ann"));
        let reply = self.executor.execute(call).await;
        (reply, self.service.seen().split_off(before))
    }

    /// The round trip of one tool.
    ///
    /// Arguments are drawn again if the document or the binder refuses them. If no draw is good, that is excused only where the tool's
    /// schema says less than the document in a way that is documented ([`Unfit::Stricter`]), where this reader cannot tell, and where
    /// nothing was drawn that the tool's own schema accepts, as another validator reads it.
    pub(crate) async fn trip(&self, entry: &ToolEntry, original: &Original) -> Trip {
        let Some(imported) = &entry.imported else {
            return Trip::Wrong("it was not imported".to_owned());
        };
        let input = Value::Object(entry.input.clone().unwrap_or_default());
        let schema = match own_validator(&input) {
            Ok(schema) => schema,
            Err(error) => return Trip::Wrong(format!("the tool's schema is none: {error}")),
        };
        let mut last = Trip::NoArguments("nothing was drawn".to_owned());
        for seed in 0..DRAWS {
            let arguments = Sampler::new(&input, seed + 1).draw();
            let (reply, seen) = self.call(&entry.name, &arguments).await;
            let [request] = &seen[..] else {
                let refusal = reply.error.map(|error| error.message.to_string());
                let refusal = refusal.unwrap_or_default();
                let why = format!("{} requests: {refusal} {arguments}", seen.len());
                if !seen.is_empty() {
                    return Trip::Wrong(why);
                }
                last = if schema.is_valid(&arguments) {
                    Trip::Wrong(why)
                } else {
                    Trip::NoArguments(why)
                };
                continue;
            };
            let told = |why: &str| format!("{why} | {arguments} | {}", request.line());
            last = match original.check(&imported.operation, &self.base, request) {
                Ok(leaves) => {
                    if let Err(why) = compare(entry, &arguments, leaves) {
                        return Trip::Wrong(told(&why));
                    }
                    return match self.refusals(entry, &arguments).await {
                        Ok(()) => Trip::Good,
                        Err(why) => Trip::Wrong(why),
                    };
                }
                Err(Unfit::Stricter { why, patterns }) if !has_any(&input, &patterns) => {
                    Trip::NoArguments(told(&why))
                }
                Err(Unfit::Untold(why)) => Trip::NoArguments(told(&why)),
                Err(Unfit::Wrong(why) | Unfit::Stricter { why, .. }) => Trip::Wrong(told(&why)),
            };
        }
        last
    }

    /// A missing required argument, and one that is not declared: no request leaves.
    async fn refusals(&self, entry: &ToolEntry, arguments: &Value) -> Result<(), String> {
        let mut unknown = arguments.clone();
        unknown["zz_not_declared"] = json!(1);
        let mut wrong = vec![("an unknown argument", unknown)];
        let input = entry.input.as_ref();
        let required = input
            .and_then(|it| it.get("required"))
            .and_then(Value::as_array);
        if let Some(name) = required.and_then(|it| it.first()).and_then(Value::as_str) {
            let mut missing = arguments.clone();
            missing.as_object_mut().map(|it| it.remove(name));
            wrong.push(("a missing argument", missing));
        }
        for (what, arguments) in wrong {
            let (reply, seen) = self.call(&entry.name, &arguments).await;
            if reply.ok || !seen.is_empty() {
                return Err(format!("{what} was sent: {arguments}"));
            }
        }
        Ok(())
    }
}

/// A validator that is not ours for the schema of a tool.
fn own_validator(input: &Value) -> Result<jsonschema::Validator, String> {
    let options = jsonschema::draft202012::options().should_validate_formats(true);
    options.build(input).map_err(|error| error.to_string())
}

/// True if a schema has one of these patterns.
fn has_any(schema: &Value, patterns: &[String]) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(name, it)| {
            let is_own = name == "pattern"
                && it
                    .as_str()
                    .is_some_and(|it| patterns.iter().any(|one| one == it));
            is_own || has_any(it, patterns)
        }),
        Value::Array(items) => items.iter().any(|it| has_any(it, patterns)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Every argument arrives once, and nothing else but presets.
fn compare(entry: &ToolEntry, arguments: &Value, found: Leaves) -> Result<(), String> {
    let mut expected = Leaves::new();
    let empty = Map::new();
    let body = entry.request.as_ref().and_then(|it| it.body);
    for (name, value) in arguments.as_object().unwrap_or(&empty) {
        let mut own = Leaves::new();
        collect(value, &mut own);
        // A raw body is compared as bytes.
        let is_whole = entry
            .arguments
            .get(name)
            .is_some_and(|it| it.place == Some(Place::WholeBody));
        if is_whole && body == Some(BodyFormat::Text) {
            own = own.iter().map(|it| STANDARD.encode(it)).collect();
        }
        expected.append(&mut own);
    }
    for preset in entry.arguments.values().filter_map(|it| it.preset.as_ref()) {
        collect(preset, &mut expected);
    }
    let count = |leaves: &Leaves| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for leaf in leaves {
            *counts.entry(number(leaf)).or_default() += 1;
        }
        counts
    };
    let found: Leaves = found.into_iter().filter(|it| it != SECRET).collect();
    let (expected, found) = (count(&expected), count(&found));
    if expected == found {
        return Ok(());
    }
    Err(format!("other values arrived: {found:?}, not {expected:?}"))
}

/// A number has one spelling here: 1.0 is 1.
fn number(text: &str) -> String {
    match text.parse::<f64>() {
        Ok(number) if number.fract() == 0.0 && number.abs() < 1e15 => format!("{}", number as i64),
        Ok(_) | Err(_) => text.to_owned(),
    }
}
