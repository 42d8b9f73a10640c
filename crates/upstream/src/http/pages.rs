//! Pages that are fetched one after the other and joined into one answer, up to a bound.

use countersign::{Reply, ToolError};
use serde_json::Value;
use url::Url;

use super::answer::{Read, Unusable, tell_digits};
use super::plan::Prepared;
use super::send::{Answer, Sending};
use super::style::escape;
use super::tool::HttpTool;
use crate::manifest::{PageBy, Pagination};
use crate::select::Filter;
use crate::words::Say;

/// The page behind one, as the answer names it.
enum Next {
    /// The answer names none.
    Unnamed,
    /// A cursor, or the query of a link.
    At(String),
    /// A link that leads to another address, and is not followed.
    Elsewhere,
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
        chosen: Option<&Filter>,
    ) -> Result<Reply, ToolError> {
        let mut request = sending.request.clone();
        let mut whole;
        let mut items: Vec<Value> = Vec::new();
        let mut is_cut = false;
        let mut goes_elsewhere = false;
        let mut told = Reply::default();
        let mut pages = 0;
        let mut bytes = 0;
        let most = self.entry.items_max as usize;
        let mut number = self.first(&mut request);
        loop {
            let sending = Sending {
                request: &request,
                ..sending
            };
            let answer = tool.service.send(sending).await?;
            pages += 1;
            bytes += answer.body.len();
            let page = tool.reader.value(tool, &answer)?;
            let Read {
                value: mut page,
                digits,
            } = page.map_err(|unusable| unusable.error(tool.whose()))?;
            tell_digits(tool.whose(), digits, &mut told);
            let next = match self.next(&page, &answer, tool) {
                Next::At(next) => Some(next),
                Next::Unnamed => None,
                Next::Elsewhere => {
                    goes_elsewhere = true;
                    None
                }
            };
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
            let more = self.turn(&mut request, next, &mut number, count);
            if !more {
                is_cut |= is_full;
                break;
            }
            // All pages together are one answer, and have the bound of one.
            let is_large = bytes >= tool.service.response_bytes_max();
            if is_full || items.len() == most || pages >= self.entry.pages_max || is_large {
                is_cut = true;
                break;
            }
        }
        if let Some(place) = whole.pointer_mut(&self.entry.items) {
            *place = Value::Array(items);
        }
        let mut reply = tool.reader.finish(tool.whose(), Ok(whole), None, chosen)?;
        reply.remarks.extend(told.remarks);
        let pages = pages.to_string();
        let more = match (is_cut, goes_elsewhere) {
            (true, _) => Some(Say::MorePages { pages }),
            (false, true) => Some(Say::PagesElsewhere { pages }),
            (false, false) => None,
        };
        let remark = more.map(|say| ("MORE_PAGES".to_owned(), say.to_string()));
        reply.remarks.extend(remark);
        Ok(reply)
    }

    /// Sets the number of the first page, where pages have one. A caller's own number is kept.
    fn first(&self, request: &mut Prepared) -> u64 {
        let (parameter, first) = match &self.entry.by {
            PageBy::Page { parameter, first } => (parameter, *first),
            PageBy::Offset { parameter } => (parameter, 0),
            PageBy::Cursor { .. } | PageBy::Link {} => return 0,
        };
        let key = escape(parameter);
        let own = request.query.iter().find(|(name, _)| *name == key);
        if let Some(own) = own.and_then(|(_, value)| value.parse().ok()) {
            return own;
        }
        set(request, &key, first.to_string());
        first
    }

    /// Returns the next page.
    fn next(&self, page: &Value, answer: &Answer, tool: &HttpTool) -> Next {
        match &self.entry.by {
            PageBy::Cursor { next, .. } => match page.pointer(next) {
                Some(Value::String(text)) if !text.is_empty() => Next::At(text.clone()),
                Some(Value::Number(number)) => Next::At(number.to_string()),
                Some(_) | None => Next::Unnamed,
            },
            PageBy::Link {} => {
                let mut links = answer.headers.get_all("link").iter();
                let link = links.find_map(|it| next_link(it.to_str().ok()?));
                match link.map(|link| tool.service.query_of(&link)) {
                    Some(Some(query)) => Next::At(query),
                    Some(None) => Next::Elsewhere,
                    None => Next::Unnamed,
                }
            }
            PageBy::Page { .. } | PageBy::Offset { .. } => Next::Unnamed,
        }
    }

    /// Makes the request of the next page; false if there is no further page.
    fn turn(
        &self,
        request: &mut Prepared,
        next: Option<String>,
        number: &mut u64,
        count: usize,
    ) -> bool {
        match (&self.entry.by, next) {
            (PageBy::Cursor { parameter, .. }, Some(cursor)) => {
                let key = escape(parameter);
                let value = escape(&cursor);
                // An upstream that names the same page again would never end.
                let is_same = request
                    .query
                    .iter()
                    .any(|pair| *pair == (key.clone(), value.clone()));
                set(request, &key, value);
                !is_same
            }
            (PageBy::Link {}, Some(query)) => {
                let pairs = query.split('&').filter(|pair| !pair.is_empty());
                let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
                let pairs: Vec<_> = pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
                let is_same = request.query == pairs;
                request.query = pairs;
                !is_same
            }
            (PageBy::Page { parameter, .. }, _) if count > 0 => {
                *number = number.saturating_add(1);
                set(request, &escape(parameter), number.to_string());
                true
            }
            (PageBy::Offset { parameter }, _) if count > 0 => {
                *number = number.saturating_add(count as u64);
                set(request, &escape(parameter), number.to_string());
                true
            }
            (PageBy::Cursor { .. } | PageBy::Link {}, None)
            | (PageBy::Page { .. } | PageBy::Offset { .. }, _) => false,
        }
    }
}

fn set(request: &mut Prepared, key: &str, value: String) {
    request.query.retain(|(name, _)| name != key);
    request.query.push((key.to_owned(), value));
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
    /// The query of a link that leads to the same upstream; `None` if it leads elsewhere.
    fn query_of(&self, link: &str) -> Option<String> {
        let url: Url = self.base.join(link).ok()?;
        (url.origin() == self.base.origin()).then(|| url.query().unwrap_or_default().to_owned())
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
