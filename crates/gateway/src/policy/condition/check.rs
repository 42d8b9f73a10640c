//! The types of an expression: what a condition compares must be comparable, and what it looks at must be there.

use countersign::contract::ToolSpec;

use super::Wrong;
use super::literals::literals;
use super::schema::{Member, Object, Type};
use super::tree::{Comparison, Each, Expr, Function, Node, Path, Root};

/// Checks everything that does not depend on a tool.
pub(super) fn without_tools(root: &Node) -> Result<(), Wrong> {
    let checker = Checker {
        tool: None,
        args: &Type::Any,
        guards: guards(root),
    };
    checker.condition(root)
}

/// Checks an expression against the tools that its rule matches.
pub(super) fn against(root: &Node, tools: &[&ToolSpec]) -> Result<(), Wrong> {
    let types: Vec<(&str, Type)> = tools
        .iter()
        .map(|tool| (tool.name.as_str(), Type::of_arguments(tool)))
        .collect();
    let mut missing = None;
    root.walk(&mut |node| {
        if let Some(path) = node.path()
            && path.root == Root::Args
            && !types.is_empty()
            && missing.is_none()
        {
            let is_there = |(_, kind): &(&str, Type)| find(kind, &path.members).is_ok();
            if !types.iter().any(is_there) {
                missing = Some((node, path));
            }
        }
    });
    if let (Some((node, path)), Some((name, kind))) = (missing, types.first()) {
        let lost = find(kind, &path.members).err();
        return Err(unknown(node.at, path, name, lost.as_ref()));
    }
    for (tool, args) in &types {
        let checker = Checker {
            tool: Some(tool),
            args,
            guards: guards(root),
        };
        checker.condition(root)?;
    }
    Ok(())
}

/// Checks an expression against a tool that is not the one it was accepted with.
pub(super) fn later<'t>(
    root: &Node,
    tool: &ToolSpec,
    before: Option<&ToolSpec>,
    matched: &dyn Fn() -> Vec<&'t ToolSpec>,
) -> Result<(), Wrong> {
    let args = Type::of_arguments(tool);
    let was = before.map(Type::of_arguments);
    let mut lost = Ok(());
    root.walk(&mut |node| {
        let path = node.path().filter(|path| path.root == Root::Args);
        let Some(path) = path.filter(|_| lost.is_ok()) else {
            return;
        };
        let Err(missing) = find(&args, &path.members) else {
            return;
        };
        let has = |kind: &Type| find(kind, &path.members).is_ok();
        let is_needed = match &was {
            Some(was) => has(was),
            None => !matched()
                .into_iter()
                .any(|other| has(&Type::of_arguments(other))),
        };
        if is_needed {
            lost = Err(unknown(node.at, path, tool.name.as_str(), Some(&missing)));
        }
    });
    lost?;
    let checker = Checker {
        tool: Some(tool.name.as_str()),
        args: &args,
        guards: guards(root),
    };
    checker.condition(root)
}

/// The paths that an expression asks for with `has`.
fn guards(root: &Node) -> Vec<&Path> {
    let mut guards = Vec::new();
    root.walk(&mut |node| {
        if let Expr::Has(path) = &node.expr {
            guards.push(path);
        }
    });
    guards
}

/// A member that a type does not have.
struct Lost {
    member: String,
    known: Vec<String>,
}

/// The type of the members below a type, and how many of them lead to the first one that may be left out.
fn find(kind: &Type, members: &[String]) -> Result<(Type, Option<usize>), Lost> {
    let (mut kind, mut open) = (kind, None);
    for (index, name) in members.iter().enumerate() {
        let object = match kind {
            Type::Any => return Ok((Type::Any, open.or(Some(index + 1)))),
            Type::Object(object) => object,
            Type::Bool
            | Type::Number
            | Type::Text
            | Type::Money
            | Type::Time
            | Type::Null
            | Type::List(_) => {
                return Err(Lost {
                    member: name.clone(),
                    known: Vec::new(),
                });
            }
        };
        let (next, is_optional) = match (object.members.get(name), &object.others) {
            (Some(Member { kind, is_optional }), _) => (kind, *is_optional),
            (None, Some(others)) => (&**others, true),
            (None, None) => {
                return Err(Lost {
                    member: name.clone(),
                    known: object.members.keys().cloned().collect(),
                });
            }
        };
        kind = next;
        open = open.or(is_optional.then_some(index + 1));
    }
    Ok((kind.clone(), open))
}

fn unknown(at: usize, path: &Path, tool: &str, lost: Option<&Lost>) -> Wrong {
    let path = path.text();
    let message = match lost {
        Some(lost) => lost.message(tool, &path),
        None => format!("{tool} has no {path}"),
    };
    Wrong::at(at, message)
}

