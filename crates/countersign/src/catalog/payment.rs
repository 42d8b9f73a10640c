//! Refusal of tools that take money (A13): an agent may call every tool in a catalog.
//!
//! The declaration counts. Tools that declare nothing about payments are judged by their names as well, so that a
//! forgotten declaration is noticed when the tool is registered, not when it has paid.

use countersign_contract::ToolSpec;
use countersign_contract::tool::Payment;

use super::Error;

/// Verbs of taking money.
const VERBS: &[&str] = &[
    "capture",
    "confirm",
    "charge",
    "authorize",
    "authorise",
    "execute",
];

/// Objects of those verbs.
const OBJECTS: &[&str] = &["payment", "payments", "card", "charge", "paymentintent"];

/// Refuses a tool that takes money, or whose name says so.
pub(super) fn check(spec: &ToolSpec) -> Result<(), Error> {
    let name = &spec.name;
    match spec.behaviour.payment {
        Payment::Capture => Err(Error::TakesMoney { name: name.clone() }),
        Payment::None if takes_money(name.as_str()) => {
            Err(Error::SoundsLikePayment { name: name.clone() })
        }
        Payment::None | Payment::Intent => Ok(()),
    }
}

/// True if a name says that money is taken: a verb and an object beside each other, in any order and spelling, such as
/// `payment.capture`, `checkout.capture_payment` or `confirmPayment`.
fn takes_money(name: &str) -> bool {
    let words = words(name);
    let beside = |a: &String, b: &String| {
        VERBS.contains(&a.as_str()) && OBJECTS.contains(&b.as_str()) && a != b
    };
    words.windows(2).any(|pair| match pair {
        [a, b] => beside(a, b) || beside(b, a),
        _ => false,
    }) || words.windows(3).any(|three| match three {
        // A payment intent is confirmed to take the money.
        [a, b, c] => {
            (b == "payment" && c == "intent" && VERBS.contains(&a.as_str()))
                || (a == "payment" && b == "intent" && VERBS.contains(&c.as_str()))
        }
        _ => false,
    })
}

/// The words of a name, in small letters, without plural and article: `capture_the_payments` is two.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for character in name.chars() {
        let starts_word = character.is_ascii_uppercase() && was_small;
        if !character.is_ascii_alphanumeric() || starts_word {
            words.push(String::new());
        }
        was_small = character.is_ascii_lowercase();
        if let Some(word) = words
            .last_mut()
            .filter(|_| character.is_ascii_alphanumeric())
        {
            word.push(character.to_ascii_lowercase());
        }
    }
    words.retain(|word| !matches!(word.as_str(), "" | "a" | "an" | "the"));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: bool) {
        assert_eq!(takes_money(name), expected, "{name}");
    }

    /// A13: the names under which tools that take money come.
    #[test]
    fn names_that_take_money() {
        for name in [
            "payment.capture",
            "payment.confirm",
            "payments.capture",
            "checkout.capture_payment",
            "checkout.confirm_payment",
            "stripe.payments-capture",
            "capturePayment",
            "shop.confirmPaymentIntent",
            "payment_intent.confirm",
            "payment_intents.capture_payment",
            "card.charge",
            "charge_card",
            "capture_the_payment",
            "PAYMENT.CAPTURE",
        ] {
            check(name, true);
        }
        for name in [
            "payment.get",
            "payment.create_intent",
            "payment.list_methods",
            "checkout.create_draft_order",
            "capture.screenshot",
            "order.confirm",
            "card.list",
            "screen.capture",
            "charge.list",
            "confirm.email",
        ] {
            check(name, false);
        }
    }
}
