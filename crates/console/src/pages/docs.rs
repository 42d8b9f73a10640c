//! `/docs`: the guides, as they belong to this very version.

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};
use serde::Serialize;

use super::named;
use crate::answer::{self, Stop};
use crate::frame::Frame;
use crate::session::Visit;
use crate::words::Words;

/// Kind of a guide. `docs/README.md` lists the guides under the same four headings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// Learn by doing.
    Tutorial,
    /// Solve one problem.
    HowTo,
    /// Look something up.
    Reference,
    /// Understand why.
    Explanation,
}

impl Kind {
    const ALL: [Self; 4] = [
        Self::Tutorial,
        Self::HowTo,
        Self::Reference,
        Self::Explanation,
    ];

    fn title(self, words: &Words) -> &'static str {
        match self {
            Self::Tutorial => words.guides_tutorials,
            Self::HowTo => words.guides_how_tos,
            Self::Reference => words.guides_reference,
            Self::Explanation => words.guides_explanation,
        }
    }
}

macro_rules! guides {
    ($($kind:ident: $($file:literal),+ $(,)?);+ $(;)?) => {
        /// Guides: kind, file below `docs` without `.md`, and text.
        const GUIDES: &[(Kind, &str, &str)] = &[
            $($((Kind::$kind, $file, include_str!(concat!("../../../../docs/", $file, ".md")))),+),+
        ];
    };
}

guides! {
    Tutorial: "tutorial", "http-tool", "agents/README", "commerce";
    HowTo: "callers", "policy", "conditions", "identity", "approvals", "grants", "limits", "operating", "witness", "cluster", "erasure",
        "notifications", "telemetry", "console", "disputes", "http-service", "openapi-import", "mcp-servers", "big-catalogs", "repeats", "recordings",
        "adding-a-tool", "from-old-handlers", "agents/agent-framework", "agents/langchain",
        "agents/langchain-js", "agents/mastra", "agents/openai-agents", "agents/openai-agents-js",
        "agents/pydantic-ai", "agents/vercel-ai";
    Reference: "http", "mcp", "configuration", "evidence-format", "schema-extensions", "interop", "shop",
        "checkout", "shipping", "compliance-rules", "knowledge", "cli-style", "benchmarks";
    Explanation: "durability", "what-evidence-proves", "guarantees", "binder";
}

/// Name of a guide in addresses: one segment, such as `agents-langchain`.
fn name_of(file: &str) -> String {
    file.trim_end_matches("/README").replace('/', "-")
}

#[derive(Template, Serialize)]
#[template(path = "docs.html")]
struct List {
    #[serde(skip)]
    frame: Frame,
    asked: String,
    groups: Vec<Group>,
}

#[derive(Serialize)]
struct Group {
    kind: Kind,
    title: &'static str,
    guides: Vec<Guide>,
}

#[derive(Serialize)]
struct Guide {
    name: String,
    title: String,
    /// First line that matches the search.
    line: String,
}

#[derive(Template, Serialize)]
#[template(path = "doc.html")]
pub(super) struct Doc {
    #[serde(skip)]
    frame: Frame,
    name: String,
    markdown: &'static str,
    #[serde(skip)]
    html: String,
}

pub(crate) async fn list(visit: Visit) -> Result<Response, Stop> {
    let asked = visit.asked("q").unwrap_or_default().to_owned();
    let groups = groups(&asked, visit.words);
    let page = List {
        frame: visit.frame(visit.words.docs, "docs").await,
        groups,
        asked,
    };
    answer::page(&visit, &page)
}

/// Guides that have this text, by kind; kinds without any are left out.
fn groups(asked: &str, words: &Words) -> Vec<Group> {
    let wanted = asked.to_lowercase();
    let found = |file: &str, text: &str| {
        let has = |line: &&str| line.to_lowercase().contains(&wanted);
        let line = if wanted.is_empty() {
            ""
        } else {
            text.lines().find(has)?
        };
        Some(Guide {
            name: name_of(file),
            title: title(text),
            line: line.chars().take(160).collect(),
        })
    };
    let group = |kind: Kind| {
        let own = GUIDES.iter().filter(|(own, ..)| *own == kind);
        let guides: Vec<Guide> = own
            .filter_map(|(_, file, text)| found(file, text))
            .collect();
        let title = kind.title(words);
        (!guides.is_empty()).then_some(Group {
            kind,
            title,
            guides,
        })
    };
    Kind::ALL.into_iter().filter_map(group).collect()
}

pub(crate) async fn one(visit: Visit, Path(name): Path<String>) -> Result<Response, Stop> {
    let name = named(&name);
    let found = GUIDES.iter().find(|(_, file, _)| name_of(file) == name);
    let (_, file, text) = found.ok_or_else(|| Stop::not_found(&visit))?;
    answer::page(&visit, &doc(&visit, file, text, "docs").await)
}

/// Page of a guide; `file` is its path below `docs`, without `.md`.
pub(super) async fn doc(
    visit: &Visit,
    file: &str,
    markdown: &'static str,
    current: &'static str,
) -> Doc {
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    Doc {
        frame: visit.frame(&title(markdown), current).await,
        name: name_of(file),
        html: rendered(markdown, folder),
        markdown,
    }
}

fn title(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    first.trim_start_matches('#').trim().to_owned()
}

