//! The body of an operation: which of its media types is sent, and how its schema becomes arguments.

use super::Reason;
use super::document::{Document, Version};
use super::parameters::{In, Parameter, essence, is_json};
use super::source::Node;
use crate::manifest::{ArgumentEntry, BodyFormat, FilePart, Style};

/// The body of an operation.
#[derive(Debug, Clone)]
pub(crate) struct Body<'d> {
    pub(crate) format: BodyFormat,
    /// The media type, if it is another one than the format's own.
    pub(crate) content_type: Option<String>,
    pub(crate) is_required: bool,
    pub(crate) description: Option<&'d str>,
    pub(crate) schema: Schema<'d>,
    /// `encoding` of OpenAPI 3.
    encoding: Option<&'d Node<'d>>,
}

/// The schema of a body.
#[derive(Debug, Clone)]
pub(crate) enum Schema<'d> {
    /// One schema for the whole body; `None` if anything is allowed.
    Whole(Option<&'d Node<'d>>),
    /// Swagger 2: parameters that are members of a form.
    Members(Vec<Parameter<'d>>),
}

/// The body; none if the operation has none.
pub(crate) fn of<'d>(
    document: &'d Document<'d>,
    operation: &'d Node<'d>,
    parameters: &mut Vec<Parameter<'d>>,
) -> Result<Option<Body<'d>>, Reason> {
    if document.version == Version::V2 {
        return of_swagger(document, operation, parameters);
    }
    let Some(node) = operation.get("requestBody") else {
        return Ok(None);
    };
    let node = document.follow(node)?;
    let content = node.get("content").map_or(&[][..], Node::members);
    let Some((kind, media)) = chosen(document, content)? else {
        // The reason of the media type that comes nearest.
        let mut reasons: Vec<Reason> = content.iter().map(|it| unsendable(&it.name)).collect();
        let is_form = |it: &Reason| matches!(it, Reason::FormWithoutMembers { .. });
        reasons.sort_by_key(|it| !is_form(it));
        return reasons.into_iter().next().map_or(Ok(None), Err);
    };
    Ok(Some(Body {
        format: kind.format,
        content_type: kind.content_type,
        is_required: node.is_true("required"),
        description: node.text("description"),
        schema: Schema::Whole(media.get("schema")),
        encoding: media.get("encoding"),
    }))
}

fn of_swagger<'d>(
    document: &'d Document<'d>,
    operation: &'d Node<'d>,
    parameters: &mut Vec<Parameter<'d>>,
) -> Result<Option<Body<'d>>, Reason> {
    let consumes = operation
        .get("consumes")
        .or_else(|| document.root().get("consumes"));
    let consumes = consumes.map_or(&[][..], Node::items).iter();
    let consumes: Vec<&str> = consumes.filter_map(Node::as_text).collect();
    let (own, rest): (Vec<_>, Vec<_>) = std::mem::take(parameters)
        .into_iter()
        .partition(|it| matches!(it.place, In::Body | In::Form));
    *parameters = rest;
    let (whole, members): (Vec<_>, Vec<_>) = own.into_iter().partition(|it| it.place == In::Body);
    if let Some(whole) = whole.into_iter().next() {
        let schema = whole.schema.map(|it| document.follow(it)).transpose()?;
        let kinds = consumes.iter().filter_map(|media| kind_of(media, schema));
        let kind = kinds.min_by_key(|kind| kind.rank);
        let kind = match (kind, consumes.first()) {
            (Some(kind), _) => kind,
            (None, None) => Kind::json(),
            (None, Some(media)) => return Err(unsendable(media)),
        };
        // A body parameter is no form, whatever else the operation consumes.
        let kind = match kind.format {
            BodyFormat::Form | BodyFormat::Multipart => Kind::json(),
            BodyFormat::Json | BodyFormat::Text | BodyFormat::Bytes => kind,
        };
        return Ok(Some(Body {
            format: kind.format,
            content_type: kind.content_type,
            is_required: whole.is_required,
            description: whole.node.text("description"),
            schema: Schema::Whole(whole.schema),
            encoding: None,
        }));
    }
    if members.is_empty() {
        return Ok(None);
    }
    let has_file = members
        .iter()
        .any(|it| it.node.text("type") == Some("file"));
    let takes = |media: &str| consumes.iter().any(|it| essence(it) == media);
    let is_parts =
        has_file || (takes("multipart/form-data") && !takes("application/x-www-form-urlencoded"));
    Ok(Some(Body {
        format: if is_parts {
            BodyFormat::Multipart
        } else {
            BodyFormat::Form
        },
        content_type: None,
        is_required: members.iter().any(|it| it.is_required),
        description: None,
        schema: Schema::Members(members),
        encoding: None,
    }))
}

