//! The gateway's messages to callers and to users who are asked to confirm: one table for each language, `en`
//! and `zh`, with the same keys in the same order. Some refusals of requests that are not calls yet are not in
//! the tables; those that are follow `Accept-Language`.

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
