//! A question as the store keeps it: sealed under the key of the user who has to answer.

use countersign_contract::approval::{
    Approval, ApprovalAnswer, ApprovalDecision, ApprovalState, ApprovedAmount,
};
use countersign_contract::evidence::Link;
use countersign_contract::tool::Narrowing;
use countersign_contract::{Actor, Digest, Language, RequestId, Retention, ToolName, canonical};
use countersign_evidence::seal::UserKey;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::display::Display;
use super::narrow::{self, Cut};
use super::stored::KIND;
use super::terms::is_within;
use super::{Because, Confirm};
use crate::consent::{Writing, check_may_decide};
use crate::ids::IdSource;
use crate::ledger::{DocumentKey, IndexEntry, KeyDigest};
use crate::principal::{Credential, Principal};
use crate::scribe::recorded_request_id;
use crate::visible::make_visible;

/// One question, and its state.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Question {
    pub(super) v: u8,
    pub(super) id: String,
    pub(super) actor: Actor,
    pub(super) principal: Actor,
    pub(super) user_id: String,
    pub(super) tool: ToolName,
    pub(super) title: Option<String>,
    pub(super) description: String,
    pub(super) tool_version: String,
    pub(super) definition: Digest,
    pub(super) exact: Digest,
    /// Digest that a denial counts for; questions of older versions have none, and then a denial counts for no more
    /// than an approval.
    #[serde(default)]
    pub(super) matter: Option<Digest>,
    pub(super) ceiling: Option<ApprovedAmount>,
    #[serde(default)]
    pub(super) currency: Option<String>,
    #[serde(default)]
    pub(super) timezone: Option<String>,
    /// The arguments that the tool would be given; a question of an older version has only the redacted ones.
    #[serde(default)]
    pub(super) arguments: Option<Value>,
    pub(super) arguments_redacted: Value,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) narrowable: Vec<Narrowing>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) display: Option<Display>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) session_id: Option<String>,
    #[serde(default)]
    pub(super) four_eyes: bool,
    /// The first approval, if two are needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) first: Option<Given>,
    pub(super) policy_revision: String,
    pub(super) request_id: RequestId,
    /// True if the caller chose the request id; also true for a question of an older version.
    #[serde(default = "chosen")]
    pub(super) is_id_chosen: bool,
    /// Retention of what was shown.
    #[serde(default)]
    pub(super) retention: Retention,
    pub(super) asked_at: Timestamp,
    pub(super) valid_for: SignedDuration,
    pub(super) expires_at: Timestamp,
    pub(super) standing: Standing,
    /// Calls with a key that have used earlier answers to this question: one of them may still have to
    /// be finished.
    #[serde(default)]
    pub(super) begun: Vec<Begun>,
}

const fn chosen() -> bool {
    true
}

/// A call with a key that has used an answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Begun {
    key: String,
    link: Link,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    cuts: Vec<Cut>,
}

/// Maximum number of unfinished calls that are remembered.
const BEGUN_MAX: usize = 8;

/// State of a question. Expiry is not written: time alone decides it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Standing {
    Pending,
    Approved(Given),
    Denied(Given),
    Used(Given, Use),
}

/// An answer that was given.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Given {
    pub(super) by: Actor,
    pub(super) at: Timestamp,
    pub(super) reason: Option<String>,
    pub(super) link: Link,
    /// Parameters that this answer has made smaller, and the first of two answers before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) cuts: Vec<Cut>,
    /// The user and the credential of the approver; `None` in an answer of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) proof: Option<Proof>,
}

/// The person behind an answer, as far as the credential shows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Proof {
    user_id: String,
    credential: Option<String>,
}

impl Proof {
    pub(super) fn of(by: &Principal) -> Self {
        let credential = by.credential.as_ref().map(|credential| match credential {
            Credential::ApiKey { id } => format!("key/{id}"),
            Credential::Token { issuer, jti } => {
                let jti = jti.as_deref().unwrap_or(&by.actor.id);
                format!("token/{issuer}/{jti}")
            }
        });
        Self {
            user_id: by.user_id.clone(),
            credential,
        }
    }
}

/// The call that has used an approval.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Use {
    pub(super) request_id: RequestId,
    /// Digest of its key; `None` if it has none, and then no other call is the same.
    pub(super) key: Option<String>,
    pub(super) at: Timestamp,
}

/// The meaning of a question for a call that it was found for.
pub(super) enum Meaning {
    Approved(Link, Vec<Cut>),
    /// A call with this very key has used it and may go on.
    Resumed(Link, Vec<Cut>),
    Denied,
    Pending,
    /// It does not count; if an answer had been given, with the reason.
    Void(Option<Because>),
}

