//! An operation of a document as the entry of a tool.

use std::collections::{BTreeMap, BTreeSet};

use countersign_contract::{Digest, Effect};

use super::arguments::{self, Arguments};
use super::body::{self, Body};
use super::document::Document;
use super::parameters::{self, In, Parameter};
use super::source::Node;
use super::{Reason, answer, loosen, text};
use crate::manifest::{Auth, Auths, Imported, Method, Piece, RequestEntry, Template, ToolEntry};

/// Longest description of a tool, in characters.
const DESCRIPTION_CHARS: usize = 400;

/// Longest path, in bytes. Servers take no longer ones.
const PATH_BYTES_MAX: usize = 4_096;

/// Longest title of a tool, in characters.
const TITLE_CHARS: usize = 80;

/// An operation, and where it stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operation<'d> {
    pub(crate) method: Method,
    pub(crate) path: &'d str,
    pub(crate) item: &'d Node<'d>,
    pub(crate) node: &'d Node<'d>,
    /// Place in the text.
    pub(crate) at: u32,
}

/// Facts that all operations of a document share.
pub(crate) struct Surroundings<'d> {
    pub(crate) document: &'d Document<'d>,
    /// Name of the document, as entries show it.
    pub(crate) origin: String,
    /// The credential, if there is one.
    pub(crate) auth: Auths,
    /// Patterns that the binder cannot check, each with the reason.
    pub(crate) unchecked: BTreeMap<String, String>,
}

/// An imported operation.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) entry: ToolEntry,
    pub(crate) notes: Vec<String>,
    /// A line that an operator may use.
    pub(crate) hint: Option<String>,
}

impl Operation<'_> {
    /// Method and path, as the document has them.
    pub(crate) fn label(&self) -> String {
        format!("{} {}", self.method.as_str(), self.path)
    }
}

impl<'d> Surroundings<'d> {
    /// Makes the entry of a tool.
    pub(crate) fn entry(
        &mut self,
        operation: &Operation<'d>,
        name: String,
        upstream: &str,
    ) -> Result<Made, Reason> {
        let document = self.document;
        if !operation.node.is_object() {
            return Err(Reason::NotAnOperation);
        }
        let mut notes = Vec::new();
        let mut parameters = parameters::of(document, operation.item, operation.node)?;
        let body = body::of(document, operation.node, &mut parameters)?;
        parameters.retain(|it| !self.is_credential(it));
        let path = Path::read(operation.path)?;
        parameters::told_apart(document, &parameters)?;
        parameters
            .retain(|it| it.place != In::Path || path.names.iter().any(|name| name == it.name));
        let is_declared = |name: &str| {
            parameters
                .iter()
                .any(|it| it.place == In::Path && it.name == name)
        };
        let undeclared: Vec<&str> = path
            .names
            .iter()
            .map(String::as_str)
            .filter(|it| !is_declared(it))
            .collect();
        for name in &undeclared {
            notes.push(format!(
                "the path names {{{name}}}, which is not declared: a text is assumed"
            ));
        }
        let arguments = arguments::of(document, &parameters, &undeclared, body.as_ref())?;
        if arguments.is_cut {
            notes.push("the arguments are large: optional members deep inside are not declared, but may be sent".to_owned());
        }
        notes.extend(arguments.notes.iter().cloned());
        let mut entry = ToolEntry::named(name);
        entry.upstream = Some(upstream.to_owned());
        let (title, description) = described(operation);
        entry.title = title;
        entry.description = Some(description);
        entry.effect = Some(if operation.method.is_safe() {
            Effect::Read
        } else {
            Effect::External
        });
        entry.guessed = vec!["effect".to_owned()];
        entry.request = Some(path.request(operation, document, &arguments, body.as_ref()));
        entry.input = Some(arguments.input);
        entry.arguments = arguments.entries.into_iter().collect();
        loosen::accepted(&mut entry, &mut self.unchecked, &mut notes)?;
        trim(&mut entry);
        let digest = digest(&entry);
        entry.imported = Some(Imported {
            document: self.origin.clone(),
            operation: operation.label(),
            digest,
        });
        let hint = (entry.effect == Some(Effect::Read))
            .then(|| answer::pages(&parameters))
            .flatten();
        Ok(Made { entry, notes, hint })
    }

    /// True if a parameter is the credential, which the gateway adds.
    fn is_credential(&self, parameter: &Parameter<'_>) -> bool {
        self.auth.iter().any(|auth| match auth {
            Auth::Header { name, .. } => {
                parameter.place == In::Header && parameter.name.eq_ignore_ascii_case(name)
            }
            Auth::Query { name, .. } => parameter.place == In::Query && parameter.name == name,
            Auth::Cookie { name, .. } => parameter.place == In::Cookie && parameter.name == name,
            Auth::Bearer { .. }
            | Auth::Basic { .. }
            | Auth::ClientCredentials(_)
            | Auth::TokenExchange(_)
            | Auth::UserToken { .. } => false,
        })
    }
}

