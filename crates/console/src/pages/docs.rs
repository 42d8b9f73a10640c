//! `/docs`: the guides, as they belong to this very version.

use std::collections::BTreeMap;

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
            $($((Kind::$kind, $file, include_str!(concat!("../../docs/", $file, ".md")))),+),+
        ];
    };
}

guides! {
    Tutorial: "tutorial", "http-tool", "agents/README", "commerce";
    HowTo: "callers", "policy", "conditions", "identity", "approvals", "grants", "limits", "operating", "witness", "cluster", "erasure",
        "evidence-elsewhere", "notifications", "telemetry", "console", "disputes", "http-service", "openapi-import", "mcp-servers", "big-catalogs", "repeats", "recordings",
        "adding-a-tool", "from-old-handlers", "agents/agent-framework", "agents/langchain",
        "agents/langchain-js", "agents/mastra", "agents/openai-agents", "agents/openai-agents-js",
        "agents/pydantic-ai", "agents/vercel-ai";
    Reference: "http", "mcp", "errors/README", "configuration", "evidence-format", "schema-extensions", "interop", "shop",
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
            line: around(&plain(line), &wanted),
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

/// The part of a line in which the words stand that were looked for.
fn around(line: &str, wanted: &str) -> String {
    /// Maximum length of a part, in characters.
    const SHOWN_MAX: usize = 160;
    /// Length of the part before the words.
    const BEFORE: usize = 60;
    let lower = line.to_lowercase();
    let start = lower.find(wanted).and_then(|at| lower.get(..at));
    let start = start.map_or(0, |before| before.chars().count());
    if start + wanted.chars().count() <= SHOWN_MAX {
        return line.chars().take(SHOWN_MAX).collect();
    }
    let part = line
        .chars()
        .skip(start.saturating_sub(BEFORE))
        .take(SHOWN_MAX);
    format!("…{}", part.collect::<String>())
}

/// The text of Markdown without its marks.
fn plain(markdown: &str) -> String {
    let mut text = String::new();
    for event in Parser::new(markdown) {
        match event {
            Event::Text(piece) | Event::Code(piece) => text.push_str(&piece),
            Event::SoftBreak | Event::HardBreak => text.push(' '),
            _ => {}
        }
    }
    let text = text.trim_matches([' ', '|']);
    if text.is_empty() { markdown } else { text }.to_owned()
}

/// A text with its code as code, on one line, as HTML without a paragraph around it. A text that is more than a paragraph in Markdown, such
/// as a list, is shown as it is written.
pub(crate) fn line(markdown: &str) -> String {
    let words: Vec<&str> = markdown.split_whitespace().collect();
    let text = words.join(" ");
    let html = rendered(&text, "");
    let inner = html.trim().strip_prefix("<p>");
    let inner = inner.and_then(|inner| inner.strip_suffix("</p>"));
    let inner = inner.filter(|inner| !inner.contains("<p>"));
    let escaped = || {
        let mut escaped = String::new();
        html::push_html(
            &mut escaped,
            std::iter::once(Event::Text(text.as_str().into())),
        );
        escaped
    };
    inner.map_or_else(escaped, str::to_owned)
}

/// The anchors of the headings, in their order, as GitHub makes them: the same links work there and here.
fn anchors(events: &[Event<'_>]) -> Vec<String> {
    let mut made: Vec<String> = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut heading: Option<String> = None;
    for event in events {
        match (event, &mut heading) {
            (Event::Start(Tag::Heading { .. }), _) => heading = Some(String::new()),
            (Event::Text(piece) | Event::Code(piece), Some(text)) => text.push_str(piece),
            (Event::End(TagEnd::Heading(_)), Some(text)) => {
                let slug = slug(text);
                let times = seen.entry(slug.clone()).or_default();
                made.push(match *times {
                    0 => slug,
                    before => format!("{slug}-{before}"),
                });
                *times += 1;
                heading = None;
            }
            _ => {}
        }
    }
    made
}

fn slug(text: &str) -> String {
    let lower = text.trim().to_lowercase();
    let signs = lower.chars().filter_map(|sign| match sign {
        ' ' | '-' => Some('-'),
        '_' => Some('_'),
        sign => sign.is_alphanumeric().then_some(sign),
    });
    signs.collect()
}

/// Converts a guide in this folder to HTML. Headings have anchors. Links lead to pages of the console; a link to a file that the console does not
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
    let mut events: Vec<Event<'_>> = events.collect();
    let mut names = anchors(&events).into_iter().map(CowStr::from);
    for event in &mut events {
        if let Event::Start(Tag::Heading { id, .. }) = event {
            *id = names.next();
        }
    }
    let mut text = String::new();
    html::push_html(&mut text, events.into_iter());
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
                // The list of the console has the codes, and the guide has what is said about all of them.
                Some("README") if anchor.is_empty() => "/errors".to_owned(),
                Some("README") => "/docs/errors".to_owned(),
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

    /// B17: code in a description is code, HTML is text, and a list stays as it is written.
    #[test]
    fn a_description_is_one_line() {
        assert_eq!(
            line("Use `a`,\nor <b>."),
            "Use <code>a</code>, or &lt;b&gt;."
        );
        assert_eq!(line("- <i> one"), "- &lt;i&gt; one");
        assert_eq!(line(""), "");
    }

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

    /// Anchors are those of GitHub.
    #[test]
    fn headings_have_anchors() {
        for (heading, expected) in [
            ("A model's message", "a-models-message"),
            ("Budgets (`[[budgets]]`)", "budgets-budgets"),
            ("Access tokens: JWT, OAuth", "access-tokens-jwt-oauth"),
            ("`snake_case` and 中文", "snake_case-and-中文"),
        ] {
            let html = rendered(&format!("## {heading}\n"), "");
            assert!(
                html.starts_with(&format!("<h2 id=\"{expected}\">")),
                "{html}"
            );
        }
        let html = rendered("# A\n\n## A\n\n## A\n", "");
        for id in ["id=\"a\"", "id=\"a-1\"", "id=\"a-2\""] {
            assert!(html.contains(id), "{html}");
        }
    }

    /// Every Markdown file below a folder.
    fn files(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.is_dir() {
                files(&path, found);
            } else if path.extension().is_some_and(|end| end == "md") {
                found.push(path);
            }
        }
    }

    /// Every link of the guides to a place in a guide leads to a heading, on GitHub and in the console.
    #[test]
    fn anchors_lead_somewhere() {
        let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let mut sources = vec![root.join("README.md")];
        files(&root.join("docs"), &mut sources);
        let parsed = |text: &str| -> Vec<Event<'static>> {
            let events = Parser::new_ext(text, Options::ENABLE_TABLES);
            events.map(Event::into_static).collect()
        };
        let (mut lost, mut seen) = (Vec::new(), 0);
        for source in sources {
            let text = std::fs::read_to_string(&source).unwrap();
            let events = parsed(&text);
            let links = events.iter().filter_map(|event| match event {
                Event::Start(Tag::Link { dest_url, .. }) => Some(dest_url.to_string()),
                _ => None,
            });
            for link in links.filter(|link| link.contains('#') && !link.contains("://")) {
                let (path, anchor) = link.split_once('#').unwrap();
                let target = match path {
                    "" => source.clone(),
                    path => source.parent().unwrap().join(path),
                };
                let text = std::fs::read_to_string(&target).unwrap_or_default();
                if !anchors(&parsed(&text)).iter().any(|known| known == anchor) {
                    lost.push(format!("{}: {link}", source.display()));
                }
                let below = source.strip_prefix(root.join("docs")).ok();
                let folder = below.and_then(|path| path.parent()?.to_str());
                let led = folder.and_then(|folder| led(folder, &link));
                if led
                    .is_some_and(|page| page.starts_with("/errors#") || page.starts_with("/docs#"))
                {
                    lost.push(format!("{}: {link} is no page", source.display()));
                }
                seen += 1;
            }
        }
        assert_eq!(lost, Vec::<String>::new());
        assert!(seen > 50, "{seen}");
    }

    /// No heading has the name of an element that every page has.
    #[test]
    fn anchors_are_not_those_of_the_frame() {
        let frame = include_str!("../../templates/layout.html");
        for (_, file, text) in GUIDES {
            let html = rendered(text, "");
            for heading in html.split("<h").skip(1) {
                let Some((_, id)) = heading.split_once(" id=\"") else {
                    continue;
                };
                let id = id.split('"').next().unwrap();
                assert!(!frame.contains(&format!("id=\"{id}\"")), "{file}: {id}");
            }
        }
    }

    /// A search finds guides by their text, whatever its case, and shows the line without its marks.
    #[test]
    fn guides_are_found() {
        let words = crate::words::of(countersign::contract::Language::English);
        let found = groups("IDEMPOTENCY KEYS", words);
        let guides: Vec<&Guide> = found.iter().flat_map(|group| &group.guides).collect();
        let callers = guides.iter().find(|guide| guide.name == "callers").unwrap();
        assert_eq!(callers.line, "Idempotency keys");
        assert!(guides.len() < GUIDES.len());
        for guide in guides {
            assert!(
                guide.line.to_lowercase().contains("idempotency keys"),
                "{}",
                guide.line
            );
        }
        assert!(groups("no guide has this", words).is_empty());
        let all = groups("", words);
        let count: usize = all.iter().map(|group| group.guides.len()).sum();
        assert_eq!((all.len(), count), (4, GUIDES.len()));
        assert!(all[0].guides[0].line.is_empty());
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
        check(
            "",
            "errors/README.md#language",
            Some("/docs/errors#language"),
        );
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
