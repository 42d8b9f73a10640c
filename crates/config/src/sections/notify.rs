//! `[[notify]]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{SecretRef, SmtpAddress, WebUrl};

/// A receiver of notifications.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotifyTarget {
    /// Name of the receiver: 1 to 64 letters, digits, `-`, `_` or `.`. Deliveries are recorded under it: a receiver of another name is sent
    /// everything that is open again.
    pub name: String,
    /// Way to the receiver: `webhook` for a signed HTTP request, `email` for SMTP.
    pub kind: NotifyKind,
    /// Kinds of notifications that are sent. If left out, all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<NotifyEvent>,
    /// Address of a webhook. It begins with `https://`, unless it is on this machine or `allow_plain` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<WebUrl>,
    /// Secret with which a webhook is signed: `whsec_` and 24 to 64 bytes in base64, in a variable (`env:NAME`) or in a file that only the
    /// server's account may read (`file:PATH`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretRef>,
    /// Mail server. `smtps://` is TLS from the start (port 465), `smtp://` is TLS by STARTTLS (port 587), on this
    /// machine without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smtp: Option<SmtpAddress>,
    /// Address of the sender of e-mail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Addresses of the recipients of e-mail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
    /// Name at the mail server. It needs a `password`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Password at the mail server, in a variable (`env:NAME`) or in a file that only the server's account may read (`file:PATH`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<SecretRef>,
    /// Sends without TLS: to an `http://` address on another machine, or to a mail server without STARTTLS.
    #[serde(default)]
    pub allow_plain: bool,
}

/// Way to a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotifyKind {
    /// A signed HTTP request.
    Webhook,
    /// E-mail.
    Email,
}

/// Kind of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotifyEvent {
    /// A question that waits for an approval.
    Question,
    /// A call whose effect may or may not have happened.
    CallInDoubt,
    /// A verification of the log that found a fault.
    VerificationFailed,
    /// Tools of an upstream that are not as they were approved.
    DefinitionsChanged,
    /// A budget of which at most a tenth is left.
    BudgetUsedUp,
}

/// Longest name of a receiver.
const NAME_CHARS_MAX: usize = 64;

/// A broken rule: its key, a message, and what to write instead.
type Broken = (String, &'static str, &'static str);

/// Checks the rules that the types cannot express.
pub(crate) fn rules(targets: &[NotifyTarget]) -> Vec<Broken> {
    let mut broken = Vec::new();
    for (place, target) in targets.iter().enumerate() {
        let mut add = |member: &str, message, expected| {
            broken.push((format!("notify[{place}].{member}"), message, expected));
        };
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let length = target.name.chars().count();
        if !(1..=NAME_CHARS_MAX).contains(&length) || !target.name.chars().all(fits) {
            add(
                "name",
                "it is no name of a receiver",
                "1 to 64 letters, digits, -, _ or .",
            );
        }
        if targets
            .iter()
            .take(place)
            .any(|other| other.name == target.name)
        {
            add(
                "name",
                "another receiver has this name",
                "a name of its own",
            );
        }
        match target.kind {
            NotifyKind::Webhook => webhook(target, &mut add),
            NotifyKind::Email => email(target, &mut add),
        }
    }
    broken
}

fn webhook(target: &NotifyTarget, add: &mut impl FnMut(&str, &'static str, &'static str)) {
    match &target.url {
        None => add(
            "url",
            "a webhook has an address",
            "the address of the receiver",
        ),
        Some(url) if !target.allow_plain && !url.is_safe() => add(
            "url",
            "the address is not encrypted, and on another machine",
            "an https:// address, or allow_plain = true",
        ),
        Some(_) => {}
    }
    if target.secret.is_none() {
        add(
            "secret",
            "a webhook is signed",
            "\"env:NAME\" or \"file:PATH\"",
        );
    }
    let others = [
        ("smtp", target.smtp.is_some()),
        ("from", target.from.is_some()),
        ("to", !target.to.is_empty()),
        ("user", target.user.is_some()),
        ("password", target.password.is_some()),
    ];
    for (member, is_set) in others {
        if is_set {
            add(
                member,
                "a webhook has no such setting",
                "kind = \"email\", or the line left out",
            );
        }
    }
}

fn email(target: &NotifyTarget, add: &mut impl FnMut(&str, &'static str, &'static str)) {
    if target.smtp.is_none() {
        add(
            "smtp",
            "e-mail needs a mail server",
            "such as \"smtp://mail.example.com:587\"",
        );
    }
    if target.from.is_none() {
        add("from", "e-mail has a sender", "an e-mail address");
    }
    if target.to.is_empty() {
        add("to", "e-mail has a recipient", "a list of e-mail addresses");
    }
    if target.user.is_some() != target.password.is_some() {
        add(
            "password",
            "user and password belong together",
            "both, or neither",
        );
    }
    for (member, is_set) in [
        ("url", target.url.is_some()),
        ("secret", target.secret.is_some()),
    ] {
        if is_set {
            add(
                member,
                "e-mail has no such setting",
                "kind = \"webhook\", or the line left out",
            );
        }
    }
}
