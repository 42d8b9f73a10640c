//! `countersign tools`: the tools, in the format of each provider.

use std::io::Write as _;
use std::sync::Arc;

use clap::ValueEnum;
use countersign::catalog::Entry;
use countersign::contract::{Effect, ToolSpec, markdown};
use countersign::dialect::{Dialect, NoteKind, ToolListError, ToolListOptions};
use countersign_upstream::manifest::ToolEntry;
use serde_json::{Map, Value};

use crate::answer::write_json;
use crate::catalog;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::place::PlaceOptions;
use crate::table::{Table, visible};
use crate::terminal::Terminal;

mod sheet;
mod tokens;

/// List tools, or show their declarations, also in the format of a model provider
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign tools
  countersign tools memory.search
  countersign tools memory.search --format markdown
  countersign tools 'cart.*' checkout.compute_total --format openai --strict --max-tokens 900
  countersign tools --tokens

The list has the order of the names, whatever order they are asked for in. Quote a pattern, or your shell reads it.

stderr lists what was shortened for --max-tokens, and what a provider cannot express.")]
pub(crate) struct Tools {
    /// Tools: names, provider aliases, or patterns with *
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// Output format [default: table, or json with --json]
    #[arg(long, value_enum, hide_default_value = true)]
    format: Option<Format>,

    /// Ask the provider to enforce the schema, if it can
    #[arg(long)]
    strict: bool,

    /// Shorten descriptions and examples until the list has about N tokens
    #[arg(long, value_name = "N")]
    max_tokens: Option<usize>,

    /// Show the tokens of each tool by provider, and of the whole list with and without the facade
    #[arg(long, conflicts_with_all = ["format", "max_tokens"])]
    tokens: bool,
}

/// Format of the list of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Table, or one tool with its parameters
    Table,
    /// Complete declarations
    Json,
    /// Markdown page for each tool
    Markdown,
    /// JSON Schema of the arguments
    Jsonschema,
    /// `tools` of OpenAI's Chat Completions
    Openai,
    /// `tools` of OpenAI's Responses
    OpenaiResponses,
    /// `tools` of Anthropic's Messages
    Anthropic,
    /// `tools` of Gemini's generateContent
    Gemini,
    /// `tools` of an MCP server
    Mcp,
}

impl Format {
    fn dialect(self) -> Option<Dialect> {
        match self {
            Self::Table | Self::Json | Self::Markdown | Self::Jsonschema => None,
            Self::Openai => Some(Dialect::OpenAi),
            Self::OpenaiResponses => Some(Dialect::OpenAiResponses),
            Self::Anthropic => Some(Dialect::Anthropic),
            Self::Gemini => Some(Dialect::Gemini),
            Self::Mcp => Some(Dialect::Mcp),
        }
    }
}

