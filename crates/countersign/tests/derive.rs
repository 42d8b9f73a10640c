//! The declarations that `#[derive(ToolArgs)]` makes, as parameters and as JSON Schema.

#![expect(dead_code, reason = "the fields are declared here, and read by nobody")]

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use countersign::contract::schema::of_parameters;
use countersign::contract::{Cardinality, Parameter, ValueKind};
use countersign::{Attachment, ToolArgs, Uri};
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[track_caller]
fn check<T: ToolArgs>(expected: &Value) {
    assert_eq!(&of_parameters(&T::parameters()), expected);
}

#[track_caller]
fn check_parameters<T: ToolArgs>(expected: &[Parameter]) {
    assert_eq!(T::parameters(), expected);
}

#[derive(Debug, PartialEq, Deserialize, ToolArgs)]
struct SearchArgs {
    /// Words to search for.
    #[arg(example = "refund policy", min_length = 1, max_length = 200)]
    query: String,
    /// How many snippets
    /// at most.
    #[arg(default = 3, min = 1, max = 50)]
    limit: u32,
}

/// B2: name, kind, cardinality, description, default, example and bounds come from the field.
#[test]
fn a_field_declares_everything() {
    let mut query =
        Parameter::new("query", ValueKind::String, "Words to search for.").example("refund policy");
    query.bounds.min_length = Some(1);
    query.bounds.max_length = Some(200);
    let limit = Parameter::new("limit", ValueKind::Integer, "How many snippets at most.")
        .range(Some(1.into()), Some(50.into()))
        .default_value(3);
    check_parameters::<SearchArgs>(&[query, limit]);
    check::<SearchArgs>(&json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["query"],
        "properties": {
            "query": {"type": "string", "x-kind": "string", "description": "Words to search for.",
                      "examples": ["refund policy"], "minLength": 1, "maxLength": 200},
            "limit": {"type": "integer", "x-kind": "integer", "default": 3, "minimum": 1,
                      "maximum": 50, "description": "How many snippets at most."},
        },
    }));
}

#[derive(Deserialize, ToolArgs)]
#[serde(rename_all = "snake_case")]
enum Channel {
    InApp,
    #[serde(alias = "mail", alias = "e_post")]
    Email,
    #[serde(rename = "SMS")]
    Text,
    #[serde(skip)]
    Internal,
}

#[derive(Deserialize, ToolArgs)]
struct EveryKind {
    /// a
    string: String,
    /// b
    boolean: bool,
    /// c
    integer: i64,
    /// d
    number: f64,
    /// e
    object: Map<String, Value>,
    /// f
    array: Vec<Value>,
    /// g
    timestamp: jiff::Timestamp,
    /// h
    uri: Uri,
    /// i
    enum_token: Channel,
    /// j
    attachment_reference: Attachment,
}

/// B3: each of the ten kinds has its Rust type.
#[test]
fn every_kind_has_a_type() {
    let kinds: Vec<ValueKind> = EveryKind::parameters().iter().map(|it| it.kind).collect();
    assert_eq!(kinds, ValueKind::ALL);
    check::<EveryKind>(&json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["string", "boolean", "integer", "number", "object", "array", "timestamp",
                     "uri", "enum_token", "attachment_reference"],
        "properties": {
            "string": {"type": "string", "x-kind": "string", "description": "a"},
            "boolean": {"type": "boolean", "x-kind": "boolean", "description": "b"},
            "integer": {"type": "integer", "x-kind": "integer", "description": "c"},
            "number": {"type": "number", "x-kind": "number", "description": "d"},
            "object": {"type": "object", "x-kind": "object", "description": "e"},
            "array": {"type": "array", "x-kind": "array", "description": "f"},
            "timestamp": {"type": "string", "format": "date-time", "x-kind": "timestamp",
                          "description": "g"},
            "uri": {"type": "string", "format": "uri", "x-kind": "uri", "description": "h"},
            "enum_token": {"type": "string", "x-kind": "enum_token", "description": "i",
                           "enum": ["in_app", "email", "SMS"],
                           "x-enum-aliases": {"email": ["mail", "e_post"]}},
            "attachment_reference": {"type": "string", "x-kind": "attachment_reference",
                                     "description": "j"},
        },
    }));
}

