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

use crate::excuse::Excuses;
use crate::original::{Leaves, Original, Unfit, collect};
use crate::sample::Sampler;
use crate::service::{Seen, Service};

/// The round trips of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trips {
    pub(crate) trip: Trip,
    /// Draws that were no round trip, by their excuse.
    pub(crate) redraws: BTreeMap<&'static str, usize>,
    /// True if a good round trip had arguments.
    pub(crate) has_arguments: bool,
}

/// Result of round trips.
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

/// Different valid arguments with which each tool is called.
const CALLS: usize = 3;

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

/// An executor with the tools of a manifest.
pub(crate) fn executor_of(manifest: &Manifest) -> Executor {
    let upstreams = Upstreams::prepare(manifest, Path::new(".")).unwrap();
    let catalog = Catalog::builder().build().unwrap();
    for tool in upstreams.tools().unwrap() {
        catalog.add(tool).unwrap();
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let store = Arc::new(MemoryStore::with_clock(clock.clone()).keeping_log());
    Executor::builder(catalog)
        .store(store as Arc<dyn Store>)
        .clock(clock)
        .build()
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
            let known = upstream.auth.iter().filter_map(|auth| match auth.clone() {
                Auth::Header { name, prefix, .. } => Some(Auth::Header {
                    name,
                    value: secret.clone(),
                    prefix,
                }),
                Auth::Query { name, .. } => Some(Auth::Query {
                    name,
                    value: secret.clone(),
                }),
                Auth::Cookie { name, .. } => Some(Auth::Cookie {
                    name,
                    value: secret.clone(),
                }),
                _ => None,
            });
            upstream.auth = known.collect();
        }
        for tool in &mut manifest.tool {
            tool.enabled = Some(true);
        }
        Self {
            executor: executor_of(&manifest),
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

    /// The round trips of one tool. `notes` are those of the import about it.
    ///
    /// Arguments that the tool's own schema accepts, as another validator reads it, have to arrive as the document says: a refusal or a
    /// wrong request is wrong at once. Excused are draws that break a rule which the import has left out, as a note says for this very place
    /// ([`Excuses`]), and those of which the reader of the document cannot tell. Arguments are then drawn again.
    pub(crate) async fn trips(
        &self,
        entry: &ToolEntry,
        notes: &[String],
        original: &Original,
    ) -> Trips {
        let mut trips = Trips {
            trip: Trip::NoArguments("nothing was drawn".to_owned()),
            redraws: BTreeMap::new(),
            has_arguments: false,
        };
        let excuses = Excuses::new(entry, notes);
        let input = Value::Object(entry.input.clone().unwrap_or_default());
        let schema = match own_validator(&input) {
            Ok(schema) => schema,
            Err(error) => {
                trips.trip = Trip::Wrong(format!("the tool's schema is none: {error}"));
                return trips;
            }
        };
        let mut called: Vec<Value> = Vec::new();
        for seed in 0..DRAWS {
            let arguments = Sampler::new(&input, seed + 1).draw();
            if called.contains(&arguments) {
                continue;
            }
            let excuse = if let Err(error) = schema.validate(&arguments) {
                Some(("not as the tool says", format!("{error} | {arguments}")))
            } else {
                match self.trip(entry, &excuses, original, &arguments).await {
                    Ok(excuse) => excuse,
                    Err(why) => {
                        trips.trip = Trip::Wrong(why);
                        return trips;
                    }
                }
            };
            match excuse {
                None => {
                    trips.has_arguments |= arguments != json!({});
                    trips.trip = Trip::Good;
                    called.push(arguments);
                }
                Some((excuse, why)) => {
                    *trips.redraws.entry(excuse).or_default() += 1;
                    if let Trip::NoArguments(last) = &mut trips.trip {
                        *last = why;
                    }
                }
            }
            if called.len() == CALLS {
                break;
            }
        }
        let (Trip::Good, Some(arguments)) = (&trips.trip, called.first()) else {
            return trips;
        };
        if let Err(why) = self.refusals(entry, arguments).await {
            trips.trip = Trip::Wrong(why);
        }
        trips
    }

    /// One round trip with valid arguments. `Some` is the excuse why it says nothing; the error is the fault.
    async fn trip(
        &self,
        entry: &ToolEntry,
        excuses: &Excuses<'_>,
        original: &Original,
        arguments: &Value,
    ) -> Result<Option<(&'static str, String)>, String> {
        let imported = entry.imported.as_ref().ok_or("it was not imported")?;
        let (reply, seen) = self.call(&entry.name, arguments).await;
        let [request] = &seen[..] else {
            let refusal = reply.error.as_ref().map(|error| error.message.to_string());
            let refusal = refusal.unwrap_or_default();
            let told = format!("{} requests: {refusal} {arguments}", seen.len());
            return if seen.is_empty() && excuses.cover_refusal(&reply, arguments) {
                Ok(Some(("cannot be sent", told)))
            } else {
                Err(told)
            };
        };
        let told = |why: &str| format!("{why} | {arguments} | {}", request.line());
        match original.check(&imported.operation, &self.base, request) {
            Ok(leaves) => match compare(entry, arguments, leaves) {
                Ok(()) => Ok(None),
                Err(why) => Err(told(&why)),
            },
            Err(Unfit::Broken { why, whose, broken }) if excuses.cover(&whose, &broken) => {
                Ok(Some(("a rule was left out", told(&why))))
            }
            Err(Unfit::Untold(why)) => Ok(Some(("the reader cannot tell", told(&why)))),
            Err(unfit) => Err(told(unfit.why())),
        }
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
