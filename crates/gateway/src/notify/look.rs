//! The look at everything that needs a person: findings from the durable state, and those of this process.

use std::time::Duration;

use countersign::approve::OpenQuestions;
use countersign::budget::SpentBudget;
use countersign::contract::{Digest, ToolName};
use countersign::ledger::{ClaimQuery, ClaimState, Finding, Look, Notice, NoticeKind};
use jiff::Timestamp;

use super::{GIVE_UP_AFTER, PassError, Target};
use crate::gateway::Gateway;
use crate::status::{UpstreamHealth, UpstreamStatus};

/// Interval between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// Interval between two looks at the budgets, which reads every pot.
const BUDGETS_EVERY: Duration = Duration::from_secs(30);

/// Time after which a finding that no process sees is gone. Processes see upstreams and verifications each for itself.
const GONE_AFTER: Duration = Duration::from_mins(3);

/// Number of newest notices that are kept.
const KEPT_MAX: usize = 10_000;

/// Maximum number of calls in doubt and of pots that are looked at.
const LOOKED_AT_MAX: usize = 10_000;

/// Digits of the digest that tells two states of an upstream apart.
const STATE_DIGITS: usize = 16;

/// Looks, and knows what it has seen the last time.
pub(super) struct Looker {
    started: Duration,
    looked: Option<Duration>,
    questions: OpenQuestions,
    budgets: (Vec<SpentBudget>, bool),
    budgets_looked: Option<Duration>,
    /// Findings and targets of the last look that was kept, and when that was.
    kept: Option<(Vec<Seen>, Duration)>,
}

/// A finding without the id that it would get.
type Seen = (NoticeKind, String, Vec<String>);

impl Looker {
    pub(super) fn new(gateway: &Gateway) -> Self {
        Self {
            started: gateway.executor().clock().monotonic(),
            looked: None,
            questions: OpenQuestions::default(),
            budgets: (Vec::new(), false),
            budgets_looked: None,
            kept: None,
        }
    }

    /// Looks if it is time to, and keeps what is new.
    pub(super) async fn look(
        &mut self,
        gateway: &Gateway,
        targets: &[Target],
    ) -> Result<(), PassError> {
        let now = gateway.executor().clock().monotonic();
        let is_due = |last: Option<Duration>, every: Duration| {
            last.is_none_or(|last| now.saturating_sub(last) >= every)
        };
        if !is_due(self.looked, LOOK_EVERY) {
            return Ok(());
        }
        let with_budgets = is_due(self.budgets_looked, BUDGETS_EVERY);
        let (found, mut complete) = self.findings(gateway, with_budgets).await?;
        if with_budgets {
            self.budgets_looked = Some(now);
        }
        let findings: Vec<Finding> = found
            .into_iter()
            .filter_map(|found| found.finding(gateway, targets))
            .collect();
        let seen: Vec<Seen> = findings.iter().map(seen).collect();
        // What was there before a restart is not gone because this process has not seen it yet.
        if now.saturating_sub(self.started) < GONE_AFTER {
            complete.clear();
        }
        let look = Look {
            findings,
            complete,
            gone_after: GONE_AFTER,
            give_up_after: GIVE_UP_AFTER,
            kept_max: KEPT_MAX,
        };
        let is_kept = self.kept.as_ref().is_some_and(|(kept, at)| {
            *kept == seen && now.saturating_sub(*at) < look.refresh_after()
        });
        if !is_kept {
            let new = gateway.executor().store().keep_notices(&look).await?;
            if !new.is_empty() {
                tracing::info!(notices = new.len(), "new notices wait for delivery");
            }
            self.kept = Some((seen, now));
        }
        self.looked = Some(now);
        Ok(())
    }

    /// Everything that needs a person, and the kinds of which all was seen.
    async fn findings(
        &mut self,
        gateway: &Gateway,
        with_budgets: bool,
    ) -> Result<(Vec<Found>, Vec<NoticeKind>), PassError> {
        let executor = gateway.executor();
        let mut complete = vec![
            NoticeKind::VerificationFailed,
            NoticeKind::DefinitionsChanged,
        ];
        self.questions = executor.approvals().open_questions(&self.questions).await?;
        if self.questions.is_complete {
            complete.push(NoticeKind::Question);
        }
        let mut found: Vec<Found> = self.questions.iter().map(Found::question).collect();
        let query = ClaimQuery {
            state: Some(ClaimState::InDoubt),
            limit: LOOKED_AT_MAX,
            ..ClaimQuery::default()
        };
        let doubts = gateway.archive().claims(&query).await?;
        if doubts.len() < LOOKED_AT_MAX {
            complete.push(NoticeKind::CallInDoubt);
        }
        found.extend(doubts.iter().map(|row| Found {
            kind: NoticeKind::CallInDoubt,
            // The digest is under the user's own key: it tells calls apart, and nothing about them. A call that was settled and is
            // in doubt again is another attempt, so it is another finding at once.
            subject: format!("{}, attempt {}", row.scope.key, row.attempt),
            tool: Some(row.scope.tool.clone()),
            since: Some(row.claimed_at),
            page: "/in-doubt".to_owned(),
        }));
        if with_budgets {
            let budgets = gateway.identity().policy().controls().budgets();
            let store = &**executor.store();
            self.budgets = budgets.spent(store, executor.now(), LOOKED_AT_MAX).await?;
        }
        let (budgets, is_complete) = &self.budgets;
        if *is_complete {
            complete.push(NoticeKind::BudgetUsedUp);
        }
        found.extend(budgets.iter().map(Found::budget));
        let verified = gateway.verified().load_full();
        let faulty = verified.filter(|verified| !verified.is_valid);
        found.extend(faulty.map(|verified| Found {
            kind: NoticeKind::VerificationFailed,
            subject: format!("{} records, {}", verified.size, verified.at),
            tool: None,
            since: Some(verified.at),
            page: "/evidence".to_owned(),
        }));
        let upstreams = gateway.upstreams_status();
        let changed = upstreams
            .iter()
            .filter(|one| one.health == UpstreamHealth::Changed);
        found.extend(changed.map(Found::upstream));
        Ok((found, complete))
    }
}

