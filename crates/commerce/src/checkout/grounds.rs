//! The four answers that a total rests on: read by the ids of their evidence, and compared with the cart and with each
//! other. An answer that does not fit is refused with the argument that named it.

use countersign::contract::{Digest, SnapshotId};
use countersign::{CallContext, ToolError};
use jiff::Timestamp;

use super::part::{GroundIds, Part};
use super::total::{self, Breakdown};
use crate::compliance::ComplianceReport;
use crate::destination::Destination;
use crate::ground::{self, EvidenceId, Ground};
use crate::pricing::Quote;
use crate::shipping::address::postal_key;
use crate::shipping::{ShippingOption, ShippingQuote};
use crate::tax::{Incoterm, TaxEstimate};
use crate::words::Say;

/// The four answers.
#[derive(Debug, Clone)]
pub(crate) struct Grounds {
    pub(crate) quote: Ground<Quote>,
    pub(crate) shipping: Ground<ShippingQuote>,
    pub(crate) tax: Ground<TaxEstimate>,
    pub(crate) compliance: Ground<ComplianceReport>,
}

/// The arguments that name the answers, as JSON pointers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pointers {
    pub(crate) quote: &'static str,
    pub(crate) shipping: &'static str,
    pub(crate) tax: &'static str,
    pub(crate) compliance: &'static str,
}

impl Pointers {
    /// The pointers if one argument names all answers.
    pub(crate) const fn all(pointer: &'static str) -> Self {
        Self {
            quote: pointer,
            shipping: pointer,
            tax: pointer,
            compliance: pointer,
        }
    }
}

/// The cart, currency, destination and shipping option that the answers have to be about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) cart_id: &'a str,
    pub(crate) basket: Digest,
    pub(crate) currency: Option<&'a str>,
    pub(crate) destination: &'a Destination,
    pub(crate) option_id: &'a str,
}

impl Grounds {
    /// Reads all four; each becomes a link of the call's record.
    pub(crate) async fn read(
        ctx: &CallContext,
        ids: &GroundIds,
        at: &Pointers,
    ) -> Result<Self, ToolError> {
        let of = |id: &SnapshotId| EvidenceId::from(id);
        Ok(Self {
            quote: ground::read(
                ctx,
                at.quote,
                &of(&ids.quote_snapshot_id),
                Part::Quote.tool(),
            )
            .await?,
            shipping: ground::read(
                ctx,
                at.shipping,
                &of(&ids.shipping_snapshot_id),
                Part::Shipping.tool(),
            )
            .await?,
            tax: ground::read(ctx, at.tax, &of(&ids.tax_snapshot_id), Part::Tax.tool()).await?,
            compliance: ground::read(
                ctx,
                at.compliance,
                &of(&ids.compliance_snapshot_id),
                Part::Compliance.tool(),
            )
            .await?,
        })
    }

    /// Rests the call on all answers; returns the parts whose TTL is over.
    pub(crate) fn expired(&self, ctx: &CallContext) -> Vec<Part> {
        let fresh = [
            (Part::Quote, self.quote.rests(ctx)),
            (Part::Shipping, self.shipping.rests(ctx)),
            (Part::Tax, self.tax.rests(ctx)),
            (Part::Compliance, self.compliance.rests(ctx)),
        ];
        let expired = fresh.into_iter().filter(|(_, is_fresh)| !is_fresh);
        expired.map(|(part, _)| part).collect()
    }

    /// The earliest end of their TTLs; `None` if none of them has one.
    pub(crate) fn valid_until(&self) -> Option<Timestamp> {
        let all = [
            self.quote.valid_until,
            self.shipping.valid_until,
            self.tax.valid_until,
            self.compliance.valid_until,
        ];
        all.into_iter().flatten().min()
    }

