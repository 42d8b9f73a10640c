//! Receivers of notifications, from the configuration.

use std::sync::Arc;

use countersign::ledger::NoticeKind;
use countersign_config::sections::{NotifyEvent, NotifyKind, NotifyTarget};
use countersign_config::value::{SecretRef, SmtpAddress, WebUrl};
use countersign_config::{Loaded, Mistake, Mistakes};
use countersign_gateway::notify::{
    Channel, Email, EmailError, EmailOptions, Encryption, Target, Webhook, WebhookSecret,
};
use zeroize::Zeroizing;

use crate::config::secret;

/// Reads the secrets and prepares every receiver; or everything that is wrong with them.
pub(crate) fn targets(loaded: &Loaded) -> Result<Vec<Target>, Mistakes> {
    let (mut targets, mut mistakes) = (Vec::new(), Vec::new());
    for (place, entry) in loaded.config().notify.iter().enumerate() {
        let entry = Entry {
            loaded,
            place,
            target: entry,
        };
        match entry.prepared() {
            Ok(target) => targets.extend(target),
            Err(mistake) => mistakes.push(*mistake),
        }
    }
    if mistakes.is_empty() {
        Ok(targets)
    } else {
        Err(Mistakes(mistakes))
    }
}

/// One `[[notify]]` entry.
struct Entry<'l> {
    loaded: &'l Loaded,
    place: usize,
    target: &'l NotifyTarget,
}

impl Entry<'_> {
    /// Returns the receiver; `None` if a setting is missing, which the check of the file has reported.
    fn prepared(&self) -> Result<Option<Target>, Box<Mistake>> {
        let NotifyTarget {
            name,
            kind,
            events,
            url,
            secret,
            smtp,
            from,
            to,
            user,
            password,
            allow_plain,
        } = self.target;
        let channel: Arc<dyn Channel> = match kind {
            NotifyKind::Webhook => {
                let (Some(url), Some(secret)) = (url, secret) else {
                    return Ok(None);
                };
                Arc::new(self.webhook(url, secret)?)
            }
            NotifyKind::Email => {
                let (Some(smtp), Some(from)) = (smtp, from) else {
                    return Ok(None);
                };
                let credentials = match (user, password) {
                    (Some(user), Some(named)) => {
                        let password = self.secret("password", named)?;
                        Some((user.clone(), password.to_string()))
                    }
                    (Some(_), None) | (None, Some(_) | None) => None,
                };
                let options = EmailOptions {
                    host: smtp.host.clone(),
                    port: smtp.port,
                    encryption: encryption(smtp, *allow_plain),
                    from: from.clone(),
                    to: to.clone(),
                    credentials,
                };
                Arc::new(self.email(&options)?)
            }
        };
        Ok(Some(Target {
            name: name.clone(),
            kinds: kinds(events),
            channel,
        }))
    }

    fn webhook(&self, url: &WebUrl, secret: &SecretRef) -> Result<Webhook, Box<Mistake>> {
        let text = self.secret("secret", secret)?;
        let secret = WebhookSecret::parse(&text)
            .map_err(|error| self.mistake("secret", error.to_string()))?;
        let url = url.to_string().parse();
        let url = url.map_err(|_| self.mistake("url", "it is not an address"))?;
        Webhook::new(url, secret)
            .map_err(|error| self.mistake("url", format!("it cannot be used: {error}")))
    }

    fn email(&self, options: &EmailOptions) -> Result<Email, Box<Mistake>> {
        Email::new(options).map_err(|error| {
            let member = match &error {
                EmailError::From => "from",
                EmailError::To(_) => "to",
                EmailError::Tls(_) => "smtp",
            };
            self.mistake(member, error.to_string())
        })
    }

    /// Reads a secret. A relative path counts from the folder of the configuration.
    fn secret(&self, member: &str, named: &SecretRef) -> Result<Zeroizing<String>, Box<Mistake>> {
        let key = self.key(member);
        let named = match named {
            SecretRef::Env(_) => named.clone(),
            SecretRef::File(path) => SecretRef::File(self.loaded.folder().join(path)),
        };
        secret::read(&key, &named).map_err(|failure| {
            let message = format!("{:#}", failure.error);
            let start = format!("{key}: ");
            self.mistake(member, message.strip_prefix(&start).unwrap_or(&message))
        })
    }

    fn mistake(&self, member: &str, message: impl Into<String>) -> Box<Mistake> {
        Box::new(self.loaded.mistake(&self.key(member), message))
    }

    fn key(&self, member: &str) -> String {
        format!("notify[{}].{member}", self.place)
    }
}

fn encryption(smtp: &SmtpAddress, allow_plain: bool) -> Encryption {
    if smtp.is_wrapped {
        Encryption::Tls
    } else if allow_plain || smtp.is_loopback() {
        Encryption::Plain
    } else {
        Encryption::StartTls
    }
}

/// The kinds that are sent: all, if none is named.
fn kinds(events: &[NotifyEvent]) -> Vec<NoticeKind> {
    if events.is_empty() {
        return NoticeKind::ALL.to_vec();
    }
    let kind = |event: &NotifyEvent| match event {
        NotifyEvent::Question => NoticeKind::Question,
        NotifyEvent::CallInDoubt => NoticeKind::CallInDoubt,
        NotifyEvent::VerificationFailed => NoticeKind::VerificationFailed,
        NotifyEvent::DefinitionsChanged => NoticeKind::DefinitionsChanged,
        NotifyEvent::BudgetUsedUp => NoticeKind::BudgetUsedUp,
    };
    events.iter().map(kind).collect()
}
