//! Pages that are fetched one after the other and joined into one answer, up to a bound.

use std::collections::BTreeSet;
use std::sync::Arc;

use countersign::{Reply, ToolError};
use serde_json::Value;
use serde_json::value::RawValue;

use super::answer::{Read, Unusable, Whole, tell_digits};
use super::body::Body;
use super::charset;
use super::node::{Members, Node};
use super::plan::Prepared;
use super::send::{Answer, Sending};
use super::style::escape;
use super::tool::HttpTool;
use crate::manifest::{PageBy, PagePlace, Pagination};
use crate::select::Filter;
use crate::words::Say;

/// The page behind one, as the answer names it.
enum Next {
    /// The answer names none.
    Unnamed,
    /// A cursor, as JSON.
    Cursor(Value),
    /// An address below that of the upstream: its path and its query, escaped.
    Address(String, String),
    /// A link that leads to another address, and is not followed.
    Elsewhere,
}

/// Reason for which the pages end before the list does.
enum Cut {
    /// A bound was reached.
    Bound,
    /// The list goes on at an address that is not followed.
    Elsewhere,
    /// The service has named a page that it had given already.
    Repeat,
}

impl Cut {
    /// The remark that the list is not whole.
    fn remark(self, pages: u32) -> (String, String) {
        let pages = pages.to_string();
        let say = match self {
            Self::Bound => Say::MorePages { pages },
            Self::Elsewhere => Say::PagesElsewhere { pages },
            Self::Repeat => Say::PagesRepeat { pages },
        };
        ("MORE_PAGES".to_owned(), say.to_string())
    }
}

/// The pages of a tool.
#[derive(Debug)]
pub(crate) struct Pages {
    entry: Pagination,
}

impl Pages {
    pub(crate) fn new(entry: Pagination) -> Self {
        Self { entry }
    }

    /// Fetches pages until the last one or the bound. The last page keeps its shape; its list has the items of all.
    pub(crate) async fn fetch(
        &self,
        tool: &HttpTool,
        sending: Sending<'_>,
        chosen: Option<&Arc<Filter>>,
    ) -> Result<Reply, ToolError> {
        let mut request = sending.request.clone();
        let mut whole;
        let mut items: Vec<Value> = Vec::new();
        let mut told = Reply::default();
        let mut pages = 0;
        let mut bytes = 0;
        let most = self.entry.items_max as usize;
        let mut number = self.first(&mut request);
        let mut asked = BTreeSet::new();
        let cut = loop {
            asked.insert(address(&request));
            let sending = Sending {
                request: &request,
                ..sending
            };
            let answer = tool.service.send(sending).await?;
            pages += 1;
            bytes += answer.body.len();
            let decoded = charset::decoded(answer.body.bytes(), &answer.headers);
            let page = tool.reader.value(tool, &answer, &decoded)?;
            let Read {
                value: mut page,
                digits,
            } = page.map_err(|unusable| unusable.error(tool.whose()))?;
            tell_digits(tool.whose(), digits, &mut told);
            let next = self.next(&page, &answer, &request, tool);
            let list = page.pointer_mut(&self.entry.items).map(Value::take);
            let Some(Value::Array(list)) = list else {
                let pointer = self.entry.items.clone();
                return Err(Unusable::Missing(pointer).error(tool.whose()));
            };
            let count = list.len();
            items.extend(list);
            whole = page;
            let is_full = items.len() > most;
            items.truncate(most);
            if is_full {
                break Some(Cut::Bound);
            }
            if matches!(next, Next::Elsewhere) {
                break Some(Cut::Elsewhere);
            }
            if !self.turn(&mut request, next, &mut number, count) {
                break None;
            }
            // An upstream that names the same page again would never end.
            if asked.contains(&address(&request)) {
                break Some(Cut::Repeat);
            }
            // All pages together are one answer, and have the bound of one.
            let is_large = bytes >= tool.service.response_bytes_max();
            if items.len() == most || pages >= self.entry.pages_max || is_large {
                break Some(Cut::Bound);
            }
        };
        if let Some(place) = whole.pointer_mut(&self.entry.items) {
            *place = Value::Array(items);
        }
        let whole = Whole {
            value: Ok(whole),
            text: None,
            bytes,
            answer: None,
        };
        let mut reply = tool.reader.finish(tool.whose(), whole, chosen).await?;
        reply.remarks.extend(told.remarks);
        reply.remarks.extend(cut.map(|cut| cut.remark(pages)));
        Ok(reply)
    }