/// Something that needs a person.
struct Found {
    kind: NoticeKind,
    subject: String,
    tool: Option<ToolName>,
    since: Option<Timestamp>,
    page: String,
}

impl Found {
    fn question(question: &countersign::approve::OpenQuestion) -> Self {
        Self {
            kind: NoticeKind::Question,
            subject: question.id.clone(),
            tool: Some(question.tool.clone()),
            since: Some(question.asked_at),
            page: format!("/approvals/{}", question.id),
        }
    }

    /// A budget is named without the user who has spent it: one message a window, for all of them.
    fn budget(spent: &SpentBudget) -> Self {
        let SpentBudget { name, window_start } = spent;
        Self {
            kind: NoticeKind::BudgetUsedUp,
            subject: match window_start {
                0 => name.clone(),
                start => {
                    let start = Timestamp::from_second(*start).unwrap_or_default();
                    format!("{name}, window from {start}")
                }
            },
            tool: None,
            since: None,
            page: "/policy".to_owned(),
        }
    }

    /// Tools that change again while they wait for an approval are another finding.
    fn upstream(one: &UpstreamStatus) -> Self {
        let state = one.last.as_ref().map(|last| {
            let mut tools = last.differences.clone();
            tools.sort_unstable();
            let changes = serde_json::to_string(&last.changes).unwrap_or_default();
            let digest = Digest::of_bytes(format!("{tools:?}{changes}").as_bytes()).to_string();
            let digits = digest.trim_start_matches("sha256:");
            digits.get(..STATE_DIGITS).unwrap_or(digits).to_owned()
        });
        Self {
            kind: NoticeKind::DefinitionsChanged,
            subject: format!("{}, definitions {}", one.name, state.unwrap_or_default()),
            tool: None,
            since: one.asked_at,
            page: "/upstreams".to_owned(),
        }
    }

    /// Returns the finding for the targets that want it; `None` if none does.
    fn finding(self, gateway: &Gateway, targets: &[Target]) -> Option<Finding> {
        let wants = |target: &&Target| target.kinds.contains(&self.kind);
        let targets: Vec<String> = targets
            .iter()
            .filter(wants)
            .map(|target| target.name.clone())
            .collect();
        if targets.is_empty() {
            return None;
        }
        Some(Finding {
            notice: Notice {
                id: message_id(gateway),
                kind: self.kind,
                subject: self.subject,
                tool: self.tool,
                since: self.since,
                page: self.page,
            },
            targets,
        })
    }
}

fn seen(finding: &Finding) -> Seen {
    let Notice { kind, subject, .. } = &finding.notice;
    (*kind, subject.clone(), finding.targets.clone())
}

/// Draws the id of a message.
fn message_id(gateway: &Gateway) -> String {
    let mut random = [0; 16];
    gateway.ids().fill(&mut random);
    format!("msg_{:032x}", u128::from_be_bytes(random))
}

#[cfg(test)]
mod tests {
    use countersign::offer::Probe;

    use super::*;

    fn changed(differences: &[&str]) -> Found {
        let probe = Probe {
            differences: differences.iter().map(ToString::to_string).collect(),
            ..Probe::default()
        };
        Found::upstream(&UpstreamStatus {
            name: "files".to_owned(),
            health: UpstreamHealth::Changed,
            asked_at: None,
            last: Some(probe),
            last_error: None,
        })
    }

    /// Tools that change again while they wait for an approval are another finding; another order of them is not.
    #[test]
    fn another_change_of_an_upstream_is_another_finding() {
        let first = changed(&["read", "write"]);
        assert_eq!(first.kind, NoticeKind::DefinitionsChanged);
        assert!(first.subject.starts_with("files, definitions "));
        assert_eq!(first.subject, changed(&["write", "read"]).subject);
        assert_ne!(first.subject, changed(&["read", "write", "delete"]).subject);
    }

    #[test]
    fn a_budget_is_named_with_its_window_and_without_a_user() {
        let subject = |window_start| {
            let name = "purchases".to_owned();
            Found::budget(&SpentBudget { name, window_start }).subject
        };
        assert_eq!(subject(0), "purchases");
        assert_eq!(
            subject(1_763_164_800),
            "purchases, window from 2025-11-15T00:00:00Z"
        );
    }
}
