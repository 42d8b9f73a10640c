//! Browser sessions: how a person who has signed in is known on the next request.
//!
//! A session proves nothing of its own. It leads to a credential that is looked at again for every request: an API key
//! or a token, the operator whom a one-time link was made for, or that this server needs no credential. A key that is
//! revoked, a token that is over and a first key that is made end the sessions behind them at once; a token of a sign-in at an
//! issuer is renewed there first, if the issuer has allowed it. Sessions live in this process only.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use countersign::Principal;
use countersign::contract::ActorType;
use countersign::ids::IdSource;
use countersign::principal::BearerToken;
use countersign_evidence::hex;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use jiff::{SignedDuration, Timestamp};

use super::issuer_door::NotLetIn;
use super::{Identity, Reason, Refused};
use crate::caller::Caller;
use crate::operator::Operator;

mod at_issuer;

use at_issuer::Held;

/// A session that was not used for so long is over.
pub const SESSION_IDLE: SignedDuration = SignedDuration::from_mins(30);

/// A session is over after so long, used or not.
pub const SESSION_LIFE: SignedDuration = SignedDuration::from_hours(12);

/// Lifetime of a one-time link.
pub const LINK_LIFE: SignedDuration = SignedDuration::from_mins(10);

/// Maximum number of sessions and links; the least recently used one is evicted.
const KEPT_MAX: usize = 1_000;

/// The sessions of one server.
pub struct Sessions {
    ids: Arc<dyn IdSource>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    sessions: HashMap<String, Session>,
    links: HashMap<String, Link>,
}

struct Session {
    by: SignedBy,
    csrf: Arc<str>,
    begun: Timestamp,
    used: Timestamp,
}

struct Link {
    operator: Caller,
    until: Timestamp,
}

/// Proof behind a session: a credential, or the operator's one-time link.
#[derive(Clone)]
enum SignedBy {
    Credential(BearerToken),
    Issuer(Arc<tokio::sync::Mutex<Held>>),
    Link(Caller),
    Nothing,
}

/// A person who has signed in.
#[derive(Debug, Clone)]
pub struct SignedIn {
    /// The caller, as of now.
    pub caller: Caller,
    /// Has to come with every form.
    pub csrf: Arc<str>,
}

/// Returns the caller of a session's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// A person.
    ByHand,
    /// A page that is open and keeps itself up to date. It keeps no session from ending.
    ByItself,
}

/// Reason why a sign-in failed.
#[derive(Debug)]
pub enum NotSignedIn {
    /// The credential is not accepted.
    Refused(Box<Refused>),
    /// The credential is an agent's. Agents have the API; these pages answer for people.
    Agent,
    /// The issuer refused the sign-in, usually because the person declined or is not known there.
    Issuer(NotLetIn),
}

impl Sessions {
    /// No session yet.
    pub(crate) fn new(ids: Arc<dyn IdSource>) -> Self {
        Self {
            ids,
            kept: Mutex::default(),
        }
    }

    /// Creates a one-time link for the operator with this name, as text for the address. The person who opens it is
    /// this operator, who may name any user, as on the command line.
    pub fn link(&self, operator: Principal, now: Timestamp) -> String {
        let operator = Operator::new(operator.acting_for_others()).at_socket();
        let until = now.saturating_add(LINK_LIFE).unwrap_or(now);
        let text = self.draw();
        let mut kept = self.kept();
        kept.links.retain(|_, link| link.until > now);
        if kept.links.len() < KEPT_MAX {
            kept.links.insert(text.clone(), Link { operator, until });
        }
        text
    }

    /// Opens a link once and returns the cookie of the new session; `None` if the link was used or has expired.
    pub fn redeem(&self, link: &str, now: Timestamp) -> Option<String> {
        let link = self.kept().links.remove(link)?;
        (link.until > now).then(|| self.begin(SignedBy::Link(link.operator), now))
    }

