//! Deciding an expression for one call: exact numbers, money with its currency, and a bound on the steps.

use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Ordering;

use countersign::authorize::Facts;
use countersign::budget::{Currency, InvalidMoney, Money};
use jiff::Timestamp;
use rust_decimal::Decimal;
use serde_json::{Number, Value};

use super::tree::{Arithmetic, Comparison, Each, Expr, Node, Path, Root};
use super::{CALL_STEPS_MAX, STEPS_MAX};

/// Reason for which a condition cannot be decided for a call. It names places of the policy, and no value of the call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failed {
    /// Something that it looks at is not there. Usually an optional argument is used without `has`.
    #[error("{path} is not there")]
    Absent {
        /// Path of the missing value.
        path: String,
    },
    /// A value is of a type that the operation does not take.
    /// Usually the tool does not declare the type of the argument.
    #[error("a value is {found}, where another type is needed")]
    Type {
        /// The type of the value.
        found: &'static str,
    },
    /// Money of two currencies is compared. Usually the rule names one currency, and the call has another.
    #[error("{left} and {right} cannot be compared")]
    Currency {
        /// The first currency.
        left: String,
        /// The second currency.
        right: String,
    },
    /// A value is no amount of money, or no currency. Usually the argument is a plain number in another unit.
    #[error(transparent)]
    Money(#[from] InvalidMoney),
    /// A value is no number, or one that cannot be compared exactly.
    /// Usually it is a string with a unit in it, or has too many digits.
    #[error("a value is no number that can be compared exactly")]
    Number,
    /// A value is no time. Usually it has no offset from UTC.
    #[error("a value is no time such as 2026-12-31T00:00:00Z")]
    Time,
    /// A list has no item of an index. Usually the list is shorter than the rule expects.
    #[error("a list has no item of this index")]
    Index,
    /// It takes too many steps. Usually a list of the call is very long.
    #[error("it takes more than {STEPS_MAX} steps")]
    Steps,
    /// The conditions of a call take too many steps together. Usually many of them go through a long list of the call.
    #[error("the conditions of the call take more than {CALL_STEPS_MAX} steps together")]
    CallSteps,
    /// It depends on the scopes of the caller, and they are unknown, usually because a recorded call is decided again: a record does not have them.
    #[error("the scopes of the caller are not known")]
    Scopes,
}

/// Steps that the conditions of one call have taken together.
#[derive(Debug, Default)]
pub struct Steps(Cell<usize>);

/// Decides a condition as one of those of a call. Without the scopes of the caller, one that depends on them fails.
pub(super) fn holds(
    root: &Node,
    facts: &Facts<'_>,
    together: &Steps,
    knows_scopes: bool,
) -> Result<bool, Failed> {
    let evaluation = Evaluation {
        facts,
        steps: Cell::new(0),
        together,
        knows_scopes,
    };
    evaluation.truth(root, None)
}

/// A value.
#[derive(Debug, Clone)]
pub(super) enum Datum<'a> {
    Null,
    Bool(bool),
    Number(Decimal),
    Text(Cow<'a, str>),
    Money(Currency, Money),
    Time(Timestamp),
    List(Vec<Datum<'a>>),
    Object(&'a Value),
}

impl Datum<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "true or false",
            Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::Money(..) => "money",
            Self::Time(_) => "a time",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }

    pub(super) fn wrong(&self) -> Failed {
        Failed::Type { found: self.name() }
    }
}

/// An item of a list under its name.
pub(super) type Item<'i> = Option<&'i Value>;

pub(super) struct Evaluation<'a> {
    facts: &'a Facts<'a>,
    steps: Cell<usize>,
    together: &'a Steps,
    knows_scopes: bool,
}

