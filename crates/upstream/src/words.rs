//! Messages of upstream tools to callers: one table per language, `en` and `zh`, with the same keys in the same order.

mod en;
mod zh;

pub(crate) use en::Say;

countersign_contract::message! { Say }

impl std::fmt::Display for Say {
    /// In English: for remarks, which have one language.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use countersign_contract::{Language, Message as _};
        f.write_str(&self.text(Language::English))
    }
}

#[cfg(test)]
mod tests {
    use countersign_contract::language::faults;

    use super::en;

    /// Every message is there in both languages, with the same parameters.
    #[test]
    fn the_tables_are_whole() {
        assert_eq!(faults(&en::samples()), Vec::<String>::new());
    }
}
