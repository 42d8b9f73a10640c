//! The texts of refusals and remarks: one table for each language, `en` and `zh`, with the same keys in the same order.
//! Texts that belong to data (titles, rules, notes of an estimate) are stored with that data in both languages.

mod en;
mod zh;

pub(crate) use en::Say;

countersign::contract::message! { Say }

#[cfg(test)]
mod tests {
    use countersign::contract::language::faults;

    use super::en;

    /// Every message exists in both languages, with the same parameters.
    #[test]
    fn the_tables_are_whole() {
        assert_eq!(faults(&en::samples()), Vec::<String>::new());
    }
}
