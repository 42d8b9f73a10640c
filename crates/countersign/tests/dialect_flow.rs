//! B16, from end to end: model output → look-up → bind → run → result → history, with a scripted
//! model in every dialect.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::collections::BTreeMap;
use std::sync::Mutex;

use countersign::alias::alias;
use countersign::dialect::Dialect;
use countersign::dialect::stub::{Entry, Run, ScriptedProvider, Turn};
use countersign_args::Binder;
use countersign_contract::{
    ErrorBody, ErrorCode, Input, Parameter, ReplyEnvelope, RequestId, ToolName, ToolSpec,
    ValueKind, Warning,
};
use serde_json::{Value, json};

/// B16: the same script gives the same replies through every dialect.
#[tokio::test]
async fn every_dialect_takes_a_call_all_the_way() {
    for dialect in Dialect::ALL {
        let tools = Tools::new();
        let script = [
            Turn::text("Let me look.")
                .call("memory_search", r#"{"query": "tea"}"#)
                .call("diagnostics_status", "{}"),
            Turn::text("One more.").call("memory_forget", "{}"),
            Turn::text("There are two notes."),
        ];
        let provider = ScriptedProvider::new(script).speaking(dialect);
        let transcript = provider.drive(&tools).await.unwrap();

        let replies: Vec<Value> = transcript
            .replies()
            .map(|reply| match &reply.error {
                None => reply.data.clone(),
                Some(error) => json!(error.code),
            })
            .collect();
        let notes = json!({ "notes": ["green tea", "black tea"] });
        assert_eq!(
            replies,
            [notes, json!({ "calls": 2 }), json!("NOT_FOUND")],
            "{dialect}"
        );

        let kinds: Vec<&str> = transcript.entries.iter().map(kind).collect();
        let expected = [
            "model", "call", "call", "results", "model", "call", "results", "model",
        ];
        assert_eq!(kinds, expected, "{dialect}");
    }
}

/// B16: sloppy arguments reach the binder byte for byte, and a refusal reaches the model as words
/// that it can act on.
#[tokio::test]
async fn a_refusal_goes_back_to_the_model() {
    for dialect in [Dialect::OpenAi, Dialect::OpenAiResponses, Dialect::Stub] {
        let tools = Tools::new();
        let sloppy = "I would search for tea";
        let script = [Turn::text("").call("memory_search", sloppy)];
        let provider = ScriptedProvider::new(script).speaking(dialect);
        let transcript = provider.drive(&tools).await.unwrap();
        assert_eq!(tools.raw.lock().unwrap().as_slice(), [sloppy]);
        let results = transcript.to_value()[2]["results"].to_string();
        assert!(results.contains("INVALID_ARGUMENT"), "{results}");
    }
}

/// B16: sloppy arguments that have one lossless reading run, and the model is told what was changed.
/// Null for what may be left out is how a strict OpenAI schema makes a model leave it out.
#[tokio::test]
async fn a_repair_runs_and_the_model_reads_of_it() {
    for dialect in [Dialect::OpenAi, Dialect::OpenAiResponses, Dialect::Stub] {
        let tools = Tools::new();
        let sloppy = "```json\n{query: 'tea', limit: \"1\"}\n```";
        let nulled = r#"{"query": "coffee", "limit": null}"#;
        let script = [Turn::text("")
            .call("memory_search", sloppy)
            .call("memory_search", nulled)];
        let provider = ScriptedProvider::new(script).speaking(dialect);
        let transcript = provider.drive(&tools).await.unwrap();
        assert_eq!(tools.raw.lock().unwrap().as_slice(), [sloppy, nulled]);
        let found: Vec<_> = transcript.replies().map(|reply| &reply.data).collect();
        let (tea, coffee) = (
            json!({ "notes": ["green tea"] }),
            json!({ "notes": ["coffee"] }),
        );
        assert_eq!(found, [&tea, &coffee], "{dialect}");
        let results = transcript.to_value()[3]["results"].to_string();
        for code in ["FENCE_STRIPPED", "TEXT_TO_INTEGER", "NULL_DROPPED"] {
            assert!(results.contains(code), "{dialect} {results}");
        }
    }
}

/// B16: a script as data, with a call that was cut off: it is answered, never run.
#[tokio::test]
async fn a_call_that_was_cut_off_is_never_run() {
    let script = r#"[{"text": "", "stop": "length", "calls":
        [{"name": "memory_search", "arguments": "{\"query\": \"tea\"}"}]}]"#;
    for dialect in Dialect::ALL {
        let tools = Tools::new();
        let provider = ScriptedProvider::from_json(script)
            .unwrap()
            .speaking(dialect);
        let transcript = provider.drive(&tools).await.unwrap();
        assert!(tools.raw.lock().unwrap().is_empty(), "{dialect}");
        let error = transcript.replies().next().unwrap().error.clone().unwrap();
        assert_eq!(error.code, ErrorCode::InvalidArgument, "{dialect}");
    }
}