    /// Sets the number of the first page, where pages have one. A caller's own number is kept.
    fn first(&self, request: &mut Prepared) -> u64 {
        let (parameter, place, first) = match &self.entry.by {
            PageBy::Page {
                parameter,
                place,
                first,
            } => (parameter, *place, *first),
            PageBy::Offset { parameter, place } => (parameter, *place, 0),
            PageBy::Cursor { .. } | PageBy::Link {} | PageBy::NextUrl { .. } => return 0,
        };
        if let Some(own) = sent(request, place, parameter) {
            return own;
        }
        set(request, place, parameter, &first.into());
        first
    }

    /// Returns the next page. The items are still in the page.
    fn next(&self, page: &Value, answer: &Answer, asked: &Prepared, tool: &HttpTool) -> Next {
        let address = |link: &str| tool.service.page_at(link, asked);
        match &self.entry.by {
            PageBy::Cursor {
                next,
                last_item,
                more,
                ..
            } => {
                let more = more.as_deref().and_then(|more| page.pointer(more));
                if more == Some(&Value::Bool(false)) {
                    return Next::Unnamed;
                }
                let last = || page.pointer(&self.entry.items)?.as_array()?.last();
                let cursor = match (next, last_item) {
                    (Some(next), _) => page.pointer(next),
                    (None, Some(pointer)) => last().and_then(|item| item.pointer(pointer)),
                    (None, None) => None,
                };
                match cursor {
                    Some(Value::String(text)) if text.is_empty() => Next::Unnamed,
                    Some(cursor @ (Value::String(_) | Value::Number(_))) => {
                        Next::Cursor(cursor.clone())
                    }
                    Some(_) | None => Next::Unnamed,
                }
            }
            PageBy::Link {} => {
                let mut links = answer.headers.get_all("link").iter();
                let link = links.find_map(|it| next_link(it.to_str().ok()?));
                link.map_or(Next::Unnamed, |link| address(&link))
            }
            PageBy::NextUrl { next } => match page.pointer(next).and_then(Value::as_str) {
                Some(link) if !link.is_empty() => address(link),
                Some(_) | None => Next::Unnamed,
            },
            PageBy::Page { .. } | PageBy::Offset { .. } => Next::Unnamed,
        }
    }

    /// Makes the request of the next page; false if there is no further page.
    fn turn(&self, request: &mut Prepared, next: Next, number: &mut u64, count: usize) -> bool {
        match (&self.entry.by, next) {
            (
                PageBy::Cursor {
                    parameter, place, ..
                },
                Next::Cursor(cursor),
            ) => {
                set(request, *place, parameter, &cursor);
                true
            }
            (PageBy::Link {} | PageBy::NextUrl { .. }, Next::Address(path, query)) => {
                let pairs = query.split('&').filter(|pair| !pair.is_empty());
                let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
                request.query = pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
                request.path = path;
                true
            }
            (
                PageBy::Page {
                    parameter, place, ..
                },
                _,
            ) if count > 0 => {
                *number = number.saturating_add(1);
                set(request, *place, parameter, &(*number).into());
                true
            }
            (PageBy::Offset { parameter, place }, _) if count > 0 => {
                *number = number.saturating_add(count as u64);
                set(request, *place, parameter, &(*number).into());
                true
            }
            (
                PageBy::Cursor { .. }
                | PageBy::Link {}
                | PageBy::NextUrl { .. }
                | PageBy::Page { .. }
                | PageBy::Offset { .. },
                _,
            ) => false,
        }
    }
}

