//! `GET /v1/status`: the state of the server, and its problems.

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use countersign::contract::ErrorCode;
use http::HeaderMap;

use super::answer::{self, Refusal};
use super::query::Options;
use super::{headers, sight};
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::status::{About, View};
use crate::words::Say;

/// Shows the status. An ordinary caller sees their own; an operator sees everything, and the limits and budgets of a user
/// or an agent if one is named.
pub(super) async fn show(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let options = Options::read(query.as_deref(), ["user", "agent"])?;
    let user_id = match options.get("user") {
        None => caller.principal.user_id.clone(),
        Some(user_id) => sight::whose(&caller.principal, Some(user_id))?.unwrap_or_default(),
    };
    let view = if sight::is_operator(&caller) {
        View::Operator
    } else {
        View::Own
    };
    let agent = options.get("agent");
    if agent.is_some() && view == View::Own {
        let message = Say::AgentStatus;
        return Err(Refusal::new(ErrorCode::Forbidden, message).hint(Say::AgentsOwn));
    }
    let about = About {
        user_id: &user_id,
        agent,
    };
    let language = headers::reader(&headers);
    let status = gateway.status(&caller, about, view, language).await;
    Ok(answer::json(&status))
}
