//! Checks one address by the rules of its country: the result is its normal form with the changes, or every fault.

use std::fmt;

use super::fault::{Change, Fault, Faults, Problem};
use super::formats::{AddressRules, Country, Part, Region};
use super::{Address, label, postal, text};
use crate::shop::is_chinese;

/// An address in normal form.
#[derive(Clone, PartialEq)]
pub struct Checked {
    /// The normal form: codes for country and region, and the postal code as the country writes it.
    pub address: Address,
    /// The lines of the label.
    pub formatted: Vec<String>,
    /// The changes to the address as it was sent.
    pub changes: Vec<Change>,
    pub(super) is_military: bool,
}

/// Shows the changes only: the rest is personal.
impl fmt::Debug for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checked")
            .field("changes", &self.changes)
            .finish_non_exhaustive()
    }
}

/// Checks the address at this JSON pointer of the arguments.
pub fn check(
    rules: &AddressRules,
    address: &Address,
    pointer: &str,
    locale: Option<&str>,
) -> Result<Checked, Faults> {
    let mut desk = Desk::new(pointer, locale);
    let checked = desk.address(rules, address);
    match checked {
        Some(checked) if desk.faults.is_empty() => Ok(Checked {
            changes: desk.changes,
            ..checked
        }),
        Some(_) | None => Err(Faults(desk.faults)),
    }
}

/// A check in progress: the faults and changes so far.
pub(super) struct Desk<'a> {
    pointer: &'a str,
    is_chinese: bool,
    pub(super) faults: Vec<Fault>,
    pub(super) changes: Vec<Change>,
}

impl<'d> Desk<'d> {
    /// A check without results yet. The pointer names the checked argument.
    pub(super) fn new(pointer: &'d str, locale: Option<&str>) -> Self {
        Self {
            pointer,
            is_chinese: is_chinese(locale),
            faults: Vec::new(),
            changes: Vec::new(),
        }
    }

    fn address(&mut self, rules: &AddressRules, sent: &Address) -> Option<Checked> {
        let Some((code, country)) = rules.country(&sent.country) else {
            let known: Vec<&str> = rules.countries.keys().map(String::as_str).collect();
            let known = known.join(", ");
            let hint = self.words(&format!("one of {known}"), &format!("可选值：{known}"));
            let message = (
                "addresses of this country are not known",
                "不支持该国家或地区的地址",
            );
            self.fault("country", Problem::Unknown, message, hint);
            return None;
        };
        if code != sent.country {
            self.change("country", "COUNTRY_TO_CODE");
        }
        let mut address = Address {
            recipient: self.text("recipient", sent.recipient.as_deref()),
            company: self.text("company", sent.company.as_deref()),
            lines: self.lines(&sent.lines),
            district: self.text("district", sent.district.as_deref()),
            city: self.text("city", sent.city.as_deref()),
            region: self.text("region", sent.region.as_deref()),
            postal_code: self.postal_code(code, country, sent.postal_code.as_deref()),
            phone: self.phone(sent.phone.as_deref()),
            country: code.to_owned(),
        };
        let region = self.region(rules, country, &mut address);
        self.required(country, &address);
        self.agrees(country, region, &address);
        Some(Checked {
            formatted: label::lines(&address, country),
            address,
            changes: Vec::new(),
            is_military: region.is_some_and(|region| region.is_military),
        })
    }

    /// A text that a label can print; `None` if it is missing, empty or has a fault.
    pub(super) fn text(&mut self, field: &str, sent: Option<&str>) -> Option<String> {
        let sent = sent?;
        let Some(tidy) = text::tidy(sent) else {
            let message = (
                "the text has characters that no label can print",
                "包含无法打印的字符",
            );
            let hint = self.words("write it in letters and digits", "请使用文字和数字");
            self.fault(field, Problem::Malformed, message, hint);
            return None;
        };
        if tidy != sent {
            self.change(field, "TEXT_TIDIED");
        }
        (!tidy.is_empty()).then_some(tidy)
    }

    fn lines(&mut self, sent: &[String]) -> Vec<String> {
        let mut lines = Vec::new();
        for (at, line) in sent.iter().enumerate() {
            lines.extend(self.text(&format!("lines/{at}"), Some(line)));
        }
        lines
    }

    pub(super) fn postal_code(
        &mut self,
        code: &str,
        country: &Country,
        sent: Option<&str>,
    ) -> Option<String> {
        let sent = sent.filter(|sent| !sent.trim().is_empty())?;
        let Some(postal) = &country.postal else {
            self.change("postal_code", "POSTAL_CODE_NOT_USED");
            return None;
        };
        let key = postal::key(sent);
        // Some people write the country in front: DE-10115, D-10115.
        let prefixes = postal.prefixes.iter().map(String::as_str).chain([code]);
        let bare = prefixes.filter_map(|prefix| key.strip_prefix(prefix));
        let mut keys = [key.as_str()].into_iter().chain(bare);
        let written = keys.find_map(|key| {
            let mut masks = postal.masks.iter();
            masks.find_map(|mask| postal::write(mask, key))
        });
        let Some(written) = written else {
            let message = (
                "the postal code is not one of this country",
                "邮政编码不符合该国家或地区的格式",
            );
            let hint = self.example(&postal.example);
            self.fault("postal_code", Problem::Malformed, message, hint);
            return None;
        };
        if written != sent {
            self.change("postal_code", "POSTAL_CODE_REWRITTEN");
        }
        Some(written)
    }

