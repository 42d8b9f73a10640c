//! The reasons of a decision in the language of their reader. The policy explains itself in English, for records, reports and programs; each of its
//! sentences is in the words tables.

use countersign::contract::{Language, Message as _};

use crate::policy::{Explained, Explanation};
use crate::words::Say;

/// Sentences without a parameter.
const PLAIN: [Say; 20] = [
    Say::NeedsConfirmationItself,
    Say::LetsThrough,
    Say::UserConfirms,
    Say::TwoConfirm,
    Say::DependsOnArguments,
    Say::ConditionFails,
    Say::HoldsDenied,
    Say::HoldsConfirm,
    Say::HoldsFourEyes,
    Say::LimitUsedUp,
    Say::LimitTooLittle,
    Say::LimitCannotCount,
    Say::GrantAnswers,
    Say::RuleHeldDenied,
    Say::RuleHeldConfirm,
    Say::RuleHeldFourEyes,
    Say::RuleWasUndecided,
    Say::NoRule,
    Say::AgentDenied,
    Say::WritesNeedUser,
];

/// Sentences with a parameter at one end.
const WITH_PARAMETER: [fn(String) -> Say; 6] = [
    |says| Say::ButObserved { says },
    |says| Say::PolicyObserved { says },
    |says| Say::WasObserved { says },
    |scopes| Say::ScopesMayBeMissing { scopes },
    |why| Say::RuleUndecided { why },
    |effects| Say::AgentEffect { effects },
];

/// Tells the entries of an explanation in a language.
pub(super) fn tell(because: &mut [Explained], language: Language) {
    for entry in because {
        entry.says = reason(&entry.says, language);
    }
}

/// Tells an explanation in a language.
pub(super) fn told(mut explanation: Explanation, language: Language) -> Explanation {
    tell(&mut explanation.because, language);
    explanation
}

/// A reason in a language. What is none of the sentences, such as the words of a tool, stays as it is.
fn reason(english: &str, language: Language) -> String {
    if language == Language::English {
        return english.to_owned();
    }
    let plain = PLAIN
        .iter()
        .find(|say| say.text(Language::English) == english);
    if let Some(plain) = plain {
        return plain.text(language);
    }
    for say in WITH_PARAMETER {
        let form = say("\u{0}".to_owned()).text(Language::English);
        let Some((before, after)) = form.split_once('\u{0}') else {
            continue;
        };
        let rest = english.strip_prefix(before);
        if let Some(parameter) = rest.and_then(|rest| rest.strip_suffix(after)) {
            return say(reason(parameter, language)).text(language);
        }
    }
    english.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B17: no reason of a policy stays in English for a reader of Chinese, whichever entry decided.
    #[test]
    fn every_reason_has_both_languages() {
        for english in [
            "the tool itself wants a confirmation",
            "its condition holds: the call is refused; it is only observed",
            "the user confirms each call; the whole policy is only observed",
            "needs a scope, which may have been missing: tax, admin",
            "it cannot be decided, so the call is refused: no such argument",
            "the policy lets this agent call only tools with the effect read",
            "no rule of the policy names this tool; add a [[tools]] entry for it",
        ] {
            let chinese = reason(english, Language::Chinese);
            assert!(
                !chinese.contains(" the ") && chinese != english,
                "{chinese}"
            );
            assert_eq!(reason(english, Language::English), english);
        }
        assert_eq!(
            reason("words of a tool", Language::Chinese),
            "words of a tool"
        );
    }

    /// The sentences are those that the policy says: one that is worded anew is missed here.
    #[test]
    fn the_sentences_are_those_of_the_policy() {
        let source = [
            include_str!("../policy/explain.rs"),
            include_str!("../policy/recorded.rs"),
        ]
        .concat();
        let said = source.lines().filter_map(|line| {
            // Sentences stand in quotes and begin with a small letter; what follows one is a part of another.
            let (_, rest) = line.split_once('"')?;
            let (says, _) = rest.split_once('"')?;
            let is_code = line.trim_start().starts_with('/') || says.contains(['{', '[']);
            let is_sentence = says.starts_with(char::is_lowercase) && says.contains(' ');
            let is_name = says.starts_with("the tool") && says.split(' ').count() < 3;
            (is_sentence && !is_code && !is_name).then(|| says.to_owned())
        });
        let said: Vec<String> = said.collect();
        assert!(said.len() >= 10, "{said:?}");
        for english in said {
            let chinese = reason(&english, Language::Chinese);
            assert_ne!(chinese, english, "no words for it");
        }
    }
}
