//! From a text to the tree: the crate `cel` reads the grammar, and what a condition cannot say is refused here.

use std::thread;

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr as Ast, LiteralValue, SourceInfo};
use cel::common::ast::{SelectExpr, operators};
use cel::parser::{Expression, ParseErrors, Parser};
use rust_decimal::Decimal;

use super::tree::{Arithmetic, Comparison, Each, Expr, Function, Node, Path, Root};
use super::{BYTES_MAX, DEPTH_MAX, NODES_MAX, Wrong};

/// Stack of the thread that reads an expression: its parser and the tree that it makes are recursive.
const STACK_BYTES: usize = 32 << 20;

/// Reads a text.
pub(super) fn lower(source: &str) -> Result<Node, Wrong> {
    if source.len() > BYTES_MAX {
        let message = format!("the condition has more than {BYTES_MAX} bytes");
        return Err(Wrong::at(BYTES_MAX, message));
    }
    if let Some(at) = too_deep(source) {
        return Err(deep(at));
    }
    thread::scope(|scope| {
        let builder = thread::Builder::new().stack_size(STACK_BYTES);
        let reading = builder.spawn_scoped(scope, || read(source));
        let read = reading.ok().map(thread::ScopedJoinHandle::join);
        read.and_then(Result::ok)
            .unwrap_or_else(|| Err(Wrong::at(0, "the condition cannot be read")))
    })
}

/// Place of the first bracket or operator sign that nests deeper than it may; the parser is not given such a text.
fn too_deep(source: &str) -> Option<usize> {
    let (mut depth, mut signs) = (0_usize, 0_usize);
    for (at, byte) in source.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'!' | b'-' => signs += 1,
            b' ' | b'\t' | b'\n' => {}
            _ => signs = 0,
        }
        if depth > DEPTH_MAX || signs > DEPTH_MAX {
            return Some(at);
        }
    }
    None
}

fn deep(at: usize) -> Wrong {
    Wrong::at(at, format!("the condition nests deeper than {DEPTH_MAX}"))
}

fn read(source: &str) -> Result<Node, Wrong> {
    let parser = Parser::new()
        .max_recursion_depth(u16::try_from(2 * DEPTH_MAX).unwrap_or(u16::MAX))
        .error_recovery_limit(1);
    let (tree, places) = parser
        .parse_with_source_info(source)
        .map_err(|errors| unread(source, &errors))?;
    let mut lowering = Lowering {
        source,
        places: &places,
        nodes: 0,
        item: None,
    };
    lowering.node(&tree, 0, 0)
}

fn unread(source: &str, errors: &ParseErrors) -> Wrong {
    let Some(first) = errors.errors.first() else {
        return Wrong::at(0, "the condition cannot be read");
    };
    let (line, column) = first.pos;
    let line = usize::try_from(line.max(1)).unwrap_or(1);
    let column = usize::try_from(column.max(1)).unwrap_or(1);
    let before: usize = source
        .split_inclusive('\n')
        .take(line - 1)
        .map(str::len)
        .sum();
    let rest = source.get(before..).unwrap_or_default();
    let within = rest.char_indices().nth(column - 1);
    let offset = within.map_or(source.len(), |(at, _)| before + at);
    let message = first.msg.lines().next().unwrap_or_default();
    let message: String = message.chars().take(MESSAGE_CHARS).collect();
    Wrong::at(offset, message)
}

/// Maximum length of the parser's message.
const MESSAGE_CHARS: usize = 200;

struct Lowering<'a> {
    source: &'a str,
    places: &'a SourceInfo,
    nodes: usize,
    /// Name of the item inside of `all` or `exists`.
    item: Option<String>,
}

