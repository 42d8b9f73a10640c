//! Notes on an estimate for people, in their language.

use super::answer::Incoterm;
use crate::shop::Text;

/// A note; given once however many lines it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Note {
    /// The cost of shipping is missing.
    NoShipping,
    /// The rate of a chapter was used.
    ChapterRate(String),
    /// No rate of this code is known.
    UnknownCode(String),
    /// Fees are those of the national post.
    PostFees,
    /// A courier charges a fee that is not in the rules.
    CourierFees,
    /// An excise that is not in the rules is due.
    Excise,
    /// No region was named.
    RegionAssumed,
    /// The destination is a part of the country that has other rates.
    Special(Text),
    /// Towns and counties may add to it.
    LocalRates,
    /// Food may be taxed less.
    FoodRates,
    /// An agreement was used.
    Preference(Text),
    /// The note of a rule.
    Rule(Text),
    /// The payer of duties and taxes.
    Payer(Incoterm),
}

impl Note {
    /// The text, for people.
    pub(super) fn text(&self) -> Text {
        let (en, zh) = match self {
            Self::NoShipping => (
                "Shipping is not known yet, so it is not part of the values: name a shipping option for a surer estimate.".to_owned(),
                "尚未选择配送方式，估算未计入运费；选定配送方式后结果更准确。".to_owned(),
            ),
            Self::ChapterRate(chapter) => (
                format!("The duty of chapter {chapter} was used; that of the exact tariff line may differ."),
                format!("按第 {chapter} 章的税率估算，具体税号的税率可能不同。"),
            ),
            Self::UnknownCode(code) => (
                format!("No duty of the code {code} is known; an average was assumed."),
                format!("税号 {code} 的税率未知，按平均税率估算。"),
            ),
            Self::PostFees => (
                "The fee for clearance is that of the national post; other carriers take their own.".to_owned(),
                "清关费按当地邮政标准估算，其他承运人收费可能不同。".to_owned(),
            ),
            Self::CourierFees => (
                "The carrier may take a fee of its own for clearance, which is not included.".to_owned(),
                "承运人可能另收清关费，估算未计入。".to_owned(),
            ),
            Self::Excise => (
                "Excise on alcohol and tobacco is not included.".to_owned(),
                "未计入烟酒消费税。".to_owned(),
            ),
            Self::RegionAssumed => (
                "No region was named, so the highest rate of all regions was assumed.".to_owned(),
                "未提供州或省，按各地最高税率估算。".to_owned(),
            ),
            Self::Special(name) => (
                format!("{} has customs or taxes of its own: other rates hold there than those of this estimate.", capital(&name.en)),
                format!("{}适用单独的海关或税收制度，实际税率与本估算不同。", name.zh),
            ),
            Self::LocalRates => (
                "Rates of towns and counties are not included.".to_owned(),
                "未计入县、市等地方税率。".to_owned(),
            ),
            Self::FoodRates => (
                "Many states tax food less or not at all; the full rate was assumed.".to_owned(),
                "许多州对食品免税或减税，此处按全额税率估算。".to_owned(),
            ),
            Self::Preference(name) => (
                format!("Assumes that the seller gives a proof of origin for {}.", name.en),
                format!("假定卖家能够提供{}所需的原产地证明。", name.zh),
            ),
            Self::Rule(text) => return text.clone(),
            Self::Payer(Incoterm::Ddp) => (
                "Duties, taxes and fees are paid with the order (DDP).".to_owned(),
                "关税、税款和费用随订单一并支付（DDP）。".to_owned(),
            ),
            Self::Payer(Incoterm::Dap) => (
                "What is not due at the sale is paid to the carrier on delivery (DAP).".to_owned(),
                "销售时未收取的税费由买家在收货时向承运人支付（DAP）。".to_owned(),
            ),
        };
        Text { en, zh }
    }
}

/// The name with a capital letter, as a sentence begins.
fn capital(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}
