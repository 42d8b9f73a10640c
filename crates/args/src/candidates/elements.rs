//! Parameters that are elements: an element has no quotes, so the declaration says what its content is.

use countersign_contract::IssueCode;

use super::{Finder, Place};
use crate::fault::Fault;
use crate::markup::{self, Layout, NoCall, Parameter};
use crate::number;
use crate::schema::{SchemaId, Types};
use crate::strict;
use crate::tolerant::{NoRead, Read, Reader, Shape, SyntaxLog};
use crate::tree::{Kind, NONE, NodeId, Str};
use crate::validate::type_of;

impl Finder<'_, '_> {
    /// Reads a call whose parameters are elements; `None` if the text has none. Once it has one, nothing else in the
    /// text is a document: the list is empty where the call cannot be read.
    pub(super) fn elements(&mut self, text: &str, from: usize) -> Option<Vec<Place>> {
        let schema = self.schema;
        let declares = |name: &str| schema.has_property(schema.root, name);
        let call = match markup::find(text, from, text.len(), &declares)? {
            Ok(call) => call,
            Err(NoCall::Cut(at)) => {
                let at = self.span(at, at).range().start;
                self.found.unfinished.get_or_insert(at);
                return Some(Vec::new());
            }
            Err(NoCall::Broken(at, fault)) => {
                self.stopped(NoRead::Broken(at, fault));
                return Some(Vec::new());
            }
        };
        let mut log = SyntaxLog::default();
        let node = self
            .tree
            .push(Kind::Object, Str::EMPTY, self.span(call.start, call.end));
        let mut last = NONE;
        for parameter in &call.parameters {
            match self.element(text, parameter, &mut log) {
                Ok(member) => {
                    let count = self.tree.append(node, &mut last, member);
                    if count > self.limits.members_max {
                        self.found.limit = Some("members_max");
                        return Some(Vec::new());
                    }
                }
                Err(stop) => {
                    self.stopped(stop);
                    return Some(Vec::new());
                }
            }
        }
        log.whole(IssueCode::CallSyntax, self.span(call.start, call.end));
        let read = Read {
            node,
            end: call.end,
            complete: true,
            named: true,
            dangling: false,
        };
        let mut place = self.add(text, call.start, Shape::Call, read, log);
        (place.start, place.end) = (call.start, call.end);
        place.known = true;
        if let Some(candidate) = self.found.candidates.last_mut() {
            candidate.known = true;
        }
        Some(vec![place])
    }

    fn element(
        &mut self,
        text: &str,
        parameter: &Parameter<'_>,
        log: &mut SyntaxLog,
    ) -> Result<NodeId, NoRead> {
        if self.tree.len() >= self.limits.nodes() {
            return Err(NoRead::Limit("nodes_max"));
        }
        if strict::is_reserved(parameter.name) {
            return Err(NoRead::Reserved);
        }
        let node = self.element_value(text, parameter, log)?;
        let key = self.tree.intern(parameter.name);
        self.tree.node_mut(node).key = key;
        Ok(node)
    }

    /// Reads the content of an element as what the declaration, or the tag itself, says that it is.
    fn element_value(
        &mut self,
        text: &str,
        parameter: &Parameter<'_>,
        log: &mut SyntaxLog,
    ) -> Result<NodeId, NoRead> {
        let schema = Reader::new(self.tree, log, text, self.schema, self.limits)
            .member_of_root(parameter.name);
        let wanted = |types| schema.is_none_or(|id| self.may_be(id, types));
        let takes_text = parameter.is_text.unwrap_or_else(|| wanted(Types::TEXT));
        let others = [
            Types::NUMBER,
            Types::INTEGER,
            Types::BOOLEAN,
            Types::NULL,
            Types::ARRAY,
            Types::OBJECT,
        ];
        let takes_other = parameter
            .is_text
            .map_or_else(|| others.into_iter().any(wanted), |is_text| !is_text);
        if takes_text && !takes_other {
            return self.element_text(parameter, log);
        }
        // Nothing is declared, so nothing says that it is a string.
        let untyped = self.schema.rules(self.schema.root).object.is_none();
        let value = self.element_json(parameter, schema, log)?;
        match value {
            Some(node) if !takes_text || untyped => Ok(node),
            Some(node) => {
                let kind = self.tree.kind(node);
                let own = type_of(self.tree, node);
                let fits = schema.is_none_or(|id| self.may_be(id, own));
                let null = kind == Kind::Null && parameter.content.trim() == "null";
                if !fits {
                    self.element_text(parameter, log)
                } else if null && schema.is_some() {
                    Ok(node)
                } else {
                    // It can also be the string.
                    Err(NoRead::Broken(parameter.start, Fault::Element))
                }
            }
            None if takes_text => self.element_text(parameter, log),
            // Elements inside an element: a format that is not known.
            None if parameter.content.trim_start().starts_with('<') => {
                Err(NoRead::Broken(parameter.start, Fault::Markup))
            }
            None => {
                let start = parameter.start;
                let token = self.tree.intern(parameter.content.trim());
                let span = self.span(start, start + parameter.content.len());
                Ok(self.tree.push(Kind::Text, token, span))
            }
        }
    }

