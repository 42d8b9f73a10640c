//! Filters over answers, in the language of jq.
//!
//! A filter of the configuration may use everything that has no effect outside and that ends: it cannot loop without end. A filter that a
//! model has chosen is a projection: it cannot loop, recurse or multiply its input. The cost of both is counted while they run (`metered`),
//! and bounded.

mod check;
mod functions;
mod metered;

use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, data};
use serde_json::Value;

use check::{Check, Rules};
use metered::Metered;

type Data = data::JustLut<Metered>;

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

/// A filter is not valid, or does not fit an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The text is longer than a filter may be. Usually a model has written data in place of a filter.
    #[error("it has more than {FILTER_BYTES_MAX} bytes")]
    TooLong,
    /// The text is not a jq filter. Usually a bracket or a quote is missing.
    #[error("it is not a jq filter: near {near:?}")]
    Syntax {
        /// The text from the mistake on.
        near: String,
    },
    /// It names a function that does not exist, or that cannot be used here.
    /// Usually it is a function of jq that reads files, the environment or the clock.
    #[error("{name} cannot be used here")]
    NotHere {
        /// The function or operator.
        name: String,
    },
    /// It enlarges its input too often.
    /// Usually it joins many filters with commas, each of which gives several results.
    #[error("it is too complicated: use fewer commas, operators and pipes")]
    TooComplex,
    /// It failed on the answer, usually because a value has another type than it expects.
    #[error("{message}")]
    Failed {
        /// The cause, without values.
        message: String,
    },
    /// Its result is too large, usually because it repeats a string or a list.
    #[error("its result has more than {RESULT_BYTES_MAX} bytes")]
    TooLarge,
    /// It takes more time or memory than its budget, usually because the answer is large.
    #[error("it takes too much time or memory for this answer: choose less of it, sooner")]
    TooCostly,
}

/// The longest filter.
const FILTER_BYTES_MAX: usize = 8 * 1024;

/// The largest result, as JSON.
const RESULT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Most results of one filter; several become a list.
const RESULTS_MAX: usize = 100_000;

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
            .chain(functions::all());
        let loader = Loader::new(defs);
        let arena = Arena::default();
        let term = jaq_core::load::parse(text, |parser| parser.term());
        let Some(term) = term else {
            return Err(FilterError::Syntax { near: near(text) });
        };
        Check::new(rules).term(&term, 0)?;
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

    /// Applies the filter: one result is the answer, several are a list, and no result is null.
    pub fn apply(&self, value: &Value) -> Result<Value, FilterError> {
        let failed = |message: &str| {
            if metered::is_spent() {
                return FilterError::TooCostly;
            }
            FilterError::Failed {
                message: message.to_owned(),
            }
        };
        metered::begin();
        let ctx = Ctx::<Data>::new(&self.compiled.lut, Vars::new([]));
        let mut results = Vec::new();
        let mut left = RESULT_BYTES_MAX;
        for result in self.compiled.id.run((ctx, Metered::read(value))) {
            // The error of jq quotes values of the answer; `unwrap_valr` of the library would end the program on `halt`.
            let result = result.map_err(|_| failed("a step of it got a value of another type"))?;
            let made = result.value(&mut left).ok_or(FilterError::TooLarge)?;
            results.push(made);
            if results.len() > RESULTS_MAX {
                return Err(FilterError::TooLarge);
            }
        }
        // A list that could not be paid for is shorter than it should be.
        if metered::is_spent() {
            return Err(FilterError::TooCostly);
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

fn near(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests;
