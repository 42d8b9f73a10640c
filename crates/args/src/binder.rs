//! Placeholder of the binder with its final signatures.

use countersign_contract::tool::BindPolicy;
use countersign_contract::{BindStatus, Input, Issue, IssueCode, ToolSpec};
use serde_json::Value;

use crate::Arguments;

/// A tool's declaration, prepared for binding; made once, used for every call.
#[derive(Debug, Clone)]
pub struct Binder {
    limits: Limits,
}

/// How much is read before it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest raw text.
    pub raw_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            raw_bytes_max: 256 * 1024,
        }
    }
}

/// How texts are read that mean different things in different places.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// BCP 47 locale of the request.
    pub locale: Option<String>,
    /// IANA time zone of the request.
    pub timezone: Option<String>,
}

/// The schema cannot be bound against.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the schema cannot be used at {path}: {message}")]
pub struct SchemaError {
    /// JSON pointer into the schema.
    pub path: String,
    /// What is wrong there.
    pub message: String,
}

/// What became of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// Whether it may run.
    pub status: BindStatus,
    /// The arguments; none when refused.
    pub arguments: Option<Arguments>,
    /// Every change and every refusal.
    pub issues: Vec<Issue>,
}

impl Binder {
    /// Prepares a tool's declaration.
    pub fn new(spec: &ToolSpec) -> Result<Self, SchemaError> {
        match &spec.input {
            Input::Undeclared => Ok(Self::undeclared()),
            input => Self::from_schema(&input.json_schema(), spec.behaviour.binding),
        }
    }

    /// Prepares a JSON Schema.
    pub fn from_schema(_schema: &Value, _policy: BindPolicy) -> Result<Self, SchemaError> {
        Ok(Self {
            limits: Limits::default(),
        })
    }

    /// For a tool without a declaration (B8).
    pub fn undeclared() -> Self {
        Self {
            limits: Limits::default(),
        }
    }

    /// With other limits.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Binds a text.
    pub fn bind(&self, raw: &str) -> Bound {
        self.bind_with(raw, &Reading::default())
    }

    /// Binds a text that was written for a locale and a time zone.
    pub fn bind_with(&self, raw: &str, _reading: &Reading) -> Bound {
        match serde_json::from_str::<Value>(raw) {
            Ok(value) => Bound {
                status: BindStatus::Exact,
                arguments: Some(Arguments::from_checked(value.to_string())),
                issues: Vec::new(),
            },
            Err(error) => Bound {
                status: BindStatus::Refused,
                arguments: None,
                issues: vec![Issue::new(IssueCode::NotFound, "", error.to_string())],
            },
        }
    }
}
