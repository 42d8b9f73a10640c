//! A draft order as other standards of agent commerce write a checkout: [`acp`] (2026-04-17) and [`ucp`] (2026-04-08).
//!
//! Pure functions: a summary of an order goes in, JSON comes out. Amounts stay whole numbers of the smallest unit,
//! and what is shown adds up, or nothing is shown. None of it can be paid through these pages: the buyer does
//! that elsewhere, at `continue_url`.

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

/// What both standards show of an order.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// The draft order.
    pub id: String,
    /// How it stands.
    pub state: SessionState,
    /// What is bought.
    pub lines: Vec<SessionLine>,
    /// How it is sent.
    pub shipping: SessionShipping,
    /// Where it goes.
    pub destination: Destination,
    /// Customs duty, whoever pays it.
    pub duty: Money,
    /// VAT, GST or sales tax, whoever pays it.
    pub tax: Money,
    /// What carriers and offices charge, whoever pays it.
    pub fees: Money,
    /// What the buyer pays for the order.
    pub total: Money,
    /// What the buyer pays to the carrier besides, at the door.
    pub due_on_delivery: Money,
    /// What the buyer has to acknowledge, in the language of the page.
    pub acknowledge: Vec<String>,
    /// What the buyer has to be asked about: what it is, and the text for people.
    pub confirm: Vec<(String, String)>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Until when it can be paid for.
    pub expires_at: Timestamp,
    /// Until when price and things are held, where they are.
    pub held_until: Option<Timestamp>,
    /// The evidence of the quote.
    pub quote_snapshot_id: String,
    /// The evidence of everything that it rests on.
    pub evidence_snapshot_id: String,
}

/// How an order stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// Nothing is held, and nobody has confirmed anything.
    Open,
    /// Price and things are held; the buyer has not confirmed.
    Locked,
    /// The buyer has confirmed, and can pay.
    Payable,
    /// It is over.
    Expired,
}

/// So many of one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionLine {
    /// What.
    pub sku: String,
    /// Its offer.
    pub offer_id: String,
    /// What people call it.
    pub title: String,
    /// How many.
    pub quantity: u32,
    /// What one costs.
    pub unit_price: Money,
    /// What all of them cost.
    pub line_total: Money,
}

/// The way that was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionShipping {
    /// Its name.
    pub option_id: String,
    /// Who carries it.
    pub carrier: String,
    /// Which of its services.
    pub service: String,
    /// At least so many working days.
    pub days_min: u32,
    /// At most so many.
    pub days_max: u32,
    /// What it costs.
    pub price: Money,
}

/// Who looks at a page.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reader<'a> {
    /// The language that they like best.
    pub locale: Option<&'a str>,
    /// Where the buyer goes on, if there is such a page.
    pub continue_url: Option<&'a str>,
}

impl Reader<'_> {
    /// One of both.
    fn say(&self, english: &str, chinese: &str) -> String {
        let is_chinese = is_chinese(self.locale);
        if is_chinese { chinese } else { english }.to_owned()
    }

    /// What is said of an order that is over.
    fn is_over(&self) -> String {
        self.say(
            "This order has expired; a new one has to be made from a new quote.",
            "该订单已过期，须重新询价并下单。",
        )
    }
}

impl Session {
    /// The name of each line, in their order.
    fn line_ids(&self) -> Vec<&str> {
        self.lines.iter().map(|line| line.sku.as_str()).collect()
    }

    /// What the way is called.
    fn way(&self) -> String {
        format!("{} {}", self.shipping.carrier, self.shipping.service)
    }

    /// How long it takes.
    fn duration(&self, reader: &Reader<'_>) -> String {
        let (from, to) = (self.shipping.days_min, self.shipping.days_max);
        reader.say(
            &format!("{from} to {to} working days"),
            &format!("{from} 至 {to} 个工作日"),
        )
    }

    /// What the buyer is asked, as long as nobody has confirmed it.
    fn question(&self, reader: &Reader<'_>) -> String {
        let total = &self.total;
        reader.say(
            &format!("The buyer has to confirm the order and its total of {total}."),
            &format!("买家须确认订单及其总额 {total}。"),
        )
    }

    /// What the buyer pays to somebody else.
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
