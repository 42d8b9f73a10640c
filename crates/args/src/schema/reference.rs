//! References inside a schema: resolves them and refuses cycles.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::SchemaId;
use super::compile::{Compiler, DEPTH_MAX, Result};
use super::keyword::{escape, refuse};

impl<'d> Compiler<'d> {
    /// Returns the target of a reference that has only annotations beside it.
    pub(super) fn lone_reference(
        object: &'d Map<String, Value>,
        path: &str,
    ) -> Result<Option<&'d str>> {
        const ANNOTATIONS: [&str; 9] = [
            "$ref",
            "$defs",
            "definitions",
            "title",
            "description",
            "default",
            "examples",
            "$schema",
            "$id",
        ];
        let Some(target) = object.get("$ref") else {
            return Ok(None);
        };
        let Value::String(target) = target else {
            return refuse(path, "$ref must be a text");
        };
        let alone = object.keys().all(|key| ANNOTATIONS.contains(&key.as_str()));
        Ok(alone.then_some(target))
    }

    pub(super) fn resolve(&self, target: &str, path: &str) -> Result<(&'d Value, String)> {
        let Some(fragment) = target.strip_prefix('#') else {
            return refuse(
                path,
                format!("{target:?} is not in this document; remote references are not followed"),
            );
        };
        let fragment = percent_decoded(fragment);
        let pointer = match self.anchors.get(&fragment) {
            Some(pointer) => pointer.clone(),
            None => fragment,
        };
        match self.document.pointer(&pointer) {
            Some(value) => Ok((value, pointer)),
            None => refuse(path, format!("{target:?} names nothing in this document")),
        }
    }

    pub(super) fn find_anchors(
        &mut self,
        value: &Value,
        path: &mut String,
        depth: usize,
    ) -> Result<()> {
        if depth > DEPTH_MAX * 2 {
            return refuse(path, "it nests too deep");
        }
        let length = path.len();
        match value {
            Value::Object(object) => {
                // A nested schema resource has its own names; all of these belong to the root.
                let named_so =
                    path.ends_with("/properties") || path.ends_with("/patternProperties");
                if !path.is_empty()
                    && !named_so
                    && matches!(object.get("$id"), Some(Value::String(_)))
                {
                    return refuse(path, "$id is supported at the root only");
                }
                if let Some(Value::String(anchor)) = object.get("$anchor") {
                    self.anchors.insert(anchor.clone(), path.clone());
                }
                for (key, child) in object {
                    path.push('/');
                    path.push_str(&escape(key));
                    self.find_anchors(child, path, depth + 1)?;
                    path.truncate(length);
                }
            }
            Value::Array(list) => {
                for (i, child) in list.iter().enumerate() {
                    path.push('/');
                    path.push_str(&i.to_string());
                    self.find_anchors(child, path, depth + 1)?;
                    path.truncate(length);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        Ok(())
    }

    /// Refuses a schema that applies itself to the same value: checking it would never end.
    pub(super) fn refuse_cycles(&self) -> Result<()> {
        let mut state = vec![0_u8; self.rules.len()];
        let mut edges: HashMap<SchemaId, Vec<(SchemaId, &str)>> = HashMap::new();
        for (from, to, path) in &self.in_place {
            edges.entry(*from).or_default().push((*to, path));
        }
        for start in 0..self.rules.len() as SchemaId {
            let mut stack = vec![(start, 0_usize)];
            while let Some((node, next)) = stack.pop() {
                let Some(mark) = state.get_mut(node as usize) else {
                    continue;
                };
                if next == 0 {
                    if *mark != 0 {
                        continue;
                    }
                    *mark = 1;
                }
                match edges.get(&node).and_then(|list| list.get(next)) {
                    Some((child, path)) => {
                        stack.push((node, next + 1));
                        match state.get(*child as usize) {
                            Some(1) => {
                                return refuse(path, "it refers to itself without going down");
                            }
                            Some(0) => stack.push((*child, 0)),
                            _ => {}
                        }
                    }
                    None => {
                        if let Some(mark) = state.get_mut(node as usize) {
                            *mark = 2;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let code = bytes
            .get(at + 1..at + 3)
            .and_then(|hex| std::str::from_utf8(hex).ok());
        let code = code
            .filter(|_| byte == b'%')
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        let (byte, width) = code.map_or((byte, 1), |code| (code, 3));
        decoded.push(byte);
        at += width;
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