impl Lost {
    fn message(&self, tool: &str, path: &str) -> String {
        let Self { member, known } = self;
        if known.is_empty() {
            return format!("{tool} has no {path}: there is no {member:?}");
        }
        let known = known.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>();
        let known = known.join(", ");
        format!("{tool} has no {path}: there is no {member:?}, but {known}")
    }
}

/// Checks that a tool declares the argument that a JSON pointer leads to.
pub(super) fn pointer(tool: &ToolSpec, pointer: &str) -> Result<(), String> {
    let mut kind = Type::of_arguments(tool);
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        kind = match kind {
            Type::List(item) if step.parse::<usize>().is_ok() => *item,
            Type::Bool
            | Type::Number
            | Type::Text
            | Type::Money
            | Type::Time
            | Type::Null
            | Type::List(_)
            | Type::Object(_)
            | Type::Any => match find(&kind, &[step]) {
                Ok((kind, _)) => kind,
                Err(lost) => return Err(lost.message(tool.name.as_str(), pointer)),
            },
        };
    }
    Ok(())
}

/// The member `currency` that a tool declares beside an amount, or beside an object that the amount is in: the nearest one.
pub(super) fn currency_beside(tool: &ToolSpec, amount: &str) -> Option<String> {
    let arguments = Type::of_arguments(tool);
    let mut at = amount;
    while let Some((parent, _)) = at.rsplit_once('/') {
        let mut kind = Some(arguments.clone());
        for step in parent.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            kind = kind.and_then(|kind| match kind {
                Type::List(item) => Some(*item),
                other => find(&other, &[step]).ok().map(|(kind, _)| kind),
            });
        }
        if let Some(Type::Object(object)) = kind
            && object.members.contains_key("currency")
        {
            return Some(format!("{parent}/currency"));
        }
        at = parent;
    }
    None
}

/// Maximum number of members that a message names.
const NAMED_MAX: usize = 12;

struct Checker<'a> {
    /// The tool that is looked at; `None` before tools are known.
    tool: Option<&'a str>,
    args: &'a Type,
    guards: Vec<&'a Path>,
}

/// Type of the item inside of `all` or `exists`.
type Item<'i> = Option<&'i Type>;

