//! A handful of offers written by hand: those that pages, tests and the demo name. They never change their ids.

use serde_json::{Value, json};

/// The offers, as TOML.
const TEXT: &str = include_str!("../../shop/landmarks.toml");

/// The offers as data.
pub(super) fn data() -> Value {
    // The file is part of the program, and a test reads it.
    toml::from_str(TEXT).unwrap_or_else(|_| json!({ "offers": [] }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shop::Shop;

    #[test]
    fn the_file_is_a_shop() {
        let shop: Shop = toml::from_str(TEXT).unwrap();
        assert_eq!(shop.offers.len(), 12);
        assert!(shop.variant("SKU-0001-01").is_some());
    }
}
