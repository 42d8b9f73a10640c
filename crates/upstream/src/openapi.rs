//! OpenAPI 3.0, 3.1 and Swagger 2 documents as a manifest: text in, entries and a report out.
//!
//! An operation becomes a tool whose requests are those that the document describes. An operation that cannot be imported is refused alone,
//! with its line and the reason; the rest of the document is imported. The result is written as configuration that a person reads
//! ([`write`](mod@write)); a later import of the same document shows the differences ([`diff`]).
//!
//! | module | its part |
//! |---|---|
//! | `source`, `document` | JSON or YAML as a tree with lines; references |
//! | `operation`, `loosen` | one operation as an entry that is accepted |
//! | `parameters`, `body`, `arguments` | where each value goes; the arguments as one schema |
//! | `schema` | schemas as JSON Schema 2020-12 |
//! | `names`, `text`, `pattern` | names and descriptions that every model can use |
//! | `server`, `security`, `answer` | address, credential, pages |
//! | [`diff`], [`write`](mod@write) | the difference of two imports; the file |
//!
//! **Invariant**: no I/O. Everything is bounded: bytes, values, depth, references, parts of a schema.

mod answer;
mod arguments;
mod body;
pub mod diff;
mod document;
mod loosen;
mod names;
mod operation;
mod parameters;
mod pattern;
mod reason;
mod schema;
mod security;
mod server;
mod source;
mod text;
pub mod write;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use url::Url;

use document::{Document, Version};
use names::ToolNames;
use operation::{Operation, Surroundings};
use source::{Member, Node, Source};

use crate::manifest::{Manifest, Method, Upstream};

pub use reason::{DocumentError, Reason};
pub use source::DOCUMENT_BYTES_MAX;

/// Choices of an import.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Name of the upstream; `None` to make it from the title of the document.
    pub upstream: Option<String>,
    /// Name of the document, as entries show it.
    pub document: String,
    /// Address of the document: relative servers count from it.
    pub base: Option<Url>,
    /// Operations to import, as patterns with `*` over operation ids, `METHOD /path`, paths and tags. All if it is empty.
    pub only: Vec<String>,
    /// Operations to leave out, as such patterns.
    pub skip: Vec<String>,
    /// Names of tools from an earlier import, by operation: they are kept.
    pub names: BTreeMap<String, String>,
    /// Upstreams of an earlier import: they stay as they are, and a note about what they have settled is not repeated.
    pub kept: Vec<Upstream>,
}

impl Options {
    /// The upstream of this name in the earlier import.
    fn kept(&self, name: &str) -> Option<&Upstream> {
        self.kept.iter().find(|it| it.name == name)
    }
}

/// The result of an import.
#[derive(Debug)]
pub struct Import {
    /// The upstreams and the tools.
    pub manifest: Manifest,
    /// Report on each operation.
    pub report: Report,
}

/// Report on an import, operation by operation.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Title of the document.
    pub title: String,
    /// Operations of the document.
    pub operations: usize,
    /// Operations that were left out because they were not asked for.
    pub skipped: usize,
    /// Tools, in the order of the document.
    pub tools: Vec<Told>,
    /// Operations that were refused.
    pub refused: Vec<Refused>,
    /// Decisions about servers and credentials.
    pub notes: Vec<String>,
}

/// An operation that became a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Told {
    /// Name of the tool.
    pub name: String,
    /// Method and path.
    pub operation: String,
    /// Line of the document, from 1.
    pub line: usize,
    /// Assumptions and omissions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// A setting that an entry of one's own could have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// An operation that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Method and path.
    pub operation: String,
    /// Line of the document, from 1.
    pub line: usize,
    /// The reason.
    pub reason: Reason,
}

/// Most upstreams that one document makes, because operations have servers of their own.
const UPSTREAMS_MAX: usize = 50;

const METHODS: [(&str, Method); 8] = [
    ("get", Method::Get),
    ("head", Method::Head),
    ("post", Method::Post),
    ("put", Method::Put),
    ("patch", Method::Patch),
    ("delete", Method::Delete),
    ("options", Method::Options),
    ("trace", Method::Trace),
];

/// Imports a document.
///
/// # Example
///
/// ```
/// use countersign_upstream::openapi::{Options, import};
///
/// let document = r#"
/// openapi: 3.0.3
/// info: { title: Pets }
/// servers: [{ url: "https://pets.example/v1" }]
/// paths:
///   /pets/{id}:
///     get:
///       operationId: getPet
///       summary: A pet by its id
///       parameters: [{ name: id, in: path, required: true, schema: { type: string } }]
/// "#;
/// let import = import(document, &Options::default())?;
/// assert_eq!(import.manifest.tool[0].name, "pets.get_pet");
/// assert!(import.manifest.check().is_empty());
/// # Ok::<(), countersign_upstream::openapi::DocumentError>(())
/// ```
pub fn import(text: &str, options: &Options) -> Result<Import, DocumentError> {
    import_told(text, options, &mut |_, _| ())
}

