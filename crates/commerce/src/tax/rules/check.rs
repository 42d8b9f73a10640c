//! The checks of the rule set that its types cannot express: references resolve, and rates are plausible.

use jiff::civil::Date;
use rust_decimal::Decimal;

use super::{Country, DutyTreatment, FeeRule, Preference, Regime, TaxRules, Territory};
use crate::money;
use crate::rulebook::RuleData;

impl RuleData for TaxRules {
    const NAME: &'static str = "tax";

    fn check(&self) -> Result<(), String> {
        date(&self.date)?;
        codes(&self.excisable)?;
        for (code, territory) in &self.territories {
            let within = |problem: String| format!("territory {code}: {problem}");
            self.check_territory(territory).map_err(within)?;
        }
        for (code, country) in &self.countries {
            let within = |problem: String| format!("country {code}: {problem}");
            self.check_country(country).map_err(within)?;
        }
        for preference in &self.preferences {
            let within = |problem: String| format!("preference {}: {problem}", preference.id);
            self.check_preference(preference).map_err(within)?;
        }
        Ok(())
    }
}

impl TaxRules {
    fn check_territory(&self, territory: &Territory) -> Result<(), String> {
        rate(territory.duty_default)?;
        self.cited(&territory.cited.source, &territory.cited.date)?;
        for duty in &territory.duties {
            codes(&duty.hs)?;
            rate(duty.rate)?;
            self.cited(&duty.source, &duty.date)?;
        }
        for duty in &territory.additional {
            codes(&duty.hs)?;
            codes(&duty.except_hs)?;
            rate(duty.rate)?;
            self.cited(&duty.source, &duty.date)?;
        }
        for regime in &territory.regimes {
            self.check_regime(regime)
                .map_err(|problem| format!("regime {}: {problem}", regime.id))?;
        }
        let always = territory.regimes.last().is_some_and(|regime| {
            regime.limit.is_none()
                && regime.from.is_empty()
                && regime.by.is_none()
                && regime.except_hs.is_empty()
        });
        if always {
            Ok(())
        } else {
            Err("the last regime has to fit everything".to_owned())
        }
    }

    fn check_regime(&self, regime: &Regime) -> Result<(), String> {
        self.cited(&regime.source, &regime.date)?;
        codes(&regime.except_hs)?;
        rate(regime.tax_share)?;
        if let Some(limit) = &regime.limit {
            positive(limit.amount)?;
            currency(&limit.currency)?;
        }
        match (regime.duty, &regime.flat_duty) {
            (DutyTreatment::FlatPerCode, Some(flat)) => {
                positive(flat.amount)?;
                currency(&flat.currency)?;
            }
            (DutyTreatment::None | DutyTreatment::Tariff, None) => {}
            (DutyTreatment::FlatPerCode, None)
            | (DutyTreatment::None | DutyTreatment::Tariff, Some(_)) => {
                return Err("flat_duty and duty = \"flat_per_code\" go together".to_owned());
            }
        }
        self.check_fees(&regime.fees)
    }

    fn check_fees(&self, fees: &[FeeRule]) -> Result<(), String> {
        for fee in fees {
            positive(fee.amount)?;
            rate(fee.rate)?;
            for bound in [fee.min, fee.max].into_iter().flatten() {
                positive(bound)?;
            }
            currency(&fee.currency)?;
            self.cited(&fee.source, &fee.date)?;
        }
        Ok(())
    }

    fn check_country(&self, country: &Country) -> Result<(), String> {
        if !self.territories.contains_key(&country.territory) {
            return Err(format!("there is no territory {:?}", country.territory));
        }
        currency(&country.currency)?;
        for part in &country.special {
            self.cited(&part.source, &part.date)?;
            let is_start = |start: &String| {
                let is_plain = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
                !start.is_empty() && start.bytes().all(is_plain)
            };
            if let Some(wrong) = part.postal.iter().find(|start| !is_start(start)) {
                return Err(format!("{wrong:?} is no start of a postal code"));
            }
        }
        let tax = &country.tax;
        rate(tax.standard)?;
        codes(&tax.food)?;
        codes(&tax.food_except)?;
        self.cited(&tax.source, &tax.date)?;
        for other in &tax.rates {
            codes(&other.hs)?;
            rate(other.rate)?;
            if other.excise < Decimal::ZERO || other.excise >= Decimal::ONE {
                return Err(format!("{} is no excise below 1", other.excise));
            }
            self.cited(&other.source, &other.date)?;
        }
        for region in tax.regions.values() {
            rate(region.rate)?;
            codes(&region.exempt)?;
        }
        self.check_fees(&country.fees)
    }

    fn check_preference(&self, preference: &Preference) -> Result<(), String> {
        rate(preference.rate)?;
        self.cited(&preference.source, &preference.date)?;
        let unknown = preference
            .into
            .iter()
            .find(|code| !self.territories.contains_key(*code));
        unknown.map_or(Ok(()), |code| {
            Err(format!("there is no territory {code:?}"))
        })
    }

    fn cited(&self, source: &str, day: &str) -> Result<(), String> {
        date(day)?;
        if self.sources.contains_key(source) {
            return Ok(());
        }
        Err(format!("there is no source {source:?}"))
    }
}

fn date(text: &str) -> Result<(), String> {
    let date: Result<Date, _> = text.parse();
    date.map(|_| ()).map_err(|_| format!("{text:?} is no date"))
}

fn rate(rate: Decimal) -> Result<(), String> {
    // Duties above the value of the goods exist, but not above ten times of it.
    if rate < Decimal::ZERO || rate > Decimal::TEN {
        return Err(format!("{rate} is no rate"));
    }
    Ok(())
}

fn positive(amount: Decimal) -> Result<(), String> {
    if amount < Decimal::ZERO {
        return Err(format!("{amount} is negative"));
    }
    Ok(())
}

fn currency(code: &str) -> Result<(), String> {
    money::exponent(code)
        .map(|_| ())
        .map_err(|error| error.to_string())
}

fn codes(codes: &[String]) -> Result<(), String> {
    let is_code = |code: &&String| {
        !(matches!(code.len(), 2 | 4 | 6) && code.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let wrong = codes.iter().find(is_code);
    wrong.map_or(Ok(()), |code| {
        Err(format!("{code:?} is no chapter, heading or subheading"))
    })
}