impl Lowering<'_> {
    fn node(&mut self, ast: &Expression, outer: usize, depth: usize) -> Result<Node, Wrong> {
        let at = match &ast.expr {
            Ast::Select(_) => self.begin(ast),
            Ast::Comprehension(each) => self.begin(&each.iter_range),
            Ast::Unspecified
            | Ast::Call(_)
            | Ast::Ident(_)
            | Ast::List(_)
            | Ast::Literal(_)
            | Ast::Map(_)
            | Ast::Struct(_) => self.place(ast.id),
        };
        let at = at.unwrap_or(outer);
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            let message = format!("the condition has more than {NODES_MAX} parts");
            return Err(Wrong::at(at, message));
        }
        if depth > DEPTH_MAX {
            return Err(deep(at));
        }
        let depth = depth + 1;
        let expr = match &ast.expr {
            Ast::Literal(literal) => self.literal(literal, at)?,
            Ast::Ident(_) => Expr::Path(self.path(ast, at)?),
            Ast::Select(select) => self.select(ast, select, at)?,
            Ast::List(list) => {
                if !list.optional_indices.is_empty() {
                    return Err(Wrong::at(at, "an item of a list cannot be optional"));
                }
                Expr::List(self.all(&list.elements, at, depth)?)
            }
            Ast::Call(call) => self.call(call, at, depth)?,
            Ast::Comprehension(each) => self.each(each, at, depth)?,
            Ast::Map(_) | Ast::Struct(_) | Ast::Unspecified => {
                return Err(Wrong::at(at, "a condition makes no maps or messages"));
            }
        };
        Ok(Node { expr, at })
    }

    /// Place of a part, in bytes.
    fn place(&self, id: u64) -> Option<usize> {
        let (start, _) = self.places.offset_for(id)?;
        Some(self.source.floor_char_boundary(start as usize))
    }

    /// Place where a path begins; the parser names the last point of it.
    fn begin(&self, ast: &Expression) -> Option<usize> {
        let mut ast = ast;
        while let Ast::Select(select) = &ast.expr {
            ast = &select.operand;
        }
        self.place(ast.id)
    }

    fn all(&mut self, parts: &[Expression], at: usize, depth: usize) -> Result<Vec<Node>, Wrong> {
        parts
            .iter()
            .map(|part| self.node(part, at, depth))
            .collect()
    }

    fn literal(&self, literal: &LiteralValue, at: usize) -> Result<Expr, Wrong> {
        Ok(match literal {
            LiteralValue::Boolean(value) => Expr::Bool(*value.inner()),
            LiteralValue::Int(value) => Expr::Number(Decimal::from(*value.inner())),
            LiteralValue::UInt(value) => Expr::Number(Decimal::from(*value.inner())),
            LiteralValue::Double(value) => Expr::Number(self.double(*value.inner(), at)?),
            LiteralValue::String(value) => Expr::Text(value.inner().to_owned()),
            LiteralValue::Null => Expr::Null,
            LiteralValue::Bytes(_) => {
                return Err(Wrong::at(at, "a condition has no bytes"));
            }
        })
    }

    /// A number with a point, exactly as it is written.
    fn double(&self, value: f64, at: usize) -> Result<Decimal, Wrong> {
        let rest = self.source.get(at..).unwrap_or_default();
        let is_of_number = |c: char| c.is_ascii_digit() || c == '.';
        let end = rest.find(|c| !is_of_number(c)).unwrap_or(rest.len());
        let written = rest.get(..end).unwrap_or_default();
        let exact = Decimal::from_str_exact(written).ok();
        // One with an exponent, or one that the parser has put a sign to.
        let exact = exact.filter(|it| f64::try_from(*it).is_ok_and(|it| same(it, value)));
        let exact = exact.or_else(|| Decimal::from_scientific(&format!("{value:e}")).ok());
        exact.ok_or_else(|| Wrong::at(at, "this number is too large or has too many digits"))
    }

    fn select(&mut self, ast: &Expression, select: &SelectExpr, at: usize) -> Result<Expr, Wrong> {
        if select.test {
            let mut path = self.path(&select.operand, at)?;
            path.members.push(select.field.clone());
            return Ok(Expr::Has(path));
        }
        Ok(Expr::Path(self.path(ast, at)?))
    }

    fn path(&self, ast: &Expression, at: usize) -> Result<Path, Wrong> {
        let mut members = Vec::new();
        let mut ast = ast;
        loop {
            if members.len() > DEPTH_MAX {
                return Err(deep(at));
            }
            match &ast.expr {
                Ast::Select(select) if !select.test => {
                    members.push(select.field.clone());
                    ast = &select.operand;
                }
                Ast::Ident(name) => {
                    members.reverse();
                    let at = self.place(ast.id).unwrap_or(at);
                    let root = self.root(name, at)?;
                    return Ok(Path { root, members });
                }
                Ast::Unspecified
                | Ast::Call(_)
                | Ast::Comprehension(_)
                | Ast::List(_)
                | Ast::Literal(_)
                | Ast::Map(_)
                | Ast::Select(_)
                | Ast::Struct(_) => {
                    let message =
                        "members exist only on args, principal, session, call, tool and list items";
                    return Err(Wrong::at(at, message));
                }
            }
        }
    }

    fn root(&self, name: &str, at: usize) -> Result<Root, Wrong> {
        if self.item.as_deref() == Some(name) {
            return Ok(Root::Item(name.to_owned()));
        }
        Ok(match name {
            "args" => Root::Args,
            "principal" => Root::Principal,
            "session" => Root::Session,
            "call" => Root::Call,
            "tool" => Root::Tool,
            "upstream" => Root::Upstream,
            "now" => Root::Now,
            _ => {
                let name: String = name.chars().take(MESSAGE_CHARS).collect();
                let message = format!(
                    "there is no {name:?}: a condition looks at args, principal, session, call, tool, upstream and now"
                );
                return Err(Wrong::at(at, message));
            }
        })
    }

    fn call(&mut self, call: &CallExpr, at: usize, depth: usize) -> Result<Expr, Wrong> {
        let target = call.target.as_deref();
        let parts: Vec<&Expression> = target.into_iter().chain(&call.args).collect();
        let mut nodes = Vec::with_capacity(parts.len());
        for part in parts {
            nodes.push(self.node(part, at, depth)?);
        }
        let name = call.func_name.as_str();
        let nodes = match operator(name, nodes) {
            Ok(expr) => return Ok(expr),
            Err(nodes) => nodes,
        };
        match Function::named(name) {
            Some((function, counts)) if counts.contains(&nodes.len()) => {
                Ok(Expr::Call(function, nodes))
            }
            Some(_) => Err(Wrong::at(at, format!("{name} takes other arguments"))),
            None => {
                let name: String = name.chars().take(MESSAGE_CHARS).collect();
                let names = Function::NAMES;
                let message = format!("there is no function {name:?}: there are {names}");
                Err(Wrong::at(at, message))
            }
        }
    }

    /// `all` and `exists`, which the parser has written out.
    fn each(&mut self, each: &ComprehensionExpr, at: usize, depth: usize) -> Result<Expr, Wrong> {
        let (is_all, body) = body_of(each).ok_or_else(|| {
            let message = "a condition goes through a list with all or exists only";
            Wrong::at(at, message)
        })?;
        if self.item.is_some() {
            return Err(Wrong::at(at, "all and exists do not stand in one another"));
        }
        let over = self.path(&each.iter_range, at)?;
        if over.root != Root::Args {
            return Err(Wrong::at(
                at,
                "all and exists go through a list of args only",
            ));
        }
        self.item = Some(each.iter_var.clone());
        let body = self.node(body, at, depth);
        self.item = None;
        Ok(Expr::Each(Box::new(Each {
            is_all,
            over,
            body: body?,
        })))
    }
}