/// Same as [`import`], and tells how many operations of how many are done.
pub fn import_told(
    text: &str,
    options: &Options,
    told: &mut dyn FnMut(usize, usize),
) -> Result<Import, DocumentError> {
    let source = Source::read(text)?;
    let document = Document::of(&source)?;
    let info = document.root().get("info");
    let title = info.and_then(|it| it.text("title")).unwrap_or_default();
    let title = text::brief(title, 120);
    let upstream = match &options.upstream {
        Some(name) => name.clone(),
        None => upstream_name(&title),
    };
    let mut report = Report {
        title,
        ..Report::default()
    };
    let server = server::of(&document, None, options.base.as_ref());
    let credential = security::of(&document, &upstream, &server.base_url);
    let kept = options.kept(&upstream);
    if kept.is_none_or(Upstream::has_placeholder) {
        report.notes.extend(server.notes);
    }
    if kept.is_none_or(|kept| kept.auth == credential.auth) {
        report.notes.extend(credential.notes);
    }
    let mut first = Upstream::http(&*upstream, server.base_url);
    first.auth.clone_from(&credential.auth);
    let mut importing = Importing {
        document: &document,
        options,
        names: ToolNames::new(&upstream, &options.names),
        surroundings: Surroundings {
            document: &document,
            origin: options.document.clone(),
            auth: credential.auth,
            unchecked: BTreeMap::new(),
        },
        manifest: Manifest {
            upstream: vec![first],
            tool: Vec::new(),
        },
        report,
    };
    importing.paths(told);
    Ok(Import {
        manifest: importing.manifest,
        report: importing.report,
    })
}

/// The name of an upstream, made from a title.
pub fn upstream_name(title: &str) -> String {
    let words = names::snake(title).replace('_', "-");
    let noise = [
        "api",
        "apis",
        "the",
        "rest",
        "openapi",
        "swagger",
        "spec",
        "specification",
        "v1",
        "v2",
        "v3",
    ];
    let mut kept: Vec<&str> = words
        .split('-')
        .filter(|word| !noise.contains(word))
        .collect();
    if kept.is_empty() {
        kept = words.split('-').filter(|word| !word.is_empty()).collect();
    }
    let mut name = String::new();
    for word in kept {
        if !name.is_empty() && name.len() + word.len() + 1 > 24 {
            break;
        }
        if !name.is_empty() {
            name.push('-');
        }
        name.push_str(word.get(..word.len().min(24)).unwrap_or(word));
    }
    if name.is_empty() {
        "api".to_owned()
    } else {
        name
    }
}

/// The members of an object in their order: of several that have one name, the last.
fn last_of_each<'n>(members: &'n [Member<'n>]) -> Vec<&'n Member<'n>> {
    let mut known = BTreeSet::new();
    let last = members.iter().rev().filter(|it| known.insert(&*it.name));
    let mut last: Vec<_> = last.collect();
    last.reverse();
    last
}

/// True for a member of a path that is one of its operations.
fn is_operation(member: &Member<'_>) -> bool {
    METHODS.iter().any(|(name, _)| *name == member.name)
}

struct Importing<'d, 'o> {
    document: &'d Document<'d>,
    options: &'o Options,
    names: ToolNames<'o>,
    surroundings: Surroundings<'d>,
    manifest: Manifest,
    report: Report,
}

