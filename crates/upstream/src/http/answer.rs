//! From an answer to the `data` of a reply. The answer is parsed once, and once more only if a rule looks into its body (`fault`); what is
//! handed on whole is checked as the text that it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::contract::canonical;
use countersign::contract::tool::EvidenceRule;
use countersign::contract::{ErrorBody, ErrorCode, FaultSource};
use countersign::{Reply, ToolError};
use serde_json::{Map, Value};

use super::charset::{self, Decoded};
use super::digits::{self, Digits};
use super::send::{Answer, AnswerBody};
use super::tool::HttpTool;
use crate::manifest::{OnMismatch, ResponseFormat, ToolEntry};
use crate::output::{Output, Verdict};
use crate::scrub;
use crate::select::{Filter, FilterError};
use crate::words::Say;

/// Reader of a tool's answers, prepared once.
#[derive(Debug)]
pub(crate) struct Reader {
    format: ResponseFormat,
    pointer: Option<String>,
    /// Headers of the answer that become members of the data, by the name of the member.
    headers: BTreeMap<String, String>,
    filter: Option<Arc<Filter>>,
    /// The declared schema, or the reason why it cannot be checked; `None` if there is none.
    output: Option<Result<Output, String>>,
    on_mismatch: OnMismatch,
    /// True if evidence is required of each answer.
    is_proved: bool,
}

/// The tool whose answer is read, as far as a reader has to know it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whose<'t> {
    pub(crate) upstream: &'t str,
    pub(crate) bytes_max: u64,
    /// True if a call changes something.
    pub(crate) is_write: bool,
}

/// The value of an answer, and what became of the digits of its numbers.
pub(crate) struct Read {
    pub(crate) value: Value,
    pub(crate) digits: Digits,
}

/// An answer that was read, before anything is chosen of it.
pub(crate) struct Whole<'a> {
    pub(crate) value: Result<Value, Unusable>,
    /// The text of an answer that is handed on whole.
    pub(crate) text: Option<&'a str>,
    /// Number of its bytes.
    pub(crate) bytes: u64,
    /// The answer that headers are taken from; `None` if it is made of several, or has none.
    pub(crate) answer: Option<&'a Answer>,
}

impl From<Value> for Read {
    fn from(value: Value) -> Self {
        Self {
            value,
            digits: Digits::default(),
        }
    }
}

/// Reason for which a successful answer cannot be read.
#[derive(Debug)]
pub(crate) enum Unusable {
    TooLarge,
    Garbled,
    NotJson,
    Missing(String),
    Filtered(String),
    Mismatch(String),
    Unchecked(String),
}

impl Reader {
    pub(crate) fn of(entry: &ToolEntry) -> Result<Self, FilterError> {
        let own = entry.response.clone().unwrap_or_default();
        Ok(Self {
            format: own.format,
            pointer: own.data.filter(|pointer| !pointer.is_empty()),
            headers: own.headers,
            filter: own
                .select
                .as_deref()
                .map(Filter::parse)
                .transpose()?
                .map(Arc::new),
            output: entry.output.as_ref().map(Output::of),
            on_mismatch: own.on_mismatch,
            is_proved: entry.evidence == Some(EvidenceRule::Required),
        })
    }

    /// The reply that an answer makes.
    pub(crate) async fn reply(
        &self,
        tool: &HttpTool,
        answer: &Answer,
        chosen: Option<&Arc<Filter>>,
    ) -> Result<Reply, ToolError> {
        let decoded = charset::decoded(answer.body.bytes(), &answer.headers);
        let read = self.value(tool, answer, &decoded)?;
        let digits = read.as_ref().map(|it| it.digits).unwrap_or_default();
        let whole = Whole {
            value: read.map(|it| it.value),
            // An answer that is handed on whole is checked as the text that it is.
            text: self.hands_on_json(answer).then_some(&*decoded.text),
            bytes: answer.body.len(),
            answer: Some(answer),
        };
        let mut reply = self.finish(tool.whose(), whole, chosen).await?;
        let ttl = answer.headers.get("countersign-ttl-seconds");
        let ttl = ttl.and_then(|value| value.to_str().ok()?.trim().parse().ok());
        reply.ttl_seconds = ttl;
        tell_digits(tool.whose(), digits, &mut reply);
        if decoded.is_damaged && self.reads_text(answer) {
            let upstream = tool.service.name().to_owned();
            let text = Say::DamagedText { upstream }.to_string();
            reply.remarks.push(("TEXT_DAMAGED".to_owned(), text));
        }
        Ok(reply)
    }

