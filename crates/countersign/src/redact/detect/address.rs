//! Postal addresses that are plain by their words: Chinese ones by the signs of city, street and house, American ones
//! by house, kind of street and state.

use super::Kind;
use super::fold::{
    BEFORE, BUILDING, CITY, DISTRICT, HAN, HAN_DIGIT, HOUSE, PROVINCE, STREET, TOWN,
};
use super::scan::{Span, Text, is_word};

/// Maximum length of a Chinese address, in characters from its first sign on.
const CHINESE_MAX: usize = 64;

/// Maximum number of characters between two signs of one address.
const GAP_MAX: usize = 12;

/// Maximum number of characters of a name before its sign.
const NAME_MAX: usize = 6;

/// An address whose first sign is here: a street with the number of a house, or two regions with something
/// below them.
pub(super) fn chinese(text: Text<'_>, place: usize) -> Option<Span> {
    let mut regions = Vec::new();
    let mut end = None;
    let mut sign = place;
    let mut at = place;
    while at < place + CHINESE_MAX && at - sign <= GAP_MAX {
        let byte = text.at(at);
        match byte {
            PROVINCE | CITY | DISTRICT => {
                if regions.last().is_none_or(|last| *last < byte) {
                    regions.push(byte);
                }
                sign = at;
            }
            STREET | TOWN => {
                sign = at;
                if let Some(house) = house_end(text, at + 1) {
                    end = Some(house);
                    at = house;
                    sign = house;
                    continue;
                }
                // Without a number the name has to end: `道路救援` is no street.
                let ends = !matches!(text.at(at + 1), HAN | HAN_DIGIT | STREET | TOWN | BUILDING);
                if regions.len() >= 2 && ends {
                    end = Some(at + 1);
                }
            }
            _ if is_number(byte) && !is_number(text.before(at)) => {
                let numbered = numbered_end(text, at);
                if let Some(numbered) = numbered.filter(|_| end.is_some() || regions.len() >= 2) {
                    end = Some(numbered);
                    at = numbered;
                    sign = numbered;
                    continue;
                }
            }
            HAN | BEFORE | HAN_DIGIT | HOUSE | BUILDING | b' ' | b'-' | b'#' => {}
            _ if byte.is_ascii_alphanumeric() => {}
            _ => break,
        }
        at += 1;
    }
    Some(Span {
        start: name_start(text, place),
        end: end?,
        kind: Kind::Address,
    })
}

/// Behind a street: `123号`, `88-1號`, `100弄`.
fn house_end(text: Text<'_>, place: usize) -> Option<usize> {
    let start = text.while_at(place, |byte| byte == b' ');
    let end = text.while_at(start, |byte| is_number(byte) || byte == b'-');
    let is_house = matches!(text.at(end), HOUSE | STREET) && end > start && start <= place + 1;
    is_house.then_some(end + 1)
}

/// A number with what it counts: `3栋`, `1单元`, `1201室`.
fn numbered_end(text: Text<'_>, place: usize) -> Option<usize> {
    let end = text.while_at(place, |byte| {
        is_number(byte) || byte == b'-' || byte.is_ascii_uppercase()
    });
    let unit = text.at(end + 1) == HAN && text.at(end) == HAN;
    let counted = matches!(text.at(end), HOUSE | BUILDING);
    // `3单元` only matters where `1201室` follows; it is passed over until then.
    (counted && !unit).then_some(end + 1)
}

fn is_number(byte: u8) -> bool {
    byte.is_ascii_digit() || byte == HAN_DIGIT
}

/// Start of the name before a sign.
fn name_start(text: Text<'_>, place: usize) -> usize {
    let earliest = place.saturating_sub(NAME_MAX);
    let name = text.slice(earliest, place).iter().rev();
    place
        - name
            .take_while(|byte| matches!(**byte, HAN | HAN_DIGIT))
            .count()
}

/// Kinds of streets, in the order in which they are met.
const STREETS: &[&str] = &[
    "st",
    "street",
    "ave",
    "avenue",
    "rd",
    "road",
    "blvd",
    "boulevard",
    "ln",
    "lane",
    "dr",
    "drive",
    "ct",
    "court",
    "way",
    "pl",
    "place",
    "ter",
    "terrace",
    "cir",
    "circle",
    "pkwy",
    "parkway",
    "hwy",
    "highway",
    "sq",
    "square",
    "trl",
    "trail",
];

