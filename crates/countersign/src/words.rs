//! Messages of the executor and its parts to callers and approvers: one table a language, `en` and `zh`, with the same
//! keys in the same order. Log messages are not here, and stay English.

mod en;
mod zh;

pub(crate) use en::Say;

countersign_contract::message! { Say }

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
