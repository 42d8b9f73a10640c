//! The proof over TCP: both sides show that they know the secret of the data folder, and neither sends it.
//!
//! The command sends a number that it has drawn (`nonce`). The server answers with one of its own (`ticket`) and the
//! HMAC of both, of the address that it listens on, and of its role. Only then does the command send its request,
//! with the HMAC for its own role. A ticket is good for one request. The address is part of the proof, so a listener
//! that passes everything on to the real server proves nothing.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use aws_lc_rs::hmac;
use countersign::ids::IdSource;
use countersign_evidence::hex;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use zeroize::Zeroizing;

/// Maximum number of unused tickets; the oldest is evicted.
const TICKETS_MAX: usize = 64;

/// The scheme of the header that brings a proof.
const SCHEME: &str = "Operator ";

/// Shared secret: 32 bytes in a file that only the server's account can read.
#[derive(Clone)]
pub struct Secret(Zeroizing<[u8; 32]>);

/// Side that proves something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The process that listens.
    Server,
    /// The command that asks.
    Operator,
}

/// Facts that one proof covers.
#[derive(Debug, Clone, Copy)]
pub struct Exchange<'a> {
    /// Address at which the server listens and the command has found it.
    pub url: &'a str,
    /// Drawn by the command.
    pub nonce: &'a str,
    /// Drawn by the server.
    pub ticket: &'a str,
}

impl Secret {
    /// A new one.
    pub fn draw(ids: &dyn IdSource) -> Self {
        let mut bytes = Zeroizing::new([0; 32]);
        ids.fill(&mut *bytes);
        Self(bytes)
    }

    /// The one that is written so.
    pub fn parse(text: &str) -> Option<Self> {
        hex::decode(text).map(|bytes| Self(Zeroizing::new(bytes)))
    }

    /// Text of the file.
    pub fn text(&self) -> Zeroizing<String> {
        Zeroizing::new(hex::encode(&*self.0))
    }

    /// The proof of one side.
    pub fn prove(&self, role: Role, exchange: Exchange<'_>) -> String {
        hex::encode(hmac::sign(&self.key(), &about(role, exchange)).as_ref())
    }

    /// True if this is the proof of that side.
    pub fn is_proved(&self, role: Role, exchange: Exchange<'_>, proof: &str) -> bool {
        let Some(proof) = hex::decode::<32>(proof) else {
            return false;
        };
        hmac::verify(&self.key(), &about(role, exchange), &proof).is_ok()
    }

    fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &*self.0)
    }
}

/// The header that brings the operator's proof.
pub fn authorization(secret: &Secret, exchange: Exchange<'_>) -> String {
    let proof = secret.prove(Role::Operator, exchange);
    format!("{SCHEME}{}.{}.{proof}", exchange.nonce, exchange.ticket)
}

/// Draws a fresh random number.
pub fn draw_nonce(ids: &dyn IdSource) -> String {
    let mut bytes = [0; 32];
    ids.fill(&mut bytes);
    hex::encode(&bytes)
}

