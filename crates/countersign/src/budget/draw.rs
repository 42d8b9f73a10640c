//! Planning of draws: the amounts that a call takes out of pots.

use countersign_contract::{Actor, ActorType, ErrorBody, ErrorCode, ToolName};
use countersign_evidence::seal::UserKey;
use serde_json::Value;

use super::{Budget, BudgetScope, Currency, Direction, InvalidMoney, Money, ToolAmount, Unit};
use crate::ledger::{Draw, KeyDigest, Overdrawn, PotKey};
use crate::words::Say;

/// The parts of a call that a budget looks at.
pub(crate) struct Call<'a> {
    pub(crate) user_id: &'a str,
    pub(crate) actor: &'a Actor,
    pub(crate) session_id: Option<&'a str>,
    pub(crate) currency: Option<&'a str>,
    pub(crate) tool: &'a ToolName,
    /// The bound arguments, with defaults.
    pub(crate) arguments: &'a Value,
    pub(crate) has_key: bool,
    /// True if the tool changes nothing. Such a call holds no key, so a repeat could not be recognized.
    pub(crate) is_read: bool,
    pub(crate) keys: &'a UserKey,
}

/// The draws of a call, with what is needed to report and settle them.
pub(crate) struct Plan {
    pub(crate) draws: Vec<Draw>,
    /// The source of each draw.
    sources: Vec<Source>,
    /// The grant that answered the question about the call, and the tool.
    grant: Option<(String, ToolName)>,
}

enum Source {
    Budget(Drawn),
    /// A standing grant.
    Grant,
}

/// A draw on a budget.
struct Drawn {
    scope: BudgetScope,
    currency: Currency,
    /// JSON pointer to the spent amount in the answer.
    spent: Option<String>,
    unit: Unit,
    direction: Direction,
}

impl Plan {
    /// Plans the draws of a call on budgets; `None` if there are none; a refusal if its amount cannot be counted.
    pub(crate) fn of<'a>(
        call: &Call<'_>,
        drawn_on: impl Iterator<Item = (&'a Budget, &'a ToolAmount)>,
    ) -> Result<Option<Self>, Box<ErrorBody>> {
        let mut plan = Self {
            draws: Vec::new(),
            sources: Vec::new(),
            grant: None,
        };
        for (budget, tool) in drawn_on {
            plan.draws.push(draw(call, budget, tool)?);
            plan.sources.push(Source::Budget(Drawn {
                scope: budget.scope,
                currency: budget.currency.clone(),
                spent: tool.spent.clone(),
                unit: tool.unit,
                direction: tool.direction,
            }));
        }
        Ok((!plan.draws.is_empty()).then_some(plan))
    }

    /// Adds the use of a grant: budgets and grant are drawn on together, or not at all.
    pub(crate) fn with_grant(
        plan: Option<Self>,
        id: &str,
        tool: &ToolName,
        draws: &[Draw],
    ) -> Self {
        let mut plan = plan.unwrap_or(Self {
            draws: Vec::new(),
            sources: Vec::new(),
            grant: None,
        });
        plan.sources.extend(draws.iter().map(|_| Source::Grant));
        plan.draws.extend_from_slice(draws);
        plan.grant = Some((id.to_owned(), tool.clone()));
        plan
    }

    /// The amounts that were really spent, by draw, if the answer has them.
    pub(crate) fn actual(&self, data: &Value) -> Vec<Option<i64>> {
        let actual = self.sources.iter().map(|source| {
            let source = match source {
                Source::Budget(drawn) => drawn,
                Source::Grant => return None,
            };
            let pointer = source.spent.as_ref()?;
            let value = data.pointer(pointer)?;
            let beside = currency_beside(data, pointer);
            if beside.is_some_and(|(found, _)| !source.currency.is(found)) {
                tracing::warn!("the amount in the tool's answer is in another currency than the budget; the reserved amount is counted");
                return None;
            }
            match source.currency.read(value, source.unit) {
                Ok(money) => Some(source.direction.signed(money)),
                Err(error) => {
                    tracing::warn!(%error, "the tool's answer has no readable amount at the budget's pointer; the reserved amount is counted");
                    None
                }
            }
        });
        actual.collect()
    }

    /// The refusal of a call whose pot has not enough money.
    pub(crate) fn refusal(&self, over: &Overdrawn) -> ErrorBody {
        let draw = self.draws.get(over.draw);
        let source = match (self.sources.get(over.draw), &self.grant) {
            (Some(Source::Grant), Some((id, tool))) => return grant_over(id, tool),
            (Some(Source::Budget(drawn)), _) => Some(drawn),
            (Some(Source::Grant) | None, _) => None,
        };
        let name = draw.map_or("", |draw| draw.pot.name.as_str());
        let budget = name.to_owned();
        let message = match source {
            // What is left for everybody is nobody's business.
            Some(source) if source.scope != BudgetScope::Global => {
                let left = source.currency.shown(Money(over.left));
                Say::BudgetLeft { budget, left }
            }
            Some(_) | None => Say::BudgetOver { budget },
        };
        let body = match over.next_window {
            Some(wait) => {
                let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                ErrorBody::new(ErrorCode::RateLimited, message)
                    .retry_after_ms(ms)
                    .hint(Say::SpendLessOrWait)
            }
            None => ErrorBody::new(ErrorCode::Forbidden, message).hint(Say::SpendLessOrAsk),
        };
        body.detail("limit", "budget").detail("budget", name)
    }
}

