//! The body of a request: JSON, a form, parts, a text or bytes.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use countersign::ToolError;
use serde_json::value::RawValue;

use super::node::Node;
use super::owned::{Owned, Part};
use super::plan::{pointer, writing};
use crate::manifest::{ArgumentEntry, BodyFormat, FileEncoding, FilePart, Style};
use crate::words::Say;

/// Bytes and their media type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) content_type: String,
    pub(crate) bytes: Vec<u8>,
}

/// A member of a body.
pub(crate) struct Member<'m> {
    /// The argument.
    pub(crate) argument: &'m str,
    /// Its name in the request.
    pub(crate) wire: &'m str,
    pub(crate) own: Option<&'m ArgumentEntry>,
    /// Its JSON text.
    pub(crate) value: &'m RawValue,
}

impl Body {
    /// JSON text.
    pub(crate) fn json(text: String) -> Self {
        Self {
            content_type: "application/json".to_owned(),
            bytes: text.into_bytes(),
        }
    }
}

/// Writes one argument that is the whole body.
pub(super) fn whole(format: BodyFormat, name: &str, value: &RawValue) -> Result<Body, ToolError> {
    let text = || Node::read(value.get()).text();
    match format {
        BodyFormat::Json | BodyFormat::Form | BodyFormat::Multipart => {
            Ok(Body::json(value.get().to_owned()))
        }
        BodyFormat::Text => Ok(Body {
            content_type: "text/plain; charset=utf-8".to_owned(),
            bytes: text().into_bytes(),
        }),
        BodyFormat::Bytes => Ok(Body {
            content_type: "application/octet-stream".to_owned(),
            bytes: decoded(name, &text())?,
        }),
    }
}

/// A body that is made of members.
pub(super) fn of_members(
    format: BodyFormat,
    members: &[Member<'_>],
    owned: &Owned,
    boundary: &str,
) -> Result<Body, ToolError> {
    match format {
        // A text or bytes have no members; the manifest is checked for that.
        BodyFormat::Json | BodyFormat::Text | BodyFormat::Bytes => Ok(json(members)),
        BodyFormat::Form => form(members, owned),
        BodyFormat::Multipart => parts(members, boundary),
    }
}

fn json(members: &[Member<'_>]) -> Body {
    let member = |member: &Member<'_>| {
        let name = serde_json::Value::from(member.wire);
        format!("{name}:{}", member.value.get())
    };
    let members: Vec<_> = members.iter().map(member).collect();
    Body::json(format!("{{{}}}", members.join(",")))
}

fn form(members: &[Member<'_>], owned: &Owned) -> Result<Body, ToolError> {
    let mut pairs = Vec::new();
    for member in members {
        let Member {
            argument,
            wire,
            own,
            value,
        } = member;
        let is_styled = own.is_some_and(|own| own.style.is_some());
        // An object has no name in the plain style, so it is written with its name.
        let (node, usual) = match node_of(*own, value) {
            Node::Object(_) if !is_styled => (Node::read(value.get()), Style::DeepObject),
            node => (node, Style::Form),
        };
        let made = writing(*own, usual).pairs(wire, &node);
        if !own.is_some_and(ArgumentEntry::is_hidden) {
            owned.check_pairs(Part::Body, argument, wire, &made)?;
        }
        pairs.extend(made);
    }
    let pairs: Vec<_> = pairs.iter().map(|(k, v)| format!("{k}={v}")).collect();
    Ok(Body {
        content_type: "application/x-www-form-urlencoded".to_owned(),
        bytes: pairs.join("&").into_bytes(),
    })
}

/// Reads a value as a tree. A value that is sent as JSON is one string, and so is a nested value in a flat style.
pub(super) fn node_of(own: Option<&ArgumentEntry>, value: &RawValue) -> Node {
    match own {
        Some(own) if own.as_json == Some(true) => Node::Scalar(value.get().to_owned()),
        Some(own) if own.style == Some(Style::DeepObject) => Node::read(value.get()),
        Some(_) | None => Node::read_flat(value.get()),
    }
}

fn parts(members: &[Member<'_>], boundary: &str) -> Result<Body, ToolError> {
    let mut bytes = Vec::new();
    for member in members {
        let Member {
            wire: name,
            own,
            value,
            ..
        } = *member;
        let file = own.and_then(|own| own.file.as_ref());
        let is_json = own.is_some_and(|own| own.as_json == Some(true));
        let text = value.get().trim_ascii();
        let items: Vec<&RawValue> = match text.as_bytes().first() {
            Some(b'n') | None => continue,
            Some(b'[') if !is_json => serde_json::from_str(text).unwrap_or_default(),
            Some(_) => vec![value],
        };
        for item in items {
            let node = Node::read(item.get());
            let (head, content) = match (file, &node) {
                (Some(file), _) => (file_head(name, file), file_content(name, file, &node)?),
                (None, Node::Scalar(text)) if !is_json => {
                    (String::new(), text.clone().into_bytes())
                }
                (None, _) => {
                    let head = "\r\nContent-Type: application/json".to_owned();
                    (head, item.get().as_bytes().to_vec())
                }
            };
            let name = quoted(name);
            let head = format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"{head}\r\n\r\n"
            );
            bytes.extend_from_slice(head.as_bytes());
            bytes.extend_from_slice(&content);
            bytes.extend_from_slice(b"\r\n");
        }
    }
    bytes.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Ok(Body {
        content_type: format!("multipart/form-data; boundary={boundary}"),
        bytes,
    })
}

/// The rest of a file's head, behind its name.
fn file_head(name: &str, file: &FilePart) -> String {
    let file_name = quoted(file.file_name.as_deref().unwrap_or(name));
    let usual = match file.encoding {
        FileEncoding::Base64 => "application/octet-stream",
        FileEncoding::Text => "text/plain; charset=utf-8",
    };
    let kind = file.content_type.as_deref().unwrap_or(usual);
    let kind: String = kind.chars().filter(|c| !c.is_control()).collect();
    format!("; filename=\"{file_name}\"\r\nContent-Type: {kind}")
}

fn file_content(name: &str, file: &FilePart, item: &Node) -> Result<Vec<u8>, ToolError> {
    match file.encoding {
        FileEncoding::Base64 => decoded(name, &item.text()),
        FileEncoding::Text => Ok(item.text().into_bytes()),
    }
}

/// A name in quotes, as browsers write it.
fn quoted(name: &str) -> String {
    let escape = |c: char| match c {
        '"' => "%22".to_owned(),
        '\r' => "%0D".to_owned(),
        '\n' => "%0A".to_owned(),
        other => other.to_string(),
    };
    name.chars().map(escape).collect()
}

fn decoded(name: &str, text: &str) -> Result<Vec<u8>, ToolError> {
    let text: String = text.split_ascii_whitespace().collect();
    let standard = STANDARD.decode(&text);
    let bytes = standard.or_else(|_| URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')));
    bytes.map_err(|_| {
        let argument = name.to_owned();
        ToolError::invalid(pointer(name), Say::NotBase64 { argument }).without_effect()
    })
}
