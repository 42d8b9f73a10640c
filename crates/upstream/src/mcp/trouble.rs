//! Failures of an exchange with an MCP server, and what is known about its effect.

use std::time::Duration;

use rmcp::model::ErrorCode;
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::wire::{Failed, WireError};
use crate::manifest::Secret;
use crate::scrub;

/// Failure of an exchange without a result.
#[derive(Debug)]
pub(super) enum Trouble {
    /// No connection, or no child process, usually because the server is down or its command fails: nothing was sent.
    NoConnection(String),
    /// The name resolves to a private address that `allow_private` does not list: nothing was sent.
    Forbidden(String),
    /// The circuit breaker is open for this long, because earlier exchanges have failed: nothing was sent.
    Open(Duration),
    /// Too many calls, or too many connections: nothing was sent.
    Full,
    /// The server refuses the credential, with this status.
    Credential(u16),
    /// The server answers with this status, and perhaps with the time to wait before a retry.
    Status(u16, Option<Duration>),
    /// The server does not know the session, nor the one that was begun in its place.
    NoSession,
    /// The server answers with an error of the protocol.
    Protocol { code: i32, message: String },
    /// The server asks the user a question, which cannot be passed on.
    Asks,
    /// The connection was lost before the answer was complete.
    Lost(String),
    /// The server did not answer within the deadline.
    Late,
    /// The answer is longer than the bound.
    TooLarge(usize),
    /// The answer does not follow the protocol, usually because the address is not that of an MCP server.
    NotAnAnswer(String),
}

impl Trouble {
    /// True if the server has not got the request, or has refused to look at it.
    pub(super) fn was_not_carried_out(&self) -> bool {
        match self {
            Self::NoConnection(_)
            | Self::Forbidden(_)
            | Self::Open(_)
            | Self::Full
            | Self::Credential(_)
            | Self::Asks => true,
            // The server has listed its tools at the same address, so a 404 does not say that nobody has looked at the request.
            Self::Status(status, _) => (400..500).contains(status) && !matches!(*status, 404 | 408),
            Self::Protocol { code, .. } => is_refusal(*code),
            Self::NoSession
            | Self::Lost(_)
            | Self::Late
            | Self::TooLarge(_)
            | Self::NotAnAnswer(_) => false,
        }
    }

    /// True if a server answers so that does not speak the era of the request: it has not looked at it.
    pub(super) fn doubts_the_era(&self) -> bool {
        match self {
            Self::Status(status, _) => matches!(status, 400 | 422),
            Self::Protocol { code, .. } => [
                ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
                ErrorCode::INVALID_REQUEST,
            ]
            .iter()
            .any(|doubt| doubt.0 == *code),
            Self::NoConnection(_)
            | Self::Forbidden(_)
            | Self::Open(_)
            | Self::Full
            | Self::Credential(_)
            | Self::NoSession
            | Self::Asks
            | Self::Lost(_)
            | Self::Late
            | Self::TooLarge(_)
            | Self::NotAnAnswer(_) => false,
        }
    }

    /// The same without secrets in its words.
    pub(super) fn without(self, secrets: &[Secret]) -> Self {
        match self {
            Self::NoConnection(why) => Self::NoConnection(scrub::text(&why, secrets)),
            Self::Forbidden(why) => Self::Forbidden(scrub::text(&why, secrets)),
            Self::Lost(why) => Self::Lost(scrub::text(&why, secrets)),
            Self::NotAnAnswer(why) => Self::NotAnAnswer(scrub::text(&why, secrets)),
            Self::Protocol { code, message } => Self::Protocol {
                code,
                message: scrub::text(&message, secrets),
            },
            other @ (Self::Open(_)
            | Self::Full
            | Self::Credential(_)
            | Self::Status(..)
            | Self::NoSession
            | Self::Asks
            | Self::Late
            | Self::TooLarge(_)) => other,
        }
    }

    /// True if it is the connection that failed.
    pub(super) const fn is_transport(&self) -> bool {
        match self {
            Self::NoConnection(_) | Self::Lost(_) | Self::Late => true,
            Self::Forbidden(_)
            | Self::Open(_)
            | Self::Full
            | Self::Credential(_)
            | Self::Status(..)
            | Self::NoSession
            | Self::Protocol { .. }
            | Self::Asks
            | Self::TooLarge(_)
            | Self::NotAnAnswer(_) => false,
        }
    }
}

/// Errors of the protocol that are answered before a tool runs.
fn is_refusal(code: i32) -> bool {
    [
        ErrorCode::PARSE_ERROR,
        ErrorCode::INVALID_REQUEST,
        ErrorCode::METHOD_NOT_FOUND,
        ErrorCode::INVALID_PARAMS,
        ErrorCode::HEADER_MISMATCH,
        ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY,
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
    ]
    .iter()
    .any(|refusal| refusal.0 == code)
}

impl From<ServiceError> for Trouble {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::McpError(error) => Self::Protocol {
                code: error.code.0,
                message: error.message.into_owned(),
            },
            ServiceError::TransportSend(error) => of_transport(&error),
            ServiceError::Timeout { .. } => Self::Late,
            ServiceError::UnexpectedResponse => {
                Self::NotAnAnswer("it is of another kind than what was asked for".to_owned())
            }
            // New kinds of errors leave it open what became of the request.
            other => Self::Lost(other.to_string()),
        }
    }
}

/// A connection could not be made: nothing was asked of a tool yet.
impl From<ClientInitializeError> for Trouble {
    fn from(error: ClientInitializeError) -> Self {
        match error {
            ClientInitializeError::TransportError { error, .. } => match of_transport(&error) {
                Self::Lost(why) | Self::NotAnAnswer(why) => Self::NoConnection(why),
                Self::NoSession => Self::NoConnection("it answers with status 404".to_owned()),
                Self::Status(status @ (404 | 408 | 500..), _) => {
                    Self::NoConnection(format!("it answers with status {status}"))
                }
                other => other,
            },
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => (*fallback).into(),
            ClientInitializeError::JsonRpcError(error) => {
                Self::NoConnection(format!("{}: {}", error.code.0, error.message))
            }
            other => Self::NoConnection(other.to_string()),
        }
    }
}

fn of_transport(error: &DynamicTransportError) -> Trouble {
    match error.error.downcast_ref::<Failed>() {
        Some(error) => Trouble::from(error),
        None => Trouble::Lost(error.error.to_string()),
    }
}

impl From<&Failed> for Trouble {
    fn from(error: &Failed) -> Self {
        match error {
            StreamableHttpError::Client(own) => match own {
                WireError::Unreachable(why) => Self::NoConnection(why.to_string()),
                WireError::Forbidden(why) => Self::Forbidden(why.to_string()),
                WireError::Unwritable => Self::NoConnection(own.to_string()),
                WireError::Refused(status) => Self::Credential(*status),
                WireError::TooLarge(most) => Self::TooLarge(*most),
                WireError::Lost(why) if why.is_timeout() => Self::Late,
                WireError::Lost(why) => Self::Lost(why.to_string()),
            },
            StreamableHttpError::HttpStatus(own) => {
                let wait = own.retry_after.as_deref();
                let wait = wait.and_then(|text| text.trim().parse().ok());
                Self::Status(own.status, wait.map(Duration::from_secs))
            }
            // `rmcp` has begun another session and has sent the request once more.
            StreamableHttpError::SessionExpired => Self::NoSession,
            StreamableHttpError::Deserialize(why) => Self::NotAnAnswer(why.to_string()),
            other => Self::Lost(other.to_string()),
        }
    }
}
