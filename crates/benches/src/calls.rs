//! Two hundred well-formed calls: ten declarations, twenty calls each, with scalars, lists, nested
//! objects, enums and a union.

use serde_json::{Value, json};

/// One call: the schema of its tool and the text of its arguments.
#[derive(Debug, Clone)]
pub struct Call {
    /// Index of its tool in [`schemas`].
    pub tool: usize,
    /// Its arguments.
    pub value: Value,
    /// Its arguments as a model writes them: strict JSON, every third over several lines.
    pub text: String,
}

/// Number of calls for each tool.
const CALLS_PER_TOOL: usize = 20;

/// All calls, tool by tool.
///
/// # Example
///
/// ```
/// assert_eq!(countersign_benches::calls::all().len(), 200);
/// ```
pub fn all() -> Vec<Call> {
    let tools = 0..schemas().len();
    let calls = tools.flat_map(|tool| (0..CALLS_PER_TOOL).map(move |turn| (tool, turn)));
    calls
        .map(|(tool, turn)| {
            let value = arguments(tool, &mut Pick(tool * 7919 + turn * 104_729));
            let text = if turn % 3 == 2 {
                format!("{value:#}")
            } else {
                value.to_string()
            };
            Call { tool, value, text }
        })
        .collect()
}

/// The declarations as JSON Schema.
pub fn schemas() -> Vec<Value> {
    let [text, integer, number, flag] = ["string", "integer", "number", "boolean"].map(typed);
    let texts = list_of(&text);
    let status = json!({"enum": ["open", "paid", "shipped", "cancelled"]});
    let limit = json!({"type": "integer", "minimum": 1, "maximum": 50});
    let moment = json!({"type": "string", "format": "date-time"});
    let sku = json!({"type": "string", "pattern": "^SKU-[0-9]+$"});
    let units = json!({"enum": ["metric", "imperial"]});
    let sort = json!({"enum": ["newest", "oldest", "total"]});
    let mode = json!({"enum": ["heat", "cool", "auto"]});
    let slot = object(&json!({"at": text, "target": number}), &["at", "target"]);
    let shipping = json!({
        "from": place(), "to": place(), "express": flag,
        "parcels": {"type": "array", "items": parcel(), "minItems": 1},
    });
    vec![
        object(&json!({"query": text, "limit": limit}), &["query"]),
        object(
            &json!({"city": text, "days": integer, "units": units}),
            &["city"],
        ),
        object(
            &json!({"sku": sku, "quantity": integer, "gift": flag, "note": text}),
            &["sku", "quantity"],
        ),
        object(
            &json!({"title": text, "start": moment, "attendees": texts, "all_day": flag,
                    "reminder_minutes": integer}),
            &["title", "start"],
        ),
        object(&shipping, &["from", "to", "parcels"]),
        object(
            &json!({"status": list_of(&status), "min_total": number, "page": integer, "sort": sort}),
            &[],
        ),
        object(
            &json!({"to": texts, "subject": text, "body": text, "urgent": flag}),
            &["to", "body"],
        ),
        object(
            &json!({"device": text, "target": number, "mode": mode, "schedule": list_of(&slot)}),
            &["device", "mode"],
        ),
        object(
            &json!({"table": text, "columns": texts, "conditions": list_of(&condition()),
                    "limit": integer}),
            &["table"],
        ),
        object(
            &json!({"text": text, "source": text, "language": text, "formal": flag}),
            &["text", "language"],
        ),
    ]
}

fn place() -> Value {
    let country = json!({"type": "string", "minLength": 2, "maxLength": 2});
    let members = json!({"country": country, "postcode": typed("string")});
    object(&members, &["country", "postcode"])
}

fn parcel() -> Value {
    let size = json!({"type": "array", "items": typed("integer"), "maxItems": 3});
    object(
        &json!({"weight_kg": typed("number"), "size_cm": size}),
        &["weight_kg"],
    )
}

fn condition() -> Value {
    let number = typed("number");
    let members = json!({
        "column": typed("string"),
        "op": {"enum": ["eq", "lt", "gt", "like"]},
        "value": {"anyOf": [number, list_of(&number)]},
    });
    object(&members, &["column", "op", "value"])
}

fn typed(name: &str) -> Value {
    json!({"type": name})
}