#[derive(Deserialize, ToolArgs)]
struct EveryCardinality {
    /// One.
    one: u8,
    /// Perhaps one.
    optional: Option<u8>,
    /// Some.
    #[arg(min_items = 1, max_items = 9, example = [1, 2])]
    list: Vec<u8>,
    /// Perhaps some.
    optional_list: Option<Vec<u8>>,
    /// Different ones.
    sorted: BTreeSet<String>,
    /// Different ones.
    hashed: Option<HashSet<String>>,
    /// By name.
    #[arg(example = {"a": 1})]
    map: HashMap<String, u8>,
    /// Perhaps by name.
    optional_map: Option<BTreeMap<String, u8>>,
    /// Lists of anything.
    rows: Vec<Vec<Value>>,
    /// Perhaps, says serde.
    #[serde(default)]
    serde_default: Vec<u8>,
    /// Some, filled in.
    #[arg(default = ["a", "b"])]
    filled: Vec<String>,
}

/// B4: `Option`, lists and maps give the cardinality; a default makes a field optional.
#[test]
fn types_give_the_cardinality() {
    let cardinalities: Vec<_> = EveryCardinality::parameters()
        .into_iter()
        .map(|it| (it.name, it.cardinality))
        .collect();
    let list = |required| Cardinality::List { required };
    let map = |required| Cardinality::Map { required };
    let expected = [
        ("one", Cardinality::One),
        ("optional", Cardinality::Optional),
        ("list", list(true)),
        ("optional_list", list(false)),
        ("sorted", list(true)),
        ("hashed", list(false)),
        ("map", map(true)),
        ("optional_map", map(false)),
        ("rows", list(true)),
        ("serde_default", list(false)),
        ("filled", list(false)),
    ];
    assert_eq!(
        cardinalities,
        expected.map(|(name, it)| (name.to_owned(), it))
    );
}

/// B4: the bounds of a list stand at the list, those of its items at the items.
#[test]
fn lists_and_maps_bound_their_items() {
    let schema = of_parameters(&EveryCardinality::parameters());
    assert_eq!(
        schema["properties"]["list"],
        json!({"type": "array", "minItems": 1, "maxItems": 9, "description": "Some.",
               "examples": [[1, 2]],
               "items": {"type": "integer", "x-kind": "integer", "minimum": 0, "maximum": 255}})
    );
    assert_eq!(
        schema["properties"]["map"],
        json!({"type": "object", "description": "By name.", "examples": [{"a": 1}],
               "additionalProperties":
                   {"type": "integer", "x-kind": "integer", "minimum": 0, "maximum": 255}})
    );
    assert_eq!(
        schema["properties"]["rows"],
        json!({"type": "array", "description": "Lists of anything.",
               "items": {"type": "array", "x-kind": "array"}})
    );
    assert_eq!(schema["properties"]["filled"]["default"], json!(["a", "b"]));
}

#[derive(Deserialize, ToolArgs)]
struct Widths {
    /// -
    a: i8,
    /// -
    b: i16,
    /// -
    c: i32,
    /// -
    d: i64,
    /// -
    e: u8,
    /// -
    f: u16,
    /// -
    g: u32,
    /// -
    h: u64,
    /// -
    #[arg(max = 10)]
    i: u8,
    /// -
    #[arg(min = -0.5, max = 1)]
    j: f64,
    /// -
    k: f32,
}

#[test]
fn the_width_of_a_number_bounds_it() {
    let bounds: Vec<_> = Widths::parameters()
        .into_iter()
        .map(|it| json!([it.bounds.minimum, it.bounds.maximum]))
        .collect();
    assert_eq!(
        Value::Array(bounds),
        json!([
            [-128, 127],
            [-32_768, 32_767],
            [-2_147_483_648, 2_147_483_647],
            [null, null],
            [0, 255],
            [0, 65_535],
            [0, 4_294_967_295_u32],
            [0, u64::MAX],
            [0, 10],
            [-0.5, 1],
            [f64::from(f32::MIN), f64::from(f32::MAX)],
        ])
    );
}

/// An address.
#[derive(Deserialize, ToolArgs)]
struct Address {
    /// The street, with its number.
    #[arg(sensitive = "personal")]
    street: String,
    /// Two letters, ISO 3166.
    #[arg(pattern = "^[A-Z]{2}$", strict, default = "DE")]
    country: String,
}

#[derive(Deserialize, ToolArgs)]
struct Shipment {
    /// Where it goes.
    to: Address,
    /// Where else it may go.
    others: Option<Vec<Address>>,
}

