//! The derive macro behind `countersign::ToolArgs`.
//!
//! Read `input` first (the parts of a declaration), then `rules` (the parts that must agree) and `expand` (the code that comes out).

mod attr;
mod ctxt;
mod expand;
mod input;
mod literal;
mod rename;
mod rules;
mod ty;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Declares a tool's parameters from a struct with named fields, or a kind of parameter from an enum.
///
/// Derive it together with `serde::Deserialize`. Each field becomes one parameter: its doc comment is
/// the description that the model reads (a field without one does not compile), its type gives the
/// kind and whether it may be left out.
///
/// | Rust | parameter |
/// |---|---|
/// | `String`, `bool`, `f32`, `f64` | string, boolean, number |
/// | `i8` … `i64`, `u8` … `u64` | integer, bounded by the type |
/// | `jiff::Timestamp`, `countersign::Uri`, `countersign::Attachment` | timestamp, uri, attachment reference |
/// | an enum that derives `ToolArgs`, its variants without data | enum token with its allowed values |
/// | a struct that derives `ToolArgs` | object with its fields |
/// | `serde_json::Map<String, Value>`, `Vec<serde_json::Value>` | any object, any array |
/// | `Option<T>` | optional |
/// | `Vec<T>`, `HashSet<T>`, `BTreeSet<T>` | list |
/// | `HashMap<String, T>`, `BTreeMap<String, T>` | map |
///
/// A list within a list, an `Option` within a list, and a bare `serde_json::Value` are refused.
///
/// # `#[arg(…)]`
///
/// | on a field | meaning |
/// |---|---|
/// | `default = …` | filled in where it is absent, before the struct is read; makes it optional |
/// | `example = …` | a value as a model should send it |
/// | `min = …`, `max = …` | bounds of a number, or of each number in a list or map |
/// | `min_length`, `max_length`, `pattern = "…"` | bounds of a text, in characters |
/// | `min_items`, `max_items` | bounds of a list |
/// | `alias = "…"` | another name that a model may send; may be repeated |
/// | `strict`, `lenient` | how far the binder may go, where it differs from the tool |
/// | `truncate` | a decimal may be cut to an integer, with a warning |
/// | `harmless` | a number that says nothing about a person: the permanent record shows it |
/// | `on_optional_error = "tell"` or `"refuse"` | whether the tool runs without it where it cannot be read; for a field that may be left out |
/// | `sensitive = "personal"` or `"secret"` | redacted before every sink |
/// | `case = "exact"` or `"fold"` | whether spelling matters, for a field that holds an enum; also on the enum |
///
/// A default and an example are JSON: `3`, `-0.5`, `"text"`, `true`, `[1, 2]`, `{"name": 1}`. Both must
/// be values of the field's type, within its bounds.
///
/// # serde
///
/// `rename`, `rename_all`, `alias`, `skip` and `default` are followed. What changes the shape
/// (`flatten`, `tag`, `with`, …) is refused, because the declaration would say something else than
/// what is read.
///
/// # Example
///
/// ```
/// use countersign::ToolArgs;
/// use countersign::contract::schema;
/// use serde::Deserialize;
/// use serde_json::json;
///
/// #[derive(Deserialize, ToolArgs)]
/// struct QuoteArgs {
///     /// Stock keeping unit of the item.
///     #[arg(example = "SKU-1042", strict)]
///     sku: String,
///     /// How many; the model may send "3".
///     #[arg(default = 1, min = 1, max = 100)]
///     quantity: u32,
///     /// How fast it must arrive.
///     speed: Option<Speed>,
/// }
///
/// #[derive(Deserialize, ToolArgs)]
/// #[serde(rename_all = "snake_case")]
/// enum Speed {
///     Standard,
///     #[serde(alias = "fast")]
///     Express,
/// }
///
/// assert_eq!(
///     schema::of_parameters(&QuoteArgs::parameters()),
///     json!({
///         "type": "object",
///         "properties": {
///             "sku": {"type": "string", "description": "Stock keeping unit of the item.",
///                     "examples": ["SKU-1042"], "x-kind": "string", "x-leniency": "strict"},
///             "quantity": {"type": "integer", "description": "How many; the model may send \"3\".",
///                          "default": 1, "minimum": 1, "maximum": 100, "x-kind": "integer"},
///             "speed": {"type": "string", "description": "How fast it must arrive.",
///                       "enum": ["standard", "express"], "x-kind": "enum_token",
///                       "x-enum-aliases": {"express": ["fast"]}},
///         },
///         "required": ["sku"],
///         "additionalProperties": false,
///     })
/// );
/// ```
#[proc_macro_derive(ToolArgs, attributes(arg, serde))]
pub fn derive_tool_args(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::derive(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
