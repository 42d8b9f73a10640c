//! `GET /v1/attention`: everything that needs a person now.

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use countersign::archive;
use countersign::contract::Language;
use http::HeaderMap;

use super::answer::{self, Refusal};
use super::query::Options;
use super::{headers, sight};
use crate::attention::AttentionError;
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::status::View;

/// Lists the items that the caller may settle; all items for an operator.
pub(super) async fn show(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    Options::read(query.as_deref(), [])?;
    let view = if sight::is_operator(&caller) {
        View::Operator
    } else {
        View::Own
    };
    let language = Language::of(headers::language(&headers).as_deref());
    let attention = gateway.attention(&caller, view, language).await?;
    Ok(answer::json(&attention))
}

impl From<AttentionError> for Refusal {
    fn from(error: AttentionError) -> Self {
        match error {
            AttentionError::Questions(error) => error.into(),
            AttentionError::Claims(error) => error.into(),
            AttentionError::Outbox(error) | AttentionError::Budgets(error) => {
                archive::Error::from(error).into()
            }
        }
    }
}