    fn phone(&mut self, sent: Option<&str>) -> Option<String> {
        let phone = self.text("phone", sent)?;
        let digits = phone.chars().filter(char::is_ascii_digit).count();
        let is_number = |letter: char| letter.is_ascii_digit() || " +-().".contains(letter);
        if (6..=15).contains(&digits) && phone.chars().all(is_number) {
            return Some(phone);
        }
        let message = ("this is no telephone number", "电话号码无效");
        let hint = self.example("+49 30 1234567");
        self.fault("phone", Problem::Malformed, message, hint);
        None
    }

    /// Replaces the name of the region by its code; if it is missing, takes that of the postal code, or else of the
    /// city.
    pub(super) fn region<'a>(
        &mut self,
        rules: &AddressRules,
        country: &'a Country,
        address: &mut Address,
    ) -> Option<&'a Region> {
        if country.regions.is_empty() {
            return None;
        }
        let (found, change) = if let Some(sent) = &address.region {
            let Some(found) = rules.region(&address.country, country, sent) else {
                let message = (
                    "there is no such region in this country",
                    "该国家或地区没有此省州",
                );
                let hint = self.example(&country.region_example);
                self.fault("region", Problem::Unknown, message, hint);
                return None;
            };
            (
                found,
                (found.code != *sent).then_some("REGION_NAME_TO_CODE"),
            )
        } else {
            let of_city = address.city.as_deref();
            let of_city = of_city.and_then(|city| rules.region(&address.country, country, city));
            let of_code = address.postal_code.as_deref().map(postal::key);
            let of_code = of_code.and_then(|key| country.region_of_code(&key));
            match (of_code, of_city) {
                (Some(found), _) => (found, Some("REGION_FROM_POSTAL_CODE")),
                (None, Some(found)) => (found, Some("REGION_FROM_CITY")),
                (None, None) => return None,
            }
        };
        if let Some(change) = change {
            self.change("region", change);
        }
        address.region = Some(found.code.clone());
        Some(found)
    }

    fn required(&mut self, country: &Country, address: &Address) {
        let has_letter = |text: &String| text.chars().any(char::is_alphanumeric);
        for part in &country.required {
            let (field, is_there, example) = match part {
                Part::Recipient => {
                    let recipient = address.recipient.as_ref();
                    let is_name = |name: &String| name.chars().any(char::is_alphabetic);
                    ("recipient", recipient.is_some_and(is_name), "Anna Muster")
                }
                Part::Lines => (
                    "lines",
                    address.lines.iter().any(has_letter),
                    "[\"Main St 1\"]",
                ),
                Part::City => (
                    "city",
                    address.city.as_ref().is_some_and(has_letter),
                    "Berlin",
                ),
                Part::Region => (
                    "region",
                    address.region.is_some(),
                    country.region_example.as_str(),
                ),
                Part::PostalCode => {
                    let example = country
                        .postal
                        .as_ref()
                        .map(|postal| postal.example.as_str());
                    (
                        "postal_code",
                        address.postal_code.is_some(),
                        example.unwrap_or_default(),
                    )
                }
            };
            let pointer = format!("{}/{field}", self.pointer);
            let is_known = self
                .faults
                .iter()
                .any(|fault| fault.field.starts_with(&pointer));
            if !is_there && !is_known {
                let hint = self.example(example);
                let message = (
                    "an address in this country needs this field",
                    "该国家或地区的地址需要此字段",
                );
                self.fault(field, Problem::Missing, message, hint);
            }
        }
    }

    /// Adds a fault if the postal code is not in the region, as far as that is known.
    pub(super) fn agrees(&mut self, country: &Country, region: Option<&Region>, address: &Address) {
        let (Some(region), Some(code)) = (region, &address.postal_code) else {
            return;
        };
        if region.postal.is_empty() || region.has_code(&postal::key(code)) {
            return;
        }
        let example = country
            .postal
            .as_ref()
            .map(|postal| postal.example.as_str());
        let example = self.example(&format!(
            "{}: {}",
            country.region_example,
            example.unwrap_or_default()
        ));
        let hint = self.words(
            "correct the postal code or the region",
            "请更正邮政编码或省州",
        );
        let separator = self.words(", ", "，");
        let hint = format!("{hint}{separator}{example}");
        let message = (
            "the postal code is not in this region",
            "邮政编码与省州不符",
        );
        self.fault("postal_code", Problem::Mismatch, message, hint);
    }

    fn fault(&mut self, field: &str, problem: Problem, (en, zh): (&str, &str), hint: String) {
        self.faults.push(Fault {
            field: format!("{}/{field}", self.pointer),
            problem,
            message: self.words(en, zh),
            hint,
        });
    }

    pub(super) fn change(&mut self, field: &str, change: &str) {
        self.changes.push(Change {
            field: format!("{}/{field}", self.pointer),
            change: change.to_owned(),
        });
    }

    fn example(&self, example: &str) -> String {
        self.words(
            &format!("for example {example}"),
            &format!("例如 {example}"),
        )
    }

    fn words(&self, english: &str, chinese: &str) -> String {
        let words = if self.is_chinese { chinese } else { english };
        words.to_owned()
    }
}
