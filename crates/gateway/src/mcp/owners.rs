//! Whose a session of the older eras is. Its id is no credential: a message, a stream or an end counts only from the caller
//! that has opened it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ::http::HeaderMap;
use countersign::Principal;
use countersign::contract::Actor;

/// The header that names a session.
const SESSION: &str = "mcp-session-id";

/// The caller of each session that is open.
#[derive(Default)]
pub(super) struct Owners {
    sessions: Mutex<HashMap<String, Owner>>,
}

#[derive(PartialEq, Eq)]
struct Owner {
    actor: Actor,
    user_id: String,
}

impl Owner {
    fn of(principal: &Principal) -> Self {
        Self {
            actor: principal.actor.clone(),
            user_id: principal.user_id.clone(),
        }
    }
}

impl Owners {
    /// True if a message with these headers may be this caller's: it names no session, or one of theirs.
    pub(super) fn admit(&self, headers: &HeaderMap, principal: &Principal) -> bool {
        let Some(session) = headers.get(SESSION) else {
            return true;
        };
        let Ok(session) = session.to_str() else {
            return false;
        };
        self.lock().get(session) == Some(&Owner::of(principal))
    }

    /// Keeps whose the session is that an answer names, and forgets those that have ended.
    pub(super) fn keep(
        &self,
        answered: &HeaderMap,
        principal: &Principal,
        is_open: impl Fn(&str) -> bool,
    ) {
        let named = answered
            .get(SESSION)
            .and_then(|session| session.to_str().ok());
        if let Some(session) = named {
            let mut sessions = self.lock();
            sessions.retain(|session, _| is_open(session));
            sessions.insert(session.to_owned(), Owner::of(principal));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Owner>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_its_callers() {
        let named = |session: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(SESSION, session.parse().unwrap());
            headers
        };
        let (owners, ann) = (Owners::default(), Principal::user("ann"));
        assert!(owners.admit(&HeaderMap::new(), &ann));
        assert!(!owners.admit(&named("s_1"), &ann));
        owners.keep(&named("s_1"), &ann, |_| true);
        assert!(owners.admit(&named("s_1"), &ann));
        assert!(!owners.admit(&named("s_1"), &Principal::user("bob")));
        owners.keep(&named("s_2"), &ann, |_| false);
        assert!(!owners.admit(&named("s_1"), &ann));
    }
}
