//! Check of a filter before it is compiled: the language that it may use.

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Term};
use jaq_core::ops::Math;
use jaq_core::path::{Part, Path};

use super::FilterError;

/// Maximum number of operators in a model's filter that can enlarge their input.
const GROWERS_MAX: usize = 12;

/// The deepest nesting of a filter.
const DEPTH_MAX: usize = 64;

/// Functions that look beyond the answer, or end the program.
const OUTSIDE: [&str; 12] = [
    "debug",
    "env",
    "halt",
    "halt_error",
    "input",
    "input_filename",
    "input_line_number",
    "inputs",
    "now",
    "stderr",
    "debug_empty",
    "stderr_empty",
];

/// Functions that loop until something happens, which may be never.
const ENDLESS: [&str; 3] = ["repeat", "until", "while"];

/// Functions of a projection: each looks at its input once.
const PROJECTING: [&str; 41] = [
    "all",
    "any",
    "arrays",
    "ascii_downcase",
    "ascii_upcase",
    "contains",
    "empty",
    "endswith",
    "first",
    "floor",
    "from_entries",
    "group_by",
    "has",
    "index",
    "keys",
    "keys_unsorted",
    "last",
    "length",
    "ltrimstr",
    "map",
    "map_values",
    "max",
    "max_by",
    "min",
    "min_by",
    "not",
    "objects",
    "reverse",
    "round",
    "rtrimstr",
    "select",
    "sort",
    "sort_by",
    "startswith",
    "strings",
    "to_entries",
    "tonumber",
    "tostring",
    "type",
    "unique",
    "unique_by",
];

/// Author of a filter, whose rules apply to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rules {
    Operator,
    Model,
}

/// Checks a filter before it is compiled.
pub(super) struct Check<'t> {
    rules: Rules,
    growers: usize,
    /// The functions that the term is inside of.
    enclosing: Vec<&'t str>,
}

impl<'t> Check<'t> {
    pub(super) const fn new(rules: Rules) -> Self {
        Self {
            rules,
            growers: 0,
            enclosing: Vec::new(),
        }
    }

    pub(super) fn term(&mut self, term: &Term<&'t str>, depth: usize) -> Result<(), FilterError> {
        if depth > DEPTH_MAX {
            return Err(FilterError::TooComplex);
        }
        let refused = match self.rules {
            Rules::Operator => outside(term).or_else(|| self.endless(term)),
            Rules::Model => beyond_projection(term),
        };
        if let Some(name) = refused {
            return Err(FilterError::NotHere {
                name: name.to_owned(),
            });
        }
        if self.rules == Rules::Model {
            self.growers += growers(term);
            if self.growers > GROWERS_MAX {
                return Err(FilterError::TooComplex);
            }
            crossed(term).into_iter().try_for_each(single)?;
        }
        if let Term::Def(defs, body) = term {
            for def in defs {
                self.enclosing.push(def.name);
                let checked = self.term(&def.body, depth + 1);
                self.enclosing.pop();
                checked?;
            }
            return self.term(body, depth + 1);
        }
        let mut children = children(term).into_iter();
        children.try_for_each(|child| self.term(child, depth + 1))
    }

    /// A part that may never end: a loop that nothing bounds, or a function that calls itself.
    fn endless(&self, term: &Term<&'t str>) -> Option<&'t str> {
        match term {
            Term::Call(name, _) if self.enclosing.contains(name) => Some(name),
            Term::Call(name, _) if ENDLESS.contains(name) => Some(name),
            Term::Call(name @ "recurse", arguments) if !arguments.is_empty() => Some(name),
            _ => None,
        }
    }
}

/// A function that looks beyond the answer.
fn outside<'t>(term: &Term<&'t str>) -> Option<&'t str> {
    match term {
        Term::Call(name, _) if OUTSIDE.contains(name) => Some(name),
        _ => None,
    }
}

/// A part that no projection has.
fn beyond_projection<'t>(term: &Term<&'t str>) -> Option<&'t str> {
    match term {
        Term::Call(name, _) if !PROJECTING.contains(name) => Some(name),
        Term::Var(name) | Term::Fold(name, ..) => Some(name),
        Term::Recurse => Some(".."),
        Term::Label(..) | Term::Break(_) => Some("label"),
        Term::Def(..) => Some("def"),
        Term::Str(Some(format), _) => Some(format),
        Term::Str(None, parts) => {
            let has_term = parts.iter().any(|it| matches!(it, StrPart::Term(_)));
            has_term.then_some("an interpolated text")
        }
        Term::BinOp(_, operator, _) => match operator {
            BinaryOp::Math(Math::Mul) => Some("*"),
            BinaryOp::Pipe(Some(_)) => Some("as"),
            BinaryOp::Assign | BinaryOp::Update | BinaryOp::UpdateMath(_) | BinaryOp::UpdateAlt => {
                Some("an assignment")
            }
            BinaryOp::Pipe(None)
            | BinaryOp::Comma
            | BinaryOp::Alt
            | BinaryOp::Or
            | BinaryOp::And
            | BinaryOp::Math(_)
            | BinaryOp::Cmp(_) => None,
        },
        Term::Id
        | Term::Num(_)
        | Term::Arr(_)
        | Term::Obj(_)
        | Term::Neg(_)
        | Term::TryCatch(..)
        | Term::IfThenElse(..)
        | Term::Call(..)
        | Term::Path(..) => None,
    }
}