    /// Signs in with a credential. The cookie of the new session.
    pub async fn sign_in(
        &self,
        identity: &Identity,
        credential: &str,
        now: Timestamp,
    ) -> Result<String, NotSignedIn> {
        let credential = BearerToken::new(credential);
        let caller = identity.proved_by(&credential).await;
        let caller = caller.map_err(|refused| NotSignedIn::Refused(Box::new(refused)))?;
        if is_agent(&caller) {
            return Err(NotSignedIn::Agent);
        }
        Ok(self.begin(SignedBy::Credential(credential), now))
    }

    /// Signs in with nothing, where this server asks programs of this machine for nothing.
    pub async fn sign_in_openly(&self, identity: &Identity, now: Timestamp) -> Option<String> {
        identity.without_credential().await?;
        Some(self.begin(SignedBy::Nothing, now))
    }

    /// Returns the caller of this cookie's session, after checking its credential again.
    pub async fn find(
        &self,
        identity: &Identity,
        cookie: &str,
        (now, usage): (Timestamp, Use),
    ) -> Option<SignedIn> {
        let (by, csrf) = self.use_at(cookie, now, usage)?;
        let caller = match by {
            SignedBy::Credential(credential) => {
                let proved = identity.proved_by(&credential).await;
                proved.ok().filter(|caller| !is_agent(caller))
            }
            SignedBy::Issuer(held) => {
                let mut held = held.lock().await;
                let proved = identity.renewed(&mut held).await;
                proved.filter(|caller| !is_agent(caller))
            }
            SignedBy::Link(operator) => Some(operator),
            SignedBy::Nothing => identity.without_credential().await,
        };
        if caller.is_none() {
            self.end(cookie);
        }
        let caller = caller?;
        Some(SignedIn { caller, csrf })
    }

    /// Ends a session.
    pub fn end(&self, cookie: &str) {
        self.kept().sessions.remove(cookie);
    }

    fn begin(&self, by: SignedBy, now: Timestamp) -> String {
        let (cookie, csrf) = (self.draw(), self.draw().into());
        let session = Session {
            by,
            csrf,
            begun: now,
            used: now,
        };
        let mut kept = self.kept();
        kept.sessions.retain(|_, session| session.is_open(now));
        if kept.sessions.len() >= KEPT_MAX {
            let oldest = kept.sessions.iter().min_by_key(|(_, session)| session.used);
            let oldest = oldest.map(|(cookie, _)| cookie.clone());
            oldest.map(|cookie| kept.sessions.remove(&cookie));
        }
        kept.sessions.insert(cookie.clone(), session);
        cookie
    }

    fn use_at(&self, cookie: &str, now: Timestamp, usage: Use) -> Option<(SignedBy, Arc<str>)> {
        let mut kept = self.kept();
        let session = kept.sessions.get_mut(cookie)?;
        if !session.is_open(now) {
            kept.sessions.remove(cookie);
            return None;
        }
        match usage {
            Use::ByHand => session.used = now,
            Use::ByItself => {}
        }
        Some((session.by.clone(), session.csrf.clone()))
    }

    fn draw(&self) -> String {
        let mut bytes = [0; 32];
        self.ids.fill(&mut bytes);
        hex::encode(&bytes)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    fn is_open(&self, now: Timestamp) -> bool {
        now.duration_since(self.used) < SESSION_IDLE
            && now.duration_since(self.begun) < SESSION_LIFE
    }
}

impl SignedIn {
    /// True if a form brings the token of this session.
    pub fn is_from_here(&self, token: &str) -> bool {
        verify_slices_are_equal(self.csrf.as_bytes(), token.as_bytes()).is_ok()
    }
}

impl Identity {
    /// Returns the caller that a credential proves, as for a request that carries it.
    async fn proved_by(&self, credential: &BearerToken) -> Result<Caller, Refused> {
        let header = format!("Bearer {}", credential.expose().trim());
        let Ok(mut value) = HeaderValue::try_from(header) else {
            return Err(Refused::new(Reason::Malformed));
        };
        value.set_sensitive(true);
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, value);
        self.caller(&headers).await
    }
}