/// Everything that a proof depends on, each part with its length.
fn about(role: Role, exchange: Exchange<'_>) -> Vec<u8> {
    let role = match role {
        Role::Server => "countersign/server/1",
        Role::Operator => "countersign/operator/1",
    };
    let mut bytes = Vec::new();
    for part in [role, exchange.url, exchange.nonce, exchange.ticket] {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes
}

/// The server's side.
pub struct Prover {
    secret: Secret,
    ids: Arc<dyn IdSource>,
    /// Known once the server listens.
    url: OnceLock<String>,
    /// Unused tickets, each with its nonce.
    tickets: Mutex<VecDeque<(String, String)>>,
}

impl Prover {
    /// Proves with this secret.
    pub fn new(secret: Secret, ids: Arc<dyn IdSource>) -> Self {
        Self {
            secret,
            ids,
            url: OnceLock::new(),
            tickets: Mutex::default(),
        }
    }

    /// Says where the server listens. Nothing is proved before.
    pub fn listens_at(&self, url: &str) {
        self.url.get_or_init(|| url.to_owned());
    }

    /// A ticket for this nonce with the server's proof; `None` if the server does not listen yet or the nonce is not valid.
    pub(crate) fn answer(&self, nonce: &str) -> Option<(String, String)> {
        let url = self.url.get()?;
        hex::decode::<32>(nonce)?;
        let ticket = draw_nonce(&*self.ids);
        let exchange = Exchange {
            url,
            nonce,
            ticket: &ticket,
        };
        let proof = self.secret.prove(Role::Server, exchange);
        let tickets = self.tickets.lock();
        let mut tickets = tickets.unwrap_or_else(PoisonError::into_inner);
        if tickets.len() >= TICKETS_MAX {
            tickets.pop_front();
        }
        tickets.push_back((ticket.clone(), nonce.to_owned()));
        Some((ticket, proof))
    }

    /// True if these headers carry the operator's proof for an unused ticket.
    pub(crate) fn is_proved(&self, headers: &HeaderMap) -> bool {
        self.check(headers).is_some()
    }

    fn check(&self, headers: &HeaderMap) -> Option<()> {
        // Beside another credential it is none.
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let (Some(given), None) = (values.next(), values.next()) else {
            return None;
        };
        let given = given.to_str().ok()?.strip_prefix(SCHEME)?;
        let (nonce, rest) = given.split_once('.')?;
        let (ticket, proof) = rest.split_once('.')?;
        let exchange = Exchange {
            url: self.url.get()?,
            nonce,
            ticket,
        };
        if !self.secret.is_proved(Role::Operator, exchange, proof) {
            return None;
        }
        let tickets = self.tickets.lock();
        let mut tickets = tickets.unwrap_or_else(PoisonError::into_inner);
        let is_it = |known: &(String, String)| known.0 == ticket && known.1 == nonce;
        let at = tickets.iter().position(is_it)?;
        tickets.remove(at).map(|_| ())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl fmt::Debug for Prover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Prover")
    }
}

#[cfg(test)]
mod tests {
    use countersign::clock::SystemClock;
    use countersign::ids::RandomIds;

    use super::*;

    fn headers(text: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, text.parse().unwrap());
        headers
    }

    /// U8: a ticket is good once, for the nonce and the address that it was given for, and for the operator's role.
    #[test]
    fn a_proof_is_good_for_one_request() {
        let ids: Arc<dyn IdSource> = Arc::new(RandomIds::new(Arc::new(SystemClock::new())));
        let secret = Secret::draw(&*ids);
        let prover = Prover::new(secret.clone(), ids.clone());
        let nonce = draw_nonce(&*ids);
        assert!(prover.answer(&nonce).is_none(), "it does not listen yet");
        let url = "http://127.0.0.1:1";
        prover.listens_at(url);
        for wrong in ["", "x", &nonce[1..], &nonce.replace(|c| c != '.', "g")] {
            assert!(prover.answer(wrong).is_none(), "{wrong}");
        }
        let (ticket, proof) = prover.answer(&nonce).unwrap();
        let exchange = Exchange {
            url,
            nonce: &nonce,
            ticket: &ticket,
        };
        assert!(secret.is_proved(Role::Server, exchange, &proof));
        let moved = Exchange {
            url: "http://127.0.0.1:2",
            ..exchange
        };
        assert!(!secret.is_proved(Role::Server, moved, &proof));
        let other = Secret::draw(&*ids);
        assert!(!other.is_proved(Role::Server, exchange, &proof));

        let check = |text: &str, expected: bool| {
            assert_eq!(prover.is_proved(&headers(text)), expected, "{text}");
        };
        check(&format!("Operator {nonce}.{ticket}.{proof}"), false);
        check(&authorization(&other, exchange), false);
        check(&authorization(&secret, moved), false);
        check(&format!("Bearer {}", *secret.text()), false);
        check(&authorization(&secret, exchange), true);
        check(&authorization(&secret, exchange), false);
    }

    /// A caller that asks for tickets and uses none takes bounded room.
    #[test]
    fn tickets_are_bounded() {
        let ids: Arc<dyn IdSource> = Arc::new(RandomIds::new(Arc::new(SystemClock::new())));
        let prover = Prover::new(Secret::draw(&*ids), ids.clone());
        prover.listens_at("http://127.0.0.1:1");
        for _ in 0..TICKETS_MAX * 2 {
            assert!(prover.answer(&draw_nonce(&*ids)).is_some());
        }
        assert_eq!(prover.tickets.lock().unwrap().len(), TICKETS_MAX);
    }
}
