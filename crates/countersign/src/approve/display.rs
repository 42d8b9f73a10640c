//! The call in the words of its tool, and its simulated answer: prepared once, before a question is asked, and sealed
//! with it. All of it is text of the tool, so it is bounded, and hidden characters are made visible.

use countersign_contract::approval::{ApprovalLine, ApprovalQuestion};
use countersign_contract::{Language, Message as _, Wording};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tool::Question;
use crate::visible::{make_visible, visible_line};
use crate::words::Say;

/// The display for an approver besides the arguments: the tool's own words, and the simulated answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Display {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    english: Option<ApprovalQuestion>,
    /// The Chinese text; `None` if it is the same as the English one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chinese: Option<ApprovalQuestion>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    would_answer: Option<Value>,
}

impl Display {
    /// A display of the tool's words about a call, and of the data of its simulation.
    pub(crate) fn new(question: Option<&Question>, would_answer: Option<Value>) -> Self {
        let english = question.map(|question| rendered(question, Language::English));
        let chinese = question
            .map(|question| rendered(question, Language::Chinese))
            .filter(|chinese| Some(chinese) != english.as_ref());
        Self {
            english,
            chinese,
            would_answer: would_answer.and_then(answered),
        }
    }

    /// The call in the words of its tool, in this language.
    pub fn question(&self, language: Language) -> Option<&ApprovalQuestion> {
        match language {
            Language::English => self.english.as_ref(),
            Language::Chinese => self.chinese.as_ref().or(self.english.as_ref()),
        }
    }

    /// The data that the call would answer.
    pub fn would_answer(&self) -> Option<&Value> {
        self.would_answer.as_ref()
    }
}

fn rendered(question: &Question, language: Language) -> ApprovalQuestion {
    let most = Question::LINES_MAX;
    let mut lines: Vec<_> = question
        .lines
        .iter()
        .take(most)
        .map(|(label, value)| ApprovalLine {
            label: line(label, language),
            value: line(value, language),
        })
        .collect();
    let mut irreversible: Vec<_> = question
        .irreversible
        .iter()
        .take(most)
        .map(|what| line(what, language))
        .collect();
    let left_out = |all: usize| {
        let count = all.saturating_sub(most).to_string();
        (all > most).then(|| Say::LinesLeftOut { count }.text(language))
    };
    lines.extend(left_out(question.lines.len()).map(|value| ApprovalLine {
        label: "…".to_owned(),
        value,
    }));
    irreversible.extend(left_out(question.irreversible.len()));
    ApprovalQuestion {
        title: line(&question.title, language),
        lines,
        irreversible,
    }
}

/// A text on one line: a value with a line break of its own could look like two values.
fn line(text: &Wording, language: Language) -> String {
    let text = text.clone().in_language(language);
    let mut kept: String = text.chars().take(Question::CHARS_MAX).collect();
    let over = text.chars().count().saturating_sub(Question::CHARS_MAX);
    if over > 0 {
        let count = over.to_string();
        kept.push_str(&Say::CharactersLeftOut { count }.text(language));
    }
    visible_line(kept)
}

/// The data of a simulation, as it is shown; `None` if the tool answers nothing.
fn answered(mut data: Value) -> Option<Value> {
    if data.is_null() {
        return None;
    }
    let bytes = data.to_string().len();
    if bytes > ANSWER_BYTES_MAX {
        return Some(format!("[{bytes} bytes, too long to be shown]").into());
    }
    make_visible(&mut data);
    Some(data)
}

/// Maximum size of a simulated answer that is shown, as JSON.
const ANSWER_BYTES_MAX: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// A text of the tool stays on its line, and hidden characters in it are visible (A13).
    #[test]
    fn nothing_hides_in_a_question() {
        let question = Question::new("Pay\nTotal: EUR 0.01")
            .line(Wording::new("To", "收款人"), "ann\u{202e}")
            .irreversible("gone\u{200b}");
        let display = Display::new(Some(&question), Some(json!({"to": "\u{2066}ann"})));
        let english = json!(display.question(Language::English));
        assert_eq!(
            english,
            json!({
                "title": r"Pay\u{a}Total: EUR 0.01",
                "lines": [{"label": "To", "value": r"ann\u{202e}"}],
                "irreversible": [r"gone\u{200b}"],
            })
        );
        let chinese = display.question(Language::Chinese).unwrap();
        assert_eq!(chinese.lines[0].label, "收款人");
        assert_eq!(display.would_answer(), Some(&json!({"to": r"\u{2066}ann"})));
    }

    /// The number of lines that are left out is shown.
    #[test]
    fn a_question_is_bounded() {
        let mut question = Question::new("x".repeat(600));
        for n in 0..70 {
            question = question.line("line", n.to_string());
        }
        let display = Display::new(Some(&question), Some(json!("y".repeat(17_000))));
        let shown = display.question(Language::English).unwrap();
        assert_eq!(shown.lines.len(), Question::LINES_MAX + 1);
        assert_eq!(shown.lines[64].value, "6 more are not shown");
        assert!(
            shown.title.ends_with("x… (100 more characters)"),
            "{}",
            shown.title
        );
        let answer = json!("[17002 bytes, too long to be shown]");
        assert_eq!(display.would_answer(), Some(&answer));
        assert_eq!(Display::new(None, Some(Value::Null)), Display::default());
    }

    proptest! {
        /// Any text of a tool is one line of visible characters, and not longer than its maximum.
        #[test]
        fn a_text_is_one_visible_line(text in "\\PC{0,40}|[\u{0}-\u{20}\u{202a}-\u{202e}a-z\\\\]{0,700}") {
            let shown = line(&Wording::from(text), Language::English);
            prop_assert!(shown.chars().all(crate::visible::is_visible));
            prop_assert!(shown.chars().count() <= 10 * Question::CHARS_MAX + 40);
        }
    }
}