fn is_agent(caller: &Caller) -> bool {
    match caller.principal.actor.kind {
        ActorType::Agent => true,
        ActorType::User | ActorType::System => false,
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sessions")
    }
}

#[cfg(test)]
mod tests {
    use countersign::contract::Actor;
    use countersign::ids::RandomIds;

    use super::*;
    use crate::caller::Proof;

    fn caller(kind: ActorType) -> Caller {
        let actor = Actor {
            kind,
            id: "ann".to_owned(),
        };
        Caller {
            principal: Arc::new(Principal::new(actor, "ann")),
            proof: Proof::ApiKey,
        }
    }

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + 60 * minutes).unwrap()
    }

    async fn is_open(sessions: &Sessions, cookie: &str, minutes: i64, usage: Use) -> bool {
        let identity = Identity::fixed(caller(ActorType::User));
        let found = sessions.find(&identity, cookie, (at(minutes), usage)).await;
        found.is_some()
    }

    async fn begun() -> (Sessions, String) {
        let sessions = Sessions::new(Arc::new(RandomIds::default()));
        let identity = Identity::fixed(caller(ActorType::User));
        let cookie = sessions.sign_in(&identity, "key", at(0)).await.unwrap();
        (sessions, cookie)
    }

    /// B20: an unused session ends, also where a page of it keeps itself up to date, and every session ends after its time.
    #[tokio::test]
    async fn sessions_end() {
        let (sessions, cookie) = begun().await;
        assert!(is_open(&sessions, &cookie, 29, Use::ByHand).await);
        assert!(is_open(&sessions, &cookie, 58, Use::ByItself).await);
        assert!(!is_open(&sessions, &cookie, 59, Use::ByItself).await);
        assert!(
            !is_open(&sessions, &cookie, 58, Use::ByHand).await,
            "it is gone"
        );

        let (sessions, cookie) = begun().await;
        for minutes in (0..720).step_by(20) {
            assert!(
                is_open(&sessions, &cookie, minutes, Use::ByHand).await,
                "{minutes}"
            );
        }
        assert!(!is_open(&sessions, &cookie, 720, Use::ByHand).await);

        let (sessions, cookie) = begun().await;
        sessions.end(&cookie);
        assert!(!is_open(&sessions, &cookie, 0, Use::ByHand).await);
        assert!(!is_open(&sessions, "", 0, Use::ByHand).await);
    }

    /// B20: an agent has no session, also where the credential has become an agent's since.
    #[tokio::test]
    async fn agents_have_none() {
        let (sessions, cookie) = begun().await;
        let identity = Identity::fixed(caller(ActorType::Agent));
        let refused = sessions.sign_in(&identity, "key", at(0)).await;
        assert!(matches!(refused, Err(NotSignedIn::Agent)));
        let found = sessions
            .find(&identity, &cookie, (at(1), Use::ByHand))
            .await;
        assert!(found.is_none());
    }

    #[test]
    fn a_link_is_opened_once_and_in_time() {
        let sessions = Sessions::new(Arc::new(RandomIds::default()));
        let operator = || Principal::user("ann");
        let link = sessions.link(operator(), at(0));
        assert!(sessions.redeem("", at(0)).is_none());
        assert!(sessions.redeem(&link, at(9)).is_some());
        assert!(sessions.redeem(&link, at(9)).is_none());
        let late = sessions.link(operator(), at(0));
        assert!(sessions.redeem(&late, at(10)).is_none());
    }

    /// What is kept is bounded, and the session that was used last stays.
    #[tokio::test]
    async fn there_are_not_more_than_may_be() {
        let (sessions, cookie) = begun().await;
        assert!(is_open(&sessions, &cookie, 2, Use::ByHand).await);
        for _ in 0..KEPT_MAX + 10 {
            sessions.begin(SignedBy::Nothing, at(1));
        }
        assert_eq!(sessions.kept().sessions.len(), KEPT_MAX);
        assert!(is_open(&sessions, &cookie, 2, Use::ByHand).await);
    }
}
