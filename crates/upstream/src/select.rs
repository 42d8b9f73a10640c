//! Filters over answers, in the language of jq.
//!
//! A filter of the configuration may do everything that changes nothing outside it. A filter that a model has chosen is a
//! projection: it cannot loop, recurse or multiply what is there, so its cost is bounded by the answer.

use std::fmt::Write as _;

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Term};
use jaq_core::load::{Arena, File, Loader};
use jaq_core::ops::Math;
use jaq_core::path::{Part, Path};
use jaq_core::{Compiler, Ctx, Vars, data};
use jaq_json::{Val, read};
use serde_json::Value;

type Data = data::JustLut<Val>;

/// A compiled filter.
///
/// # Example
///
/// ```
/// use countersign_upstream::select::Filter;
/// use serde_json::json;
///
/// let filter = Filter::parse(".items | map({id})")?;
/// let answer = json!({"items": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]});
/// assert_eq!(filter.apply(&answer)?, json!([{"id": 1}, {"id": 2}]));
/// # Ok::<(), countersign_upstream::select::FilterError>(())
/// ```
pub struct Filter {
    compiled: jaq_core::Filter<Data>,
    text: String,
}

/// A filter is none, or does not fit an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The text is longer than a filter may be.
    #[error("it has more than {FILTER_BYTES_MAX} bytes")]
    TooLong,
    /// The text is no filter.
    #[error("it is not a jq filter: near {near:?}")]
    Syntax {
        /// The text from the mistake on.
        near: String,
    },
    /// It names a function that there is not, or that cannot be used here.
    #[error("{name} cannot be used here")]
    NotHere {
        /// The function or operator.
        name: String,
    },
    /// It grows what it gets too often.
    #[error("it is too complicated: use fewer commas, operators and pipes")]
    TooComplex,
    /// It failed on the answer.
    #[error("{message}")]
    Failed {
        /// The cause, without values.
        message: String,
    },
    /// It makes more than may be.
    #[error("its result has more than {RESULT_BYTES_MAX} bytes")]
    TooLarge,
}

/// The longest filter.
const FILTER_BYTES_MAX: usize = 8 * 1024;

/// The largest result, as JSON.
const RESULT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Most results of one filter; several become a list.
const RESULTS_MAX: usize = 100_000;

/// Most of a model's operators that can make more of what they get.
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

/// Functions of a projection: each looks at what is there, once.
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

impl Filter {
    /// Compiles a filter of the configuration.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        Self::compile(text, Rules::Operator)
    }

    /// Compiles a filter that a model has chosen.
    pub fn parse_for_model(text: &str) -> Result<Self, FilterError> {
        Self::compile(text, Rules::Model)
    }

    fn compile(text: &str, rules: Rules) -> Result<Self, FilterError> {
        if text.len() > FILTER_BYTES_MAX {
            return Err(FilterError::TooLong);
        }
        let defs = jaq_core::defs()
            .chain(jaq_std::defs())
            .chain(jaq_json::defs());
        let funs = jaq_core::funs()
            .chain(jaq_std::funs())
            .chain(jaq_json::funs());
        let loader = Loader::new(defs);
        let arena = Arena::default();
        let term = jaq_core::load::parse(text, |parser| parser.term());
        let Some(term) = term else {
            return Err(FilterError::Syntax { near: near(text) });
        };
        let mut check = Check { rules, growers: 0 };
        check.term(&term, 0)?;
        let file = File {
            code: text,
            path: (),
        };
        let modules = loader.load(&arena, file);
        let modules = modules.map_err(|_| FilterError::Syntax { near: near(text) })?;
        let compiled = Compiler::default().with_funs(funs).compile(modules);
        let compiled = compiled.map_err(|errors| {
            let undefined = errors.iter().flat_map(|(_, errors)| errors.iter());
            let name = undefined.map(|(name, _)| (*name).to_owned()).next();
            FilterError::NotHere {
                name: name.unwrap_or_default(),
            }
        })?;
        Ok(Self {
            compiled,
            text: text.to_owned(),
        })
    }

    /// Applies the filter: one result is the answer, several are a list, none is null.
    pub fn apply(&self, value: &Value) -> Result<Value, FilterError> {
        let failed = |message: &str| FilterError::Failed {
            message: message.to_owned(),
        };
        let input = read::parse_single(value.to_string().as_bytes());
        let input = input.map_err(|_| failed("the answer cannot be read by the filter"))?;
        let ctx = Ctx::<Data>::new(&self.compiled.lut, Vars::new([]));
        let mut results = Vec::new();
        let mut size = 0;
        for result in self.compiled.id.run((ctx, input)) {
            // The error of jq quotes values of the answer; `unwrap_valr` of the library would end the program on `halt`.
            let result = result.map_err(|_| failed("a step of it got a value of another type"))?;
            let mut text = Bounded {
                text: String::new(),
                left: RESULT_BYTES_MAX - size,
            };
            write!(text, "{result}").map_err(|_| FilterError::TooLarge)?;
            size += text.text.len();
            let result = serde_json::from_str(&text.text);
            results.push(result.map_err(|_| failed("its result is not JSON"))?);
            if results.len() > RESULTS_MAX {
                return Err(FilterError::TooLarge);
            }
        }
        Ok(match results.len() {
            0 => Value::Null,
            1 => results.remove(0),
            _ => Value::Array(results),
        })
    }
}