impl<'a> Evaluation<'a> {
    pub(super) fn step(&self, cost: usize) -> Result<(), Failed> {
        let steps = self.steps.get().saturating_add(cost);
        self.steps.set(steps);
        if steps > STEPS_MAX {
            return Err(Failed::Steps);
        }
        let together = self.together.0.get().saturating_add(cost);
        self.together.0.set(together);
        if together > CALL_STEPS_MAX {
            return Err(Failed::CallSteps);
        }
        Ok(())
    }

    fn truth(&self, node: &'a Node, item: Item<'a>) -> Result<bool, Failed> {
        match self.value(node, item)? {
            Datum::Bool(value) => Ok(value),
            other => Err(other.wrong()),
        }
    }

    fn number(&self, node: &'a Node, item: Item<'a>) -> Result<Decimal, Failed> {
        match self.value(node, item)? {
            Datum::Number(value) => Ok(value),
            other => Err(other.wrong()),
        }
    }

    pub(super) fn text(&self, node: &'a Node, item: Item<'a>) -> Result<Cow<'a, str>, Failed> {
        match self.value(node, item)? {
            Datum::Text(value) => Ok(value),
            other => Err(other.wrong()),
        }
    }

    pub(super) fn value(&self, node: &'a Node, item: Item<'a>) -> Result<Datum<'a>, Failed> {
        self.step(1)?;
        Ok(match &node.expr {
            Expr::Bool(value) => Datum::Bool(*value),
            Expr::Number(value) => Datum::Number(*value),
            Expr::Text(value) => Datum::Text(Cow::Borrowed(value)),
            Expr::Null => Datum::Null,
            Expr::List(nodes) => {
                let values = nodes.iter().map(|node| self.value(node, item));
                Datum::List(values.collect::<Result<_, _>>()?)
            }
            Expr::Path(path) => self.path(path, item)?,
            Expr::Has(path) => Datum::Bool(self.is_there(path, item)?),
            Expr::Index(list, index) => self.index(list, index, item)?,
            Expr::Not(inner) => Datum::Bool(!self.truth(inner, item)?),
            Expr::And(a, b) => Datum::Bool(self.both(a, b, item, false)?),
            Expr::Or(a, b) => Datum::Bool(self.both(a, b, item, true)?),
            Expr::If(nodes) => {
                let [condition, yes, no] = &**nodes;
                let chosen = if self.truth(condition, item)? {
                    yes
                } else {
                    no
                };
                self.value(chosen, item)?
            }
            Expr::Compare(how, nodes) => {
                let [a, b] = &**nodes;
                let (a, b) = (self.value(a, item)?, self.value(b, item)?);
                self.step(cost(&a))?;
                Datum::Bool(compare(*how, &a, &b)?)
            }
            Expr::In(nodes) => {
                let [a, b] = &**nodes;
                Datum::Bool(self.is_in(&self.value(a, item)?, self.value(b, item)?)?)
            }
            Expr::Arithmetic(how, nodes) => {
                let [a, b] = &**nodes;
                let (a, b) = (self.number(a, item)?, self.number(b, item)?);
                let result = match how {
                    Arithmetic::Add => a.checked_add(b),
                    Arithmetic::Subtract => a.checked_sub(b),
                    Arithmetic::Multiply => a.checked_mul(b),
                    Arithmetic::Divide => a.checked_div(b),
                };
                Datum::Number(result.ok_or(Failed::Number)?)
            }
            Expr::Negate(inner) => Datum::Number(-self.number(inner, item)?),
            Expr::Call(function, nodes) => self.call(*function, nodes, item)?,
            Expr::Each(each) => Datum::Bool(self.each(each, item)?),
        })
    }

    /// `&&` (absorbed by false) or `||` (absorbed by true), in either order: an operand that cannot be decided does not
    /// matter where the other one decides.
    fn both(
        &self,
        a: &'a Node,
        b: &'a Node,
        item: Item<'a>,
        absorbing: bool,
    ) -> Result<bool, Failed> {
        let first = self.truth(a, item);
        if first == Ok(absorbing) {
            return Ok(absorbing);
        }
        let second = self.truth(b, item);
        match (first, second) {
            (_, Ok(second)) if second == absorbing => Ok(absorbing),
            (Err(failed), _) | (Ok(_), Err(failed)) => Err(failed),
            (Ok(_), Ok(_)) => Ok(!absorbing),
        }
    }

    fn path(&self, path: &'a Path, item: Item<'a>) -> Result<Datum<'a>, Failed> {
        let facts = self.facts;
        let absent = || Failed::Absent { path: path.text() };
        let text = |text: &'a str| Ok(Datum::Text(Cow::Borrowed(text)));
        let member = path.members.first().map(String::as_str);
        match (&path.root, member) {
            (Root::Args | Root::Item(_), _) => self.datum(self.locate(path, item)?),
            (Root::Principal, Some("actor")) => text(&facts.principal.actor.id),
            (Root::Principal, Some("type")) => text(facts.principal.actor.kind.as_str()),
            (Root::Principal, Some("user")) => text(facts.user_id.ok_or_else(absent)?),
            (Root::Principal, Some("scopes")) if !self.knows_scopes => Err(Failed::Scopes),
            (Root::Principal, Some("scopes")) => {
                let scopes = facts.principal.scopes.iter();
                let scopes = scopes.map(|scope| Datum::Text(Cow::Borrowed(scope)));
                Ok(Datum::List(scopes.collect()))
            }
            (Root::Session, Some("id")) => text(facts.session_id.ok_or_else(absent)?),
            (Root::Call, Some("currency")) => text(facts.currency.ok_or_else(absent)?),
            (Root::Call, Some("dry_run")) => Ok(Datum::Bool(facts.dry_run)),
            (Root::Tool, Some("name")) => text(facts.tool.name.as_str()),
            (Root::Tool, Some("effect")) => text(facts.tool.behaviour.effect.as_str()),
            (Root::Upstream, None) => text(facts.upstream.unwrap_or_default()),
            (Root::Now, None) => Ok(Datum::Time(facts.now)),
            (
                Root::Principal
                | Root::Session
                | Root::Call
                | Root::Tool
                | Root::Upstream
                | Root::Now,
                _,
            ) => Err(absent()),
        }
    }

    /// The value of the call that a path leads to.
    fn locate(&self, path: &Path, item: Item<'a>) -> Result<&'a Value, Failed> {
        let absent = || Failed::Absent { path: path.text() };
        let mut value = match path.root {
            Root::Item(_) => item.ok_or_else(absent)?,
            Root::Args
            | Root::Principal
            | Root::Session
            | Root::Call
            | Root::Tool
            | Root::Upstream
            | Root::Now => self.facts.arguments,
        };
        for member in &path.members {
            self.step(1)?;
            value = value.get(member.as_str()).ok_or_else(absent)?;
        }
        Ok(value)
    }

    /// True if there is something other than null.
    fn is_there(&self, path: &'a Path, item: Item<'a>) -> Result<bool, Failed> {
        let found = match path.root {
            Root::Args | Root::Item(_) => self.locate(path, item).map(|value| !value.is_null()),
            Root::Principal
            | Root::Session
            | Root::Call
            | Root::Tool
            | Root::Upstream
            | Root::Now => self.path(path, item).map(|_| true),
        };
        match found {
            Err(Failed::Absent { .. }) => Ok(false),
            found => found,
        }
    }

    pub(super) fn datum(&self, value: &'a Value) -> Result<Datum<'a>, Failed> {
        Ok(match value {
            Value::Null => Datum::Null,
            Value::Bool(value) => Datum::Bool(*value),
            Value::Number(number) => Datum::Number(self.decimal(number)?),
            Value::String(text) => Datum::Text(Cow::Borrowed(text)),
            Value::Array(items) => {
                self.step(items.len())?;
                // An item that cannot be compared does not spoil the others.
                let items = items.iter().map(|item| match item {
                    Value::Array(_) => Err(Failed::Type { found: "a list" }),
                    Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::String(_)
                    | Value::Object(_) => self.datum(item),
                });
                Datum::List(items.collect::<Result<_, _>>()?)
            }
            Value::Object(_) => Datum::Object(value),
        })
    }

    fn decimal(&self, number: &Number) -> Result<Decimal, Failed> {
        if let Some(whole) = number.as_i64() {
            return Ok(Decimal::from(whole));
        }
        if let Some(whole) = number.as_u64() {
            return Ok(Decimal::from(whole));
        }
        let text = number.to_string();
        let exact = Decimal::from_str_exact(&text)
            .or_else(|_| Decimal::from_scientific(&text))
            .ok();
        exact.filter(|_| self.facts.is_exact).ok_or(Failed::Number)
    }

    fn index(&self, list: &'a Node, index: &'a Node, item: Item<'a>) -> Result<Datum<'a>, Failed> {
        let index = self.number(index, item)?;
        let index = usize::try_from(index).ok().filter(|_| index.is_integer());
        match self.value(list, item)? {
            Datum::List(items) => {
                let found = index.and_then(|index| items.into_iter().nth(index));
                found.ok_or(Failed::Index)
            }
            other => Err(other.wrong()),
        }
    }

    fn is_in(&self, wanted: &Datum<'_>, list: Datum<'_>) -> Result<bool, Failed> {
        let Datum::List(items) = list else {
            return Err(list.wrong());
        };
        for item in items {
            self.step(cost(&item))?;
            if compare(Comparison::Equal, wanted, &item)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn each(&self, each: &'a Each, item: Item<'a>) -> Result<bool, Failed> {
        let Value::Array(items) = self.locate(&each.over, item)? else {
            return Err(Failed::Type { found: "no list" });
        };
        let absorbing = !each.is_all;
        let mut undecided = None;
        for one in items {
            match self.truth(&each.body, Some(one)) {
                Ok(value) if value == absorbing => return Ok(absorbing),
                Ok(_) => {}
                Err(failed @ (Failed::Steps | Failed::CallSteps)) => return Err(failed),
                Err(failed) => undecided = undecided.or(Some(failed)),
            }
        }
        undecided.map_or(Ok(!absorbing), Err)
    }
}

/// Bytes of a text that are looked at in one step.
pub(super) const BYTES_A_STEP: usize = 256;

fn cost(value: &Datum<'_>) -> usize {
    match value {
        Datum::Text(text) => 1 + text.len() / BYTES_A_STEP,
        Datum::Null
        | Datum::Bool(_)
        | Datum::Number(_)
        | Datum::Money(..)
        | Datum::Time(_)
        | Datum::List(_)
        | Datum::Object(_) => 1,
    }
}

fn compare(how: Comparison, a: &Datum<'_>, b: &Datum<'_>) -> Result<bool, Failed> {
    let order = match (a, b) {
        (Datum::Number(a), Datum::Number(b)) => a.cmp(b),
        (Datum::Time(a), Datum::Time(b)) => a.cmp(b),
        (Datum::Money(left, a), Datum::Money(right, b)) => {
            if left != right {
                let (left, right) = (left.code().to_owned(), right.code().to_owned());
                return Err(Failed::Currency { left, right });
            }
            a.cmp(b)
        }
        (Datum::Text(a), Datum::Text(b)) if !how.is_of_order() => a.cmp(b),
        (Datum::Bool(a), Datum::Bool(b)) if !how.is_of_order() => a.cmp(b),
        (Datum::Null, Datum::Null) if !how.is_of_order() => Ordering::Equal,
        (Datum::Null, _) | (_, Datum::Null) if !how.is_of_order() => Ordering::Less,
        (_, other) => return Err(other.wrong()),
    };
    Ok(match how {
        Comparison::Equal => order.is_eq(),
        Comparison::Unequal => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::AtMost => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::AtLeast => order.is_ge(),
    })
}
