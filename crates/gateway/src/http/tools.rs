//! `GET /v1/tools`: the tools that the caller may call, in the format that the client asks for.

use std::str::FromStr;
use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use countersign::catalog::{Entry, Unmatched, select};
use countersign::contract::{ErrorCode, ToolSpec, markdown};
use countersign::dialect::{Dialect, ToolListOptions};
use http::HeaderValue;
use http::header::HeaderName;
use serde_json::{Map, Value};

use super::answer::{self, Kind, Refusal};
use super::query::{self, Options};
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::nearest::nearest;
use crate::offer::Facade;
use crate::words::Say;

/// Header with the approximate number of tokens of a list in a provider's format.
const TOKENS: HeaderName = HeaderName::from_static("x-countersign-tokens");

/// Format of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// The complete declarations.
    Json,
    /// A Markdown page for each tool.
    Markdown,
    /// The JSON Schema of the arguments, by tool.
    JsonSchema,
    /// The value of the `tools` member of a provider's request.
    Provider(Dialect),
}

impl FromStr for Format {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "json" => Ok(Self::Json),
            "markdown" => Ok(Self::Markdown),
            "jsonschema" => Ok(Self::JsonSchema),
            text => match text.parse() {
                Ok(Dialect::Stub | Dialect::Text) | Err(_) => Err(()),
                Ok(dialect) => Ok(Self::Provider(dialect)),
            },
        }
    }
}

/// Options of a list.
struct Wanted {
    format: Format,
    options: ToolListOptions,
}

impl Wanted {
    fn read<const N: usize>(options: &Options<'_, N>) -> Result<Self, Refusal> {
        let forms =
            "json, markdown, jsonschema, openai, openai-responses, anthropic, gemini or mcp";
        let format = options.parsed("format", forms)?.unwrap_or(Format::Json);
        let strict = options.parsed("strict", "true or false")?;
        let max_tokens = options.parsed("max_tokens", "a number")?;
        let is_for_provider = matches!(format, Format::Provider(_));
        if !is_for_provider && (strict.is_some() || max_tokens.is_some()) {
            let message = Say::FormatNeeded;
            return Err(Refusal::new(ErrorCode::InvalidArgument, message)
                .field("/format")
                .hint(Say::AddFormat));
        }
        let options = ToolListOptions {
            strict: strict.unwrap_or_default(),
            max_tokens,
            ..ToolListOptions::default()
        };
        Ok(Self { format, options })
    }
}

/// Lists all tools that the caller may call, or those of them that `names` selects.
pub(super) async fn list(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let known = ["format", "strict", "max_tokens", "names", "facade"];
    let options = Options::read(query.as_deref(), known)?;
    let wanted = Wanted::read(&options)?;
    let facade = facade(&options, wanted.format)?;
    let mut entries = gateway.executor().list(&caller.principal).await?;
    let mut own = Vec::new();
    if let Some(names) = options.get("names") {
        entries = chosen(&entries, names)?;
    } else if let Some(facade) = facade {
        let offer = gateway.offer(&caller.principal, None);
        let offer = match facade {
            Some(facade) => offer.with_facade(facade),
            None => offer,
        };
        let catalog = gateway.executor().catalog();
        let listed = gateway.catalog_view().listed(catalog, &offer, entries);
        (entries, own) = (listed.entries, listed.own);
    }
    let own = own.iter().map(|own| own.spec());
    let specs = entries.iter().map(|entry| entry.spec()).chain(own);
    let mut specs: Vec<&ToolSpec> = specs.collect();
    specs.sort_by(|a, b| a.name.cmp(&b.name));
    match wanted.format {
        Format::Json => Ok(answer::json(&specs)),
        Format::Markdown => Ok(pages(&specs)),
        Format::JsonSchema => {
            let schema = |spec: &&ToolSpec| (spec.name.to_string(), spec.json_schema());
            let schemas: Map<String, Value> = specs.iter().map(schema).collect();
            Ok(answer::json(&schemas))
        }
        Format::Provider(dialect) => in_words_of(dialect, &specs, &wanted.options),
    }
}

/// The use of the facade in a list: none in a list for programs, as the rules say in a list for models, or as the request asks.
#[expect(
    clippy::option_option,
    reason = "no facade, and one as the rules say, are two answers"
)]
fn facade<const N: usize>(
    options: &Options<'_, N>,
    format: Format,
) -> Result<Option<Option<Facade>>, Refusal> {
    match (options.get("facade"), format) {
        (None, Format::Json | Format::Markdown | Format::JsonSchema) | (Some("off"), _) => Ok(None),
        (None | Some("auto"), _) => Ok(Some(None)),
        (Some("on"), _) => Ok(Some(Some(Facade::On))),
        (Some(_), _) => Err(query::wrong("facade", "auto, on or off")),
    }
}

/// Returns one tool, by its name or provider alias.
pub(super) async fn one(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    name: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let name = query::segment(name)?;
    let options = Options::read(query.as_deref(), ["format", "strict", "max_tokens"])?;
    let wanted = Wanted::read(&options)?;
    let entries = gateway.executor().list(&caller.principal).await?;
    let spec = find(&entries, &name)?.spec();
    match wanted.format {
        Format::Json => Ok(answer::json(spec)),
        Format::Markdown => Ok(pages(&[spec])),
        Format::JsonSchema => Ok(answer::json(&spec.json_schema())),
        Format::Provider(dialect) => in_words_of(dialect, &[spec], &wanted.options),
    }
}

/// Returns the entries that a list of names and patterns selects, among those that the caller may call.
fn chosen(entries: &[Arc<Entry>], names: &str) -> Result<Vec<Arc<Entry>>, Refusal> {
    select(entries, names.split(',').map(str::trim)).map_err(|error| {
        let known = error.alternatives(entries);
        let near = nearest(error.asked(), known.iter().map(String::as_str));
        let shown: String = error.asked().chars().take(80).collect();
        let message = match &error {
            Unmatched::Name(_) => Say::NoSuchTool { name: shown },
            Unmatched::Pattern(_) => Say::NoToolFits { pattern: shown },
        };
        Refusal::new(ErrorCode::NotFound, message)
            .field("/names")
            .hint(Say::ListOfTools)
            .did_you_mean(near)
    })
}

fn find<'e>(entries: &'e [Arc<Entry>], name: &str) -> Result<&'e Entry, Refusal> {
    let is_meant = |entry: &&Arc<Entry>| entry.name().as_str() == name || entry.alias() == name;
    entries
        .iter()
        .find(is_meant)
        .map(|entry| &**entry)
        .ok_or_else(|| {
            let known = entries.iter().map(|entry| entry.name().as_str());
            answer::not_found(Kind::Tool, name)
                .hint(Say::ListOfTools)
                .did_you_mean(nearest(name, known))
        })
}

fn pages(specs: &[&ToolSpec]) -> Response {
    let pages: Vec<String> = specs.iter().map(|spec| markdown::tool_page(spec)).collect();
    let markdown = HeaderValue::from_static("text/markdown; charset=utf-8");
    answer::typed(pages.join("\n"), markdown)
}

fn in_words_of(
    dialect: Dialect,
    specs: &[&ToolSpec],
    options: &ToolListOptions,
) -> Result<Response, Refusal> {
    let list = dialect.tools(specs, options).map_err(|error| {
        Refusal::new(ErrorCode::InvalidArgument, error.to_string()).hint(Say::OtherFormat)
    })?;
    let mut response = answer::json(&list.json);
    response.headers_mut().insert(TOKENS, list.tokens.into());
    Ok(response)
}
