//! Large catalogs: the facade, profiles, and answers that are cut.

mod facade;
mod profiles;
mod results;

use std::sync::Arc;

use countersign::catalog::CatalogBuilder;
use countersign::contract::{ToolName, ToolSpec};
use countersign::sample::{AddNote, ClearNotes, ListNotes};
use countersign::{Arguments, BoxFuture, CallContext, Catalog, DynTool, Reply, ToolError};
use countersign_gateway::Settings;
use countersign_gateway::offer::OfferRules;
use serde_json::{Value, json};

use crate::mcp::Modern;

/// A tool that always answers the same.
struct Fixed {
    spec: ToolSpec,
    data: Value,
}

impl DynTool for Fixed {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        _: &'a CallContext,
        _: Arguments,
    ) -> BoxFuture<'a, Result<Reply, ToolError>> {
        Box::pin(async { Ok(Reply::from(self.data.clone())) })
    }
}

fn fixed(name: &str, description: &str, data: Value) -> Arc<dyn DynTool> {
    let spec = ToolSpec::new(ToolName::new(name).unwrap(), description);
    Arc::new(Fixed { spec, data })
}

/// The notes, two tools to search for, and so many others.
fn catalog_of(others: usize) -> Catalog {
    catalog_with(others, |builder| builder)
}

fn catalog_with(others: usize, more: impl FnOnce(CatalogBuilder) -> CatalogBuilder) -> Catalog {
    let mut builder = Catalog::builder()
        .tool(AddNote)
        .tool(ListNotes)
        .tool(ClearNotes)
        .dyn_tool(fixed(
            "billing.refund",
            "Pays money back to a customer. 退款给客户。",
            json!({ "refunded": true }),
        ))
        .dyn_tool(fixed(
            "weather.forecast",
            "Tells the weather of the next days. 天气预报。",
            json!({ "sky": "clear" }),
        ));
    for n in 0..others {
        let name = format!("filler.operation_{n:04}");
        let description = format!("Does operation number {n} of many. It is here to be many.");
        builder = builder.dyn_tool(fixed(&name, &description, json!({ "n": n })));
    }
    more(builder).build().unwrap()
}

fn settings(rules: OfferRules) -> Settings {
    Settings {
        offers: rules,
        ..Settings::default()
    }
}

/// The names of a list over MCP, all pages of it.
async fn listed(client: &Modern<'_>, meta: Value) -> Vec<String> {
    let mut names = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let mut params = json!({ "_meta": meta });
        if !cursor.is_null() {
            params["cursor"] = cursor;
        }
        let (status, message) = client.ask("tools/list", params).await;
        assert_eq!(status, 200, "{message}");
        let tools = message["result"]["tools"].as_array().unwrap();
        let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
        names.extend(tools.iter().map(name));
        cursor = message["result"]["nextCursor"].clone();
        if cursor.is_null() {
            return names;
        }
    }
}