impl Question {
    pub(super) fn of(
        confirm: &Confirm,
        id: String,
        at: Timestamp,
        valid_for: SignedDuration,
        replaced: Option<&Self>,
    ) -> Self {
        Self {
            v: 1,
            id,
            actor: confirm.actor.clone(),
            principal: confirm.principal.clone(),
            user_id: confirm.user_id.clone(),
            tool: confirm.tool.clone(),
            title: confirm.title.clone(),
            description: confirm.description.clone(),
            tool_version: confirm.tool_version.clone(),
            definition: confirm.definition,
            exact: confirm.exact,
            matter: Some(confirm.matter),
            ceiling: confirm.ceiling.clone(),
            currency: confirm.currency.clone(),
            timezone: confirm.timezone.clone(),
            arguments: Some(confirm.arguments.clone()),
            arguments_redacted: displayed(&confirm.arguments_redacted),
            narrowable: confirm.narrowable.clone(),
            display: confirm.display.clone(),
            session_id: confirm.session_id.clone(),
            four_eyes: confirm.four_eyes,
            first: None,
            policy_revision: confirm.policy_revision.clone(),
            request_id: confirm.request_id.clone(),
            is_id_chosen: confirm.is_id_chosen,
            retention: confirm.retention,
            asked_at: at,
            valid_for,
            expires_at: later(at, valid_for),
            standing: Standing::Pending,
            begun: replaced.map(Self::begun).unwrap_or_default(),
        }
    }

    /// The calls with a key that have used this question or those before it, newest first.
    fn begun(&self) -> Vec<Begun> {
        let newest = match &self.standing {
            Standing::Used(given, used) => used.key.clone().map(|key| Begun {
                key,
                link: given.link.clone(),
                cuts: given.cuts.clone(),
            }),
            Standing::Pending | Standing::Approved(_) | Standing::Denied(_) => None,
        };
        let begun = newest.into_iter().chain(self.begun.iter().cloned());
        begun.take(BEGUN_MAX).collect()
    }

    /// Decides what it means for a call of the same principal with the same bound terms.
    pub(super) fn meaning(&self, confirm: &Confirm, now: Timestamp) -> Meaning {
        let is_within = is_within(confirm.ceiling.as_ref(), self.ceiling.as_ref());
        let is_expired = now >= self.expires_at;
        let key = confirm.key.map(|key| key.to_string());
        // What may have happened is finished under the answer that it was begun with, however old.
        if confirm.is_resumed
            && let Some(ours) = self.begun().iter().find(|it| Some(&it.key) == key.as_ref())
        {
            return Meaning::Resumed(ours.link.clone(), ours.cuts.clone());
        }
        if let Standing::Used(given, used) = &self.standing {
            // What has failed without an effect is a new call, for which the answer must still count.
            let is_ours = key.is_some() && key == used.key;
            if is_ours && is_within && !is_expired {
                return Meaning::Resumed(given.link.clone(), given.cuts.clone());
            }
            return Meaning::Void(Some(Because::Used));
        }
        let changed = if is_expired {
            Some(Because::Expired)
        } else if !is_within {
            Some(Because::AmountRose)
        } else if self.definition != confirm.definition {
            Some(Because::ToolChanged)
        } else if self.policy_revision != confirm.policy_revision
            || (confirm.four_eyes && !self.four_eyes)
        {
            Some(Because::PolicyChanged)
        } else {
            None
        };
        match (&self.standing, changed) {
            (Standing::Approved(given), None) => {
                Meaning::Approved(given.link.clone(), given.cuts.clone())
            }
            (Standing::Pending, None) => Meaning::Pending,
            (Standing::Pending | Standing::Approved(_), Some(because)) => {
                Meaning::Void(Some(because))
            }
            // A refusal is the user's will, whatever the policy says since; less money is a new question.
            (Standing::Denied(_), _) if self.denies(confirm, now) => Meaning::Denied,
            (Standing::Denied(_) | Standing::Used(..), _) => Meaning::Void(None),
        }
    }

    /// True if the user has denied this call, for any principal, currency and time zone.
    pub(super) fn denies(&self, confirm: &Confirm, now: Timestamp) -> bool {
        let is_denied = match self.standing {
            Standing::Denied(_) => true,
            Standing::Pending | Standing::Approved(_) | Standing::Used(..) => false,
        };
        is_denied
            && now < self.expires_at
            && (self.exact == confirm.exact || self.matter == Some(confirm.matter))
            && is_within(self.ceiling.as_ref(), confirm.ceiling.as_ref())
    }

    pub(super) fn is_open(&self, now: Timestamp) -> bool {
        self.state(now) == ApprovalState::Pending
    }

    pub(super) fn state(&self, now: Timestamp) -> ApprovalState {
        let is_expired = now >= self.expires_at;
        match self.standing {
            Standing::Used(..) => ApprovalState::Used,
            Standing::Pending | Standing::Approved(_) | Standing::Denied(_) if is_expired => {
                ApprovalState::Expired
            }
            Standing::Pending => ApprovalState::Pending,
            Standing::Approved(_) => ApprovalState::Approved,
            Standing::Denied(_) => ApprovalState::Denied,
        }
    }

