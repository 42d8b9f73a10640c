//! An address as it is printed on a label: in the order and the script of its country.

use super::Address;
use super::formats::{Country, RegionAs};
use super::text::{fold, is_east_asian};

/// The placeholders that a line of a format may have.
const WORDS: [&str; 8] = [
    "recipient",
    "company",
    "lines",
    "district",
    "city",
    "region",
    "postal_code",
    "country",
];

/// Checks that all placeholders of a line are known.
pub(super) fn check(line: &str) -> Result<(), String> {
    let words = line.split('{').skip(1);
    for word in words {
        let word = word.split_once('}').map(|(word, _)| word);
        if word.is_none_or(|word| !WORDS.contains(&word)) {
            return Err(format!("the line {line:?} has a word that is not known"));
        }
    }
    if line.contains("{lines}") && line != "{lines}" {
        return Err(format!("{{lines}} has to stand alone, not in {line:?}"));
    }
    Ok(())
}

/// The lines of a label, from top to bottom; the address is in normal form.
pub(super) fn lines(address: &Address, country: &Country) -> Vec<String> {
    let written = address.lines.iter().chain(&address.city);
    let is_local = written.into_iter().any(|text| is_east_asian(text));
    let local = country.local.as_ref().filter(|_| is_local);
    let region = region(address, country, local.is_some());
    let words = |word: &str| -> String {
        let text = match word {
            "recipient" => address.recipient.as_deref(),
            "company" => address.company.as_deref(),
            "district" => address.district.as_deref(),
            "city" => address.city.as_deref(),
            "region" => region.as_deref(),
            "postal_code" => address.postal_code.as_deref(),
            "country" => local.map(|local| local.country.as_str()),
            // Address lines stand alone; unknown placeholders are refused when the rules are read.
            _ => None,
        };
        text.unwrap_or_default().to_owned()
    };
    let format = local.map_or(&country.lines, |local| &local.lines);
    let mut label = Vec::new();
    for line in format {
        if line == "{lines}" {
            label.extend(address.lines.iter().cloned());
        } else {
            label.push(fill(line, &words));
        }
    }
    if local.is_none() {
        label.push(country.name.en.to_uppercase());
    }
    label.retain(|line| !line.is_empty());
    label
}

/// The region on the label; `None` if the city is the region, as in Shanghai.
fn region(address: &Address, country: &Country, is_local: bool) -> Option<String> {
    let code = address.region.as_deref()?;
    let mut regions = country.regions.iter();
    let Some(region) = regions.find(|region| region.code == code) else {
        return Some(code.to_owned());
    };
    let name = match (country.region_as, &region.local) {
        (RegionAs::Code, _) => &region.code,
        (RegionAs::Name, Some(local)) if is_local => local,
        (RegionAs::Name, _) => &region.name,
    };
    let is_city = address
        .city
        .as_deref()
        .is_some_and(|city| fold(city) == fold(name));
    (!is_city).then(|| name.clone())
}

/// Fills in the placeholders of a line; separators around a missing part are removed.
fn fill(line: &str, words: &impl Fn(&str) -> String) -> String {
    let mut filled = String::new();
    for (at, piece) in line.split('{').enumerate() {
        if at == 0 {
            filled.push_str(piece);
        } else if let Some((word, rest)) = piece.split_once('}') {
            filled.push_str(&words(word));
            filled.push_str(rest);
        }
    }
    let filled: Vec<&str> = filled.split_whitespace().collect();
    let filled = filled.join(" ");
    let is_edge = |letter: char| matches!(letter, ' ' | ',' | '〒');
    let edges = filled
        .trim_end_matches(is_edge)
        .trim_start_matches([' ', ',']);
    edges.to_owned()
}