/// The page that a request asks for: its path, query and body.
fn address(request: &Prepared) -> (String, Vec<(String, String)>, Vec<u8>) {
    let body = request.body.as_ref();
    (
        request.path.clone(),
        request.query.clone(),
        body.map(|body| body.bytes.clone()).unwrap_or_default(),
    )
}

/// The number that a caller has sent.
fn sent(request: &Prepared, place: PagePlace, parameter: &str) -> Option<u64> {
    match place {
        PagePlace::Query => {
            let key = escape(parameter);
            let own = request.query.iter().find(|(name, _)| *name == key);
            own.and_then(|(_, value)| value.parse().ok())
        }
        PagePlace::Body => {
            let members: Members = serde_json::from_slice(&request.body.as_ref()?.bytes).ok()?;
            let own = members.0.iter().find(|(name, _)| name == parameter);
            own.and_then(|(_, value)| Node::read(value.get()).text().parse().ok())
        }
    }
}

/// Sets the parameter of a page.
fn set(request: &mut Prepared, place: PagePlace, parameter: &str, value: &Value) {
    match place {
        PagePlace::Query => {
            let key = escape(parameter);
            let text = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            request.query.retain(|(name, _)| *name != key);
            request.query.push((key, escape(&text)));
        }
        PagePlace::Body => {
            let body = request
                .body
                .get_or_insert_with(|| Body::json("{}".to_owned()));
            let Members(mut members) = serde_json::from_slice(&body.bytes).unwrap_or_default();
            members.retain(|(name, _)| name != parameter);
            let value = serde_json::value::to_raw_value(value);
            members.extend(value.ok().map(|value| (parameter.to_owned(), value)));
            body.bytes = written(&members);
        }
    }
}

/// Members as a JSON object, each value with its own spelling.
fn written(members: &[(String, Box<RawValue>)]) -> Vec<u8> {
    let members = members.iter();
    let members = members.map(|(name, value)| format!("{}:{}", Value::from(&**name), value.get()));
    format!("{{{}}}", members.collect::<Vec<_>>().join(",")).into_bytes()
}

/// The target of `rel="next"` in a `Link` header (RFC 8288). A target may have commas and semicolons.
fn next_link(header: &str) -> Option<String> {
    let mut rest = header;
    while let Some((_, link)) = rest.split_once('<') {
        let (target, behind) = link.split_once('>')?;
        let parameters = behind.split_once('<').map_or(behind, |it| it.0);
        let is_next = parameters.split([';', ',']).any(|parameter| {
            let parameter = parameter.trim().to_ascii_lowercase();
            let relation = parameter.strip_prefix("rel=");
            relation.is_some_and(|it| it.trim_matches('"').split(' ').any(|it| it == "next"))
        });
        if is_next {
            return Some(target.to_owned());
        }
        rest = behind;
    }
    None
}

impl super::service::Service {
    /// The page that a link leads to, which counts from the address of the page that has it: at the same upstream and below its
    /// address, or elsewhere.
    fn page_at(&self, link: &str, asked: &Prepared) -> Next {
        let base = self.base.path().trim_end_matches('/');
        let mut from = self.base.clone();
        from.set_path(&format!("{base}{}", asked.path));
        let Ok(url) = from.join(link) else {
            return Next::Elsewhere;
        };
        let path = url.path().strip_prefix(base);
        match path.filter(|path| path.starts_with('/') && url.origin() == self.base.origin()) {
            Some(path) => {
                let query = url.query().unwrap_or_default();
                Next::Address(path.to_owned(), query.to_owned())
            }
            None => Next::Elsewhere,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_link_is_found() {
        let check = |header: &str, expected: Option<&str>| {
            assert_eq!(next_link(header).as_deref(), expected, "{header}");
        };
        check("</a?p=2>; rel=\"next\"", Some("/a?p=2"));
        check(
            "</a?ids=1,2&p=2>; rel=next, </a?p=9>; rel=last",
            Some("/a?ids=1,2&p=2"),
        );
        check(
            "</a>; rel=\"last\", </b>; title=\"x\"; rel=\"prev next\"",
            Some("/b"),
        );
        check("</a>; rel=\"nextpage\"", None);
        check("", None);
        check("<a", None);
    }
}
