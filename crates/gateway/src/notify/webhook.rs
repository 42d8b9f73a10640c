//! Signed webhooks, by the rules of Standard Webhooks: `webhook-id`, `webhook-timestamp`, and `webhook-signature` over
//! `id.timestamp.body`.

use std::fmt;
use std::time::Duration;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::BoxFuture;
use serde::Serialize;
use url::Url;
use zeroize::Zeroizing;

use super::{Channel, Message, Undelivered};

/// Timeouts of a request: for the connection, and for everything.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(9);

/// Bounds of a secret in bytes, as the standard has them.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// The secret of a webhook.
pub struct WebhookSecret(Zeroizing<Vec<u8>>);

/// The text is no secret of a webhook, usually because it was copied without its beginning. The text is not repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the secret is not `whsec_` and 24 to 64 bytes in base64")]
pub struct InvalidSecret;

impl WebhookSecret {
    /// Reads `whsec_` and base64.
    pub fn parse(text: &str) -> Result<Self, InvalidSecret> {
        let encoded = text.strip_prefix("whsec_").ok_or(InvalidSecret)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| InvalidSecret)?;
        let secret = Self(Zeroizing::new(bytes));
        if SECRET_BYTES.contains(&secret.0.len()) {
            Ok(secret)
        } else {
            Err(InvalidSecret)
        }
    }

    /// Returns the value of `webhook-signature`.
    fn sign(&self, id: &str, timestamp: i64, body: &str) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        let signed = format!("{id}.{timestamp}.{body}");
        let tag = hmac::sign(&key, signed.as_bytes());
        format!("v1,{}", STANDARD.encode(tag.as_ref()))
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret")
    }
}

/// A webhook.
pub struct Webhook {
    url: Url,
    secret: WebhookSecret,
    client: reqwest::Client,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may hold a token.
        f.write_str("Webhook")
    }
}

impl Webhook {
    /// A webhook at this address. Redirects are not followed: only the configuration says where messages go.
    pub fn new(url: Url, secret: WebhookSecret) -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(REQUEST_TIMEOUT)
            .user_agent(concat!("countersign/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self {
            url,
            secret,
            client,
        })
    }

    async fn post(&self, message: &Message) -> Result<(), Undelivered> {
        let body = body(message).map_err(|_| Undelivered("it cannot be written".to_owned()))?;
        let timestamp = message.sent_at.as_second();
        let signature = self.secret.sign(&message.id, timestamp, &body);
        let request = self
            .client
            .post(self.url.clone())
            .header("content-type", "application/json")
            .header("webhook-id", &message.id)
            .header("webhook-timestamp", timestamp.to_string())
            .header("webhook-signature", signature)
            .body(body);
        let answer = request.send().await.map_err(|error| failed(&error))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        Err(Undelivered(format!("HTTP {}", status.as_u16())))
    }
}

impl Channel for Webhook {
    fn kind(&self) -> &'static str {
        "webhook"
    }

    fn send<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Result<(), Undelivered>> {
        Box::pin(self.post(message))
    }
}

/// Names the failure without the address, which may hold a token.
fn failed(error: &reqwest::Error) -> Undelivered {
    let what = if error.is_timeout() {
        "no answer in time"
    } else if error.is_connect() {
        "no connection"
    } else {
        "the connection was closed before an answer"
    };
    Undelivered(what.to_owned())
}

/// The body, in the form that the standard recommends.
fn body(message: &Message) -> Result<String, serde_json::Error> {
    #[derive(Serialize)]
    struct Body<'m> {
        #[serde(rename = "type")]
        kind: &'m str,
        timestamp: String,
        data: Data<'m>,
    }
    #[derive(Serialize)]
    struct Data<'m> {
        id: &'m str,
        kind: &'m str,
        subject: &'m str,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool: Option<&'m str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        since: Option<String>,
        link: &'m str,
    }
    serde_json::to_string(&Body {
        kind: message.kind,
        timestamp: message.at.to_string(),
        data: Data {
            id: &message.id,
            kind: message.kind,
            subject: &message.subject,
            tool: message.tool.as_deref(),
            since: message.since.map(|since| since.to_string()),
            link: &message.link,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Standard Webhooks specification.
    #[test]
    fn the_signature_is_that_of_the_standard() {
        let secret = WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        assert_eq!(
            secret.sign(
                "msg_p5jXN8AQM9LWM0D4loKWxJek",
                1_614_265_330,
                "{\"test\": 2432232314}"
            ),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
        assert_eq!(format!("{secret:?}"), "WebhookSecret");
    }

    #[test]
    fn a_secret_that_is_none_is_refused_and_not_repeated() {
        for text in [
            "",
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_",
            "whsec_c2hvcnQ=",
            "whsec_not base64 at all, not base64 at all",
        ] {
            let refused = WebhookSecret::parse(text).map(|_| ()).unwrap_err();
            let said = refused.to_string();
            assert!(
                !said.contains("c2hvcnQ") && !said.contains("MfKQ"),
                "{said}"
            );
        }
    }
}