impl Tools {
    pub(crate) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let catalog = catalog::declared(options.loaded())?;
        let entries = catalog::choose(&catalog, &self.names)?;
        if self.tokens {
            tokens::write(terminal, &entries, self.strict)?;
            return Ok(Exit::Ok);
        }
        let specs: Vec<&ToolSpec> = entries.iter().map(|entry| entry.spec()).collect();
        let usual = if terminal.is_for_programs() {
            Format::Json
        } else {
            Format::Table
        };
        let format = self.format.unwrap_or(usual);
        if let Some(dialect) = format.dialect() {
            return self.in_dialect(terminal, dialect, &specs);
        }
        if self.strict || self.max_tokens.is_some() {
            return Err(
                Failure::new("--strict and --max-tokens need the format of a provider")
                    .hint("add --format openai, openai-responses, anthropic, gemini or mcp"),
            );
        }
        match format {
            Format::Markdown => {
                let pages: Vec<String> =
                    specs.iter().map(|spec| markdown::tool_page(spec)).collect();
                write!(terminal.data(), "{}", pages.join("\n"))?;
            }
            Format::Json => write_json(terminal, &serde_json::to_value(&specs)?)?,
            Format::Jsonschema => write_json(terminal, &self.schemas(&specs))?,
            // Those with a dialect have been answered above.
            Format::Table
            | Format::Openai
            | Format::OpenaiResponses
            | Format::Anthropic
            | Format::Gemini
            | Format::Mcp => match entries.as_slice() {
                [only] if self.is_one() => sheet::write(terminal, only.spec())?,
                [] => terminal.say(
                    "no tools; add [[upstream]] and [[tool]] to the configuration, or set shop.enabled = true",
                )?,
                entries => {
                    let table = list(entries, &options.loaded().config().tool);
                    let table = table.within(terminal.columns());
                    writeln!(terminal.data(), "{table}")?;
                }
            },
        }
        Ok(Exit::Ok)
    }

    /// True if one tool is asked for by name. The tools that a pattern matches may change, so the form of its answer does not depend on
    /// their number.
    fn is_one(&self) -> bool {
        matches!(self.names.as_slice(), [name] if !name.contains('*'))
    }

    /// The schema of one tool, or those of several by name.
    fn schemas(&self, specs: &[&ToolSpec]) -> Value {
        if let [only] = specs
            && self.is_one()
        {
            return only.json_schema();
        }
        let by_name = specs
            .iter()
            .map(|spec| (spec.name.to_string(), spec.json_schema()));
        Value::Object(by_name.collect::<Map<_, _>>())
    }

    fn in_dialect(
        &self,
        terminal: &mut Terminal,
        dialect: Dialect,
        specs: &[&ToolSpec],
    ) -> Result<Exit, Failure> {
        let options = ToolListOptions {
            strict: self.strict,
            max_tokens: self.max_tokens,
            ..ToolListOptions::default()
        };
        let list = dialect.tools(specs, &options).map_err(|error| {
            let is_too_small = matches!(error, ToolListError::BudgetTooSmall { .. });
            let failure = Failure::from(error);
            if is_too_small {
                failure.hint(
                    "name the tools to offer, such as `countersign tools 'cart.*' memory.search …`",
                )
            } else {
                failure
            }
        })?;
        write_json(terminal, &list.json)?;
        let mut cuts = Table::new(["CUT", "TOOL", "TOKENS"]);
        for trimmed in &list.trimmed {
            let tokens = format!("{} → {}", trimmed.tokens_before, trimmed.tokens_after);
            cuts.row([trimmed.cut.as_str(), trimmed.tool.as_str(), &tokens]);
        }
        if !cuts.is_empty() {
            terminal.say(cuts)?;
        }
        for note in &list.notes {
            terminal.say(format_args!(
                "note: {}: {}",
                note.tool,
                visible(&sentence(&note.kind))
            ))?;
        }
        terminal.say(format_args!("about {} tokens", list.tokens))?;
        Ok(Exit::Ok)
    }
}

/// Describes in one sentence what a provider cannot express.
fn sentence(note: &NoteKind) -> String {
    match note {
        NoteKind::NotStrict { path, keyword } => {
            format!("not strict, because of {keyword} at {path:?}")
        }
        NoteKind::Widened { path, keyword } => {
            format!("{keyword} at {path:?} cannot be expressed; calls are still checked against it")
        }
    }
}

/// Builds the list of tools, one line each, with a gap between areas: the first word of a name is its area.
fn list(entries: &[Arc<Entry>], declared: &[ToolEntry]) -> Table {
    let mut table = Table::new(["NAME", "EFFECT", "DESCRIPTION"]);
    let mut area = None;
    for entry in entries {
        let spec = entry.spec();
        let name = spec.name.as_str();
        let of_entry = name.split_once('.').map(|(area, _)| area);
        if area.replace(of_entry).is_some_and(|last| last != of_entry) {
            table.gap();
        }
        let description = first_sentence(&spec.description);
        table.row([name, effect(spec, declared), description]);
    }
    table
}

/// The effect of a tool. What an entry declares as a write is one behind the upstream: both words are shown, its own and that of policies.
fn effect(spec: &ToolSpec, declared: &[ToolEntry]) -> &'static str {
    let name = spec.name.as_str();
    let own = declared.iter().filter(|entry| entry.shown() == name);
    let own = own.filter_map(|entry| entry.effect).next_back();
    match (own, spec.behaviour.effect) {
        (Some(Effect::Write), Effect::External) => "write (external)",
        (Some(_) | None, effect) => effect.as_str(),
    }
}

/// Returns the beginning of a description, up to the first full stop or colon: enough to find a tool.
fn first_sentence(text: &str) -> &str {
    let ends = [". ", ": "].map(|end| text.find(end));
    let end = ends.into_iter().flatten().min();
    end.and_then(|at| text.get(..at))
        .unwrap_or(text)
        .trim_end_matches('.')
}