fn kind(entry: &Entry) -> &'static str {
    match entry {
        Entry::Model(_) => "model",
        Entry::Call { .. } => "call",
        Entry::Results(_) => "results",
    }
}

/// Two tools behind their aliases, with the binder in front of them.
struct Tools {
    specs: BTreeMap<String, ToolSpec>,
    raw: Mutex<Vec<String>>,
}

impl Tools {
    fn new() -> Self {
        let query = Parameter::new("query", ValueKind::String, "what to look for");
        let limit = Parameter::new("limit", ValueKind::Integer, "how many at most").optional();
        let specs = [
            ("memory.search", vec![query, limit]),
            ("diagnostics.status", Vec::new()),
        ]
        .map(|(name, parameters)| {
            let name = ToolName::new(name).unwrap();
            let spec = ToolSpec::new(name, "").input(Input::Parameters(parameters));
            (alias(&spec.name), spec)
        });
        Self {
            specs: specs.into(),
            raw: Mutex::default(),
        }
    }

    fn answer(&self, name: &str, raw: &str) -> Result<Answer, Box<ErrorBody>> {
        self.raw.lock().unwrap().push(raw.to_owned());
        let message = format!("there is no tool {name:?}");
        let missing = || Box::new(ErrorBody::new(ErrorCode::NotFound, message));
        let spec = self.specs.get(name).ok_or_else(missing)?;
        let bound = Binder::new(spec).unwrap().bind(raw);
        let Some(arguments) = bound.arguments.filter(|_| bound.status.is_executable()) else {
            let message = "the arguments cannot be read";
            let mut error = ErrorBody::new(ErrorCode::InvalidArgument, message);
            error.details.issues = bound.issues;
            return Err(Box::new(error));
        };
        let notes = ["green tea", "coffee", "black tea"];
        let data = match spec.name.as_str() {
            "memory.search" => {
                let arguments = arguments.to_value();
                let query = arguments.get("query").and_then(Value::as_str).unwrap();
                let limit = arguments.get("limit").and_then(Value::as_u64).unwrap_or(9);
                let found = notes.iter().filter(|note| note.contains(query));
                json!({ "notes": found.take(limit as usize).collect::<Vec<_>>() })
            }
            _ => json!({ "calls": self.raw.lock().unwrap().len() }),
        };
        Ok((data, bound.issues.into_iter().map(Warning::Issue).collect()))
    }
}

/// Data, and what the binder had to do for it.
type Answer = (Value, Vec<Warning>);

impl Run for Tools {
    async fn run(&self, name: &str, raw: &str) -> ReplyEnvelope {
        let id = RequestId::new("r_1").unwrap();
        match self.answer(name, raw) {
            Ok((data, warnings)) => ReplyEnvelope {
                warnings,
                ..ReplyEnvelope::success(id, data)
            },
            Err(error) => ReplyEnvelope::failure(id, *error),
        }
    }
}
