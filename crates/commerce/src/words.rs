//! What the tools say when they refuse or remark: one table a language, `en` and `zh`, with the same keys in the
//! same order. Texts that belong to data (titles, rules, notes of an estimate) stand beside it in both languages.

mod en;
mod zh;

pub(crate) use en::Say;

countersign::contract::message! { Say }

#[cfg(test)]
mod tests {
    use countersign::contract::language::faults;

    use super::en;

    /// Every message is there in both languages, with the same parameters.
    #[test]
    fn the_tables_are_whole() {
        assert_eq!(faults(&en::samples()), Vec::<String>::new());
    }
}