    /// The reply that the value of an answer makes: the part that the entry asks for, checked against its schema, and of that the part
    /// that the model asks for.
    pub(crate) async fn finish(
        &self,
        whose: Whose<'_>,
        read: Whole<'_>,
        chosen: Option<&Arc<Filter>>,
    ) -> Result<Reply, ToolError> {
        let Whole {
            value,
            text,
            bytes,
            answer,
        } = read;
        let value = match value {
            Ok(value) => self.project(value, bytes, answer).await,
            Err(unusable) => Err(unusable),
        };
        let chosen = chosen.filter(|_| value.is_ok());
        let reply = match value {
            Ok(data) => Reply::from(data),
            Err(unusable) => unusable.told(whose)?,
        };
        self.checked(whose, reply, text, bytes, chosen).await
    }

    /// The reply to a lost call that a look-up has found, checked like the answer of the call itself. The look-up may be of another shape:
    /// if it does not have the part that the entry asks for, the whole of it is the data.
    pub(crate) async fn found(
        &self,
        whose: Whose<'_>,
        read: Read,
        bytes: u64,
        chosen: Option<&Arc<Filter>>,
    ) -> Result<Reply, ToolError> {
        // The call happened, so a wrong answer is told and refuses nothing.
        let whose = Whose {
            is_write: true,
            ..whose
        };
        let part = self.project(read.value.clone(), bytes, None).await;
        let reply = Reply::from(part.unwrap_or(read.value));
        let mut reply = self.checked(whose, reply, None, bytes, chosen).await?;
        tell_digits(whose, read.digits, &mut reply);
        Ok(reply)
    }

    /// Checks the data of a reply against the declared schema, and takes of it what the model asks for.
    async fn checked(
        &self,
        whose: Whose<'_>,
        mut reply: Reply,
        text: Option<&str>,
        bytes: u64,
        chosen: Option<&Arc<Filter>>,
    ) -> Result<Reply, ToolError> {
        let amiss = match self.check(&reply.data, text) {
            Verdict::Fits => None,
            Verdict::Mismatch(why) => Some(("ANSWER_NOT_AS_DECLARED", Unusable::Mismatch(why))),
            Verdict::Unchecked(why) => Some(("ANSWER_NOT_CHECKED", Unusable::Unchecked(why))),
        };
        if let Some((code, amiss)) = amiss {
            match self.on_mismatch {
                OnMismatch::Refuse if !whose.is_write => return Err(amiss.error(whose)),
                OnMismatch::Warn | OnMismatch::Refuse => {
                    let text = amiss.say(whose).to_string();
                    reply.remarks.push((code.to_owned(), text));
                }
            }
        }
        // The model's filter makes something else on purpose.
        if let Some(chosen) = chosen {
            let data = std::mem::take(&mut reply.data);
            let told = match applied(chosen, data, bytes).await {
                Ok(data) => Reply::from(data),
                Err(error) => Unusable::Filtered(error.to_string()).told(whose)?,
            };
            reply.data = told.data;
            reply.remarks.extend(told.remarks);
        }
        // What has to be proved has to be written the same by everybody, and nobody agrees on larger integers.
        if self.is_proved && write_large_integers_as_text(&mut reply.data) {
            let upstream = whose.upstream.to_owned();
            let text = Say::LargeIntegers { upstream }.to_string();
            reply.remarks.push(("INTEGER_AS_TEXT".to_owned(), text));
        }
        Ok(reply)
    }

    /// True if the entry asks for a part of the answer.
    pub(crate) fn projects(&self) -> bool {
        self.pointer.is_some() || self.filter.is_some()
    }

    /// The format that is declared.
    pub(crate) fn format(&self) -> ResponseFormat {
        self.format
    }

    /// The value of an answer before any projection. An error answer is an error.
    pub(crate) fn value(
        &self,
        tool: &HttpTool,
        answer: &Answer,
        decoded: &Decoded<'_>,
    ) -> Result<Result<Read, Unusable>, ToolError> {
        let upstream = tool.service.name();
        let Answer {
            status,
            headers,
            sent,
            ..
        } = answer;
        let text = &*decoded.text;
        let error = tool.faults.error(upstream, *status, headers, text, sent);
        if let Some(error) = error {
            return Err(error);
        }
        Ok(match &answer.body {
            AnswerBody::Whole(bytes) => self.read(answer, bytes, decoded),
            AnswerBody::TooLarge => Err(Unusable::TooLarge),
            AnswerBody::Garbled => Err(Unusable::Garbled),
        })
    }