    /// True if a value of this type may fit a schema.
    fn may_be(&self, id: SchemaId, types: Types) -> bool {
        let listed = self
            .schema
            .rules(id)
            .allowed
            .as_ref()
            .is_none_or(|allowed| {
                allowed.members.iter().any(|member| match member.kind {
                    Kind::Null => types.has(Types::NULL),
                    Kind::False | Kind::True => types.has(Types::BOOLEAN),
                    Kind::Number => types.has(Types::INTEGER) || types.has(Types::FRACTION),
                    Kind::Text => types.has(Types::TEXT),
                    Kind::Array => types.has(Types::ARRAY),
                    Kind::Object => types.has(Types::OBJECT),
                })
            });
        listed && self.schema.takes(id, types)
    }

    /// Reads the content as a string.
    fn element_text(
        &mut self,
        parameter: &Parameter<'_>,
        log: &mut SyntaxLog,
    ) -> Result<NodeId, NoRead> {
        let content = parameter.content;
        let unclear = Err(NoRead::Broken(parameter.start, Fault::Element));
        let text = match parameter.layout {
            Layout::Loose if content.trim().len() < content.len() => return unclear,
            Layout::Verbatim | Layout::Loose => content,
            Layout::Lines => {
                let inner = content.strip_prefix("\r\n").or(content.strip_prefix('\n'));
                let ends = content.ends_with('\n');
                match inner {
                    // One line break between the tags is both of them.
                    Some("") => "",
                    Some(inner) if ends => {
                        let inner = inner.strip_suffix('\n').unwrap_or(inner);
                        inner.strip_suffix('\r').unwrap_or(inner)
                    }
                    None if !ends => content,
                    _ => return unclear,
                }
            }
        };
        let interned = self.tree.intern(text);
        let span = self.span(parameter.start, parameter.start + content.len());
        if text.len() < content.len() {
            log.whole(IssueCode::StrayText, span);
        }
        Ok(self.tree.push(Kind::Text, interned, span))
    }

    /// Reads the content as JSON, or as a value in the spelling of another language; `None` if it is neither.
    fn element_json(
        &mut self,
        parameter: &Parameter<'_>,
        schema: Option<SchemaId>,
        log: &mut SyntaxLog,
    ) -> Result<Option<NodeId>, NoRead> {
        let content = parameter.content;
        let token = content.trim();
        let start = parameter.start + (content.len() - content.trim_start().len());
        let span = self.span(start, start + token.len());
        if token.starts_with(['{', '[']) {
            let origin = Some((span, 0));
            if let Ok((node, end)) = strict::container(self.tree, token, 0, origin, self.limits)
                && end == token.len()
            {
                return Ok(Some(node));
            }
            let mut reader =
                Reader::new(self.tree, log, token, self.schema, self.limits).decoded_from(span, 0);
            let read = reader.read(0, Shape::Bracketed, schema.or(Some(self.schema.root)));
            return match read {
                Ok(read) if read.complete && read.end == token.len() => Ok(Some(read.node)),
                Ok(_) | Err(NoRead::Implausible(_) | NoRead::Broken(..) | NoRead::Elided) => {
                    Ok(None)
                }
                Err(stop) => Err(stop),
            };
        }
        let literal = match token {
            "true" | "True" | "TRUE" => Some(Kind::True),
            "false" | "False" | "FALSE" => Some(Kind::False),
            "null" | "None" | "NULL" | "Null" => Some(Kind::Null),
            _ => None,
        };
        if let Some(kind) = literal {
            return Ok(Some(self.tree.push(kind, Str::EMPTY, span)));
        }
        if token.len() <= self.limits.number_digits_max
            && let Some(json) = number::from_token(token)
        {
            let spelt = self.tree.intern(token);
            let number = self.tree.intern(&json);
            let node = self.tree.push(Kind::Number, number, span);
            self.tree.node_mut(node).spelt = spelt;
            return Ok(Some(node));
        }
        Ok(None)
    }
}