    /// The approval as the inbox shows it to a principal.
    pub(super) fn shown_to(self, by: &Principal, now: Timestamp, language: Language) -> Approval {
        match check_may_decide(by, &self.user_id) {
            Ok(()) => self.shown_whole(now, language),
            Err(_) => self.shown(now),
        }
    }

    /// The approval as approvers see it: with every argument as the tool would be given it, and the tool's own words.
    pub(super) fn shown_whole(mut self, now: Timestamp, language: Language) -> Approval {
        let shown_digest = self
            .is_open(now)
            .then(|| Digest::of_bytes(self.rendered(language).as_bytes()));
        let cuts = self.cuts().to_vec();
        let asked = self.arguments.clone().unwrap_or_default();
        if let Some(whole) = self.arguments.take() {
            let mut whole = narrow::narrowed_value(&whole, &cuts).unwrap_or(whole);
            make_visible(&mut whole);
            self.arguments_redacted = whole;
        }
        let display = self.display.take().unwrap_or_default();
        let mut shown = self.shown(now);
        let given = shown.confirmed.as_mut().or(shown.answer.as_mut());
        if let Some(given) = given {
            given.narrowed = narrow::changes(&asked, &cuts);
            for change in &mut given.narrowed {
                make_visible(&mut change.before);
                make_visible(&mut change.after);
            }
        }
        // What the tool has said is about the call as it was asked.
        if cuts.is_empty() {
            shown.question = display.question(language).cloned();
            shown.would_answer = display.would_answer().cloned();
        }
        Approval {
            shown_digest,
            ..shown
        }
    }

    /// Parameters that the approvers have made smaller so far.
    pub(super) fn cuts(&self) -> &[Cut] {
        match &self.standing {
            Standing::Approved(given) | Standing::Used(given, _) => given.cuts.as_slice(),
            Standing::Pending => {
                let first = self.first.as_ref();
                first.map(|first| first.cuts.as_slice()).unwrap_or_default()
            }
            Standing::Denied(_) => &[],
        }
    }

    /// The whole display for an approver, as canonical JSON: an answer is bound to its digest. The state of the
    /// question is not part of it, and neither is the digest itself.
    pub(super) fn rendered(&self, language: Language) -> String {
        let mut open = self.clone();
        open.standing = Standing::Pending;
        // It has expired by then, so that no digest is made of a digest.
        let shown = Approval {
            state: ApprovalState::Pending,
            confirmed: None,
            ..open.shown_whole(Timestamp::MAX, language)
        };
        let value = serde_json::to_value(&shown).expect("names, strings and JSON values");
        let text = canonical::to_string(&value);
        text.unwrap_or_else(|_| value.to_string())
    }

    /// The language that was rendered, by the digest of the rendering.
    pub(super) fn language_of(&self, shown_digest: Digest) -> Option<Language> {
        Language::ALL
            .into_iter()
            .find(|language| Digest::of_bytes(self.rendered(*language).as_bytes()) == shown_digest)
    }

    /// True if the first of two answers is from the same person or credential.
    pub(super) fn has_answered(&self, by: &Principal) -> bool {
        self.first.as_ref().is_some_and(|first| {
            let ours = Proof::of(by);
            let is_same_proof = first.proof.as_ref().is_none_or(|first| {
                let is_same_user = !first.user_id.is_empty() && first.user_id == ours.user_id;
                let is_same_credential =
                    first.credential.is_some() && first.credential == ours.credential;
                is_same_user || is_same_credential
            });
            first.by.id == by.actor.id || is_same_proof
        })
    }

    /// Number of approvers who have approved, and the number that is required, while it is open.
    pub(super) fn approvers(&self) -> (u8, u8) {
        let needed = if self.four_eyes { 2 } else { 1 };
        (u8::from(self.first.is_some()), needed)
    }

    /// The approval as all other readers see it, without sensitive values.
    fn shown(self, now: Timestamp) -> Approval {
        let state = self.state(now);
        let confirmed = match self.standing {
            Standing::Pending => self
                .first
                .map(|first| first.shown(ApprovalDecision::Approve)),
            Standing::Approved(_) | Standing::Denied(_) | Standing::Used(..) => None,
        };
        let answer = match self.standing {
            Standing::Pending => None,
            Standing::Approved(given) | Standing::Used(given, _) => {
                Some(given.shown(ApprovalDecision::Approve))
            }
            Standing::Denied(given) => Some(given.shown(ApprovalDecision::Deny)),
        };
        Approval {
            id: self.id,
            state,
            user_id: self.user_id,
            principal: (self.principal != self.actor).then_some(self.principal),
            actor: self.actor,
            tool: self.tool,
            title: self.title,
            description: self.description,
            arguments: self.arguments_redacted,
            question: None,
            would_answer: None,
            narrowable: self.narrowable,
            ceiling: self.ceiling,
            currency: self.currency,
            timezone: self.timezone,
            request_id: self.request_id,
            policy_revision: self.policy_revision,
            asked_at: self.asked_at.to_string(),
            expires_at: self.expires_at.to_string(),
            four_eyes: self.four_eyes,
            confirmed,
            answer,
            shown_digest: None,
        }
    }