    fn read(&self, answer: &Answer, bytes: &[u8], decoded: &Decoded<'_>) -> Result<Read, Unusable> {
        if bytes.trim_ascii().is_empty() && self.format != ResponseFormat::Text {
            return Ok(Read::from(Value::Null));
        }
        if self.reads_json(answer) {
            return if decoded.is_damaged {
                Err(Unusable::NotJson)
            } else {
                json_of(&decoded.text)
            };
        }
        if self.reads_text(answer) {
            return Ok(Read::from(Value::from(&*decoded.text)));
        }
        Ok(Read::from(Value::from(STANDARD.encode(bytes))))
    }

    /// The part that the entry asks for, with the headers that it names.
    async fn project(
        &self,
        mut value: Value,
        bytes: u64,
        answer: Option<&Answer>,
    ) -> Result<Value, Unusable> {
        if let Some(pointer) = &self.pointer {
            let part = value.pointer_mut(pointer).map(Value::take);
            value = part.ok_or_else(|| Unusable::Missing(pointer.clone()))?;
        }
        if let Some(answer) = answer.filter(|_| !self.headers.is_empty()) {
            value = self.with_headers(value, answer);
        }
        if let Some(filter) = &self.filter {
            let filtered = applied(filter, value, bytes).await;
            value = filtered.map_err(|error| Unusable::Filtered(error.to_string()))?;
        }
        Ok(value)
    }

    /// Data with the headers that the entry names as members. Without a body they are the data; data that is no object becomes
    /// the member `body` beside them.
    fn with_headers(&self, value: Value, answer: &Answer) -> Value {
        let mut members = match value {
            Value::Object(members) => members,
            Value::Null => Map::new(),
            other => Map::from_iter([("body".to_owned(), other)]),
        };
        for (member, header) in &self.headers {
            let text = answer.headers.get(header).and_then(|it| it.to_str().ok());
            if let Some(text) = text {
                let text = scrub::text(text, &answer.sent);
                members.insert(member.clone(), text.into());
            }
        }
        Value::Object(members)
    }

    /// True if the data is the JSON of the answer, as it is, unless the model asks for less.
    fn hands_on_json(&self, answer: &Answer) -> bool {
        self.reads_json(answer)
            && self.pointer.is_none()
            && self.headers.is_empty()
            && self.filter.is_none()
            && matches!(&answer.body, AnswerBody::Whole(bytes) if !bytes.trim_ascii().is_empty())
    }

    /// True if the answer is read as JSON.
    fn reads_json(&self, answer: &Answer) -> bool {
        match self.format {
            ResponseFormat::Json => true,
            ResponseFormat::Auto => answer.is_json(),
            ResponseFormat::Text | ResponseFormat::Base64 => false,
        }
    }

    /// True if the answer is read as text.
    fn reads_text(&self, answer: &Answer) -> bool {
        match self.format {
            ResponseFormat::Text => true,
            ResponseFormat::Auto => {
                let kind = answer.kind();
                let is_text = kind.starts_with("text/");
                let is_text = is_text || kind.contains("xml") || kind.contains("yaml");
                is_text && !answer.is_json()
            }
            ResponseFormat::Json | ResponseFormat::Base64 => false,
        }
    }

    /// Checks data, or the text that it was read from, against the declared schema.
    fn check(&self, data: &Value, text: Option<&str>) -> Verdict {
        match (&self.output, text) {
            (None, _) => Verdict::Fits,
            (Some(Err(why)), _) => Verdict::Unchecked(why.clone()),
            (Some(Ok(output)), Some(text)) => output.check_text(text),
            (Some(Ok(output)), None) => output.check(data),
        }
    }
}

/// Adds a remark about numbers that are not handed on as they were written.
pub(crate) fn tell_digits(whose: Whose<'_>, digits: Digits, reply: &mut Reply) {
    let upstream = whose.upstream;
    let large = digits.has_text.then(|| Say::LargeIntegers {
        upstream: upstream.to_owned(),
    });
    let rounded = digits.is_rounded.then(|| Say::Rounded {
        upstream: upstream.to_owned(),
    });
    for (code, say) in [("INTEGER_AS_TEXT", large), ("NUMBER_ROUNDED", rounded)] {
        let is_new = !reply.remarks.iter().any(|(told, _)| told == code);
        if let Some(say) = say.filter(|_| is_new) {
            reply.remarks.push((code.to_owned(), say.to_string()));
        }
    }
}

/// Most bytes of an answer that is filtered on the thread of its connection, where other calls wait.
const FILTERED_HERE_MAX: u64 = 64 * 1024;

