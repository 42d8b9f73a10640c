//! The tariff and the made-up shop fit each other.

use std::collections::BTreeSet;

use super::ask_for;
use crate::shop::{self, Shop};

/// Each item can be sent by itself within its country and to both sides of the Atlantic, except those that no carrier
/// takes, which are named here, and those for places that no carrier serves.
#[test]
fn what_is_sold_can_be_sent() {
    let shop: Shop = serde_json::from_value(shop::data().unwrap()).unwrap();
    let mut refused = BTreeSet::new();
    for offer in &shop.offers {
        let sku = offer.variants.first().unwrap().sku.as_str();
        for to in [offer.ships_from.as_str(), "DE", "US"] {
            if let Err(error) = ask_for(&shop, &[(sku, 1)], (to, "")) {
                let (category, from) = (&offer.category, &offer.ships_from);
                refused.insert(format!("{category} {from}-{to} {}", error.code()));
            }
        }
    }
    // No carrier serves India; the rest is dangerous in the air, or a weapon, or its seller does not send it there.
    refused.retain(|refused| !refused.ends_with("IN-IN INVALID_ARGUMENT"));
    let refused: Vec<&str> = refused.iter().map(String::as_str).collect();
    let expected = [
        "beauty/fragrance/perfume IT-US COMPLIANCE_BLOCKED",
        "beauty/nails/nail_polish GB-US COMPLIANCE_BLOCKED",
        "beauty/nails/nail_polish KR-DE COMPLIANCE_BLOCKED",
        "beauty/nails/nail_polish KR-US COMPLIANCE_BLOCKED",
        "food/alcohol/wine FR-US INVALID_ARGUMENT",
        "food/cheese/hard_cheese ES-US INVALID_ARGUMENT",
        "food/cheese/hard_cheese IT-US INVALID_ARGUMENT",
        "food/meat/cured_ham ES-US INVALID_ARGUMENT",
        "health/medicine/pain_relief DE-US INVALID_ARGUMENT",
        "sports/camping/stove KR-DE COMPLIANCE_BLOCKED",
        "sports/camping/stove KR-US COMPLIANCE_BLOCKED",
        "sports/camping/stove US-DE COMPLIANCE_BLOCKED",
        "sports/mobility/e_scooter CN-CN INVALID_ARGUMENT",
        "sports/mobility/e_scooter CN-DE COMPLIANCE_BLOCKED",
        "sports/mobility/e_scooter CN-US COMPLIANCE_BLOCKED",
        "sports/self_defence/pepper_spray DE-DE COMPLIANCE_BLOCKED",
        "sports/self_defence/pepper_spray DE-US INVALID_ARGUMENT",
        "tobacco/vaping/e_cigarette CN-CN INVALID_ARGUMENT",
        "tobacco/vaping/e_cigarette CN-US INVALID_ARGUMENT",
        "tobacco/vaping/e_liquid CN-CN INVALID_ARGUMENT",
        "tobacco/vaping/e_liquid CN-US INVALID_ARGUMENT",
        "tobacco/vaping/e_liquid GB-US INVALID_ARGUMENT",
    ];
    assert_eq!(refused, expected);
}