    /// Request id of the first call that asked, as records name it.
    pub(super) fn recorded_request_id(&self, keys: &UserKey) -> RequestId {
        recorded_request_id(&self.request_id, self.is_id_chosen, keys)
    }

    /// The key of its document: one for all questions of this user about this call of this principal.
    pub(super) fn place(&self, keys: &UserKey) -> DocumentKey {
        place(
            keys,
            &self.user_id,
            &self.tool,
            [&self.actor, &self.principal],
            self.exact,
        )
    }

    /// The write that stores it in the place of a version.
    pub(super) fn write(&self, keys: &UserKey, version: u64, ids: &dyn IdSource) -> Writing {
        let mut entries = vec![
            by_matter(keys, &self.tool, self.matter.unwrap_or(self.exact)),
            by_tool(keys, &self.tool),
        ];
        match self.standing {
            Standing::Pending => {
                entries.push(pending(keys));
                entries.push(IndexEntry::open_until(self.expires_at));
            }
            Standing::Denied(_) => {
                let session_id = self.session_id.as_deref();
                entries.extend(denied(keys, &self.tool, &self.principal, session_id));
            }
            Standing::Approved(_) | Standing::Used(..) => {}
        }
        entries.sort();
        Writing::seal(self.place(keys), version, self, keys, ids).tracked(entries)
    }
}

impl Given {
    fn shown(self, decision: ApprovalDecision) -> ApprovalAnswer {
        ApprovalAnswer {
            decision,
            by: self.by,
            at: self.at.to_string(),
            reason: self.reason,
            narrowed: Vec::new(),
            evidence: self.link.id,
        }
    }
}

/// The document of a principal's question about a call. The name tells the store nothing.
pub(super) fn place(
    keys: &UserKey,
    user_id: &str,
    tool: &ToolName,
    [actor, principal]: [&Actor; 2],
    exact: Digest,
) -> DocumentKey {
    let who = serde_json::to_string(&(actor, principal)).expect("names");
    let named = ["approval", tool.as_str(), &exact.to_string(), &who].join("\0");
    let digest = keys.index(named.as_bytes());
    KIND.place(user_id, &KeyDigest(digest).to_string())
}

/// Index entry of all questions about the same matter, for any principal, currency and time zone.
pub(super) fn by_matter(keys: &UserKey, tool: &ToolName, matter: Digest) -> IndexEntry {
    let value = [tool.as_str(), &matter.to_string()].join("\0");
    KIND.index(keys, "call", &value)
}

/// Index entry of all questions about a tool.
pub(super) fn by_tool(keys: &UserKey, tool: &ToolName) -> IndexEntry {
    KIND.index(keys, "tool", tool.as_str())
}

/// Index entry of all questions without an answer.
pub(super) fn pending(keys: &UserKey) -> IndexEntry {
    KIND.index(keys, "pending", "")
}

/// Index entries of all questions about a tool that were denied to a principal, and of all that were denied in a
/// session. The caller chooses the session id, so another session alone lets no caller ask again; a proved identity
/// cannot be changed with an argument.
pub(super) fn denied(
    keys: &UserKey,
    tool: &ToolName,
    principal: &Actor,
    session_id: Option<&str>,
) -> [IndexEntry; 2] {
    let asker = serde_json::to_string(principal).expect("names");
    let asker = [tool.as_str(), "asked by", &asker].join("\0");
    // No session is a session of its own, and none that a caller can name.
    let session = session_id.map_or_else(|| "none".to_owned(), |id| format!("of {id}"));
    let session = [tool.as_str(), &session].join("\0");
    [
        KIND.index(keys, "denied", &asker),
        KIND.index(keys, "denied", &session),
    ]
}

/// The arguments for display. Arguments that are too long to read are not stored; the approval is bound to their
/// digest.
fn displayed(arguments: &Value) -> Value {
    let bytes = arguments.to_string().len();
    if bytes > DISPLAYED_BYTES_MAX {
        return format!("[{bytes} bytes, too long to be shown]").into();
    }
    arguments.clone()
}

/// Maximum size of the arguments that an inbox shows.
const DISPLAYED_BYTES_MAX: usize = 16 * 1024;

/// A moment later than another.
pub(super) fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}
