//! Checks of everything that a configuration refers to: the policy, rules, secrets and files.

use std::sync::Arc;

use countersign::catalog::Entry;
use countersign::contract::ToolSpec;
use countersign_config::sections::PolicySource;
use countersign_config::value::{SecretRef, StoreAddress};
use countersign_config::{Loaded, Mistake};
use countersign_gateway::policy::{Policy, Suspect};
use countersign_gateway::telemetry;
use serde_json::Value;

use super::Findings;
use crate::backend::StoreName;
use crate::config::secret;
use crate::failure::Failure;
use crate::rules::RuleOptions;
use crate::{keys, notify, policy, sign_in, witnesses};

/// Looks at all of it.
pub(super) fn look(loaded: &Loaded, tools: &[Arc<Entry>], findings: &mut Findings) {
    secrets(loaded, findings);
    rules(loaded, findings);
    let config = loaded.config();
    if let Some(path) = &config.store.postgres.ca_file
        && let Err(error) = std::fs::metadata(path)
    {
        let message = format!("{} cannot be read: {error}", path.display());
        findings.error(loaded.mistake("store.postgres.ca_file", message));
    }
    if let Err(error) = telemetry::check_filter(&config.telemetry.log) {
        findings.error(loaded.mistake("telemetry.log", error.to_string()));
    }
    if let Err(mistakes) = notify::targets(loaded) {
        findings.errors(mistakes);
    }
    if let Err(mistakes) = witnesses::configured(loaded) {
        findings.errors(mistakes);
    }
    if !config.notify.is_empty() && config.server.public_url.is_none() {
        let message = "links in notifications lead to the address that the server listens on, because there is no public_url";
        findings.warn(loaded.mistake("server.public_url", message));
    }
    match policy::read(loaded) {
        Ok(policy) => {
            let specs: Vec<&ToolSpec> = tools.iter().map(|entry| entry.spec()).collect();
            if let Err(error) = policy.fits(&specs) {
                findings.error(policy::mistake(loaded, &error));
            }
            reviewed(loaded, &policy, tools, findings);
            exposure(loaded, &policy, findings);
            if let Some((key, message)) = sign_in::mistake(&config.sign_in, &policy) {
                findings.error(loaded.mistake(key, message));
            }
        }
        Err(error) => findings.error(policy::mistake(loaded, &error)),
    }
}

fn secrets(loaded: &Loaded, findings: &mut Findings) {
    let config = loaded.config();
    let named = [
        ("keys.master", &config.keys.master),
        ("keys.master_old", &config.keys.master_old),
    ];
    for (key, secret) in named {
        let read = secret.as_ref().map(|secret| keys::named(key, secret));
        if let Some(Err(failure)) = read {
            findings.error(failed(loaded, key, &failure));
        }
    }
    if let Some(named) = &config.sign_in.client_secret
        && let Err(failure) = secret::read("sign_in.client_secret", named)
    {
        findings.error(failed(loaded, "sign_in.client_secret", &failure));
    }
    if let Some(StoreAddress::Secret(place)) = &config.store.url
        && let Err(failure) = address(place)
    {
        findings.error(failed(loaded, "store.url", &failure));
    }
}

fn address(place: &SecretRef) -> Result<StoreName, Failure> {
    let address = secret::read("store.url", place)?;
    let wrong =
        |hint: String| Failure::new(format!("{place} is not the address of a store; {hint}"));
    address.parse().map_err(wrong)
}

fn rules(loaded: &Loaded, findings: &mut Findings) {
    let rules = &loaded.config().rules;
    for (key, folder) in [
        ("rules.folder", &rules.folder),
        ("rules.knowledge", &rules.knowledge),
    ] {
        let Some(folder) = folder else { continue };
        let options = if key == "rules.folder" {
            RuleOptions::of(Some(folder.clone()))
        } else {
            RuleOptions::of_knowledge(folder.clone())
        };
        if let Err(failure) = options.known(None) {
            findings.error(failed(loaded, key, &failure));
        }
    }
}

fn failed(loaded: &Loaded, key: &str, failure: &Failure) -> Mistake {
    let message = format!("{:#}", failure.error);
    let message = message
        .strip_prefix(&format!("{key}: "))
        .unwrap_or(&message);
    loaded.mistake(key, message)
}

/// Adds a warning for everything in a policy that looks like a mistake, given these tools.
fn reviewed(loaded: &Loaded, policy: &Policy, tools: &[Arc<Entry>], findings: &mut Findings) {
    if loaded.config().policy.is_none() || tools.is_empty() {
        return;
    }
    let specs: Vec<&ToolSpec> = tools.iter().map(|entry| entry.spec()).collect();
    for warning in policy.review(&specs).warnings {
        let key = match &warning.suspect {
            Suspect::RuleWithoutTool { rule } => rule_key(loaded, rule),
            Suspect::EveryToolDenied
            | Suspect::ToolsForNobody { .. }
            | Suspect::ToolsAlwaysDenied { .. }
            | Suspect::OnlyObserved
            | Suspect::EveryAgentDenied
            | Suspect::AgentForNothing { .. }
            | Suspect::ScopeForNothing { .. }
            | Suspect::PatternWithoutTool { .. }
            | Suspect::NeverHolds { .. }
            | Suspect::OtherCurrencies { .. } => "policy".to_owned(),
        };
        findings.warn(loaded.mistake(&key, warning.message));
    }
}

/// The key of a rule, where the policy is in the file itself.
fn rule_key(loaded: &Loaded, rule: &str) -> String {
    let Some(PolicySource::Inline(policy)) = &loaded.config().policy else {
        return "policy".to_owned();
    };
    let rules = policy.get("tools").and_then(Value::as_array);
    let is_it = |entry: &Value| entry.get("match").and_then(Value::as_str) == Some(rule);
    let place = rules.and_then(|rules| rules.iter().position(is_it));
    place.map_or_else(
        || "policy".to_owned(),
        |place| format!("policy.tools[{place}].match"),
    )
}

/// An address that others reach needs credentials.
fn exposure(loaded: &Loaded, policy: &Policy, findings: &mut Findings) {
    let server = &loaded.config().server;
    let is_local = server.listen.ip().to_canonical().is_loopback();
    if (is_local && server.public_url.is_none()) || !policy.file().issuers.is_empty() {
        return;
    }
    let key = if is_local {
        "server.public_url"
    } else {
        "server.listen"
    };
    let message = "this address is reachable from other machines, so callers need credentials: create API keys with `countersign keys create`, or name an issuer in the policy";
    findings.warn(loaded.mistake(key, message));
}