/// Converts a guide in this folder to HTML. Links lead to pages of the console; a link to a file that the console does not
/// have becomes plain text. HTML in the guide is shown as text, and no cell has a style of its own.
pub(super) fn rendered(markdown: &str, folder: &str) -> String {
    // True for each open link that is kept.
    let mut open: Vec<bool> = Vec::new();
    let nothing = || Event::Text(CowStr::Borrowed(""));
    let events = Parser::new_ext(markdown, Options::ENABLE_TABLES).map(|event| match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::Start(Tag::Table(columns)) => {
            let plain = columns.iter().map(|_| pulldown_cmark::Alignment::None);
            Event::Start(Tag::Table(plain.collect()))
        }
        Event::Start(Tag::Link {
            link_type,
            dest_url,
            title,
            id,
        }) => {
            let target = led(folder, &dest_url);
            open.push(target.is_some());
            target.map_or_else(nothing, |dest_url| {
                Event::Start(Tag::Link {
                    link_type,
                    dest_url,
                    title,
                    id,
                })
            })
        }
        Event::End(TagEnd::Link) if open.pop() == Some(false) => nothing(),
        // Nothing is loaded from elsewhere.
        Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => nothing(),
        event => event,
    });
    let mut text = String::new();
    html::push_html(&mut text, events);
    // What is wider than the page is reached with the keyboard too. A tag that a text has written is no tag by now.
    text.replace("<pre>", "<pre tabindex=\"0\">")
        .replace("<table>", "<table tabindex=\"0\">")
}

/// Target of a link of a guide in this folder; `None` if the console does not have the file.
fn led(folder: &str, link: &str) -> Option<CowStr<'static>> {
    if link.contains("://") || link.starts_with('#') {
        return Some(CowStr::from(link.to_owned()));
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let mut steps: Vec<&str> = folder.split('/').filter(|step| !step.is_empty()).collect();
    let mut is_outside = false;
    for step in path.split('/') {
        match step {
            "." | "" => {}
            ".." => is_outside |= steps.pop().is_none(),
            step => steps.push(step),
        }
    }
    let file = steps.join("/");
    let page = match file.as_str() {
        "openapi.json" => "/openapi.json".to_owned(),
        file => {
            let file = if is_outside {
                file.strip_prefix("docs/")?
            } else {
                file
            };
            let file = file.strip_suffix(".md")?;
            match file.strip_prefix("errors/") {
                Some("README") => "/errors".to_owned(),
                Some(code) => format!("/errors/{code}"),
                None if file == "README" => "/docs".to_owned(),
                None => {
                    let known = GUIDES.iter().any(|(_, known, _)| *known == file);
                    format!("/docs/{}", known.then(|| name_of(file))?)
                }
            }
        }
    };
    let mark = if anchor.is_empty() { "" } else { "#" };
    Some(CowStr::from(format!("{page}{mark}{anchor}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(name: &str) -> String {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
        std::fs::read_to_string(format!("{folder}/{name}")).unwrap()
    }

    /// Every guide of the folders is a page, except the index, which is the list itself.
    #[test]
    fn no_guide_is_left_out() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
        let mut missing = Vec::new();
        for folder in ["", "agents/"] {
            let files = std::fs::read_dir(format!("{docs}/{folder}")).unwrap();
            let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
            let names =
                files.filter_map(|name| Some(format!("{folder}{}", name.strip_suffix(".md")?)));
            missing.extend(names.filter(|file| {
                file != "README" && GUIDES.iter().all(|(_, known, _)| known != file)
            }));
        }
        assert_eq!(missing, Vec::<String>::new());
    }

    /// The index lists every guide of the folder under its kind.
    #[test]
    fn the_index_has_every_guide_under_its_kind() {
        let index = page("README.md");
        let headings = [
            "## Tutorials",
            "## How-tos",
            "## Reference",
            "## Explanation",
        ];
        let section = |kind: Kind| {
            let place = Kind::ALL.iter().position(|own| *own == kind).unwrap();
            let start = index.find(headings[place]).unwrap();
            let next = headings.get(place + 1).and_then(|next| index.find(next));
            &index[start..next.unwrap_or(index.len())]
        };
        // The pages of single frameworks are listed by the page about all of them.
        let missing: Vec<&str> = GUIDES
            .iter()
            .filter(|(_, file, _)| !file.starts_with("agents/") || file.ends_with("/README"))
            .filter(|(kind, file, _)| !section(*kind).contains(&format!("({file}.md)")))
            .map(|(_, file, _)| *file)
            .collect();
        assert_eq!(missing, Vec::<&str>::new());
    }

    #[test]
    fn markdown_brings_no_markup_of_its_own() {
        let html = rendered(
            "# A\n\nx <script>alert(1)</script> [x](mcp.md#y) ![i](http://e/x.png)\n\n|a|\n|-:|\n|b|\n",
            "",
        );
        assert!(!html.contains("<script>") && !html.contains("style=") && !html.contains("<img"));
        assert!(html.contains("href=\"/docs/mcp#y\""), "{html}");
    }

    #[test]
    fn a_link_leads_to_a_page_of_the_console_or_is_text() {
        let check = |folder: &str, link: &str, expected: Option<&str>| {
            assert_eq!(led(folder, link).as_deref(), expected, "{folder} {link}");
        };
        check("", "errors/CONFLICT.md", Some("/errors/CONFLICT"));
        check("errors", "../approvals.md", Some("/docs/approvals"));
        check("errors", "README.md", Some("/errors"));
        check("", "README.md", Some("/docs"));
        check("", "agents/README.md#what", Some("/docs/agents#what"));
        check("agents", "langchain.md", Some("/docs/agents-langchain"));
        check("", "openapi.json", Some("/openapi.json"));
        check("", "#scope", Some("#scope"));
        check(
            "",
            "https://example.com/a.md",
            Some("https://example.com/a.md"),
        );
        check("", "../crates/cli/tests/demo.rs", None);
        check("", "../ARCHITECTURE.md", None);
        let html = rendered("[a](../ARCHITECTURE.md) [b](http.md)", "");
        assert_eq!(html, "<p>a <a href=\"/docs/http\">b</a></p>\n");
    }
}
