//! Welcome text of a server that starts.

use std::io::Write as _;
use std::path::Path;

use countersign::authorize::Authorizer as _;
use countersign_gateway::policy::LivePolicy;
use countersign_gateway::{Gateway, mcp};
use serde_json::json;

use crate::answer::write_json;
use crate::failure::Failure;
use crate::terminal::Terminal;

/// Tool that the welcome text suggests to try.
const TRIED: &str = "catalog.search_offers";

/// True if that tool works for a caller on this machine without a credential, and without a confirmation.
pub(super) async fn can_try(gateway: &Gateway, policy: &LivePolicy) -> bool {
    let (caller, entry) = (
        gateway.identity().without_credential().await,
        gateway.executor().catalog().get(TRIED),
    );
    let (Some(caller), Some(entry)) = (caller, entry) else {
        return false;
    };
    let decided = policy.decide(&caller.principal, entry.spec()).await;
    decided.is_ok_and(|decision| decision.is_allowed())
        && !policy.current().demands_confirmation(TRIED)
}

/// Says where the server is, which policy is in force, and what can be tried.
pub(super) fn say_where(
    terminal: &mut Terminal,
    (url, pid): (&str, u32),
    (file, policy): (Option<&Path>, &LivePolicy),
    can_try: bool,
) -> Result<(), Failure> {
    let revision = policy.current().revision().to_string();
    if terminal.is_for_programs() {
        write_json(
            terminal,
            &json!({
                "url": url,
                "mcp_url": format!("{url}{}", mcp::PATH),
                "console_url": format!("{url}/"),
                "pid": pid,
                "policy": revision,
            }),
        )?;
        return Ok(terminal.data().flush()?);
    }
    terminal.say(format_args!("listening on {url}"))?;
    match file {
        None => terminal
            .say("policy: every caller may call every tool; restrict them with --policy FILE"),
        Some(path) => terminal.say(format_args!("policy: {revision} from {}", path.display())),
    }?;
    terminal.say(format_args!("MCP: {url}{}", mcp::PATH))?;
    terminal.say(format_args!("console: {url}/"))?;
    if can_try {
        terminal.say(format_args!(
            "try: curl {url}/v1/tools/{TRIED} -d '{{\"arguments\": {{\"query\": \"wireless earbuds\"}}}}'"
        ))?;
        terminal.say(
            "next: docs/commerce.md goes from this search to a draft order; `countersign demo` plays it",
        )?;
    }
    Ok(())
}
