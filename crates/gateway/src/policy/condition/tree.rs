//! The tree of an expression: a closed set of what a condition can say.

use rust_decimal::Decimal;

/// A part of an expression, and its place in the text.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) expr: Expr,
    /// Place in the text, in bytes.
    pub(super) at: usize,
}

/// An expression or a part of one. Closed.
#[derive(Debug, Clone)]
pub(super) enum Expr {
    Bool(bool),
    Number(Decimal),
    Text(String),
    Null,
    List(Vec<Node>),
    /// A value of the call.
    Path(Path),
    /// Test for the presence of a value.
    Has(Path),
    Index(Box<Node>, Box<Node>),
    Not(Box<Node>),
    /// Both of two.
    And(Box<Node>, Box<Node>),
    /// Any of two.
    Or(Box<Node>, Box<Node>),
    If(Box<[Node; 3]>),
    Compare(Comparison, Box<[Node; 2]>),
    In(Box<[Node; 2]>),
    Arithmetic(Arithmetic, Box<[Node; 2]>),
    Negate(Box<Node>),
    Call(Function, Vec<Node>),
    /// Over the items of a list, each under a name.
    Each(Box<Each>),
}

/// `all` or `exists` over a list.
#[derive(Debug, Clone)]
pub(super) struct Each {
    pub(super) is_all: bool,
    /// The list: a path below `args`.
    pub(super) over: Path,
    pub(super) body: Node,
}

/// A root and the members below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) root: Root,
    pub(super) members: Vec<String>,
}

impl Path {
    /// The path as it is written.
    pub(super) fn text(&self) -> String {
        let root = match &self.root {
            Root::Args => "args",
            Root::Principal => "principal",
            Root::Session => "session",
            Root::Call => "call",
            Root::Tool => "tool",
            Root::Upstream => "upstream",
            Root::Now => "now",
            Root::Item(name) => name,
        };
        let members = self.members.iter().map(String::as_str);
        let all: Vec<&str> = std::iter::once(root).chain(members).collect();
        all.join(".")
    }
}

/// Root of a path. Closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Root {
    /// The bound arguments.
    Args,
    /// The caller: `actor`, `type`, `user`, `scopes`.
    Principal,
    /// The session: `id`.
    Session,
    /// The envelope: `currency`, `dry_run`.
    Call,
    /// The tool: `name`, `effect`.
    Tool,
    /// The upstream's name; empty if the tool has none.
    Upstream,
    /// The time of arrival.
    Now,
    /// An item of the list that `all` or `exists` goes through.
    Item(String),
}

/// A comparison. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Comparison {
    /// True if it needs values that have an order.
    pub(super) fn is_of_order(self) -> bool {
        match self {
            Self::Equal | Self::Unequal => false,
            Self::Less | Self::AtMost | Self::Greater | Self::AtLeast => true,
        }
    }
}

/// A calculation with numbers. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// A function. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Size,
    StartsWith,
    EndsWith,
    Contains,
    LowerAscii,
    /// A number of a text that is one.
    Decimal,
    /// Money of an amount in major units: `12.50`.
    Money,
    /// Money of an amount in minor units: `1250`.
    Minor,
    Timestamp,
    FullYear,
    Month,
    Date,
    DayOfWeek,
    Hours,
    Minutes,
}

impl Function {
    /// The function of a name, and the numbers of arguments that it takes, a target included.
    pub(super) fn named(name: &str) -> Option<(Self, std::ops::RangeInclusive<usize>)> {
        Some(match name {
            "size" => (Self::Size, 1..=1),
            "startsWith" => (Self::StartsWith, 2..=2),
            "endsWith" => (Self::EndsWith, 2..=2),
            "contains" => (Self::Contains, 2..=2),
            "lowerAscii" => (Self::LowerAscii, 1..=1),
            "decimal" => (Self::Decimal, 1..=1),
            "money" => (Self::Money, 1..=2),
            "minor" => (Self::Minor, 1..=2),
            "timestamp" => (Self::Timestamp, 1..=1),
            "getFullYear" => (Self::FullYear, 1..=2),
            "getMonth" => (Self::Month, 1..=2),
            "getDate" => (Self::Date, 1..=2),
            "getDayOfWeek" => (Self::DayOfWeek, 1..=2),
            "getHours" => (Self::Hours, 1..=2),
            "getMinutes" => (Self::Minutes, 1..=2),
            _ => return None,
        })
    }

    /// The names, for a message.
    pub(super) const NAMES: &'static str = "has, size, startsWith, endsWith, contains, lowerAscii, decimal, money, minor, timestamp, \
         getFullYear, getMonth, getDate, getDayOfWeek, getHours, getMinutes, all, exists";
}

/// Facts that are needed to decide an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Needs {
    /// Only the caller, the tool and the time.
    Nothing,
    /// The envelope of a call.
    Call,
    /// The arguments of a call.
    Arguments,
}

impl Node {
    /// The parts of this one, in the order of the text.
    pub(super) fn parts(&self) -> Vec<&Node> {
        match &self.expr {
            Expr::Bool(_)
            | Expr::Number(_)
            | Expr::Text(_)
            | Expr::Null
            | Expr::Path(_)
            | Expr::Has(_) => Vec::new(),
            Expr::List(nodes) | Expr::Call(_, nodes) => nodes.iter().collect(),
            Expr::Index(a, b) | Expr::And(a, b) | Expr::Or(a, b) => vec![a, b],
            Expr::Not(node) | Expr::Negate(node) => vec![node],
            Expr::If(nodes) => nodes.iter().collect(),
            Expr::Compare(_, nodes) | Expr::In(nodes) | Expr::Arithmetic(_, nodes) => {
                nodes.iter().collect()
            }
            Expr::Each(each) => vec![&each.body],
        }
    }

    /// The path that the expression itself reads.
    pub(super) fn path(&self) -> Option<&Path> {
        match &self.expr {
            Expr::Path(path) | Expr::Has(path) => Some(path),
            Expr::Each(each) => Some(&each.over),
            Expr::Bool(_)
            | Expr::Number(_)
            | Expr::Text(_)
            | Expr::Null
            | Expr::List(_)
            | Expr::Index(..)
            | Expr::Not(_)
            | Expr::And(..)
            | Expr::Or(..)
            | Expr::If(_)
            | Expr::Compare(..)
            | Expr::In(_)
            | Expr::Arithmetic(..)
            | Expr::Negate(_)
            | Expr::Call(..) => None,
        }
    }

    /// Visits this part and all below it.
    pub(super) fn walk<'n>(&'n self, visit: &mut impl FnMut(&'n Node)) {
        visit(self);
        for part in self.parts() {
            part.walk(visit);
        }
    }

    pub(super) fn needs(&self) -> Needs {
        let mut needs = Needs::Nothing;
        self.walk(&mut |node| {
            if let Some(path) = node.path() {
                needs = needs.max(match path.root {
                    Root::Args | Root::Item(_) => Needs::Arguments,
                    Root::Session | Root::Call => Needs::Call,
                    Root::Principal | Root::Tool | Root::Upstream | Root::Now => Needs::Nothing,
                });
            }
        });
        needs
    }
}
