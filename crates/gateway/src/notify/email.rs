//! E-mail over SMTP.

use std::fmt::{self, Write as _};
use std::time::Duration;

use countersign::BoxFuture;
use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Tokio1Executor};

use super::{Channel, Message, Undelivered};

/// Timeout of each step of a transmission.
const STEP_TIMEOUT: Duration = Duration::from_secs(5);

/// Encryption of the connection to a mail server. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encryption {
    /// TLS from the first byte.
    Tls,
    /// TLS after STARTTLS; without it nothing is sent.
    StartTls,
    /// None.
    Plain,
}

/// Options of an e-mail target.
pub struct EmailOptions {
    /// Host of the mail server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Encryption of the connection.
    pub encryption: Encryption,
    /// Address of the sender.
    pub from: String,
    /// Addresses of the recipients.
    pub to: Vec<String>,
    /// Name and password at the mail server.
    pub credentials: Option<(String, String)>,
}

/// Errors of the options.
#[derive(Debug, thiserror::Error)]
pub enum EmailError {
    /// The sender is no address, usually because the domain is missing.
    #[error("the sender is not an e-mail address")]
    From,
    /// A recipient is no address, usually because the domain is missing.
    #[error("recipient {0} is not an e-mail address")]
    To(usize),
    /// TLS cannot be set up, usually because the host is no name of a server.
    #[error("TLS cannot be set up")]
    Tls(#[source] lettre::transport::smtp::Error),
}

/// A way to send e-mail.
pub struct Email {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    to: Vec<Mailbox>,
}

impl fmt::Debug for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Email")
    }
}

impl Email {
    /// Prepares the options; nothing is sent.
    pub fn new(options: &EmailOptions) -> Result<Self, EmailError> {
        let from: Mailbox = options.from.parse().map_err(|_| EmailError::From)?;
        let to = options.to.iter().enumerate();
        let to = to.map(|(place, text)| text.parse().map_err(|_| EmailError::To(place + 1)));
        let to = to.collect::<Result<Vec<Mailbox>, _>>()?;
        let parameters = || TlsParameters::new(options.host.clone()).map_err(EmailError::Tls);
        let tls = match options.encryption {
            Encryption::Tls => Tls::Wrapper(parameters()?),
            Encryption::StartTls => Tls::Required(parameters()?),
            Encryption::Plain => Tls::None,
        };
        let host = options.host.as_str();
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host)
            .port(options.port)
            .tls(tls)
            .hello_name(ClientId::Domain(from.email.domain().to_owned()))
            .timeout(Some(STEP_TIMEOUT));
        if let Some((user, password)) = &options.credentials {
            builder = builder.credentials(Credentials::new(user.clone(), password.clone()));
        }
        Ok(Self {
            transport: builder.build(),
            from,
            to,
        })
    }

    async fn mail(&self, message: &Message) -> Result<(), Undelivered> {
        let domain = self.from.email.domain();
        let mut builder = lettre::Message::builder()
            // The same in every attempt, so that a reader sees a repeat as one.
            .message_id(Some(format!("<{}@{domain}>", message.id)))
            .from(self.from.clone())
            .subject(subject(message))
            .header(ContentType::TEXT_PLAIN);
        for to in &self.to {
            builder = builder.to(to.clone());
        }
        let mail = builder
            .body(text(message))
            .map_err(|_| Undelivered("it cannot be written".to_owned()))?;
        let sent = self.transport.send(mail).await;
        sent.map(drop).map_err(|error| failed(&error))
    }
}

impl Channel for Email {
    fn kind(&self) -> &'static str {
        "email"
    }

    fn send<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Result<(), Undelivered>> {
        Box::pin(self.mail(message))
    }
}

/// Names the failure without what the server said, which may hold addresses.
fn failed(error: &lettre::transport::smtp::Error) -> Undelivered {
    let what = match error.status() {
        Some(code) => format!("SMTP {code}"),
        None if error.is_timeout() => "no answer in time".to_owned(),
        None if error.is_tls() => "TLS failed".to_owned(),
        None if error.is_client() => "the mail server lacks what the settings ask for".to_owned(),
        None => "the connection was closed before an answer, or not made".to_owned(),
    };
    Undelivered(what)
}

/// Subject line: the kind in words, and the tool.
fn subject(message: &Message) -> String {
    let what = match message.kind {
        "question" => "a question waits for an answer",
        "call_in_doubt" => "a call is in doubt",
        "verification_failed" => "a verification of the log failed",
        "definitions_changed" => "tools of an upstream have changed",
        "budget_used_up" => "a budget is spent or nearly spent",
        _ => "test message",
    };
    match &message.tool {
        Some(tool) => format!("[Countersign] {what}: {tool}"),
        None => format!("[Countersign] {what}"),
    }
}

fn text(message: &Message) -> String {
    let mut text = format!("kind: {}\nsubject: {}\n", message.kind, message.subject);
    if let Some(tool) = &message.tool {
        let _ = writeln!(text, "tool: {tool}");
    }
    if let Some(since) = message.since {
        let _ = writeln!(text, "since: {since}");
    }
    let Message { at, link, id, .. } = message;
    let _ = write!(
        text,
        "found: {at}\n\n{link}\n\nSign in there to see more. This message gives no right to anything.\nid: {id}\n"
    );
    text
}
