//! The duty and the tax of one tariff code.

use rust_decimal::Decimal;

use super::answer::{Confidence, TaxLine};
use super::note::Note;
use super::place::Place;
use super::rules::{AdditionalDuty, Preference, TaxRules};

/// A rate, with its rules, confidence and notes.
pub(super) struct Found {
    pub(super) rate: Decimal,
    /// A tax that is part of its own base.
    pub(super) excise: Decimal,
    pub(super) rules: Vec<String>,
    pub(super) confidence: Confidence,
    pub(super) notes: Vec<Note>,
}

/// The facts about goods that a rate depends on.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) hs_code: &'a str,
    pub(super) origin: &'a str,
    pub(super) ships_from: &'a str,
}

impl<'a> Asked<'a> {
    /// The facts of a line.
    pub(super) fn of(line: &'a TaxLine) -> Self {
        Self {
            hs_code: &line.hs_code,
            origin: &line.origin,
            ships_from: &line.ships_from,
        }
    }
}

/// The duty of a code: that of the tariff or of an agreement, plus the additional duties.
pub(super) fn duty(rules: &TaxRules, place: Place<'_>, asked: Asked<'_>) -> Found {
    let mut found = tariff_rate(place, asked.hs_code);
    if let Some(preference) = preference(rules, place, asked)
        && preference.rate < found.rate
    {
        found.rate = preference.rate;
        found.rules.push(format!("preference/{}", preference.id));
        // The proof of origin is the seller's to give.
        found.confidence = Confidence::Medium;
        found.notes = vec![Note::Preference(preference.name.clone())];
    }
    let territory = &place.country.territory;
    let on_top = place.territory.additional.iter();
    for duty in on_top.filter(|duty| is_on_top(duty, asked)) {
        found.rate += duty.rate;
        found
            .rules
            .push(format!("{territory}/additional/{}", duty.id));
        if let Some(most) = duty.confidence_max {
            found.confidence = found.confidence.min(most);
        }
    }
    found
}

/// The rate of the tariff for the longest code that fits.
fn tariff_rate(place: Place<'_>, hs_code: &str) -> Found {
    let territory = &place.country.territory;
    let fitting = place.territory.duties.iter().flat_map(|duty| {
        let codes = duty.hs.iter().filter(|code| hs_code.starts_with(*code));
        codes.map(move |code| (code, duty))
    });
    let Some((code, duty)) = fitting.max_by_key(|(code, _)| code.len()) else {
        return Found {
            rate: place.territory.duty_default,
            excise: Decimal::ZERO,
            rules: vec![format!("{territory}/duty/default")],
            confidence: Confidence::Low,
            notes: vec![Note::UnknownCode(hs_code.to_owned())],
        };
    };
    let is_chapter = code.len() == 2 && !duty.is_exact;
    let by_length = if is_chapter {
        Confidence::Medium
    } else {
        Confidence::High
    };
    Found {
        rate: duty.rate,
        excise: Decimal::ZERO,
        rules: vec![format!("{territory}/duty/{code}")],
        confidence: by_length.min(duty.confidence_max.unwrap_or(Confidence::High)),
        notes: if is_chapter {
            vec![Note::ChapterRate(code.clone())]
        } else {
            Vec::new()
        },
    }
}

/// The agreement with the lowest rate; `None` if there is none.
pub(super) fn preference<'a>(
    rules: &'a TaxRules,
    place: Place<'_>,
    asked: Asked<'_>,
) -> Option<&'a Preference> {
    let agreements = rules.preferences.iter();
    agreements
        .filter(|preference| is_preferred(rules, preference, place, asked))
        .min_by_key(|preference| preference.rate)
}