/// Digest of an entry without its origin.
pub(crate) fn digest(entry: &ToolEntry) -> String {
    let bare = ToolEntry {
        imported: None,
        ..entry.clone()
    };
    let written = serde_json::to_value(bare).unwrap_or_default();
    Digest::of_canonical(&written).map_or_else(|_| String::new(), |digest| digest.to_string())
}

/// Leaves out settings that are the default anyway.
fn trim(entry: &mut ToolEntry) {
    let Some(request) = &entry.request else {
        return;
    };
    let names: BTreeSet<String> = Template::parse(&request.path)
        .map(|it| it.names().map(str::to_owned).collect())
        .unwrap_or_default();
    for (name, argument) in &mut entry.arguments {
        if argument.place == Some(crate::manifest::default_place(name, request, &names)) {
            argument.place = None;
        }
    }
    entry
        .arguments
        .retain(|_, argument| *argument != crate::manifest::ArgumentEntry::default());
}

/// Title and description: the summary, and as much of the description as fits.
fn described(operation: &Operation<'_>) -> (Option<String>, String) {
    let node = operation.node;
    let said = |node: &Node<'_>, name: &str| text::plain(node.text(name).unwrap_or_default());
    let summary = [said(node, "summary"), said(operation.item, "summary")]
        .into_iter()
        .find(|it| !it.is_empty());
    let more = [
        said(node, "description"),
        said(operation.item, "description"),
    ]
    .into_iter()
    .find(|it| !it.is_empty());
    let title = summary.as_ref().map(|it| text::brief(it, TITLE_CHARS));
    let whole = match (summary, more) {
        (None, None) => operation.label(),
        (Some(one), None) | (None, Some(one)) => one,
        (Some(summary), Some(more)) if more.starts_with(summary.trim_end_matches('.')) => more,
        (Some(summary), Some(more)) if summary.ends_with(['.', '!', '?']) => {
            format!("{summary} {more}")
        }
        (Some(summary), Some(more)) => format!("{summary}. {more}"),
    };
    let whole = if node.is_true("deprecated") {
        format!("Deprecated. {whole}")
    } else {
        whole
    };
    let description = text::brief(&whole, DESCRIPTION_CHARS);
    (title.filter(|title| *title != description), description)
}

/// A path of a document, without the fragment that only tells two operations apart.
struct Path {
    pieces: Vec<Piece>,
    names: Vec<String>,
    query: BTreeMap<String, String>,
}

impl Path {
    fn read(path: &str) -> Result<Self, Reason> {
        if path.len() > PATH_BYTES_MAX {
            let message = format!("it has more than {PATH_BYTES_MAX} bytes");
            let at = "path".to_owned();
            return Err(Reason::Entry { at, message });
        }
        let path = path.split('#').next().unwrap_or_default();
        let (path, fixed) = path.split_once('?').unwrap_or((path, ""));
        let pairs = url::form_urlencoded::parse(fixed.as_bytes()).into_owned();
        // `?a={a}` declares a parameter, and no fixed value.
        let query = pairs
            .filter(|(name, value)| !name.is_empty() && !value.contains('{'))
            .collect();
        let rooted = if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("/{path}")
        };
        let template = Template::parse(&rooted).map_err(|source| Reason::Path { source })?;
        let mut names: Vec<String> = Vec::new();
        for name in template.names() {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        Ok(Self {
            pieces: template.pieces().to_vec(),
            names,
            query,
        })
    }

    /// The request, with the names of the arguments in its path.
    fn request<'d>(
        self,
        operation: &Operation<'d>,
        document: &Document<'d>,
        arguments: &Arguments,
        body: Option<&Body<'_>>,
    ) -> RequestEntry {
        let argument = |wire: &str| {
            let found = arguments.in_path.iter().find(|(name, _)| name == wire);
            found.map_or_else(|| wire.to_owned(), |(_, argument)| argument.clone())
        };
        let path: String = self
            .pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => text.clone(),
                Piece::Name(name) => format!("{{{}}}", argument(name)),
            })
            .collect();
        // A parameter says what a fixed pair would.
        let is_argument = |name: &String| {
            arguments.entries.iter().any(|(argument, entry)| {
                entry.place == Some(crate::manifest::Place::Query)
                    && entry.name.as_ref().unwrap_or(argument) == name
            })
        };
        let query = self
            .query
            .into_iter()
            .filter(|(name, _)| !is_argument(name))
            .collect();
        RequestEntry {
            method: operation.method,
            path,
            body: arguments.body,
            content_type: body.and_then(|it| it.content_type.clone()),
            accept: answer::accept(document, operation.node),
            headers: BTreeMap::new(),
            query,
        }
    }
}