/// The refusal of a call whose grant covers it no longer: other calls have used it up meanwhile, or it was revoked. The
/// same call is asked about.
pub(crate) fn grant_over(id: &str, tool: &ToolName) -> ErrorBody {
    let message = Say::GrantOver {
        tool: tool.to_string(),
    };
    ErrorBody::new(ErrorCode::NeedsUserConfirmation, message)
        .hint(Say::SameAgain)
        .detail("grant_id", id)
}

impl Direction {
    fn signed(self, money: Money) -> i64 {
        match self {
            Self::Spend => money.0,
            Self::Refund => -money.0,
        }
    }
}

fn draw(call: &Call<'_>, budget: &Budget, tool: &ToolAmount) -> Result<Draw, Box<ErrorBody>> {
    if tool.direction == Direction::Refund && call.is_read {
        let message = Say::RefundOfRead {
            tool: call.tool.to_string(),
            budget: budget.name.clone(),
        };
        return Err(ErrorBody::new(ErrorCode::Forbidden, message)
            .hint(Say::OperatorMendsPolicy)
            .into());
    }
    if tool.direction == Direction::Refund && !call.has_key {
        let message = Say::RefundNeedsKey {
            budget: budget.name.clone(),
        };
        return Err(ErrorBody::new(ErrorCode::InvalidArgument, message)
            .field("/idempotency_key")
            .hint(Say::NewKeyPerRefund)
            .into());
    }
    check_currency(call, budget, tool)?;
    let found = call.arguments.pointer(&tool.amount);
    let Some(found) = found.filter(|value| !value.is_null()) else {
        let message = Say::NoAmount {
            budget: budget.name.clone(),
            tool: call.tool.to_string(),
        };
        return Err(refused(message, &tool.amount).hint(Say::NameAmount).into());
    };
    let money = budget.currency.read(found, tool.unit).map_err(|error| {
        let message = uncountable(budget.name.clone(), error);
        refused(message, &tool.amount).hint(Say::WriteDecimal)
    });
    let money = money.map_err(Box::new)?;
    Ok(Draw {
        pot: pot(call, budget)?,
        amount: tool.direction.signed(money),
        limit: budget.limit.0,
    })
}