impl<'d> Importing<'d, '_> {
    fn paths(&mut self, told: &mut dyn FnMut(usize, usize)) {
        let paths = self
            .document
            .root()
            .get("paths")
            .map_or(&[][..], Node::members);
        let paths = last_of_each(paths);
        let paths = paths.into_iter().filter(|it| !it.name.starts_with("x-"));
        let all = paths.clone().map(|path| {
            let item = self.document.follow(&path.node);
            // A path that leads nowhere is refused as one operation.
            item.map_or(1, |item| {
                let members = last_of_each(item.members()).into_iter();
                members.filter(|member| is_operation(member)).count()
            })
        });
        let all = all.sum();
        for path in paths {
            told(self.report.operations, all);
            let item = match self.document.follow(&path.node) {
                Ok(item) => item,
                Err(reason) => {
                    self.report.operations += 1;
                    let line = self.document.source.line(path.at);
                    let operation = path.name.to_string();
                    self.report.refused.push(Refused {
                        operation,
                        line,
                        reason,
                    });
                    continue;
                }
            };
            for member in last_of_each(item.members()) {
                let known = METHODS.iter().find(|(name, _)| *name == member.name);
                let Some((_, method)) = known else {
                    continue;
                };
                self.operation(Operation {
                    method: *method,
                    path: &path.name,
                    item,
                    node: &member.node,
                    at: member.at,
                });
            }
        }
        told(self.report.operations, all);
    }

    fn operation(&mut self, operation: Operation<'d>) {
        self.report.operations += 1;
        if !self.is_wanted(&operation) {
            self.report.skipped += 1;
            return;
        }
        let label = operation.label();
        let line = self.document.source.line(operation.at);
        let id = operation.node.text("operationId");
        let name = self.names.name(&label, id);
        let made = self.upstream(&operation).and_then(|upstream| {
            let surroundings = &mut self.surroundings;
            surroundings.entry(&operation, name.clone(), &upstream)
        });
        match made {
            Ok(made) => {
                self.manifest.tool.push(made.entry);
                self.report.tools.push(Told {
                    name,
                    operation: label,
                    line,
                    notes: made.notes,
                    hint: made.hint,
                });
            }
            Err(reason) => self.report.refused.push(Refused {
                operation: label,
                line,
                reason,
            }),
        }
    }

    /// The upstream of an operation: that of the document, or one for servers that its path or the operation itself has.
    fn upstream(&mut self, operation: &Operation<'d>) -> Result<String, Reason> {
        let has_own = |node: &'d Node<'d>| !node.list("servers").is_empty();
        let own = [operation.node, operation.item]
            .into_iter()
            .find(|it| has_own(it));
        let Some(own) = own.filter(|_| self.document.version != Version::V2) else {
            let main = self.manifest.upstream.first();
            return Ok(main.map(|it| it.name.clone()).unwrap_or_default());
        };
        let server = server::of(self.document, Some(own), self.options.base.as_ref());
        let mut known = self.manifest.upstream.iter();
        if let Some(known) = known.find(|it| it.base_url == server.base_url) {
            return Ok(known.name.clone());
        }
        if self.manifest.upstream.len() == UPSTREAMS_MAX {
            return Err(Reason::Servers {
                most: UPSTREAMS_MAX,
            });
        }
        let main = self.manifest.upstream.first().cloned();
        let main = main.unwrap_or_else(|| Upstream::http("api", server::UNKNOWN));
        let name = format!("{}-{}", main.name, self.manifest.upstream.len() + 1);
        let mut upstream = Upstream::http(&*name, server.base_url);
        // A credential goes to no host that it was not declared for.
        let host = |address: &str| Url::parse(address).ok()?.host_str().map(str::to_owned);
        let is_same = host(&main.base_url) == host(&upstream.base_url);
        let is_sealed = upstream.base_url.starts_with("https:");
        if is_same && is_sealed {
            upstream.auth = main.auth;
        }
        let told = if is_same {
            ""
        } else {
            ", and no credential yet"
        };
        let (label, address) = (operation.label(), &upstream.base_url);
        let note = format!("{label} has a server of its own{told}: {address}");
        if self.options.kept(&name).is_none() {
            self.report.notes.push(note);
        }
        self.manifest.upstream.push(upstream);
        Ok(name)
    }

    fn is_wanted(&self, operation: &Operation<'d>) -> bool {
        let Options { only, skip, .. } = self.options;
        if only.is_empty() && skip.is_empty() {
            return true;
        }
        let label = operation.label();
        let id = operation.node.text("operationId");
        let tags = operation.node.list("tags").iter().filter_map(Node::as_text);
        let said: Vec<&str> = [label.as_str(), operation.path]
            .into_iter()
            .chain(id)
            .chain(tags)
            .collect();
        let fits = |patterns: &[String]| {
            patterns
                .iter()
                .any(|it| said.iter().any(|text| pattern::matches(it, text)))
        };
        (only.is_empty() || fits(only)) && !fits(skip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_upstreams_are_short() {
        let check = |title: &str, expected: &str| assert_eq!(upstream_name(title), expected);
        check("GitHub v3 REST API", "git-hub");
        check("Swagger Petstore", "petstore");
        check("Swagger", "swagger");
        check("宠物", "api");
        check(
            "The Very Long Title Of A Service That Never Ends",
            "very-long-title-of-a",
        );
    }
}