    /// Checks that the answers are about this cart and agree with each other.
    pub(crate) fn check(&self, subject: &Subject<'_>, at: &Pointers) -> Result<(), ToolError> {
        let (quote, shipping) = (&self.quote.answer, &self.shipping.answer);
        let (tax, compliance) = (&self.tax.answer, &self.compliance.answer);
        let seen = [
            (
                Part::Shipping,
                at.shipping,
                &shipping.cart_id,
                shipping.basket,
            ),
            (Part::Quote, at.quote, &quote.cart_id, quote.basket),
            (Part::Tax, at.tax, &tax.cart_id, tax.basket),
            (
                Part::Compliance,
                at.compliance,
                &compliance.cart_id,
                compliance.basket,
            ),
        ];
        for (part, pointer, cart_id, basket) in seen {
            check_cart(subject, part, pointer, cart_id.as_deref(), basket)?;
        }
        let going = [
            (Part::Shipping, at.shipping, &shipping.destination),
            (Part::Tax, at.tax, &tax.destination),
            (Part::Compliance, at.compliance, &compliance.destination),
        ];
        for (part, pointer, destination) in going {
            check_destination(subject, part, pointer, destination)?;
        }
        self.check_currency(subject, at)?;
        self.check_tax(self.option(subject.option_id, at)?, at)
    }

    /// The selected shipping option.
    pub(crate) fn option(
        &self,
        option_id: &str,
        at: &Pointers,
    ) -> Result<&ShippingOption, ToolError> {
        let mut options = self.shipping.answer.options.iter();
        let option = options.find(|option| option.option_id == option_id);
        option.ok_or_else(|| {
            let option_id = option_id.to_owned();
            ToolError::invalid(at.shipping, Say::OptionNotInAnswer { option_id })
                .hint(Say::ChooseShipping)
        })
    }

    /// The breakdown that follows from these answers.
    pub(crate) fn breakdown(&self, option: &ShippingOption) -> Result<Breakdown, ToolError> {
        let quote = &self.quote.answer;
        let sum = total::breakdown(&quote.lines, &quote.subtotal, option, &self.tax.answer);
        Ok(sum?)
    }

    /// The rule sets that they were computed with, each version once.
    pub(crate) fn rules(&self) -> Vec<(String, String)> {
        let all = [
            &self.quote.rules,
            &self.shipping.rules,
            &self.tax.rules,
            &self.compliance.rules,
        ];
        let pairs = all.into_iter().flatten();
        let mut rules: Vec<_> = pairs
            .map(|(name, version)| (name.clone(), version.clone()))
            .collect();
        rules.sort();
        rules.dedup();
        rules
    }

    fn check_currency(&self, subject: &Subject<'_>, at: &Pointers) -> Result<(), ToolError> {
        let wanted = &self.quote.answer.currency;
        if let Some(of_cart) = subject.currency.filter(|of_cart| *of_cart != wanted) {
            return Err(differs(
                Part::Quote,
                at.quote,
                |tool| Say::NotTheCurrencyOfCart { tool },
                of_cart,
                wanted,
            ));
        }
        let others = [
            (Part::Shipping, at.shipping, &self.shipping.answer.currency),
            (Part::Tax, at.tax, &self.tax.answer.currency),
        ];
        for (part, pointer, currency) in others {
            if currency != wanted {
                return Err(differs(
                    part,
                    pointer,
                    |tool| Say::NotTheCurrencyOfQuote { tool },
                    wanted,
                    currency,
                ));
            }
        }
        Ok(())
    }

    /// Checks that duties and taxes were computed for the costs of this quote and this shipping option.
    fn check_tax(&self, option: &ShippingOption, at: &Pointers) -> Result<(), ToolError> {
        let (quote, tax) = (&self.quote.answer, &self.tax.answer);
        let differs = |what: fn(String) -> Say, wanted: &str, found: &str| {
            Err(differs(Part::Tax, at.tax, what, wanted, found))
        };
        if tax.goods_value != quote.subtotal {
            let (wanted, found) = (quote.subtotal.to_string(), tax.goods_value.to_string());
            return differs(|tool| Say::NotTheValueOfQuote { tool }, &wanted, &found);
        }
        let found = tax.shipping_option_id.as_deref().unwrap_or("none");
        if found != option.option_id {
            return differs(
                |tool| Say::NotTheOptionOfCart { tool },
                &option.option_id,
                found,
            );
        }
        if tax.shipping_cost != option.price {
            let (wanted, found) = (option.price.to_string(), tax.shipping_cost.to_string());
            return differs(|tool| Say::NotThePriceOfOption { tool }, &wanted, &found);
        }
        if !option.incoterms.contains(&tax.incoterm) {
            return differs(
                |tool| Say::NotTheIncotermOfOption { tool },
                &Incoterm::listed(&option.incoterms),
                tax.incoterm.as_str(),
            );
        }
        Ok(())
    }
}