/// Returns how many times a term can enlarge its input.
fn growers(term: &Term<&str>) -> usize {
    match term {
        Term::BinOp(_, BinaryOp::Comma | BinaryOp::Math(_), _) => 1,
        Term::Obj(members) => members.len() / 4,
        _ => 0,
    }
}

/// The parts of a term of which each result meets each result of the others.
fn crossed<'t, 's>(term: &'t Term<&'s str>) -> Vec<&'t Term<&'s str>> {
    match term {
        Term::BinOp(_, BinaryOp::Pipe(_) | BinaryOp::Comma, _) => Vec::new(),
        Term::BinOp(left, _, right) => vec![left, right],
        Term::Obj(members) => {
            let member = |(name, value): &'t (Term<&'s str>, Option<Term<&'s str>>)| {
                [Some(name), value.as_ref()]
            };
            members.iter().flat_map(member).flatten().collect()
        }
        Term::Path(_, Path(parts)) => parts.iter().flat_map(|(part, _)| inner(part)).collect(),
        _ => Vec::new(),
    }
}

fn inner<'t, 's>(part: &'t Part<Term<&'s str>>) -> Vec<&'t Term<&'s str>> {
    match part {
        Part::Index(index) => vec![index],
        Part::Range(from, to) => from.iter().chain(to).collect(),
    }
}

/// The terms that a term is made of.
fn children<'t, 's>(term: &'t Term<&'s str>) -> Vec<&'t Term<&'s str>> {
    match term {
        Term::Id
        | Term::Recurse
        | Term::Num(_)
        | Term::Arr(None)
        | Term::Break(_)
        | Term::Var(_) => Vec::new(),
        Term::Str(_, parts) => {
            let term = |part: &'t StrPart<_, Term<&'s str>>| match part {
                StrPart::Term(term) => Some(term),
                StrPart::Str(_) | StrPart::Char(_) => None,
            };
            parts.iter().filter_map(term).collect()
        }
        Term::Arr(Some(inner)) | Term::Neg(inner) | Term::Label(_, inner) => vec![inner],
        Term::Obj(_) => crossed(term),
        Term::BinOp(left, _, right) => vec![left, right],
        Term::Fold(_, source, _, terms) => terms.iter().chain([&**source]).collect(),
        Term::TryCatch(first, second) => [&**first].into_iter().chain(second.as_deref()).collect(),
        Term::IfThenElse(branches, last) => {
            let branch =
                |(condition, branch): &'t (Term<&'s str>, Term<&'s str>)| [condition, branch];
            branches
                .iter()
                .flat_map(branch)
                .chain(last.as_deref())
                .collect()
        }
        Term::Def(defs, body) => {
            let bodies = defs.iter().map(|def| &def.body);
            bodies.chain([&**body]).collect()
        }
        Term::Call(_, arguments) => arguments.iter().collect(),
        Term::Path(from, Path(parts)) => {
            let inner = parts.iter().flat_map(|(part, _)| inner(part));
            [&**from].into_iter().chain(inner).collect()
        }
    }
}

/// Complains about a term that may have several results.
fn single(term: &Term<&str>) -> Result<(), FilterError> {
    let refuse = || {
        Err(FilterError::NotHere {
            name: "a part with several results (put it into [ ])".to_owned(),
        })
    };
    match term {
        Term::Path(from, Path(parts)) => {
            let iterates = |(part, _): &(Part<_>, _)| matches!(part, Part::Range(None, None));
            if parts.iter().any(iterates) {
                return refuse();
            }
            single(from)
        }
        Term::BinOp(_, BinaryOp::Comma, _) | Term::Recurse => refuse(),
        Term::BinOp(left, _, right) => {
            single(left)?;
            single(right)
        }
        Term::Neg(inner) => single(inner),
        Term::IfThenElse(branches, last) => {
            for (condition, branch) in branches {
                single(condition)?;
                single(branch)?;
            }
            last.as_deref().map_or(Ok(()), single)
        }
        Term::TryCatch(first, second) => {
            single(first)?;
            second.as_deref().map_or(Ok(()), single)
        }
        // The argument of a function such as `map` runs once for each item, and the result is one list; `select` and the rest
        // hand on at most what they get.
        _ => Ok(()),
    }
}
