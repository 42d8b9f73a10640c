//! A handful of offers written by hand: those that pages, tests and the demo name. Their ids never change.

use super::{Offer, Stock};

/// The offers, as TOML.
const TEXT: &str = include_str!("../../shop/landmarks.toml");

/// The offers; the error is the problem of the file.
pub(super) fn offers() -> Result<Vec<Offer>, String> {
    let stock: Stock = toml::from_str(TEXT).map_err(|error| error.to_string())?;
    Ok(stock.offers)
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
