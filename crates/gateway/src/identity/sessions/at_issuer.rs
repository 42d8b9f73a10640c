//! Sessions of people who have signed in at an issuer.

use std::sync::Arc;

use countersign::principal::BearerToken;
use jiff::Timestamp;
use jsonwebtoken::dangerous::insecure_decode_claims;

use super::{NotSignedIn, Sessions, SignedBy, is_agent};
use crate::caller::Caller;
use crate::identity::issuer_door::{self, FromIssuer, NotLetIn, ToIssuer, Unusable};
use crate::identity::jwt::Meant;
use crate::identity::{Identity, Reason};

/// Tokens of a person who has signed in at an issuer. They are held by one request at a time: most issuers take a token for renewal
/// only once.
pub(super) struct Held {
    access: BearerToken,
    renewal: Option<BearerToken>,
}

impl Sessions {
    /// The way to the issuer. It leads the browser back to `return_to`.
    pub async fn to_issuer(
        &self,
        identity: &Identity,
        return_to: &str,
    ) -> Result<ToIssuer, NotLetIn> {
        let door = identity.door.as_ref().ok_or(NotLetIn::NotConfigured)?;
        let secret = self.draw();
        let url = door.way(&secret, return_to).await?;
        Ok(ToIssuer { url, secret })
    }

    /// Signs in with what the issuer sent the browser back with. The secret is the one that the browser got with its way there. The
    /// cookie of the new session.
    pub async fn sign_in_from_issuer(
        &self,
        identity: &Identity,
        (secret, back): (&str, &FromIssuer),
        return_to: &str,
        now: Timestamp,
    ) -> Result<String, NotSignedIn> {
        let exchanged = identity.exchange(secret, back, return_to).await;
        let tokens = exchanged.map_err(NotSignedIn::Issuer)?;
        let held = Held {
            access: tokens.access(),
            renewal: tokens.renewal(),
        };
        let caller = identity.proved_by(&held.access).await;
        let caller = caller.map_err(|refused| NotSignedIn::Refused(Box::new(refused)))?;
        if is_agent(&caller) {
            return Err(NotSignedIn::Agent);
        }
        let held = Arc::new(tokio::sync::Mutex::new(held));
        Ok(self.begin(SignedBy::Issuer(held), now))
    }
}

impl Identity {
    /// Exchanges the code of a browser that came back from the issuer, and checks that it was given for this very sign-in.
    async fn exchange(
        &self,
        secret: &str,
        back: &FromIssuer,
        return_to: &str,
    ) -> Result<issuer_door::Tokens, NotLetIn> {
        let door = self.door.as_ref().ok_or(NotLetIn::NotConfigured)?;
        let tokens = door.exchange(secret, back, return_to).await?;
        let (access, nonce) = (tokens.access(), issuer_door::nonce(secret));
        let meant = Meant {
            issuer: &door.client.issuer,
            client_id: &door.client.client_id,
            nonce: &nonce,
            access_token: access.expose(),
        };
        let policy = self.policy.current();
        let id_token = tokens.id_token.as_deref().unwrap_or_default();
        let issuers = &policy.file().issuers;
        let is_ours = self.tokens.is_identity(id_token, issuers, &meant).await;
        if !is_ours.map_err(Unusable::from)? {
            return Err(Unusable::OtherIdentity.into());
        }
        Ok(tokens)
    }

    /// Returns the caller that a person's tokens prove. An access token that is over is renewed, once, and has to be of the same user.
    pub(super) async fn renewed(&self, held: &mut Held) -> Option<Caller> {
        let refused = match self.proved_by(&held.access).await {
            Ok(caller) => return Some(caller),
            Err(refused) => refused,
        };
        let (Reason::NotAccepted, Some(door), Some(renewal)) =
            (refused.reason, &self.door, held.renewal.take())
        else {
            return None;
        };
        let tokens = match door.renew(&renewal).await {
            Ok(tokens) => tokens,
            Err(error) => {
                tracing::info!(%error, "the session of a person could not be renewed");
                return None;
            }
        };
        let caller = self.proved_by(&tokens.access()).await.ok()?;
        if subject(&tokens.access())? != subject(&held.access)? {
            return None;
        }
        *held = Held {
            renewal: tokens.renewal().or(Some(renewal)),
            access: tokens.access(),
        };
        Some(caller)
    }
}

/// The subject of a token that has been verified.
fn subject(token: &BearerToken) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Subject {
        sub: String,
    }
    let claims = insecure_decode_claims::<Subject>(token.expose());
    claims.ok().map(|claims| claims.sub)
}
