//! A draft order as a checkout in other standards of agent commerce: [`acp`] (2026-04-17) and [`ucp`] (2026-04-08).
//!
//! Pure functions: a summary of an order goes in, JSON comes out. Amounts stay whole numbers of the smallest unit, and
//! the totals add up, or nothing is shown. No order can be paid through these pages: the buyer pays elsewhere, at
//! `continue_url`.

use jiff::Timestamp;

use crate::destination::Destination;
use crate::money::{Money, MoneyError};
use crate::shop::is_chinese;

pub mod acp;
mod order;
mod totals;
pub mod ucp;

pub use order::{PageError, SUMMARY_ARGUMENT, SUMMARY_TOOL};
pub use totals::{Charges, Unbalanced};

/// The content of an order that both standards show.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// The id of the draft order.
    pub id: String,
    /// The state of the order.
    pub state: SessionState,
    /// The order lines.
    pub lines: Vec<SessionLine>,
    /// The selected shipping option.
    pub shipping: SessionShipping,
    /// The destination.
    pub destination: Destination,
    /// Customs duty, paid with the order or on delivery.
    pub duty: Money,
    /// VAT, GST or sales tax, paid with the order or on delivery.
    pub tax: Money,
    /// The clearance fees of carriers and offices, paid with the order or on delivery.
    pub fees: Money,
    /// The amount that the buyer pays for the order.
    pub total: Money,
    /// The amount that the buyer also pays to the carrier, on delivery.
    pub due_on_delivery: Money,
    /// The acknowledgements that the buyer has to give, in the language of the page.
    pub acknowledge: Vec<String>,
    /// The confirmations that the buyer has to give: a kind, and the text for people.
    pub confirm: Vec<(String, String)>,
    /// The time at which the order was made.
    pub created_at: Timestamp,
    /// The end of the time in which it can be paid for.
    pub expires_at: Timestamp,
    /// The end of the lock on price and stock; `None` if there is none.
    pub held_until: Option<Timestamp>,
    /// The evidence of the quote.
    pub quote_snapshot_id: String,
    /// The evidence of everything that the order rests on.
    pub evidence_snapshot_id: String,
}

/// The state of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// Price and stock are not locked, and the buyer has not confirmed.
    Open,
    /// Price and stock are locked; the buyer has not confirmed.
    Locked,
    /// The buyer has confirmed, and can pay.
    Payable,
    /// The order has expired.
    Expired,
}

/// An order line: a quantity of one item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionLine {
    /// The SKU.
    pub sku: String,
    /// The offer of the SKU.
    pub offer_id: String,
    /// The title, for people.
    pub title: String,
    /// The quantity.
    pub quantity: u32,
    /// The price of one unit.
    pub unit_price: Money,
    /// The price of the whole line.
    pub line_total: Money,
}

/// The selected shipping option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionShipping {
    /// The id of the option.
    pub option_id: String,
    /// The carrier.
    pub carrier: String,
    /// The service of the carrier.
    pub service: String,
    /// The shortest delivery time, in working days.
    pub days_min: u32,
    /// The longest delivery time, in working days.
    pub days_max: u32,
    /// The price.
    pub price: Money,
}

/// The reader of a page.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reader<'a> {
    /// The preferred locale.
    pub locale: Option<&'a str>,
    /// The page on which the buyer goes on; `None` if there is none.
    pub continue_url: Option<&'a str>,
}

impl Reader<'_> {
    /// The text in the reader's language.
    fn say(&self, english: &str, chinese: &str) -> String {
        let is_chinese = is_chinese(self.locale);
        if is_chinese { chinese } else { english }.to_owned()
    }

    /// The message for an expired order.
    fn is_over(&self) -> String {
        self.say(
            "This order has expired; a new one has to be made from a new quote.",
            "该订单已过期，须重新询价并下单。",
        )
    }
}

impl Session {
    /// The id of each line, in their order.
    fn line_ids(&self) -> Vec<&str> {
        self.lines.iter().map(|line| line.sku.as_str()).collect()
    }

    /// The name of the shipping option: carrier and service.
    fn way(&self) -> String {
        format!("{} {}", self.shipping.carrier, self.shipping.service)
    }

    /// The delivery time, for people.
    fn duration(&self, reader: &Reader<'_>) -> String {
        let (from, to) = (self.shipping.days_min, self.shipping.days_max);
        reader.say(
            &format!("{from} to {to} working days"),
            &format!("{from} 至 {to} 个工作日"),
        )
    }

    /// The question to the buyer, until the order is confirmed.
    fn question(&self, reader: &Reader<'_>) -> String {
        let total = &self.total;
        reader.say(
            &format!("The buyer has to confirm the order and its total of {total}."),
            &format!("买家须确认订单及其总额 {total}。"),
        )
    }

    /// The note on the amount due to the carrier on delivery; `None` if nothing is due.
    fn at_the_door(&self, reader: &Reader<'_>) -> Option<String> {
        let due = &self.due_on_delivery;
        (due.amount > 0).then(|| {
            reader.say(
                &format!("About {due} of duties, taxes and fees are paid to the carrier on delivery and are not part of the total."),
                &format!("送达时须向承运人支付约 {due} 的关税、税款和费用，不含在总额内。"),
            )
        })
    }
}