/// B2: the fields of an object are part of the declaration, at every depth.
#[test]
fn structs_nest() {
    let address = json!({
        "type": "object",
        "x-kind": "object",
        "additionalProperties": false,
        "required": ["street"],
        "properties": {
            "street": {"type": "string", "x-kind": "string", "x-sensitivity": "personal",
                       "description": "The street, with its number."},
            "country": {"type": "string", "x-kind": "string", "pattern": "^[A-Z]{2}$",
                        "default": "DE", "x-leniency": "strict",
                        "description": "Two letters, ISO 3166."},
        },
    });
    let mut to = address.clone();
    to["description"] = json!("Where it goes.");
    check::<Shipment>(&json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["to"],
        "properties": {
            "to": to,
            "others": {"type": "array", "items": address, "description": "Where else it may go."},
        },
    }));
}

#[derive(Deserialize, ToolArgs)]
#[arg(case = "exact")]
#[serde(rename_all = "UPPERCASE")]
enum Currency {
    Eur,
    #[arg(alias = "RMB")]
    Cny,
}

#[derive(Deserialize, ToolArgs)]
struct Enums {
    /// Exact by its own declaration.
    #[arg(default = "EUR", example = "CNY")]
    currency: Currency,
    /// Folded, though the enum is exact.
    #[arg(case = "fold")]
    folded: Currency,
    /// Exact, though the enum folds.
    #[arg(case = "exact")]
    channels: Vec<Channel>,
}

/// B5: allowed values, their other names, and whether spelling matters.
#[test]
fn enums_declare_their_members() {
    let schema = of_parameters(&Enums::parameters());
    assert_eq!(
        schema["properties"],
        json!({
            "currency": {"type": "string", "x-kind": "enum_token", "enum": ["EUR", "CNY"],
                         "x-case": "exact", "x-enum-aliases": {"CNY": ["RMB"]},
                         "default": "EUR", "examples": ["CNY"],
                         "description": "Exact by its own declaration."},
            "folded": {"type": "string", "x-kind": "enum_token", "enum": ["EUR", "CNY"],
                       "x-enum-aliases": {"CNY": ["RMB"]},
                       "description": "Folded, though the enum is exact."},
            "channels": {"type": "array", "description": "Exact, though the enum folds.",
                         "items": {"type": "string", "x-kind": "enum_token", "x-case": "exact",
                                   "enum": ["in_app", "email", "SMS"],
                                   "x-enum-aliases": {"email": ["mail", "e_post"]}}},
        })
    );
}

type Cents = u32;

#[derive(Deserialize, ToolArgs)]
struct Aliased {
    /// Known only to the compiler.
    #[arg(default = 100, min = 1)]
    price: Cents,
    /// Known only to the compiler.
    #[arg(max_length = 2000, example = "https://example.com")]
    page: Option<Uri>,
    /// Known only to the compiler.
    #[arg(min_items = 1, default = [1, "a", {"deep": [true, -0.5]}])]
    anything: Vec<Value>,
}

#[test]
fn a_type_behind_a_name_is_checked_by_the_compiler() {
    let schema = of_parameters(&Aliased::parameters());
    assert_eq!(
        schema["properties"],
        json!({
            "price": {"type": "integer", "x-kind": "integer", "default": 100, "minimum": 1,
                      "maximum": 4_294_967_295_u32, "description": "Known only to the compiler."},
            "page": {"type": "string", "format": "uri", "x-kind": "uri", "maxLength": 2000,
                     "examples": ["https://example.com"],
                     "description": "Known only to the compiler."},
            "anything": {"type": "array", "x-kind": "array", "minItems": 1,
                         "default": [1, "a", {"deep": [true, -0.5]}],
                         "description": "Known only to the compiler."},
        })
    );
    assert_eq!(schema.get("required"), None);
}

#[derive(Default, Deserialize, ToolArgs)]
#[serde(default)]
struct AllOptional {
    /// Serde fills it in.
    page: u32,
}

#[test]
fn a_default_of_the_struct_makes_every_field_optional() {
    assert_eq!(
        AllOptional::parameters()[0].cardinality,
        Cardinality::Optional
    );
}

/// B1: a tool without parameters declares an empty object, and takes one.
#[test]
fn nothing_is_an_empty_object() {
    #[derive(Deserialize, ToolArgs)]
    struct Empty {}

    let empty = json!({"type": "object", "properties": {}, "additionalProperties": false});
    check::<()>(&empty);
    check::<Empty>(&empty);
    <()>::from_json("{}").unwrap();
    Empty::from_json("{}").unwrap();
    assert!(<()>::from_json("[1]").is_err());
}

#[test]
fn bound_arguments_become_the_struct() {
    let args = SearchArgs::from_json(r#"{"query": "tax", "limit": 3}"#).unwrap();
    assert_eq!(
        args,
        SearchArgs {
            query: "tax".into(),
            limit: 3
        }
    );
}