/// Applies a filter; aside if the answer is large.
async fn applied(filter: &Arc<Filter>, data: Value, bytes: u64) -> Result<Value, FilterError> {
    if bytes <= FILTERED_HERE_MAX {
        return filter.apply(&data);
    }
    let filter = filter.clone();
    let aside = tokio::task::spawn_blocking(move || filter.apply(&data));
    aside.await.unwrap_or_else(|_| {
        let message = "it ended before it had a result".to_owned();
        Err(FilterError::Failed { message })
    })
}

/// Reads JSON. Integers that no number of a reply holds become texts with their digits, before the text is parsed.
pub(crate) fn json_of(text: &str) -> Result<Read, Unusable> {
    let kept = digits::kept(text);
    let value = serde_json::from_str(&kept.text).map_err(|_| Unusable::NotJson)?;
    Ok(Read {
        value,
        digits: kept.digits,
    })
}

/// Writes integers that no double holds as texts; true if there were any.
fn write_large_integers_as_text(value: &mut Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => false,
        Value::Number(number) => {
            let whole = number.as_u64();
            let whole = whole.or_else(|| number.as_i64().map(i64::unsigned_abs));
            let is_large = whole.is_some_and(|own| own > canonical::INTEGER_MAX);
            if is_large {
                *value = number.to_string().into();
            }
            is_large
        }
        // Every one is visited, also behind the first that is large.
        Value::Array(items) => {
            let large = items.iter_mut().map(write_large_integers_as_text);
            large.filter(|is_large| *is_large).count() > 0
        }
        Value::Object(members) => {
            let large = members.values_mut().map(write_large_integers_as_text);
            large.filter(|is_large| *is_large).count() > 0
        }
    }
}

impl Answer {
    /// The media type, in lower case; empty if there is none.
    fn kind(&self) -> String {
        let kind = self.headers.get("content-type");
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        kind.to_ascii_lowercase()
    }

    fn is_json(&self) -> bool {
        let kind = self.kind();
        kind.contains("json") || kind.is_empty()
    }
}

impl Unusable {
    /// Returns an error for a read. A call that changed something did so, and only its answer is unreadable: it succeeds, with a remark
    /// that reports this.
    pub(crate) fn told(self, whose: Whose<'_>) -> Result<Reply, ToolError> {
        if !whose.is_write {
            return Err(self.error(whose));
        }
        let remark = ("ANSWER_UNREADABLE".to_owned(), self.say(whose).to_string());
        Ok(Reply {
            remarks: vec![remark],
            ..Reply::default()
        })
    }

    pub(crate) fn error(&self, whose: Whose<'_>) -> ToolError {
        let body = ErrorBody::new(ErrorCode::UpstreamError, self.say(whose));
        let mut body = body
            .source(FaultSource::Upstream)
            .detail("upstream", whose.upstream);
        body.details.retryable = false;
        let hint = match self {
            Self::TooLarge => Say::AskForLess,
            Self::Filtered(_) => Say::CorrectFilter,
            Self::Garbled
            | Self::NotJson
            | Self::Missing(_)
            | Self::Mismatch(_)
            | Self::Unchecked(_) => Say::OperatorMends,
        };
        ToolError::from(body.hint(hint))
    }

    fn say(&self, whose: Whose<'_>) -> Say {
        let upstream = whose.upstream.to_owned();
        match self {
            Self::TooLarge => Say::TooLarge {
                upstream,
                most: whose.bytes_max.to_string(),
            },
            Self::Garbled => Say::Garbled { upstream },
            Self::NotJson => Say::NotJson { upstream },
            Self::Missing(pointer) => Say::NoData {
                upstream,
                pointer: pointer.clone(),
            },
            Self::Filtered(why) => Say::FilterFailed { why: why.clone() },
            Self::Mismatch(why) => Say::NotAsDeclared {
                upstream,
                why: why.clone(),
            },
            Self::Unchecked(why) => Say::NotChecked {
                upstream,
                why: why.clone(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    /// A filter over a large answer does not hold up the other calls of the thread.
    #[tokio::test]
    async fn a_large_answer_is_filtered_aside() {
        let filter = Filter::parse("[range(20000)] | map(. * 2) | add").unwrap();
        let filter = Arc::new(filter);
        for (bytes, is_aside) in [(FILTERED_HERE_MAX, false), (FILTERED_HERE_MAX + 1, true)] {
            let mut running = Box::pin(applied(&filter, Value::Null, bytes));
            let mut context = Context::from_waker(Waker::noop());
            let first = running.as_mut().poll(&mut context);
            assert_eq!(first.is_pending(), is_aside);
            let result = match first {
                std::task::Poll::Ready(result) => result,
                std::task::Poll::Pending => running.await,
            };
            assert_eq!(result, Ok(Value::from(399_980_000)));
        }
    }
}