fn uncountable(budget: String, error: InvalidMoney) -> Say {
    match error {
        InvalidMoney::Currency | InvalidMoney::Amount => Say::AmountForm { budget },
        InvalidMoney::Decimals { decimals } => Say::AmountDecimals {
            budget,
            decimals: decimals.to_string(),
        },
        InvalidMoney::TooLarge => Say::AmountTooLarge { budget },
    }
}

/// The currency that stands beside an amount, or beside an object that the amount is in: the nearest one, and its place.
fn currency_beside<'v>(value: &'v Value, amount: &str) -> Option<(&'v str, String)> {
    let mut at = amount;
    while let Some((parent, _)) = at.rsplit_once('/') {
        let found = value.pointer(parent).and_then(|it| it.get("currency"));
        if let Some(currency) = found.and_then(Value::as_str) {
            return Some((currency, format!("{parent}/currency")));
        }
        at = parent;
    }
    None
}

/// Refuses another currency than the pot's: such amounts are not comparable, whatever the rate.
fn check_currency(
    call: &Call<'_>,
    budget: &Budget,
    tool: &ToolAmount,
) -> Result<(), Box<ErrorBody>> {
    let (found, field) = match &tool.currency {
        Some(pointer) => {
            let found = call.arguments.pointer(pointer).and_then(Value::as_str);
            (Some(found.unwrap_or_default()), pointer.clone())
        }
        None => match currency_beside(call.arguments, &tool.amount) {
            Some((found, field)) => (Some(found), field),
            None => (call.currency, "/currency".to_owned()),
        },
    };
    let Some(found) = found.filter(|found| !budget.currency.is(found)) else {
        return Ok(());
    };
    let (budget, currency) = (budget.name.clone(), budget.currency.to_string());
    let hint = Say::CallInCurrency {
        currency: currency.clone(),
    };
    let message = if found.is_empty() {
        Say::NoCurrency { budget, currency }
    } else {
        Say::OtherCurrency { budget, currency }
    };
    Err(refused(message, &field).hint(hint).into())
}

fn refused(message: Say, field: &str) -> ErrorBody {
    ErrorBody::new(ErrorCode::InvalidArgument, message)
        .field(field)
        .detail("limit", "budget")
}

fn pot(call: &Call<'_>, budget: &Budget) -> Result<PotKey, Box<ErrorBody>> {
    if let Some((user_id, holder)) = owner(budget.scope, call.user_id, call.actor) {
        return Ok(budget.pot(user_id, holder));
    }
    let Some(session_id) = call.session_id else {
        let message = Say::NoSession {
            budget: budget.name.clone(),
        };
        return Err(refused(message, "/session_id")
            .hint(Say::SendSession)
            .into());
    };
    // A store is given no names of a user's own.
    let digest = call.keys.key_digest(&format!("session\0{session_id}"));
    let holder = format!("session:{}", KeyDigest(digest));
    Ok(budget.pot(call.user_id, holder))
}

/// Holder of the pot of a person who calls without an agent, in a budget of agents.
pub(super) const PERSON: &str = "user";

/// Owner of the pot: user and holder; `None` if each session has one.
pub(super) fn owner<'a>(
    scope: BudgetScope,
    user_id: &'a str,
    actor: &Actor,
) -> Option<(&'a str, String)> {
    match scope {
        BudgetScope::Global => Some(("", String::new())),
        BudgetScope::User => Some((user_id, String::new())),
        BudgetScope::Agent => {
            let Actor { kind, id } = actor;
            Some(match kind {
                ActorType::Agent => ("", format!("agent:{id}")),
                ActorType::System => ("", format!("system:{id}")),
                // A person's pot goes with the person.
                ActorType::User => (user_id, PERSON.to_owned()),
            })
        }
        BudgetScope::Session => None,
    }
}

impl Budget {
    pub(super) fn pot(&self, user_id: &str, holder: String) -> PotKey {
        PotKey {
            user_id: user_id.to_owned(),
            name: self.name.clone(),
            holder,
            currency: self.currency.code().to_owned(),
            window_seconds: self.window.map_or(0, |window| window.as_secs()),
        }
    }
}
