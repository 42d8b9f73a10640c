//! The tools of the facade itself, declared like any other so that every client and provider is shown them in its words.

use std::sync::LazyLock;

use countersign::contract::tool::{Behaviour, BindPolicy, Effect, Input, KeyRule};
use countersign::contract::{ToolName, ToolSpec};
use countersign_args::Binder;
use serde_json::{Value, json};

/// A tool of the facade itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Own {
    /// Finds tools by what they do.
    SearchTools,
    /// Shows the definition of one tool.
    DescribeTool,
    /// Calls one tool.
    CallTool,
    /// Gives the next part of an answer that was cut.
    FetchRest,
}

/// Default number of tools that a search gives.
pub(super) const SEARCH_LIMIT: u64 = 10;

/// Maximum number of tools that a search gives.
pub(super) const SEARCH_LIMIT_MAX: u64 = 50;

impl Own {
    /// All of them. No tool of a catalog can be called by these names.
    pub const ALL: [Self; 4] = [
        Self::SearchTools,
        Self::DescribeTool,
        Self::CallTool,
        Self::FetchRest,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SearchTools => "search_tools",
            Self::DescribeTool => "describe_tool",
            Self::CallTool => "call_tool",
            Self::FetchRest => "fetch_rest",
        }
    }

    /// The one with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|own| own.name() == name)
    }

    /// Its declaration.
    pub fn spec(self) -> &'static ToolSpec {
        &self.prepared().spec
    }

    /// Binder of the arguments of a call to it.
    pub(super) fn binder(self) -> &'static Binder {
        &self.prepared().binder
    }

    fn prepared(self) -> &'static Prepared {
        static ALL: LazyLock<[Prepared; 4]> = LazyLock::new(|| Own::ALL.map(Prepared::new));
        let [search, describe, call, fetch] = &*ALL;
        match self {
            Self::SearchTools => search,
            Self::DescribeTool => describe,
            Self::CallTool => call,
            Self::FetchRest => fetch,
        }
    }

    const fn description(self) -> &'static str {
        match self {
            Self::SearchTools => {
                "Finds tools by what they do. This server has many more tools than this list: search here first, then see the \
                 arguments of a tool with describe_tool and call it with call_tool."
            }
            Self::DescribeTool => {
                "Shows the whole definition of one tool: its description and the JSON Schema of its arguments."
            }
            Self::CallTool => {
                "Calls one tool by its name. The arguments are those that describe_tool shows; the answer is the answer of the tool."
            }
            Self::FetchRest => {
                "Gives the next part of an answer that was too long and was cut. The answer says so and gives the handle."
            }
        }
    }

    fn schema(self) -> Value {
        let (properties, required) = match self {
            Self::SearchTools => (
                json!({
                    "query": {
                        "type": "string",
                        "description": "What the tool should do, in a few words, in English or Chinese; or a part of its name.",
                    },
                    "limit": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": SEARCH_LIMIT_MAX,
                        "default": SEARCH_LIMIT,
                        "description": "The most tools that are given.",
                    },
                }),
                "query",
            ),
            Self::DescribeTool => (
                json!({ "name": { "type": "string", "description": "Name of the tool." } }),
                "name",
            ),
            Self::CallTool => (
                json!({
                    "name": { "type": "string", "description": "Name of the tool." },
                    "arguments": { "type": "object", "description": "Arguments of the tool." },
                }),
                "name",
            ),
            Self::FetchRest => (
                json!({
                    "handle": { "type": "string", "description": "The handle that came with the last part." },
                }),
                "handle",
            ),
        };
        json!({
            "type": "object",
            "properties": properties,
            "required": [required],
            "additionalProperties": false,
        })
    }
}

struct Prepared {
    spec: ToolSpec,
    binder: Binder,
}

impl Prepared {
    fn new(own: Own) -> Self {
        let name = ToolName::new(own.name()).expect("letters and underscores are a name");
        let schema = own.schema();
        let mut bound = schema.clone();
        let mut behaviour = Behaviour::default();
        if own == Own::CallTool {
            // What the call behind it does is not known yet; whether it may be repeated is decided for that call.
            behaviour.effect = Effect::External;
            behaviour.idempotency.key = KeyRule::Derive;
            // The text goes to the binder of the tool as it stands, whatever it is.
            if let Some(arguments) = bound.pointer_mut("/properties/arguments") {
                *arguments = json!({});
            }
        }
        let binder = Binder::from_schema(&bound, BindPolicy::default());
        Self {
            spec: ToolSpec::new(name, own.description())
                .input(Input::Schema(schema))
                .version(env!("CARGO_PKG_VERSION"))
                .behaviour(behaviour),
            binder: binder.expect("the schema is our own, and a test prepares it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_by_its_name() {
        for own in Own::ALL {
            assert_eq!(Own::named(own.name()), Some(own));
            assert_eq!(own.spec().name.as_str(), own.name());
        }
        assert_eq!(Own::named("search.tools"), None);
    }
}
