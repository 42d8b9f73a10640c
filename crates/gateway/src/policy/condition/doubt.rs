//! Conditions that are valid and rarely meant: those that hold for no call, and those that let another currency through.

use countersign::contract::{ActorType, Effect, ToolSpec};

use super::schema::values_of;
use super::tree::{Comparison, Expr, Function, Node, Path, Root};

/// Place of the part for which the condition holds for no call of a tool; `None` if it may hold.
pub(super) fn never(node: &Node, tool: &ToolSpec, upstreams: Option<&[&str]>) -> Option<usize> {
    let never = |node: &Node| never(node, tool, upstreams);
    let both = |a: &Node, b: &Node| never(a).filter(|_| never(b).is_some());
    let cannot_be = |path: &Node, text: &Node| {
        let (Expr::Path(path), Expr::Text(text)) = (&path.expr, &text.expr) else {
            return false;
        };
        let values = values(path, tool, upstreams);
        values.is_some_and(|values| !values.contains(text))
    };
    let is_never = match &node.expr {
        Expr::Bool(value) => !value,
        Expr::Not(inner) => matches!(inner.expr, Expr::Bool(true)),
        Expr::And(a, b) => return never(a).or_else(|| never(b)),
        Expr::Or(a, b) => return both(a, b),
        Expr::If(nodes) => {
            let [_, yes, no] = &**nodes;
            return both(yes, no);
        }
        Expr::Each(each) => return never(&each.body).filter(|_| !each.is_all),
        Expr::Compare(Comparison::Equal, nodes) => {
            let [a, b] = &**nodes;
            cannot_be(a, b) || cannot_be(b, a)
        }
        Expr::In(nodes) => {
            let [path, list] = &**nodes;
            let Expr::List(texts) = &list.expr else {
                return None;
            };
            texts.iter().all(|text| cannot_be(path, text))
        }
        Expr::Compare(..)
        | Expr::Number(_)
        | Expr::Text(_)
        | Expr::Null
        | Expr::List(_)
        | Expr::Path(_)
        | Expr::Has(_)
        | Expr::Index(..)
        | Expr::Arithmetic(..)
        | Expr::Negate(_)
        | Expr::Call(..) => false,
    };
    is_never.then_some(node.at)
}

/// The values that a path can have in a call of a tool; `None` if any.
fn values(path: &Path, tool: &ToolSpec, upstreams: Option<&[&str]>) -> Option<Vec<String>> {
    let member = path.members.first().map(String::as_str);
    let texts = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect());
    match (&path.root, member) {
        (Root::Args, _) => values_of(tool, &path.members),
        (Root::Principal, Some("type")) => {
            let all = [ActorType::User, ActorType::Agent, ActorType::System];
            texts(&all.map(ActorType::as_str))
        }
        (Root::Tool, Some("name")) => texts(&[tool.name.as_str()]),
        (Root::Tool, Some("effect")) => {
            let effect: Effect = tool.behaviour.effect;
            texts(&[effect.as_str()])
        }
        // A tool of the program itself has none.
        (Root::Upstream, None) => texts(&[upstreams?, &[""]].concat()),
        (
            Root::Principal
            | Root::Session
            | Root::Call
            | Root::Tool
            | Root::Upstream
            | Root::Now
            | Root::Item(_),
            _,
        ) => None,
    }
}

/// A currency that a condition names beside the order of a plain number: for another one it is false.
pub(super) struct OneCurrency<'n> {
    pub(super) code: &'n str,
    /// The currency of the call.
    pub(super) path: &'n Path,
    pub(super) at: usize,
}

/// The first currency that a condition names beside the order of a plain number.
pub(super) fn one_currency(root: &Node) -> Option<OneCurrency<'_>> {
    let mut found = None;
    root.walk(&mut |node| {
        if found.is_none() && matches!(node.expr, Expr::And(..)) {
            let mut parts = Vec::new();
            flatten(node, &mut parts);
            if parts.iter().any(|part| orders_a_number(part)) {
                found = parts.iter().find_map(|part| names_currency(part));
            }
        }
    });
    found
}

/// True if a condition says something about calls in which this path has another value: `!=`, or `!` before a comparison.
pub(super) fn looks_at_others(root: &Node, path: &Path) -> bool {
    let mut looks = false;
    root.walk(&mut |node| {
        looks |= match &node.expr {
            Expr::Compare(Comparison::Unequal, nodes) => {
                nodes.iter().any(|node| node.path() == Some(path))
            }
            Expr::Not(inner) => match &inner.expr {
                Expr::Compare(Comparison::Equal, nodes) | Expr::In(nodes) => {
                    nodes.iter().any(|node| node.path() == Some(path))
                }
                _ => false,
            },
            _ => false,
        };
    });
    looks
}

fn flatten<'n>(node: &'n Node, parts: &mut Vec<&'n Node>) {
    if let Expr::And(a, b) = &node.expr {
        flatten(a, parts);
        flatten(b, parts);
    } else {
        parts.push(node);
    }
}

/// True for the order of numbers, and not of money or times.
fn orders_a_number(node: &Node) -> bool {
    let Expr::Compare(how, nodes) = &node.expr else {
        return false;
    };
    let is_amount = |node: &Node| {
        let is_path = |path: &Path| matches!(path.root, Root::Args | Root::Item(_));
        match &node.expr {
            Expr::Path(path) => is_path(path),
            Expr::Call(Function::Decimal, nodes) => {
                nodes.iter().any(|node| node.path().is_some_and(is_path))
            }
            _ => false,
        }
    };
    let is_number = |node: &Node| matches!(node.expr, Expr::Number(_));
    let [a, b] = &**nodes;
    how.is_of_order() && (is_amount(a) && is_number(b) || is_number(a) && is_amount(b))
}

/// The currency in `args.currency == 'EUR'`.
fn names_currency(node: &Node) -> Option<OneCurrency<'_>> {
    let Expr::Compare(Comparison::Equal, nodes) = &node.expr else {
        return None;
    };
    let [a, b] = &**nodes;
    let ((Expr::Path(path), Expr::Text(code)) | (Expr::Text(code), Expr::Path(path))) =
        (&a.expr, &b.expr)
    else {
        return None;
    };
    let last = path.members.last()?.to_ascii_lowercase();
    let is_currency = last.contains("currency") && matches!(path.root, Root::Args | Root::Call);
    is_currency.then_some(OneCurrency {
        code,
        path,
        at: node.at,
    })
}
