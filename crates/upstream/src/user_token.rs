//! Tokens of users for upstreams: each is kept sealed under its user's key, and is erased with the user.

use countersign::contract::parameter::Sensitivity;
use countersign::contract::tool::{Behaviour, Effect, EvidenceRule};
use countersign::contract::{
    ActorType, ErrorCode, Input, Parameter, ToolName, ToolSpec, ValueKind,
};
use countersign::state::Collection;
use countersign::{Arguments, BoxFuture, CallContext, DryRun, DynTool, Reply, ToolError};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::manifest::Secret;
use crate::words::Say;

/// Tokens of a user, by the name of the upstream.
const TOKENS: Collection = Collection::of_user("upstream_token");

/// A token as it is kept: sealed, like everything of a user.
#[derive(Serialize, Deserialize)]
struct Kept {
    token: String,
}

/// The token of the user of a call.
pub(crate) async fn of(ctx: &CallContext, upstream: &str) -> Result<Secret, ToolError> {
    // The call does not rest on it: a token that is replaced meanwhile changes nothing about what was done.
    let kept: Option<Kept> = ctx.state().look_at(&TOKENS, upstream).await?;
    let Some(kept) = kept else {
        let name = upstream.to_owned();
        let error = ToolError::new(ErrorCode::Unauthorized, Say::NoUserToken { upstream: name });
        return Err(error.hint(Say::StoreToken).without_effect());
    };
    Ok(Secret::new(kept.token))
}

/// The tool `upstream.store_token`: keeps a token of its user for an upstream, or removes it. Only the user does that, never an agent.
pub struct StoreToken {
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct Given {
    upstream: String,
    token: Option<String>,
}

impl StoreToken {
    /// A tool that takes tokens for these upstreams.
    pub fn new(upstreams: impl IntoIterator<Item = String>) -> Option<Self> {
        let upstreams: Vec<String> = upstreams.into_iter().collect();
        if upstreams.is_empty() {
            return None;
        }
        let name = ToolName::new("upstream.store_token").ok()?;
        let parameters = [
            Parameter::one_of("upstream", upstreams, "The service that the token is for."),
            Parameter::new(
                "token",
                ValueKind::String,
                "The user's token. Left out, the token that is kept is removed.",
            )
            .optional()
            .strict()
            .sensitivity(Sensitivity::Secret),
        ];
        let spec = ToolSpec::new(name, "Keeps the user's own token for a service.")
            .input(Input::parameters(parameters))
            .version(env!("CARGO_PKG_VERSION"))
            .behaviour(Behaviour {
                effect: Effect::Write,
                evidence: EvidenceRule::Required,
                ..Behaviour::default()
            });
        Some(Self { spec })
    }
}

impl DynTool for StoreToken {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn dry_run(&self) -> DryRun {
        DryRun::Simulate
    }

    fn call<'a>(
        &'a self,
        ctx: &'a CallContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Reply, ToolError>> {
        Box::pin(async move {
            // Whoever could talk an agent into another token would see everything that is done with it.
            if ctx.request().actor.kind == ActorType::Agent {
                let error = ToolError::new(ErrorCode::Forbidden, Say::NotByAgent);
                return Err(error.hint(Say::StoreToken));
            }
            let given: Given = arguments
                .parse()
                .map_err(|_| ToolError::new(ErrorCode::InvalidArgument, Say::NotAToken))?;
            match given.token {
                Some(token) if token.is_empty() || token.chars().any(char::is_control) => {
                    Err(ToolError::invalid("/token", Say::NotAToken))
                }
                Some(token) => {
                    ctx.state()
                        .put(&TOKENS, &given.upstream, &Kept { token })
                        .await?;
                    Ok(Reply::from(
                        json!({"upstream": given.upstream, "kept": true}),
                    ))
                }
                None => {
                    ctx.state().delete(&TOKENS, &given.upstream).await?;
                    Ok(Reply::from(
                        json!({"upstream": given.upstream, "kept": false}),
                    ))
                }
            }
        })
    }
}

/// The tool `upstream.list_tokens`: the upstreams that take a token of their user, and whether one is kept. No token is shown.
pub struct ListTokens {
    spec: ToolSpec,
    upstreams: Vec<String>,
}

impl ListTokens {
    /// A tool that lists the tokens for these upstreams.
    pub fn new(upstreams: Vec<String>) -> Option<Self> {
        if upstreams.is_empty() {
            return None;
        }
        let name = ToolName::new("upstream.list_tokens").ok()?;
        let text = "Lists the services that take a token of the user's own, and for which of them one is kept.";
        let spec = ToolSpec::new(name, text)
            .input(Input::parameters([]))
            .version(env!("CARGO_PKG_VERSION"));
        Some(Self { spec, upstreams })
    }
}

impl DynTool for ListTokens {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        ctx: &'a CallContext,
        _: Arguments,
    ) -> BoxFuture<'a, Result<Reply, ToolError>> {
        Box::pin(async move {
            let mut listed = Vec::new();
            for upstream in &self.upstreams {
                let kept: Option<Kept> = ctx.state().look_at(&TOKENS, upstream).await?;
                listed.push(json!({"upstream": upstream, "kept": kept.is_some()}));
            }
            Ok(Reply::from(json!({ "upstreams": listed })))
        })
    }
}