/// A way to send a body.
#[derive(Debug)]
struct Kind {
    format: BodyFormat,
    content_type: Option<String>,
    /// The lower is preferred.
    rank: u8,
}

impl Kind {
    fn json() -> Self {
        Self {
            format: BodyFormat::Json,
            content_type: None,
            rank: 0,
        }
    }
}

/// The media type that is sent: JSON before forms, forms before parts, text and bytes last.
fn chosen<'d>(
    document: &'d Document<'d>,
    content: &'d [super::source::Member<'d>],
) -> Result<Option<(Kind, &'d Node<'d>)>, Reason> {
    let mut best: Option<(Kind, &'d Node<'d>)> = None;
    for member in content {
        let schema = member.node.get("schema");
        let schema = schema.map(|it| document.follow(it)).transpose()?;
        let Some(kind) = kind_of(&member.name, schema) else {
            continue;
        };
        let is_form = matches!(kind.format, BodyFormat::Form | BodyFormat::Multipart);
        if is_form && !schema.is_some_and(|it| has_members(document, it)) {
            continue;
        }
        if best.as_ref().is_none_or(|(best, _)| kind.rank < best.rank) {
            best = Some((kind, &member.node));
        }
    }
    Ok(best)
}

/// True if a schema declares members, itself or in a part.
fn has_members<'d>(document: &'d Document<'d>, schema: &'d Node<'d>) -> bool {
    let has_own = |part: &'d Node<'d>| {
        let own = part.get("properties").map_or(&[][..], Node::members);
        (!own.is_empty()).then_some(())
    };
    document.find_part(schema, has_own).is_some()
}

/// Returns the way to send a media type with such a schema; `None` if there is no way.
fn kind_of(media: &str, schema: Option<&Node<'_>>) -> Option<Kind> {
    let kind = essence(media);
    let is_text = schema.is_some_and(|it| it.text("type") == Some("string"));
    let is_bytes = is_text && schema.is_some_and(|it| it.text("format") == Some("binary"));
    let with = |format, rank| {
        let content_type = Some(media.trim().to_owned());
        Some(Kind {
            format,
            content_type,
            rank,
        })
    };
    match kind.as_str() {
        "application/json" if media.trim() == "application/json" => Some(Kind::json()),
        "application/json-patch+json" | "application/ld+json" => with(BodyFormat::Json, 3),
        "application/x-www-form-urlencoded" | "application/form-data" => Some(Kind {
            format: BodyFormat::Form,
            content_type: None,
            rank: 4,
        }),
        "multipart/form-data" | "multipart/mixed" | "multipart/related" | "multipart/*" => {
            Some(Kind {
                format: BodyFormat::Multipart,
                content_type: None,
                rank: 5,
            })
        }
        "applicationjson" | "application/*+json" | "application/*" | "" | "*/*" | "*"
            if !is_bytes =>
        {
            Some(Kind {
                rank: 2,
                ..Kind::json()
            })
        }
        "*/*" | "*" | "" | "application/*" | "application/octet-stream" => Some(Kind {
            format: BodyFormat::Bytes,
            content_type: None,
            rank: 7,
        }),
        _ if is_xml(&kind) => None,
        _ if is_json(media) => with(BodyFormat::Json, 1),
        _ if is_bytes => with(BodyFormat::Bytes, 7),
        _ if kind.ends_with("/*") => None,
        _ if kind.starts_with("text/") || is_text || is_textual(&kind) => with(BodyFormat::Text, 6),
        _ if is_binary(&kind) => with(BodyFormat::Bytes, 7),
        _ => None,
    }
}

fn is_xml(kind: &str) -> bool {
    kind.ends_with("/xml") || kind.ends_with("+xml")
}

/// Media types that are written as text.
fn is_textual(kind: &str) -> bool {
    let textual = [
        "yaml",
        "ndjson",
        "jsonl",
        "graphql",
        "javascript",
        "jwt",
        "jose",
        "csv",
        "sql",
        "toml",
        "x-json-stream",
    ];
    let subtype = kind.split('/').nth(1).unwrap_or_default();
    textual.iter().any(|it| subtype.contains(it))
}