/// Number of street kinds at the front of the list that are seldom anything else.
const PLAIN_STREETS: usize = 10;

/// Maximum number of words of a street's or a city's name.
const WORDS_MAX: usize = 4;

/// `123 Main St, Springfield, IL 62704`: the number is here. Without the state the street has to be plain and
/// the phrase has to end with it.
pub(super) fn american(text: Text<'_>, place: usize) -> Option<Span> {
    let digits = text.while_at(place, |byte| byte.is_ascii_digit());
    if digits - place > 6 || text.at(digits) != b' ' || text.before(place) == b'.' {
        return None;
    }
    let mut at = digits + 1;
    for words in 0..=WORDS_MAX {
        let end = word_end(text, at);
        let word = text.slice(at, end);
        // A street has a name, or a number with its ending: `5th`.
        word.iter().find(|byte| byte.is_ascii_alphabetic())?;
        let kind = STREETS
            .iter()
            .position(|own| own.as_bytes().eq_ignore_ascii_case(word));
        if let Some(kind) = kind.filter(|_| words > 0) {
            let street = end + usize::from(text.at(end) == b'.');
            let named = text
                .slice(digits + 1, end)
                .first()
                .is_some_and(u8::is_ascii_uppercase)
                || text.at(digits + 1).is_ascii_digit();
            return whole(text, street, named && kind < PLAIN_STREETS).map(|end| Span {
                start: place,
                end,
                kind: Kind::Address,
            });
        }
        let point = usize::from(text.at(end) == b'.');
        if text.at(end + point) != b' ' {
            return None;
        }
        at = end + point + 1;
    }
    None
}

/// `PO Box 123`.
pub(super) fn post_box(text: Text<'_>, place: usize) -> Option<Span> {
    let word = ["PO Box ", "P.O. Box "]
        .into_iter()
        .find(|word| text.has(place, word))?;
    let start = place + word.len();
    let end = text.while_at(start, |byte| byte.is_ascii_digit());
    (end > start && !is_word(text.at(end))).then(|| Span {
        start: place,
        end: city_end(text, end).unwrap_or(end),
        kind: Kind::Address,
    })
}

/// End of an address whose street ends here.
fn whole(text: Text<'_>, street: usize, plain: bool) -> Option<usize> {
    let unit = unit_end(text, street);
    let end = unit.unwrap_or(street);
    if let Some(city) = city_end(text, end) {
        return Some(city);
    }
    let ends = matches!(text.at(end), 0 | b',' | b'.' | b';' | b')' | b'"' | b'\n')
        || text.before(end) == b'.';
    (plain && (unit.is_some() || ends)).then_some(end)
}

/// `, Apt 4B`.
fn unit_end(text: Text<'_>, place: usize) -> Option<usize> {
    let start = gap_end(text, place)?;
    let word = [
        "Apt ",
        "Apt. ",
        "Apartment ",
        "Suite ",
        "Ste ",
        "Ste. ",
        "Unit ",
        "#",
    ]
    .into_iter()
    .find(|word| text.has(start, word))?;
    let number = start + word.len();
    let end = text.while_at(number, |byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (end > number).then_some(end)
}

/// `, Springfield, IL 62704-1234`.
fn city_end(text: Text<'_>, place: usize) -> Option<usize> {
    let mut at = gap_end(text, place)?;
    for words in 0..=WORDS_MAX {
        let end = word_end(text, at);
        let state =
            end - at == 2 && words > 0 && text.slice(at, end).iter().all(u8::is_ascii_uppercase);
        let zip = gap_end(text, end).unwrap_or(end);
        let zip_end = text.while_at(zip, |byte| byte.is_ascii_digit());
        if state && zip_end - zip == 5 {
            let more = text.while_at(zip_end + 1, |byte| byte.is_ascii_digit());
            let long = text.at(zip_end) == b'-' && more - zip_end == 5;
            return Some(if long { more } else { zip_end });
        }
        if end == at {
            return None;
        }
        at = gap_end(text, end)?;
    }
    None
}

/// Behind a comma, a space, or both.
fn gap_end(text: Text<'_>, place: usize) -> Option<usize> {
    let comma = place + usize::from(text.at(place) == b',');
    let end = comma + usize::from(text.at(comma) == b' ');
    (end > place).then_some(end)
}

fn word_end(text: Text<'_>, place: usize) -> usize {
    text.while_at(place, |byte| {
        byte.is_ascii_alphanumeric() || byte == b'\'' || byte == b'-'
    })
}
