//! Normalizes a destination by the same rules as an address: as much of it as rates and rules ask for, and no more.

use countersign::{CallContext, ToolError};

use super::check::Desk;
use super::fault::{Change, Faults};
use super::formats::AddressRules;
use super::{Address, validate_address};
use crate::destination::Destination;
use crate::words::Say;

/// The destination of a call in normal form; adds a remark for each change. Every tool answers with this form, so that
/// answers about one place agree however it was written.
pub(crate) fn normal(ctx: &CallContext, sent: &Destination) -> Result<Destination, ToolError> {
    let rules = AddressRules::of(ctx)?;
    let locale = ctx.request().locale.as_deref();
    let (destination, changes) = place(&rules, sent, "/destination", locale)?;
    let letters = destination.country.bytes();
    if letters.len() != 2
        || !letters
            .into_iter()
            .all(|letter| letter.is_ascii_uppercase())
    {
        let message = Say::CountryNotKnown;
        return Err(ToolError::invalid("/destination/country", message).hint(Say::TwoLetters));
    }
    validate_address::remark(ctx, &changes);
    Ok(destination)
}

/// A destination in normal form and its changes, or every fault. If a country has no rules, its region and postal code
/// stay as they were sent, except for capitals and blanks.
pub(crate) fn place(
    rules: &AddressRules,
    sent: &Destination,
    pointer: &str,
    locale: Option<&str>,
) -> Result<(Destination, Vec<Change>), Faults> {
    let Some((code, country)) = rules.country(&sent.country) else {
        return Ok((sent.normalized(), Vec::new()));
    };
    let mut desk = Desk::new(pointer, locale);
    if !code.eq_ignore_ascii_case(&sent.country) {
        desk.change("country", "COUNTRY_TO_CODE");
    }
    let mut address = Address {
        recipient: None,
        company: None,
        lines: Vec::new(),
        district: None,
        city: None,
        region: desk.text("region", sent.region.as_deref()),
        postal_code: desk.postal_code(code, country, sent.postal_code.as_deref()),
        phone: None,
        country: code.to_owned(),
    };
    let region = desk.region(rules, country, &mut address);
    desk.agrees(country, region, &address);
    if !desk.faults.is_empty() {
        return Err(Faults(desk.faults));
    }
    Ok((address.destination().normalized(), desk.changes))
}
