//! Pages that are fetched one after the other and joined into one answer, up to a bound.

use countersign::{Reply, ToolError};
use serde_json::Value;
use url::Url;

use super::answer::Unusable;
use super::plan::Prepared;
use super::send::{Answer, Sending};
use super::style::escape;
use super::tool::HttpTool;
use crate::manifest::{PageBy, Pagination};
use crate::select::Filter;
use crate::words::Say;

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
        let mut pages = 0;
        let most = self.entry.items_max as usize;
        let mut number = self.first(&mut request);
        loop {
            let sending = Sending {
                request: &request,
                ..sending
            };
            let answer = tool.service.send(sending).await?;
            pages += 1;
            let page = tool.reader.value(tool, &answer)?;
            let mut page = page.map_err(|unusable| unusable.error(tool))?;
            let next = self.next(&page, &answer, tool);
            let list = page.pointer_mut(&self.entry.items).map(Value::take);
            let Some(Value::Array(list)) = list else {
                let pointer = self.entry.items.clone();
                return Err(Unusable::Missing(pointer).error(tool));
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
            if is_full || items.len() == most || pages >= self.entry.pages_max {
                is_cut = true;
                break;
            }
        }
        if let Some(place) = whole.pointer_mut(&self.entry.items) {
            *place = Value::Array(items);
        }
        let data = tool.reader.project(whole, chosen);
        let mut reply = Reply::from(data.map_err(|unusable| unusable.error(tool))?);
        if is_cut {
            let text = Say::MorePages {
                pages: pages.to_string(),
            }
            .to_string();
            reply.remarks.push(("MORE_PAGES".to_owned(), text));
        }
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

    /// What leads to the next page; `None` if the answer names none.
    fn next(&self, page: &Value, answer: &Answer, tool: &HttpTool) -> Option<String> {
        match &self.entry.by {
            PageBy::Cursor { next, .. } => match page.pointer(next)? {
                Value::String(text) if !text.is_empty() => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                _ => None,
            },
            PageBy::Link {} => {
                let mut links = answer.headers.get_all("link").iter();
                let link = links.find_map(|it| next_link(it.to_str().ok()?))?;
                tool.service.query_of(&link)
            }
            PageBy::Page { .. } | PageBy::Offset { .. } => None,
        }
    }

    /// Makes the request of the next page; false if there is none.
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
                *number += 1;
                set(request, &escape(parameter), number.to_string());
                true
            }
            (PageBy::Offset { parameter }, _) if count > 0 => {
                *number += count as u64;
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

/// The target of `rel="next"` in a `Link` header.
fn next_link(header: &str) -> Option<String> {
    header.split(',').find_map(|link| {
        let (target, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
        let is_next = parameters.split(';').any(|parameter| {
            let parameter = parameter.trim().to_ascii_lowercase();
            parameter
                .strip_prefix("rel=")
                .is_some_and(|rel| rel.trim_matches('"') == "next")
        });
        is_next.then(|| target.to_owned())
    })
}

impl super::service::Service {
    /// The query of a link that leads to the same upstream; `None` if it leads elsewhere.
    fn query_of(&self, link: &str) -> Option<String> {
        let url: Url = self.base.join(link).ok()?;
        (url.origin() == self.base.origin()).then(|| url.query().unwrap_or_default().to_owned())
    }
}
