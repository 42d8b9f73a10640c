//! From an answer to the `data` of a reply. The answer stays text until a value is needed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::contract::{ErrorBody, ErrorCode, FaultSource};
use countersign::{Reply, ToolError};
use serde_json::Value;

use super::send::{Answer, AnswerBody};
use super::tool::HttpTool;
use crate::manifest::{OnMismatch, ResponseFormat, ToolEntry};
use crate::output::Output;
use crate::select::{Filter, FilterError};
use crate::words::Say;

/// How the answers of a tool are read; prepared once.
#[derive(Debug)]
pub(crate) struct Reader {
    format: ResponseFormat,
    pointer: Option<String>,
    filter: Option<Filter>,
    output: Option<Output>,
    on_mismatch: OnMismatch,
}

/// Why an answer that says that it worked cannot be read.
#[derive(Debug)]
pub(crate) enum Unusable {
    TooLarge,
    NotJson,
    Missing(String),
    Filtered(String),
    Mismatch(String),
}

impl Reader {
    pub(crate) fn of(entry: &ToolEntry) -> Result<Self, FilterError> {
        let own = entry.response.clone().unwrap_or_default();
        Ok(Self {
            format: own.format,
            pointer: own.data.filter(|pointer| !pointer.is_empty()),
            filter: own.select.as_deref().map(Filter::parse).transpose()?,
            output: entry.output.as_ref().and_then(Output::of),
            on_mismatch: own.on_mismatch,
        })
    }

    /// The reply that an answer makes.
    pub(crate) fn reply(
        &self,
        tool: &HttpTool,
        answer: &Answer,
        chosen: Option<&Filter>,
    ) -> Result<Reply, ToolError> {
        let value = match self.value(tool, answer)? {
            Ok(value) => self.project(value, chosen),
            Err(unusable) => Err(unusable),
        };
        let mut reply = match value {
            Ok(data) => Reply::from(data),
            Err(unusable) => unusable.told(tool)?,
        };
        if let Err(why) = self.check(&reply.data, chosen) {
            let mismatch = Unusable::Mismatch(why);
            match self.on_mismatch {
                OnMismatch::Refuse if !tool.is_write() => return Err(mismatch.error(tool)),
                OnMismatch::Warn | OnMismatch::Refuse => {
                    let text = mismatch.say(tool).to_string();
                    reply
                        .remarks
                        .push(("ANSWER_NOT_AS_DECLARED".to_owned(), text));
                }
            }
        }
        let ttl = answer.headers.get("countersign-ttl-seconds");
        let ttl = ttl.and_then(|value| value.to_str().ok()?.trim().parse().ok());
        reply.ttl_seconds = ttl;
        Ok(reply)
    }

    /// The value of an answer before any projection. An error answer is an error.
    pub(crate) fn value(
        &self,
        tool: &HttpTool,
        answer: &Answer,
    ) -> Result<Result<Value, Unusable>, ToolError> {
        let upstream = tool.service.name();
        let bytes = match &answer.body {
            AnswerBody::Whole(bytes) => bytes.as_slice(),
            AnswerBody::TooLarge => &[],
        };
        let text = String::from_utf8_lossy(bytes);
        if let Some(error) = tool
            .faults
            .error(upstream, answer.status, &answer.headers, &text)
        {
            return Err(error);
        }
        if matches!(answer.body, AnswerBody::TooLarge) {
            return Ok(Err(Unusable::TooLarge));
        }
        Ok(self.read(answer, bytes))
    }

    fn read(&self, answer: &Answer, bytes: &[u8]) -> Result<Value, Unusable> {
        if bytes.trim_ascii().is_empty() && self.format != ResponseFormat::Text {
            return Ok(Value::Null);
        }
        let kind = answer.headers.get("content-type");
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.to_ascii_lowercase();
        let is_json = kind.contains("json") || kind.is_empty();
        let is_text = kind.starts_with("text/") || kind.contains("xml") || kind.contains("yaml");
        let json = || serde_json::from_slice(bytes).map_err(|_| Unusable::NotJson);
        let text = || Value::from(String::from_utf8_lossy(bytes));
        match self.format {
            ResponseFormat::Json => json(),
            ResponseFormat::Text => Ok(text()),
            ResponseFormat::Auto if is_json => json(),
            ResponseFormat::Auto if is_text => Ok(text()),
            ResponseFormat::Base64 | ResponseFormat::Auto => Ok(STANDARD.encode(bytes).into()),
        }
    }

    /// The part that was asked for.
    pub(crate) fn project(
        &self,
        mut value: Value,
        chosen: Option<&Filter>,
    ) -> Result<Value, Unusable> {
        if let Some(pointer) = &self.pointer {
            let part = value.pointer_mut(pointer).map(Value::take);
            value = part.ok_or_else(|| Unusable::Missing(pointer.clone()))?;
        }
        for filter in self.filter.iter().chain(chosen) {
            let filtered = filter.apply(&value);
            value = filtered.map_err(|error| Unusable::Filtered(error.to_string()))?;
        }
        Ok(value)
    }

    /// Checks data against the declared schema; a filter of the model's makes something else on purpose.
    fn check(&self, data: &Value, chosen: Option<&Filter>) -> Result<(), String> {
        match &self.output {
            Some(output) if chosen.is_none() => output.check(data),
            Some(_) | None => Ok(()),
        }
    }
}

impl Unusable {
    /// A read failed. A call that changed something did so, and only its answer is missing: that is what is told.
    pub(crate) fn told(self, tool: &HttpTool) -> Result<Reply, ToolError> {
        if !tool.is_write() {
            return Err(self.error(tool));
        }
        let remark = ("ANSWER_UNREADABLE".to_owned(), self.say(tool).to_string());
        Ok(Reply {
            remarks: vec![remark],
            ..Reply::default()
        })
    }

    pub(crate) fn error(&self, tool: &HttpTool) -> ToolError {
        let body = ErrorBody::new(ErrorCode::UpstreamError, self.say(tool));
        let mut body = body
            .source(FaultSource::Upstream)
            .detail("upstream", tool.service.name());
        body.details.retryable = false;
        let hint = match self {
            Self::TooLarge => Say::AskForLess,
            Self::Filtered(_) => Say::CorrectFilter,
            Self::NotJson | Self::Missing(_) | Self::Mismatch(_) => Say::OperatorMends,
        };
        ToolError::from(body.hint(hint))
    }

    fn say(&self, tool: &HttpTool) -> Say {
        let upstream = tool.service.name().to_owned();
        match self {
            Self::TooLarge => Say::TooLarge {
                upstream,
                most: tool.service.response_bytes_max().to_string(),
            },
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
        }
    }
}