impl std::fmt::Debug for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Filter").field(&self.text).finish()
    }
}

/// A text that ends at a bound.
struct Bounded {
    text: String,
    left: usize,
}

impl std::fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.left = self.left.checked_sub(text.len()).ok_or(std::fmt::Error)?;
        self.text.push_str(text);
        Ok(())
    }
}

fn near(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Whose filter it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rules {
    Operator,
    Model,
}

/// Checks a filter before it is compiled.
struct Check {
    rules: Rules,
    growers: usize,
}

impl Check {
    fn term(&mut self, term: &Term<&str>, depth: usize) -> Result<(), FilterError> {
        if depth > DEPTH_MAX {
            return Err(FilterError::TooComplex);
        }
        let refused = match self.rules {
            Rules::Operator => outside(term),
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
        let mut children = children(term).into_iter();
        children.try_for_each(|child| self.term(child, depth + 1))
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

/// How many times a term can make more of what it gets.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_model(text: &str, expected: Result<Value, &str>) {
        let answer = json!({"items": [
            {"id": 1, "name": "Ann", "tags": ["a", "b"]}, {"id": 2, "name": "Bob", "tags": []},
        ]});
        let made = Filter::parse_for_model(text).and_then(|filter| filter.apply(&answer));
        let made = made.map_err(|error| error.to_string());
        assert_eq!(made, expected.map_err(str::to_owned), "{text}");
    }

    #[test]
    fn a_model_can_project() {
        check_model(".items | map({id})", Ok(json!([{"id": 1}, {"id": 2}])));
        check_model(".items[] | .name", Ok(json!(["Ann", "Bob"])));
        check_model(".items[0].tags | length", Ok(json!(2)));
        check_model(
            "[.items[] | select(.id > 1 and (.name | startswith(\"B\")))]",
            Ok(json!([{"id": 2, "name": "Bob", "tags": []}])),
        );
        check_model(
            ".items | {names: map(.name), first: .[0].id}",
            Ok(json!({"names": ["Ann", "Bob"], "first": 1})),
        );
        check_model(".none", Ok(json!(null)));
    }

    /// What could run for ever, take all memory or look outside is refused before the call.
    #[test]
    fn a_model_cannot_loop_or_look_outside() {
        for (text, name) in [
            ("def f: f; f", "def"),
            ("repeat(.)", "repeat"),
            ("range(1e9)", "range"),
            ("reduce .items[] as $x (0; . + 1)", "reduce"),
            (".items[] as $a | $a", "as"),
            ("env", "env"),
            ("..", ".."),
            ("\"a\" * 1000000000", "*"),
            ("\"\\(.)\\(.)\"", "an interpolated text"),
            (
                "{a: .items[], b: .items[]}",
                "a part with several results (put it into [ ])",
            ),
            (
                ".items[] + .items[]",
                "a part with several results (put it into [ ])",
            ),
            ("halt", "halt"),
            ("@json \"x\"", "@json"),
            (".a = 1", "an assignment"),
        ] {
            check_model(text, Err(&format!("{name} cannot be used here")));
        }
        let doubling = ". + . | ".repeat(20) + ".";
        check_model(
            &doubling,
            Err("it is too complicated: use fewer commas, operators and pipes"),
        );
        check_model(".items[", Err("it is not a jq filter: near \".items[\""));
        check_model(
            ".items | .name",
            Err("a step of it got a value of another type"),
        );
    }

    #[test]
    fn a_filter_of_the_configuration_cannot_look_outside() {
        for text in [
            "env",
            "now",
            "halt",
            "debug",
            "input",
            "$ENV.HOME",
            "map(env)",
        ] {
            assert!(Filter::parse(text).is_err(), "{text}");
        }
        let sum = Filter::parse("reduce .[] as $x (0; . + $x)").unwrap();
        assert_eq!(sum.apply(&json!([1, 2, 3])).unwrap(), json!(6));
    }

    /// Integers beyond a double are handed on as they are.
    #[test]
    fn numbers_survive_a_filter() {
        let filter = Filter::parse(".a").unwrap();
        assert_eq!(
            filter.apply(&json!({"a": u64::MAX})).unwrap(),
            json!(u64::MAX)
        );
        assert_eq!(filter.apply(&json!({"a": 1.10})).unwrap(), json!(1.1));
    }
}