impl Checker<'_> {
    fn condition(&self, root: &Node) -> Result<(), Wrong> {
        self.expect(root, None, &Type::Bool, "a condition")
            .map(drop)
    }

    /// Checks that a part is of a type, or may be.
    fn expect(&self, node: &Node, item: Item<'_>, kind: &Type, who: &str) -> Result<(), Wrong> {
        let found = self.kind(node, item)?;
        if found == Type::Any || found == *kind {
            return Ok(());
        }
        let (found, kind) = (found.name(), kind.name());
        Err(Wrong::at(
            node.at,
            format!("{who} takes {kind}, and this is {found}"),
        ))
    }

    fn kind(&self, node: &Node, item: Item<'_>) -> Result<Type, Wrong> {
        let logic = |nodes: &[&Node]| {
            for node in nodes {
                self.expect(node, item, &Type::Bool, "a logical operator")?;
            }
            Ok(Type::Bool)
        };
        match &node.expr {
            Expr::Bool(_) => Ok(Type::Bool),
            Expr::Number(_) => Ok(Type::Number),
            Expr::Text(_) => Ok(Type::Text),
            Expr::Null => Ok(Type::Null),
            Expr::List(nodes) => self.list(nodes, item),
            Expr::Path(path) => self.path(node, path, item),
            Expr::Has(path) => self.has(node, path, item),
            Expr::Index(list, index) => {
                self.expect(index, item, &Type::Number, "an index")?;
                match self.kind(list, item)? {
                    Type::List(kind) => Ok(*kind),
                    Type::Any => Ok(Type::Any),
                    other => Err(Wrong::at(list.at, format!("{} has no items", other.name()))),
                }
            }
            Expr::Not(inner) => logic(&[inner]),
            Expr::And(a, b) | Expr::Or(a, b) => logic(&[a, b]),
            Expr::If(nodes) => {
                let [condition, yes, no] = &**nodes;
                logic(&[condition])?;
                let (first, second) = (self.kind(yes, item)?, self.kind(no, item)?);
                Ok(if first == second { first } else { Type::Any })
            }
            Expr::Compare(how, nodes) => {
                let [a, b] = &**nodes;
                let (left, right) = (self.kind(a, item)?, self.kind(b, item)?);
                comparable(*how, &left, &right).map_err(|message| Wrong::at(node.at, message))?;
                Ok(Type::Bool)
            }
            Expr::In(nodes) => self.is_in(node, nodes, item),
            Expr::Arithmetic(_, nodes) => {
                for part in nodes.iter() {
                    self.expect(part, item, &Type::Number, "a calculation")?;
                }
                Ok(Type::Number)
            }
            Expr::Negate(inner) => {
                self.expect(inner, item, &Type::Number, "a minus sign")?;
                Ok(Type::Number)
            }
            Expr::Call(function, nodes) => self.call(*function, nodes, node.at, item),
            Expr::Each(each) => self.each(node, each, item),
        }
    }

    fn is_in(&self, node: &Node, nodes: &[Node; 2], item: Item<'_>) -> Result<Type, Wrong> {
        let [a, b] = nodes;
        let left = self.kind(a, item)?;
        match self.kind(b, item)? {
            Type::List(right) => comparable(Comparison::Equal, &left, &right)
                .map_err(|message| Wrong::at(node.at, message))?,
            Type::Any => {}
            other => {
                let message = format!("in takes a list, and this is {}", other.name());
                return Err(Wrong::at(b.at, message));
            }
        }
        Ok(Type::Bool)
    }

    fn each(&self, node: &Node, each: &Each, item: Item<'_>) -> Result<Type, Wrong> {
        let kind = match self.path(node, &each.over, item)? {
            Type::List(kind) => *kind,
            Type::Any => Type::Any,
            other => {
                let message = format!("all and exists take a list, and this is {}", other.name());
                return Err(Wrong::at(node.at, message));
            }
        };
        self.expect(&each.body, Some(&kind), &Type::Bool, "all or exists")?;
        Ok(Type::Bool)
    }

    fn list(&self, nodes: &[Node], item: Item<'_>) -> Result<Type, Wrong> {
        let mut kinds = Vec::new();
        for node in nodes {
            let kind = self.kind(node, item)?;
            if let Type::List(_) | Type::Object(_) = kind {
                return Err(Wrong::at(
                    node.at,
                    "a list of lists or objects cannot be written",
                ));
            }
            kinds.push(kind);
        }
        let first = kinds.first().cloned().unwrap_or(Type::Any);
        let is_alike = kinds.iter().all(|kind| *kind == first);
        let kind = if is_alike { first } else { Type::Any };
        Ok(Type::List(Box::new(kind)))
    }

    fn root_type(&self, root: &Root, item: Item<'_>) -> Type {
        match root {
            Root::Args => self.args.clone(),
            Root::Item(_) => item.cloned().unwrap_or(Type::Any),
            Root::Principal => object(&[
                ("actor", Type::Text, false),
                ("type", Type::Text, false),
                ("user", Type::Text, false),
                ("scopes", Type::List(Box::new(Type::Text)), false),
            ]),
            Root::Session => object(&[("id", Type::Text, true)]),
            Root::Call => object(&[
                ("currency", Type::Text, true),
                ("dry_run", Type::Bool, false),
            ]),
            Root::Tool => object(&[("name", Type::Text, false), ("effect", Type::Text, false)]),
            Root::Upstream => Type::Text,
            Root::Now => Type::Time,
        }
    }

    fn path(&self, node: &Node, path: &Path, item: Item<'_>) -> Result<Type, Wrong> {
        let root = self.root_type(&path.root, item);
        let is_guarded = |members: usize| {
            let wanted = path.members.get(..members).unwrap_or(&path.members);
            self.guards
                .iter()
                .any(|guard| guard.root == path.root && guard.members.starts_with(wanted))
        };
        match find(&root, &path.members) {
            // Before tools are known, nothing is known of arguments.
            Ok((kind, _)) if root == Type::Any && self.tool.is_none() => Ok(kind),
            Ok((_, Some(members))) if !is_guarded(members) => {
                let open = Path {
                    root: path.root.clone(),
                    members: path.members.iter().take(members).cloned().collect(),
                };
                let (open, who) = (open.text(), self.who());
                let message =
                    format!("{open} may be left out{who}: ask with has({open}) && … first");
                Err(Wrong::at(node.at, message))
            }
            Ok((kind, _)) => Ok(kind),
            // Another tool that the rule matches has it.
            Err(_) if self.tool.is_some() && is_guarded(path.members.len()) => Ok(Type::Any),
            Err(lost) => Err(self.unknown(node.at, path, &lost)),
        }
    }

    fn who(&self) -> String {
        self.tool
            .map_or_else(String::new, |tool| format!(" in a call of {tool}"))
    }

    fn unknown(&self, at: usize, path: &Path, lost: &Lost) -> Wrong {
        let who = match path.root {
            Root::Args | Root::Item(_) => self.tool.unwrap_or("the tool"),
            Root::Principal
            | Root::Session
            | Root::Call
            | Root::Tool
            | Root::Upstream
            | Root::Now => "a call",
        };
        unknown(at, path, who, Some(lost))
    }

    fn has(&self, node: &Node, path: &Path, item: Item<'_>) -> Result<Type, Wrong> {
        let root = self.root_type(&path.root, item);
        let may_be_elsewhere = path.root == Root::Args && self.tool.is_some();
        match find(&root, &path.members) {
            Ok(_) => Ok(Type::Bool),
            Err(_) if may_be_elsewhere => Ok(Type::Bool),
            Err(lost) => Err(self.unknown(node.at, path, &lost)),
        }
    }

    fn call(
        &self,
        function: Function,
        nodes: &[Node],
        at: usize,
        item: Item<'_>,
    ) -> Result<Type, Wrong> {
        let mut kinds = Vec::new();
        for node in nodes {
            kinds.push(self.kind(node, item)?);
        }
        let is = |index: usize, wanted: &[Type]| {
            let kind = kinds.get(index).unwrap_or(&Type::Any);
            *kind == Type::Any || wanted.contains(kind)
        };
        let (is_fine, kind) = match function {
            Function::Size => {
                let sized = matches!(
                    kinds.first(),
                    Some(Type::Text | Type::List(_) | Type::Object(_) | Type::Any)
                );
                (sized, Type::Number)
            }
            Function::StartsWith | Function::EndsWith | Function::Contains => {
                (is(0, &[Type::Text]) && is(1, &[Type::Text]), Type::Bool)
            }
            Function::LowerAscii => (is(0, &[Type::Text]), Type::Text),
            Function::Decimal => (is(0, &[Type::Number, Type::Text]), Type::Number),
            Function::Money | Function::Minor => (Self::is_money(&kinds), Type::Money),
            Function::Timestamp => (is(0, &[Type::Text]), Type::Time),
            Function::FullYear
            | Function::Month
            | Function::Date
            | Function::DayOfWeek
            | Function::Hours
            | Function::Minutes => (is(0, &[Type::Time]), Type::Number),
        };
        if !is_fine {
            let names: Vec<&str> = kinds.iter().map(Type::name).collect();
            let message = format!("this function does not take {}", names.join(" and "));
            return Err(Wrong::at(at, message));
        }
        literals(function, nodes)?;
        Ok(kind)
    }

    fn is_money(kinds: &[Type]) -> bool {
        let is_amount = |kind: &Type| matches!(kind, Type::Number | Type::Text | Type::Any);
        let is_currency = |kind: &Type| matches!(kind, Type::Text | Type::Any);
        match kinds {
            [Type::Any] => true,
            [Type::Object(Object { members, others })] => {
                let of = |name: &str| match (members.get(name), others) {
                    (Some(member), _) => Some(&member.kind),
                    (None, others) => others.as_deref(),
                };
                of("amount").is_some_and(is_amount) && of("currency").is_some_and(is_currency)
            }
            [amount, currency] => is_amount(amount) && is_currency(currency),
            _ => false,
        }
    }
}