/// The body of `all` or `exists`, and true for `all`; `None` for any other loop.
fn body_of(each: &ComprehensionExpr) -> Option<(bool, &Expression)> {
    if each.iter_var2.is_some() {
        return None;
    }
    let Ast::Literal(LiteralValue::Boolean(begin)) = &each.accu_init.expr else {
        return None;
    };
    let is_accumulator =
        |ast: &Expression| matches!(&ast.expr, Ast::Ident(name) if *name == each.accu_var);
    let is_all = *begin.inner();
    let wanted = if is_all {
        operators::LOGICAL_AND
    } else {
        operators::LOGICAL_OR
    };
    match (&each.loop_step.expr, is_accumulator(&each.result)) {
        (Ast::Call(step), true) if step.func_name == wanted => match step.args.as_slice() {
            [first, body] if is_accumulator(first) => Some((is_all, body)),
            _ => None,
        },
        _ => None,
    }
}

/// True for the same number: a literal that was read from the text is the one that the parser has read.
fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits()
}

/// The operator of a name; the parts come back if there is none.
fn operator(name: &str, nodes: Vec<Node>) -> Result<Expr, Vec<Node>> {
    let compare = |how, nodes| Expr::Compare(how, Box::new(nodes));
    let calculate = |how, nodes| Expr::Arithmetic(how, Box::new(nodes));
    let count = nodes.len();
    if let (1, operators::LOGICAL_NOT | operators::NEGATE) = (count, name) {
        let mut nodes = nodes;
        return match nodes.pop() {
            Some(node) if name == operators::NEGATE => Ok(Expr::Negate(Box::new(node))),
            Some(node) => Ok(Expr::Not(Box::new(node))),
            None => Err(nodes),
        };
    }
    if let (3, operators::CONDITIONAL) = (count, name) {
        return <[Node; 3]>::try_from(nodes).map(|nodes| Expr::If(Box::new(nodes)));
    }
    let pair = <[Node; 2]>::try_from(nodes)?;
    Ok(match name {
        operators::LOGICAL_AND | operators::LOGICAL_OR | operators::INDEX => {
            let [a, b] = pair.map(Box::new);
            match name {
                operators::LOGICAL_AND => Expr::And(a, b),
                operators::LOGICAL_OR => Expr::Or(a, b),
                _ => Expr::Index(a, b),
            }
        }
        operators::EQUALS => compare(Comparison::Equal, pair),
        operators::NOT_EQUALS => compare(Comparison::Unequal, pair),
        operators::LESS => compare(Comparison::Less, pair),
        operators::LESS_EQUALS => compare(Comparison::AtMost, pair),
        operators::GREATER => compare(Comparison::Greater, pair),
        operators::GREATER_EQUALS => compare(Comparison::AtLeast, pair),
        operators::IN => Expr::In(Box::new(pair)),
        operators::ADD => calculate(Arithmetic::Add, pair),
        operators::SUBSTRACT => calculate(Arithmetic::Subtract, pair),
        operators::MULTIPLY => calculate(Arithmetic::Multiply, pair),
        operators::DIVIDE => calculate(Arithmetic::Divide, pair),
        _ => return Err(pair.into()),
    })
}
