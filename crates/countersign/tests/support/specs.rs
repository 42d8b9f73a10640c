//! The declarations that the golden files and the token budget are made from.

use countersign_contract::parameter::Sensitivity;
use countersign_contract::tool::{Confirmation, EvidenceRule, Idempotency, KeyRule};
use countersign_contract::{Behaviour, Effect, Input, Parameter, ToolName, ToolSpec, ValueKind};
use serde_json::json;

/// Five tools that have between them: nesting, enums, lists, maps, defaults, references, several
/// types in one node, alternatives at the root, a dotted name, and one that is too long.
pub(crate) fn all() -> Vec<ToolSpec> {
    vec![search(), draft_order(), filter(), long_name(), ping()]
}

fn search() -> ToolSpec {
    let parameters = [
        Parameter::new("query", ValueKind::String, "Words to search for.").example("green tea"),
        Parameter::new(
            "limit",
            ValueKind::Integer,
            "How many at most. Fewer are faster.",
        )
        .range(Some(1.into()), Some(50.into()))
        .default_value(3),
    ];
    ToolSpec::new(
        name("memory.search"),
        "Finds notes by keyword. Newest first.",
    )
    .input(Input::parameters(parameters))
    .version("1.2.0")
}

fn draft_order() -> ToolSpec {
    let address = vec![
        Parameter::new(
            "street",
            ValueKind::String,
            "Street and number. No postbox.",
        )
        .sensitivity(Sensitivity::Personal)
        .example("1 Main St"),
        Parameter::new("country", ValueKind::String, "ISO 3166, two letters.").example("US"),
        Parameter::new("note", ValueKind::String, "For the driver.").optional(),
    ];
    let item = vec![
        Parameter::new("sku", ValueKind::String, "Which item.").example("SKU-1042"),
        Parameter::new("quantity", ValueKind::Integer, "How many.").example(2),
    ];
    let parameters = [
        Parameter::new(
            "items",
            ValueKind::Object,
            "What to order. In order of importance.",
        )
        .fields(item)
        .list(),
        Parameter::new("ship_to", ValueKind::Object, "Where to.").fields(address),
        Parameter::one_of("speed", ["economy", "express"], "How fast.").optional(),
        Parameter::new(
            "deliver_before",
            ValueKind::Timestamp,
            "Not later than this.",
        )
        .optional(),
    ];
    let mut spec = ToolSpec::new(
        name("checkout.create_draft_order"),
        "Creates an order that can still be changed. Nothing is charged yet.",
    )
    .input(Input::parameters(parameters))
    .version("3.0.1")
    .behaviour(Behaviour {
        effect: Effect::Write,
        evidence: EvidenceRule::Required,
        ttl_seconds: Some(900),
        confirmation: Confirmation::Always,
        idempotency: Idempotency {
            key: KeyRule::Required,
            ..Idempotency::default()
        },
        ..Behaviour::default()
    });
    spec.title = Some("Create a draft order".to_owned());
    spec.output = Some(json!({
        "type": "object",
        "properties": {
            "draft_order_id": { "type": "string", "description": "Its id. Keep it." },
        },
        "required": ["draft_order_id"],
    }));
    spec
}

/// A tool from a manifest, with a foreign JSON Schema.
fn filter() -> ToolSpec {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "range": { "$ref": "#/$defs/range", "description": "Of prices." },
            "fallback": { "$ref": "#/$defs/range" },
            "brand": { "type": ["string", "null"], "maxLength": 40 },
            "x_kind": { "const": "filter", "x-note": "the property stays, the keyword goes" },
            "colours": { "type": "array", "items": { "enum": ["red", "blue"] }, "uniqueItems": true },
        },
        "anyOf": [{ "required": ["range"] }, { "required": ["brand", "colours"] }],
        "additionalProperties": false,
        "$defs": {
            "range": {
                "type": "object",
                "properties": {
                    "low": { "type": "number", "exclusiveMinimum": 0 },
                    "high": { "type": "number", "format": "double" },
                },
                "required": ["low"],
            },
            "unused": { "type": "string" },
        },
    });
    ToolSpec::new(name("catalog.filter-items"), "Narrows a list of items.")
        .input(Input::Schema(schema))
        .behaviour(Behaviour {
            effect: Effect::External,
            ..Behaviour::default()
        })
}

fn long_name() -> ToolSpec {
    let labels = Parameter::new("labels", ValueKind::String, "Free labels.").map();
    ToolSpec::new(
        name("organisation.department.inventory.warehouse.relabel_everything"),
        "Sets labels.",
    )
    .input(Input::parameters([labels]))
}

fn ping() -> ToolSpec {
    ToolSpec::new(name("diagnostics.ping"), "Says whether it is alive.").behaviour(Behaviour {
        ttl_seconds: Some(5),
        ..Behaviour::default()
    })
}

fn name(text: &str) -> ToolName {
    ToolName::new(text).unwrap()
}