/// The first part in which a destination differs from the wanted one; `None` if rates and rules treat them alike.
fn difference(wanted: &Destination, found: &Destination) -> Option<&'static str> {
    if wanted.country() != found.country() {
        Some("country")
    } else if wanted.region() != found.region() {
        Some("region")
    } else if !has_code_of(wanted, found) {
        Some("postal_code")
    } else {
        None
    }
}

/// True if a destination has the postal code of the wanted one, in any spelling. If the wanted one has a code, an
/// answer without one is about another place of the country.
pub(super) fn has_code_of(wanted: &Destination, found: &Destination) -> bool {
    let code = |place: &Destination| place.postal_code.as_deref().map(postal_key);
    code(wanted).is_none_or(|wanted| code(found) == Some(wanted))
}

fn check_cart(
    subject: &Subject<'_>,
    part: Part,
    pointer: &str,
    cart_id: Option<&str>,
    basket: Digest,
) -> Result<(), ToolError> {
    if cart_id.is_some_and(|cart_id| cart_id != subject.cart_id) {
        let tool = || part.tool().to_owned();
        return Err(
            ToolError::invalid(pointer, Say::OfOtherCart { tool: tool() })
                .hint(Say::CallForCart { tool: tool() }),
        );
    }
    if basket == subject.basket {
        return Ok(());
    }
    let (wanted, found) = (subject.basket.to_string(), basket.to_string());
    Err(differs(
        part,
        pointer,
        |tool| Say::NotTheItemsOfCart { tool },
        &wanted,
        &found,
    ))
}

fn check_destination(
    subject: &Subject<'_>,
    part: Part,
    pointer: &str,
    found: &Destination,
) -> Result<(), ToolError> {
    let Some(difference) = difference(subject.destination, found) else {
        return Ok(());
    };
    // Names the countries only: the rest is personal.
    let (wanted, found) = (subject.destination.country(), found.country());
    let what = |tool| Say::NotTheDestinationOfCart { tool };
    Err(differs(part, pointer, what, &wanted, &found).detail("differs", difference))
}

/// The refusal of an answer that is about something else.
fn differs(
    part: Part,
    pointer: &str,
    what: fn(String) -> Say,
    wanted: &str,
    found: &str,
) -> ToolError {
    let tool = || part.tool().to_owned();
    ToolError::invalid(pointer, what(tool()))
        .hint(Say::CallAgainAndUse { tool: tool() })
        .detail("part", part.as_str())
        .detail("wanted", wanted)
        .detail("found", found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The wanted place, the place of an answer, and their difference; codes as they may be written.
    #[test]
    fn places_are_told_apart() {
        #[track_caller]
        fn check(wanted: (&str, &str), found: (&str, &str), expected: Option<&str>) {
            let place = |(country, code): (&str, &str)| Destination {
                country: country.to_owned(),
                region: None,
                postal_code: (!code.is_empty()).then(|| code.to_owned()),
            };
            assert_eq!(difference(&place(wanted), &place(found)), expected);
        }
        check(("DE", "10115"), ("de", "１０１１５"), None);
        check(("GB", "SW1A 1AA"), ("GB", "sw1a1aa"), None);
        check(("DE", ""), ("DE", "10115"), None);
        check(("DE", "10115"), ("FR", "10115"), Some("country"));
        check(("DE", "10115"), ("DE", "20095"), Some("postal_code"));
        check(("DE", "10115"), ("DE", ""), Some("postal_code"));
    }
}