/// True if the goods are made there and sent from there: goods that go through another country would have to be proved
/// unchanged.
fn is_preferred(
    rules: &TaxRules,
    preference: &Preference,
    place: Place<'_>,
    asked: Asked<'_>,
) -> bool {
    let is_party = |country: &str| {
        let territory = rules.countries.get(country).map(|found| &found.territory);
        preference
            .origins
            .iter()
            .any(|party| party == country || Some(party) == territory)
    };
    let chapter = asked.hs_code.get(..2).and_then(|text| text.parse().ok());
    preference.into.contains(&place.country.territory)
        && is_party(asked.origin)
        && is_party(asked.ships_from)
        && chapter.is_some_and(|chapter: u8| {
            (preference.chapter_first..=preference.chapter_last).contains(&chapter)
                && !preference.except_chapters.contains(&chapter)
        })
}

fn is_on_top(duty: &AdditionalDuty, asked: Asked<'_>) -> bool {
    let is_of = |countries: &[String]| countries.iter().any(|country| country == asked.origin);
    let fits = |codes: &[String]| has_code(codes, asked.hs_code);
    (duty.origins.is_empty() || is_of(&duty.origins))
        && !is_of(&duty.except_origins)
        && (duty.hs.is_empty() || fits(&duty.hs))
        && !fits(&duty.except_hs)
}

/// True if a list of chapters, headings and subheadings has this code.
pub(super) fn has_code(codes: &[String], hs_code: &str) -> bool {
    codes.iter().any(|code| hs_code.starts_with(code.as_str()))
}

/// The tax of a code: another rate of the country for it, else the rate of the region, else the standard rate.
pub(super) fn tax(place: Place<'_>, hs_code: &str) -> Found {
    let tax = &place.country.tax;
    let (code, kind) = (place.code, &tax.kind);
    let mut found = Found {
        rate: tax.standard,
        excise: Decimal::ZERO,
        rules: vec![format!("{code}/{kind}/standard")],
        confidence: Confidence::High,
        notes: Vec::new(),
    };
    let others = tax.rates.iter().flat_map(|other| {
        let codes = other.hs.iter().filter(|code| hs_code.starts_with(*code));
        codes.map(move |code| (code.len(), other))
    });
    if let Some((_, other)) = others.max_by_key(|(length, _)| *length) {
        found.rate = other.rate;
        found.excise = other.excise;
        found.rules = vec![format!("{code}/{kind}/{}", other.id)];
        found.confidence = other.confidence_max.unwrap_or(Confidence::High);
        found.notes.extend(other.note.clone().map(Note::Rule));
        return found;
    }
    if tax.regions.is_empty() {
        return found;
    }
    let is_food = has_code(&tax.food, hs_code);
    let is_doubtful = has_code(&tax.food_except, hs_code);
    match place.region {
        Some((region, rates)) if has_code(&rates.exempt, hs_code) => {
            found.rate = Decimal::ZERO;
            found.rules = vec![format!("{code}/region/{region}/exempt")];
        }
        Some((region, rates)) if rates.exempt_food && is_food && !is_doubtful => {
            found.rate = Decimal::ZERO;
            found.rules = vec![format!("{code}/region/{region}/exempt_food")];
            found.confidence = Confidence::Medium;
        }
        Some((region, rates)) => {
            found.rate = rates.rate;
            found.rules = vec![format!("{code}/region/{region}")];
        }
        None => {
            // The highest rate: a buyer who pays less than estimated is not harmed.
            let most = tax.regions.values().map(|region| region.rate).max();
            found.rate = most.unwrap_or(tax.standard);
            found.rules = vec![format!("{code}/region/highest")];
            found.confidence = Confidence::Low;
            found.notes.push(Note::RegionAssumed);
        }
    }
    if is_food && !found.rate.is_zero() {
        // Most places tax food less or not at all.
        found.confidence = Confidence::Low;
        found.notes.push(Note::FoodRates);
    }
    if tax.has_local_rates && !found.rate.is_zero() {
        found.confidence = found.confidence.min(Confidence::Medium);
        found.notes.push(Note::LocalRates);
    }
    found
}