fn object(members: &[(&str, Type, bool)]) -> Type {
    let members = members.iter().map(|(name, kind, is_optional)| {
        let member = Member {
            kind: kind.clone(),
            is_optional: *is_optional,
        };
        ((*name).to_owned(), member)
    });
    Type::Object(Object {
        members: members.collect(),
        others: None,
    })
}

fn comparable(how: Comparison, left: &Type, right: &Type) -> Result<(), String> {
    let pair = format!("{} and {}", left.name(), right.name());
    match (left, right) {
        (Type::List(_) | Type::Object(_), _) | (_, Type::List(_) | Type::Object(_)) => {
            Err(format!("{pair} cannot be compared: compare their members"))
        }
        (Type::Text, _) | (_, Type::Text) if how.is_of_order() => Err(format!(
            "{pair} have no order: write decimal(…), money(…) or timestamp(…) around a text that is one"
        )),
        (Type::Any, _) | (_, Type::Any) => Ok(()),
        (Type::Null, _) | (_, Type::Null) if !how.is_of_order() => Ok(()),
        (Type::Bool | Type::Null, _) | (_, Type::Bool | Type::Null) if how.is_of_order() => {
            Err(format!("{pair} have no order"))
        }
        (left, right) if left == right => Ok(()),
        _ => Err(format!(
            "{pair} cannot be compared: decimal(…) makes a number of a text, money(amount, currency) makes money"
        )),
    }
}
