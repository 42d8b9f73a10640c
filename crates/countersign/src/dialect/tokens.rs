//! A list of tools cut to a token budget (B17), least important words first.

use countersign_contract::ToolName;
use serde_json::Value;

use super::error::ToolListError;
use super::schema;
use super::tools::{Draft, Rendered};

/// Estimates the number of tokens of a text: a token for every four bytes, rounded up.
///
/// It needs no tokenizer and is the same everywhere, which a budget that must give the same list
/// on every machine asks for. Real tokenizers differ by model; leave a margin.
///
/// # Example
///
/// ```
/// assert_eq!(countersign::dialect::estimate(r#"{"name":"a"}"#), 3);
/// ```
pub fn estimate(text: &str) -> usize {
    text.len().div_ceil(4)
}

/// A cut that was made in one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trimmed {
    /// The tool.
    pub tool: ToolName,
    /// The kind of cut.
    pub cut: Cut,
    /// The estimated tokens of the tool before the cut.
    pub tokens_before: usize,
    /// The estimated tokens of the tool after the cut.
    pub tokens_after: usize,
}

/// The cuts, in the order in which they are made.
///
/// Each is made tool by tool, the last tool of the list first, and only until the list fits: the
/// tools that the caller put in front keep their words longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cut {
    /// The examples.
    Examples,
    /// Descriptions inside parameters and results, to their first sentence.
    NestedDescriptions,
    /// Descriptions of parameters, to their first sentence.
    ParameterDescriptions,
    /// The description of the tool, to its first sentence.
    ToolDescription,
    /// Every description but that of the tool.
    AllParameterDescriptions,
}

impl Cut {
    /// Every cut, in order.
    pub const ALL: [Self; 5] = [
        Self::Examples,
        Self::NestedDescriptions,
        Self::ParameterDescriptions,
        Self::ToolDescription,
        Self::AllParameterDescriptions,
    ];

    /// The name in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Examples => "examples",
            Self::NestedDescriptions => "nested_descriptions",
            Self::ParameterDescriptions => "parameter_descriptions",
            Self::ToolDescription => "tool_description",
            Self::AllParameterDescriptions => "all_parameter_descriptions",
        }
    }

    fn apply(self, draft: &mut Draft<'_>) {
        match self {
            Self::Examples => each_schema(draft, &mut schema::strip_examples),
            Self::NestedDescriptions => shorten(draft, &|depth| depth > 1),
            Self::ParameterDescriptions => shorten(draft, &|_| true),
            Self::ToolDescription => {
                draft.description = first_sentence(&draft.description).to_owned();
            }
            Self::AllParameterDescriptions => each_schema(draft, &mut |schema| {
                schema::rewrite_descriptions(schema, &mut |_, _| None);
            }),
        }
    }
}

/// The tools as they fit.
pub(super) struct Fitted {
    pub(super) rendered: Vec<Rendered>,
    pub(super) trimmed: Vec<Trimmed>,
    pub(super) tokens: usize,
}

type Render<'r> = dyn Fn(&Draft<'_>) -> Result<Rendered, ToolListError> + 'r;

/// Cuts until the list fits; never leaves out a tool.
pub(super) fn fit(
    drafts: &mut [Draft<'_>],
    render: &Render<'_>,
    list: &dyn Fn(Vec<Value>) -> Value,
    max_tokens: Option<usize>,
) -> Result<Fitted, ToolListError> {
    let mut rendered = drafts.iter().map(render).collect::<Result<Vec<_>, _>>()?;
    let mut sizes: Vec<usize> = rendered.iter().map(size).collect();
    // What the list adds around its tools does not depend on them, only on how many there are.
    let frame = list(vec![Value::Null; drafts.len()]).to_string().len() - 4 * drafts.len();
    let mut total = frame + sizes.iter().sum::<usize>();
    let mut trimmed = Vec::new();
    let budget = max_tokens.unwrap_or(usize::MAX);
    for cut in Cut::ALL {
        let tools = drafts.iter_mut().zip(&mut rendered).zip(&mut sizes);
        for ((draft, rendered), bytes) in tools.rev() {
            if total.div_ceil(4) <= budget {
                break;
            }
            cut.apply(draft);
            let shorter = render(draft)?;
            let after = size(&shorter);
            if after < *bytes {
                trimmed.push(Trimmed {
                    tool: draft.spec.name.clone(),
                    cut,
                    tokens_before: bytes.div_ceil(4),
                    tokens_after: after.div_ceil(4),
                });
            }
            total = total - *bytes + after;
            *bytes = after;
            *rendered = shorter;
        }
    }
    let tokens = total.div_ceil(4);
    if tokens > budget {
        return Err(ToolListError::BudgetTooSmall {
            needed: tokens,
            budget,
        });
    }
    Ok(Fitted {
        rendered,
        trimmed,
        tokens,
    })
}

fn size(rendered: &Rendered) -> usize {
    rendered.json.to_string().len()
}

fn each_schema(draft: &mut Draft<'_>, change: &mut dyn FnMut(&mut Value)) {
    change(&mut draft.input);
    if let Some(output) = &mut draft.output {
        change(output);
    }
}

/// Shortens the descriptions at the depths that are asked for; those of results are all nested.
fn shorten(draft: &mut Draft<'_>, which: &dyn Fn(usize) -> bool) {
    let shorten_from = |schema: &mut Value, top: usize| {
        schema::rewrite_descriptions(schema, &mut |depth, text| {
            Some(if which(depth + top) {
                first_sentence(&text).to_owned()
            } else {
                text
            })
        });
    };
    shorten_from(&mut draft.input, 0);
    if let Some(output) = &mut draft.output {
        shorten_from(output, 2);
    }
}

/// The first sentence, with its full stop.
///
/// A full stop ends a sentence before a line break or before a space and something that is no
/// lower-case letter, so that `e.g. this` stays whole.
pub fn first_sentence(text: &str) -> &str {
    let text = text.trim();
    for (at, character) in text.char_indices() {
        let end = at + character.len_utf8();
        let ends = match character {
            '\n' => return text.get(..at).unwrap_or(text).trim_end(),
            '。' | '！' | '？' => true,
            '.' | '!' | '?' => {
                let mut rest = text.get(end..).unwrap_or("").chars();
                rest.next().is_some_and(char::is_whitespace)
                    && rest.next().is_some_and(|next| !next.is_lowercase())
            }
            _ => false,
        };
        if ends {
            return text.get(..end).unwrap_or(text);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(first_sentence(text), expected);
    }

    /// B17: a description is cut at a sentence, not in the middle of one.
    #[test]
    fn first_sentences() {
        check("", "");
        check("One only", "One only");
        check("One. Two.", "One.");
        check("Takes ids, e.g. a SKU. More.", "Takes ids, e.g. a SKU.");
        check("Version 1.2 of it! Really", "Version 1.2 of it!");
        check("A line\nanother line", "A line");
        check("找到笔记。按关键词。", "找到笔记。");
        check("  Ends with a stop.  ", "Ends with a stop.");
    }
}