fn list_of(items: &Value) -> Value {
    json!({"type": "array", "items": items})
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// The arguments of one call.
fn arguments(tool: usize, pick: &mut Pick) -> Value {
    let place = |pick: &mut Pick| json!({"country": pick.of(&["DE", "US", "JP", "CN"]), "postcode": pick.number(10_000, 99_999).to_string()});
    match tool {
        0 => json!({"query": pick.sentence(4), "limit": pick.number(1, 50)}),
        1 => {
            json!({"city": pick.of(&CITIES), "days": pick.number(1, 14), "units": pick.of(&["metric", "imperial"])})
        }
        2 => {
            json!({"sku": format!("SKU-{}", pick.number(1_000, 9_999)), "quantity": pick.number(1, 12),
                    "gift": pick.flag(), "note": pick.sentence(6)})
        }
        3 => {
            json!({"title": pick.sentence(3), "start": format!("2026-11-{:02}T09:30:00Z", pick.number(10, 28)),
                    "attendees": pick.list(|pick| json!(pick.of(&NAMES))), "reminder_minutes": pick.number(5, 60),
                    "all_day": pick.flag()})
        }
        4 => json!({"from": place(pick), "to": place(pick), "parcels": pick.list(|pick| json!({
                    "weight_kg": pick.fraction(), "size_cm": [pick.number(5, 80), pick.number(5, 80), 10]})),
                    "express": pick.flag()}),
        5 => {
            json!({"status": pick.list(|pick| json!(pick.of(&["open", "paid", "shipped", "cancelled"]))),
                    "min_total": pick.fraction(), "page": pick.number(1, 9),
                    "sort": pick.of(&["newest", "oldest", "total"])})
        }
        6 => json!({"to": pick.list(|pick| json!(format!("{}@example.com", pick.of(&NAMES)))),
                    "subject": pick.sentence(5), "body": pick.sentence(60), "urgent": pick.flag()}),
        7 => {
            json!({"device": pick.sentence(1), "target": pick.fraction(), "mode": pick.of(&["heat", "cool", "auto"]),
                    "schedule": pick.list(|pick| json!({"at": "07:00", "target": pick.fraction()}))})
        }
        8 => {
            json!({"table": pick.sentence(1), "columns": pick.list(|pick| json!(pick.sentence(1))),
                    "conditions": pick.list(|pick| json!({"column": pick.sentence(1),
                        "op": pick.of(&["eq", "lt", "gt", "like"]), "value": pick.number(1, 500)})),
                    "limit": pick.number(10, 200)})
        }
        _ => {
            json!({"text": pick.sentence(25), "source": "en", "language": pick.of(&["de", "ja", "zh"]),
                    "formal": pick.flag()})
        }
    }
}

const CITIES: [&str; 6] = [
    "Paris",
    "San Francisco",
    "東京",
    "São Paulo",
    "北京",
    "Oslo",
];
const NAMES: [&str; 6] = ["ada", "grace", "edsger", "barbara", "tony", "leslie"];
const WORDS: [&str; 24] = [
    "agent", "state", "orders", "from", "last", "week", "kitchen", "with", "blue", "handle",
    "invoice", "for", "the", "north", "office", "before", "noon", "please", "check", "stock",
    "and", "price", "again", "soon",
];

/// Choices that look random and are the same every time (a linear congruence).
struct Pick(usize);

impl Pick {
    fn number(&mut self, low: u32, high: u32) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        low + (self.0 >> 33) as u32 % (high - low + 1)
    }

    fn flag(&mut self) -> bool {
        self.number(0, 1) == 1
    }

    fn fraction(&mut self) -> f64 {
        f64::from(self.number(1, 9_999)) / 100.0
    }

    fn of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        let index = self.number(0, texts.len() as u32 - 1) as usize;
        texts.get(index).copied().unwrap_or_default()
    }

    fn sentence(&mut self, words: usize) -> String {
        let words: Vec<&str> = (0..words).map(|_| self.of(&WORDS)).collect();
        words.join(" ")
    }

    fn list(&mut self, mut item: impl FnMut(&mut Self) -> Value) -> Value {
        (0..self.number(1, 4)).map(|_| item(self)).collect()
    }
}
