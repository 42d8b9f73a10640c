//! The binder's messages to people: one table for each language, `en` and `zh`, with the same keys in the same
//! order. Everything else in this crate holds facts, which become sentences here.

use countersign_contract::{IssueCode, Language};

mod en;
mod zh;

pub(crate) use en::Say;

countersign_contract::message! { Say }

/// Returns the sentence of a code, without the particulars.
pub(crate) const fn sentence(code: IssueCode, language: Language) -> &'static str {
    match language {
        Language::English => en::sentence(code),
        Language::Chinese => zh::sentence(code),
    }
}

#[cfg(test)]
mod tests {
    use countersign_contract::Message;
    use countersign_contract::language::faults;

    use super::*;

    struct Coded(IssueCode);

    impl Message for Coded {
        fn text(&self, language: Language) -> String {
            sentence(self.0, language).to_owned()
        }
    }

    /// Every sentence exists in both languages, with the same parameters.
    #[test]
    fn the_tables_are_whole() {
        assert_eq!(faults(&en::samples()), Vec::<String>::new());
        let codes = IssueCode::ALL.map(|code| (code.as_str(), Vec::new(), Coded(code)));
        assert_eq!(faults(&codes), Vec::<String>::new());
    }
}
