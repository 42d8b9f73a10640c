//! Declarations as clients see them: made once for each version of a tool, listed in pages.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign::Catalog;
use countersign::catalog::Entry;
use countersign::contract::parameter::Leniency;
use countersign::contract::tool::{BindPolicy, UnknownKeys};
use countersign::contract::{BindStatus, Digest};
use countersign::dialect::{Dialect, ToolListOptions};
use countersign_args::Binder;
use rmcp::ErrorData;
use rmcp::model::{CacheScope, ListToolsResult, Tool};
use serde_json::Value;

use crate::offer::Own;

/// Number of tools in a page.
const PAGE_TOOLS: usize = 100;

/// Time for which a client may keep a list; a client that listens hears of changes at once.
const LIST_TTL_MS: u64 = 60_000;

/// Maximum number of prepared declarations in the cache.
const PREPARED_MAX: usize = 4096;

/// A declaration, ready to be sent.
pub(super) struct Prepared {
    /// With what a model acts on.
    brief: Promise,
    /// With all that a program can use, for a client that asks for it.
    whole: Promise,
    /// True if some of its arguments have to be sent as headers too.
    pub(super) has_header_arguments: bool,
}

/// The declarations that have been asked for.
#[derive(Default)]
pub(super) struct Declarations {
    prepared: Mutex<HashMap<Digest, Arc<Prepared>>>,
}

impl Declarations {
    /// The declaration of a tool; `None` if it cannot be written for this protocol.
    pub(super) fn of(&self, catalog: &Catalog, entry: &Entry) -> Option<Arc<Prepared>> {
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = prepared.get(&entry.digest()) {
            return Some(known.clone());
        }
        let made = Arc::new(Prepared::new(catalog, entry)?);
        if prepared.len() >= PREPARED_MAX {
            prepared.clear();
        }
        prepared.insert(entry.digest(), made.clone());
        Some(made)
    }
}

impl Prepared {
    fn new(catalog: &Catalog, entry: &Entry) -> Option<Self> {
        let brief = Promise::new(catalog, entry, false)?;
        let whole = Promise::new(catalog, entry, true)?;
        let has_header_arguments =
            mentions_header(&Value::Object((*whole.tool.input_schema).clone()));
        Some(Self {
            brief,
            whole,
            has_header_arguments,
        })
    }

    /// The declaration for a client that wants the whole of it, or not.
    pub(super) fn for_client(&self, wants_whole: bool) -> &Promise {
        if wants_whole {
            &self.whole
        } else {
            &self.brief
        }
    }
}

/// A declaration, and what checks that an answer keeps to it.
pub(super) struct Promise {
    pub(super) tool: Tool,
    /// Accepts what the tool has promised to answer; `None` if it has promised nothing.
    output: Option<Binder>,
}

impl Promise {
    fn new(catalog: &Catalog, entry: &Entry, whole: bool) -> Option<Self> {
        let mut tool = declared(catalog, entry, whole)?;
        let output = tool.output_schema.as_deref().map(checker);
        let output = match output.transpose() {
            Ok(output) => output,
            Err(error) => {
                // A promise that cannot be checked is not made: clients refuse what breaks it.
                tracing::warn!(tool = %entry.name(), %error, "the tool's output schema cannot be checked, so MCP clients are not shown it");
                tool.output_schema = None;
                None
            }
        };
        Some(Self { tool, output })
    }

    /// True if an answer matches the output schema of the tool.
    pub(super) fn accepts(&self, data: &Value) -> bool {
        let Some(output) = &self.output else {
            return true;
        };
        match output.bind(&data.to_string()).status {
            BindStatus::Exact => true,
            BindStatus::Repaired | BindStatus::Incomplete | BindStatus::Refused => false,
        }
    }
}

fn declared(catalog: &Catalog, entry: &Entry, whole: bool) -> Option<Tool> {
    let is_tool = |name: &str| catalog.get(name).is_some();
    let options = ToolListOptions {
        whole,
        ..ToolListOptions::default()
    };
    let list = match Dialect::Mcp.tools_among(&[entry.spec()], &is_tool, &options) {
        Ok(list) => list,
        Err(error) => {
            tracing::warn!(tool = %entry.name(), %error, "the tool cannot be listed over MCP");
            return None;
        }
    };
    let Value::Array(definitions) = list.json else {
        return None;
    };
    serde_json::from_value(definitions.into_iter().next()?).ok()
}

/// The declaration of one of the facade's own tools.
pub(super) fn own(own: Own) -> Option<Tool> {
    let options = ToolListOptions::default();
    let list = Dialect::Mcp.tools_among(&[own.spec()], &|_| false, &options);
    let Value::Array(definitions) = list.ok()?.json else {
        return None;
    };
    let mut tool: Tool = serde_json::from_value(definitions.into_iter().next()?).ok()?;
    if own == Own::CallTool {
        // What it does depends on the tool behind it: no hint holds for all of them.
        tool.annotations = None;
    }
    Some(tool)
}

/// Prepares the check of an answer; it repairs nothing.
fn checker(schema: &rmcp::model::JsonObject) -> Result<Binder, countersign_args::SchemaError> {
    let policy = BindPolicy {
        leniency: Leniency::Strict,
        unknown_keys: UnknownKeys::Keep,
        ..BindPolicy::default()
    };
    Binder::from_schema(&Value::Object(schema.clone()), policy)
}

fn mentions_header(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            members.contains_key("x-mcp-header") || members.values().any(mentions_header)
        }
        Value::Array(items) => items.iter().any(mentions_header),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// One page of a list that is sorted by name.
pub(super) fn page(tools: Vec<Tool>, cursor: Option<&str>) -> Result<ListToolsResult, ErrorData> {
    let after = cursor.map(decode).transpose()?;
    let is_next = |tool: &Tool| after.as_deref().is_none_or(|after| &*tool.name > after);
    let mut rest = tools.into_iter().filter(is_next);
    let page: Vec<Tool> = rest.by_ref().take(PAGE_TOOLS).collect();
    let last = page.last().map(|tool| encode(&tool.name));
    let next_cursor = last.filter(|_| rest.next().is_some());
    let mut listed = ListToolsResult::with_all_items(page)
        .with_ttl_ms(LIST_TTL_MS)
        // Which tools there are depends on who asks.
        .with_cache_scope(CacheScope::Private);
    listed.next_cursor = next_cursor;
    Ok(listed)
}

fn encode(name: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("after:{name}"))
}

fn decode(cursor: &str) -> Result<String, ErrorData> {
    let decoded = URL_SAFE_NO_PAD.decode(cursor).ok();
    let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
    let after = text.as_deref().and_then(|text| text.strip_prefix("after:"));
    after.map(str::to_owned).ok_or_else(|| {
        ErrorData::invalid_params("the cursor is not valid: start again without one", None)
    })
}
