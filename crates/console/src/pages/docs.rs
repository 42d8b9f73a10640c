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

macro_rules! guides {
    ($($name:literal),* $(,)?) => {
        /// The guides, by name.
        const GUIDES: &[(&str, &str)] = &[
            $(($name, include_str!(concat!("../../../../docs/", $name, ".md")))),*
        ];
    };
}

guides![
    "tutorial",
    "commerce",
    "adding-a-tool",
    "http-tool",
    "openapi-import",
    "from-old-handlers",
    "http",
    "mcp",
    "mcp-servers",
    "big-catalogs",
    "interop",
    "identity",
    "approvals",
    "limits",
    "repeats",
    "recordings",
    "binder",
    "schema-extensions",
    "evidence-format",
    "guarantees",
    "durability",
    "telemetry",
    "operating",
    "configuration",
    "console",
    "checkout",
    "shop",
    "shipping",
    "compliance-rules",
    "knowledge",
    "benchmarks",
    "cli-style",
];

#[derive(Template, Serialize)]
#[template(path = "docs.html")]
struct List {
    #[serde(skip)]
    frame: Frame,
    asked: String,
    guides: Vec<Guide>,
}

#[derive(Serialize)]
struct Guide {
    name: &'static str,
    title: String,
    /// The first line that has what was looked for.
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
    let wanted = asked.to_lowercase();
    let has = |line: &&str| line.to_lowercase().contains(&wanted);
    let guides = GUIDES.iter().filter_map(|(name, text)| {
        let line = if wanted.is_empty() {
            ""
        } else {
            text.lines().find(has)?
        };
        Some(Guide {
            name,
            title: title(text),
            line: line.chars().take(160).collect(),
        })
    });
    let page = List {
        frame: visit.frame(visit.words.docs, "docs").await,
        guides: guides.collect(),
        asked,
    };
    answer::page(&visit, &page)
}

pub(crate) async fn one(visit: Visit, Path(name): Path<String>) -> Result<Response, Stop> {
    let name = named(&name);
    let found = GUIDES.iter().find(|(known, _)| *known == name);
    let (_, text) = found.ok_or_else(|| Stop::not_found(&visit))?;
    answer::page(&visit, &doc(&visit, name, text, "docs").await)
}

pub(super) async fn doc(
    visit: &Visit,
    name: &str,
    markdown: &'static str,
    current: &'static str,
) -> Doc {
    Doc {
        frame: visit.frame(&title(markdown), current).await,
        name: name.to_owned(),
        html: rendered(markdown),
        markdown,
    }
}

fn title(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    first.trim_start_matches('#').trim().to_owned()
}

/// Markdown as HTML: links lead to pages of the console, HTML in it is text, and no cell has a style of its own.
pub(super) fn rendered(markdown: &str) -> String {
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
        }) => Event::Start(Tag::Link {
            link_type,
            dest_url: led(&dest_url),
            title,
            id,
        }),
        // Nothing is loaded from elsewhere.
        Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => {
            Event::Text(CowStr::Borrowed(""))
        }
        event => event,
    });
    let mut text = String::new();
    html::push_html(&mut text, events);
    text
}

/// Target of a guide's link within the console.
fn led(link: &str) -> CowStr<'static> {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let Some(name) = path.strip_suffix(".md").filter(|_| !path.contains("://")) else {
        return CowStr::from(link.to_owned());
    };
    let name = name.trim_start_matches("../").trim_start_matches("./");
    let page = match name.strip_prefix("errors/") {
        Some("README") => "/errors".to_owned(),
        Some(code) => format!("/errors/{code}"),
        None => format!("/docs/{}", name.trim_start_matches("docs/")),
    };
    let mark = if anchor.is_empty() { "" } else { "#" };
    CowStr::from(format!("{page}{mark}{anchor}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every guide of the folder is a page.
    #[test]
    fn no_guide_is_left_out() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
        let files = std::fs::read_dir(folder).unwrap();
        let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut missing: Vec<String> = files
            .filter_map(|name| name.strip_suffix(".md").map(str::to_owned))
            .filter(|name| GUIDES.iter().all(|(known, _)| known != name))
            .collect();
        missing.sort();
        assert_eq!(missing, Vec::<String>::new());
    }

    #[test]
    fn markdown_brings_no_markup_of_its_own() {
        let html = rendered(
            "# A\n\nx <script>alert(1)</script> [x](mcp.md#y) ![i](http://e/x.png)\n\n|a|\n|-:|\n|b|\n",
        );
        assert!(!html.contains("<script>") && !html.contains("style=") && !html.contains("<img"));
        assert!(html.contains("href=\"/docs/mcp#y\""), "{html}");
        assert_eq!(&*led("errors/CONFLICT.md"), "/errors/CONFLICT");
        assert_eq!(
            &*led("https://example.com/a.md"),
            "https://example.com/a.md"
        );
    }
}