fn is_binary(kind: &str) -> bool {
    let families = ["image/", "audio/", "video/", "font/", "model/"];
    let subtypes = [
        "zip", "gzip", "pdf", "tar", "dicom", "protobuf", "msgpack", "octet", "binary", "vnd.",
        "x-", "parquet",
    ];
    let subtype = kind.split('/').nth(1).unwrap_or_default();
    families.iter().any(|it| kind.starts_with(it))
        || (kind.starts_with("application/") && subtypes.iter().any(|it| subtype.contains(it)))
}

fn unsendable(media: &str) -> Reason {
    let media = media.to_owned();
    let kind = essence(&media);
    if is_xml(&kind) {
        Reason::XmlBody { media }
    } else if kind.starts_with("multipart/") || kind == "application/x-www-form-urlencoded" {
        Reason::FormWithoutMembers { media }
    } else {
        Reason::UnknownBody { media }
    }
}

impl<'d> Body<'d> {
    /// The style of a member of a form, and whether it is a file.
    pub(crate) fn member(
        &self,
        document: &'d Document<'d>,
        name: &str,
        schema: &'d Node<'d>,
    ) -> ArgumentEntry {
        let encoding = self.encoding.and_then(|it| it.get(name));
        let mut entry = ArgumentEntry::default();
        let schema = document.follow(schema).unwrap_or(schema);
        let items = schema.get("items").and_then(|it| document.follow(it).ok());
        match self.format {
            BodyFormat::Form => form_member(encoding, schema, document, &mut entry),
            BodyFormat::Multipart => {
                let media = encoding.and_then(|it| it.text("contentType"));
                let is_file = is_bytes(schema) || items.is_some_and(is_bytes);
                let media =
                    media.map(|it| it.split(',').next().unwrap_or_default().trim().to_owned());
                if is_file {
                    let content_type = media.filter(|it| !it.is_empty() && !it.contains('*'));
                    entry.file = Some(FilePart {
                        content_type,
                        ..FilePart::default()
                    });
                } else if media.is_some_and(|it| is_json(&it)) {
                    entry.as_json = Some(true);
                }
            }
            BodyFormat::Json | BodyFormat::Text | BodyFormat::Bytes => {}
        }
        entry
    }
}

/// A member of a form: by its style where one is said, else a list as repeated pairs and an object as JSON (OpenAPI 3, `encoding`).
fn form_member<'d>(
    encoding: Option<&Node<'_>>,
    schema: &'d Node<'d>,
    document: &'d Document<'d>,
    entry: &mut ArgumentEntry,
) {
    let said = |name: &str| encoding.and_then(|it| it.text(name));
    let explode = encoding.and_then(|it| it.bool("explode"));
    let style = match said("style") {
        Some("deepObject") => Some(Style::DeepObject),
        Some("spaceDelimited") => Some(Style::SpaceDelimited),
        Some("pipeDelimited") => Some(Style::PipeDelimited),
        Some("form") => Some(Style::Form),
        Some(_) | None => explode.map(|_| Style::Form),
    };
    if let Some(style) = style {
        entry.style = Some(style);
        let explode = explode.filter(|it| *it != style.explodes());
        entry.explode = explode.filter(|_| style != Style::DeepObject);
    } else if said("contentType").is_some_and(is_json) || may_be_object(schema, document) {
        entry.as_json = Some(true);
    }
}

/// True if a value may be an object, as far as the schema or a part of it says so.
fn may_be_object<'d>(schema: &'d Node<'d>, document: &'d Document<'d>) -> bool {
    let is_object = |part: &'d Node<'d>| {
        let kinds = match part.get("type") {
            Some(Node::List(types)) => types.as_slice(),
            Some(kind) => std::slice::from_ref(kind),
            None => &[],
        };
        let is_said = kinds.iter().any(|it| it.as_text() == Some("object"));
        let has_members = ["properties", "additionalProperties"]
            .iter()
            .any(|it| part.get(it).is_some());
        (is_said || has_members).then_some(())
    };
    document.find_part(schema, is_object).is_some()
}

/// True if a schema is the content of a file.
fn is_bytes(schema: &Node<'_>) -> bool {
    let is_text = match schema.get("type") {
        None => true,
        Some(kind) => matches!(kind.as_text(), Some("string" | "file")),
    };
    let is_file = schema.text("type") == Some("file") || schema.text("format") == Some("binary");
    let media = schema
        .text("contentMediaType")
        .filter(|_| schema.get("contentEncoding").is_none());
    is_text && (is_file || media.is_some_and(|it| !it.starts_with("text/") && !is_json(it)))
}
