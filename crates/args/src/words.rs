//! What the binder says to people: one table a language, `en` and `zh`, with the same keys in the same
//! order. Everything else in this crate holds facts; they become sentences here.

use countersign_contract::{IssueCode, Language};

mod en;
mod zh;

pub(crate) use en::Say;

countersign_contract::message! { Say }

/// One sentence a code, without the particulars.
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

    /// Every sentence is there in both languages, with the same parameters.
    #[test]
    fn the_tables_are_whole() {
        assert_eq!(faults(&en::samples()), Vec::<String>::new());
        let codes = IssueCode::ALL.map(|code| (code.as_str(), Vec::new(), Coded(code)));
        assert_eq!(faults(&codes), Vec::<String>::new());
    }
}
