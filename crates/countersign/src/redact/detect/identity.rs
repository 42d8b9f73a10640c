//! Numbers of people, accounts and cards. If there is a check digit, it decides.

use super::Kind;
use super::number::Number;
use super::scan::{Span, Text, is_word};

/// True if a number without letters is an identity number that a state gives to a person.
pub(super) fn is_identity(number: &Number<'_>) -> bool {
    if number.plus {
        return false;
    }
    match number.digits.len() {
        9 => american(number),
        11 => german(number) || brazilian(number),
        12 => indian(number),
        13 => korean(number),
        15 => french(number),
        18 => chinese(number, None),
        _ => false,
    }
}

/// True if it is a payment card number: of a known issuer, with that issuer's length and the right check digit, and not
/// also a barcode.
pub(super) fn is_card(number: &Number<'_>) -> bool {
    let total = number.digits.len();
    (14..=19).contains(&total)
        && number.groups_have(3)
        && issuer_has(number, total)
        && luhn(number.digits)
        && !(matches!(total, 14 | 18) && barcode(number.digits))
}

/// A Chinese resident's number: place, day of birth, check digit. `last` is a check digit that is no digit.
pub(super) fn chinese(number: &Number<'_>, last: Option<u8>) -> bool {
    const WEIGHTS: [u32; 18] = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2, 1];
    let digits = || number.digits.iter().copied().chain(last);
    let place = value(number.digits, 0..2);
    let known =
        matches!(place, 11..=15 | 21..=23 | 31..=37 | 41..=46 | 50..=54 | 61..=65 | 71 | 81..=83);
    let born = matches!(value(number.digits, 6..10), 1900..=2099) && day(number.digits, 10);
    let sum: u32 = digits()
        .zip(WEIGHTS)
        .map(|(digit, weight)| u32::from(digit) * weight)
        .sum();
    digits().count() == 18 && known && born && number.groups_have(3) && sum % 11 == 1
}

/// An international bank account number, with or without spaces.
pub(super) fn iban(text: Text<'_>, place: usize) -> Option<Span> {
    let country = text.slice(place, place + 2);
    let starts = country.iter().all(u8::is_ascii_alphabetic)
        && text.at(place + 2).is_ascii_digit()
        && text.at(place + 3).is_ascii_digit();
    if !starts || is_word(text.before(place)) {
        return None;
    }
    let length = iban_length(country)?;
    let mut remainder = 0_u32;
    let mut head = 0_u32;
    let (mut at, mut count) = (place, 0);
    while count < length {
        let byte = text.at(at);
        let digit = match byte {
            b'0'..=b'9' => u32::from(byte - b'0'),
            b'a'..=b'z' | b'A'..=b'Z' => u32::from(byte.to_ascii_uppercase() - b'A') + 10,
            b' ' | b'-' if count >= 4 && text.before(at) != byte => {
                at += 1;
                continue;
            }
            _ => return None,
        };
        let shift = if digit > 9 { 100 } else { 10 };
        // The first four characters count last.
        if count < 4 {
            head = head * shift + digit;
        } else {
            remainder = (remainder * shift + digit) % 97;
        }
        count += 1;
        at += 1;
    }
    let checked = (u64::from(remainder) * 1_000_000 + u64::from(head)) % 97 == 1;
    (checked && !is_word(text.at(at))).then_some(Span {
        start: place,
        end: at,
        kind: Kind::Iban,
    })
}

/// Identity numbers that start with letters: British, Taiwanese, and those of Hong Kong.
pub(super) fn lettered(text: Text<'_>, place: usize) -> Option<Span> {
    if is_word(text.before(place)) || text.before(place) == b'-' {
        return None;
    }
    let end = british(text, place)
        .or_else(|| taiwanese(text, place))
        .or_else(|| hong_kong(text, place))?;
    (!is_word(text.at(end)) && text.at(end) != b'-').then_some(Span {
        start: place,
        end,
        kind: Kind::Identity,
    })
}

/// `123-45-6789`: there is no check digit, so the groups have to be there.
fn american(number: &Number<'_>) -> bool {
    let (area, group, serial) = (
        value(number.digits, 0..3),
        value(number.digits, 3..5),
        value(number.digits, 5..9),
    );
    let separated = matches!(number.separators, [b'-', b'-'] | [b' ', b' ']);
    let given = !matches!(area, 0 | 666) && (area < 900 || group >= 50) && group > 0 && serial > 0;
    !number.glued && number.groups == [3, 2, 4] && separated && given
}

/// Eleven digits; of the first ten exactly one comes twice or three times. ISO 7064, mod 11, 10.
fn german(number: &Number<'_>) -> bool {
    let Some((check, body)) = number.digits.split_last() else {
        return false;
    };
    if !matches!(number.groups, [11] | [2, 3, 3, 3]) || number.digit(0) == 0 {
        return false;
    }
    let mut times = [0_u8; 10];
    for digit in body {
        if let Some(count) = times.get_mut(usize::from(*digit)) {
            *count += 1;
        }
    }
    let mut repeated = times.into_iter().filter(|count| *count > 1);
    let mut product = 10;
    for digit in body {
        let sum = (u32::from(*digit) + product) % 10;
        product = (if sum == 0 { 10 } else { sum }) * 2 % 11;
    }
    matches!((repeated.next(), repeated.next()), (Some(2 | 3), None))
        && (11 - product) % 10 == u32::from(*check)
}

/// `529.982.247-25`.
fn brazilian(number: &Number<'_>) -> bool {
    let check = |count: usize| {
        let weights = (2..=count as u32 + 1).rev();
        let digits = number.digits.iter().take(count);
        let sum: u32 = digits
            .zip(weights)
            .map(|(digit, weight)| u32::from(*digit) * weight)
            .sum();
        u32::from(number.digit(count)) == sum * 10 % 11 % 10
    };
    let varied = number.digits.iter().any(|digit| *digit != number.digit(0));
    number.groups == [3, 3, 3, 2] && number.separators == b"..-" && varied && check(9) && check(10)
}

/// `2341 2341 2346`, with the check digit of Verhoeff: each digit turns a pentagon.
fn indian(number: &Number<'_>) -> bool {
    const TURN: [[u8; 10]; 8] = [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        [1, 5, 7, 6, 2, 8, 3, 0, 9, 4],
        [5, 8, 0, 3, 7, 9, 6, 1, 4, 2],
        [8, 9, 1, 6, 0, 4, 3, 5, 2, 7],
        [9, 4, 5, 3, 1, 2, 6, 8, 7, 0],
        [4, 2, 8, 6, 5, 7, 3, 9, 0, 1],
        [2, 7, 9, 3, 8, 0, 6, 4, 1, 5],
        [7, 0, 4, 6, 9, 1, 3, 2, 5, 8],
    ];
    if number.groups != [4, 4, 4] || number.digit(0) < 2 || number.glued {
        return false;
    }
    let mut state = 0_u8;
    for (digit, row) in number.digits.iter().rev().zip(TURN.iter().cycle()) {
        let turned = row.get(usize::from(*digit)).copied().unwrap_or(0);
        state = dihedral(state, turned);
    }
    state == 0
}

/// The product of two moves of a pentagon; from five on they are mirrored.
fn dihedral(a: u8, b: u8) -> u8 {
    match (a < 5, b < 5) {
        (true, true) => (a + b) % 5,
        (true, false) => 5 + (a + b - 5) % 5,
        (false, true) => 5 + (a - b) % 5,
        (false, false) => (a + 5 - b) % 5,
    }
}

/// `800101-1234567`: day of birth, and a check digit.
fn korean(number: &Number<'_>) -> bool {
    let Some((check, body)) = number.digits.split_last() else {
        return false;
    };
    let weights = (2..=9).chain(2..=5_u32);
    let sum: u32 = body
        .iter()
        .zip(weights)
        .map(|(digit, weight)| u32::from(*digit) * weight)
        .sum();
    let born = day(number.digits, 2) && (1..=8).contains(&number.digit(6));
    number.groups == [6, 7] && born && (11 - sum % 11) % 10 == u32::from(*check)
}

/// `1 85 05 78 006 084 36`: sex, year, month, place, order, and the rest of a division by 97.
fn french(number: &Number<'_>) -> bool {
    let month = value(number.digits, 3..5);
    let starts = matches!(number.digit(0), 1 | 2) && matches!(month, 1..=12 | 20..=42 | 50..=99);
    let shape = matches!(number.groups, [15] | [13, 2] | [1, 2, 2, 2, 3, 3, 2]);
    let key = value(number.digits, 13..15);
    starts && shape && 97 - value(number.digits, 0..13) % 97 == key
}

/// A national insurance number: two letters, six digits, a letter, also in pairs.
fn british(text: Text<'_>, place: usize) -> Option<usize> {
    let (first, second) = (text.at(place), text.at(place + 1));
    let letters = first.is_ascii_uppercase()
        && second.is_ascii_uppercase()
        && !b"DFIQUV".contains(&first)
        && !b"DFIOQUV".contains(&second)
        && !matches!(
            &[first, second],
            b"BG" | b"GB" | b"NK" | b"KN" | b"TN" | b"NT" | b"ZZ"
        );
    if !letters {
        return None;
    }
    let mut at = place + 2;
    for _ in 0..3 {
        at += usize::from(text.at(at) == b' ');
        if !text.slice(at, at + 2).iter().all(u8::is_ascii_digit) || text.len() < at + 2 {
            return None;
        }
        at += 2;
    }
    at += usize::from(text.at(at) == b' ');
    matches!(text.at(at), b'A'..=b'D').then_some(at + 1)
}

/// A letter, `1` or `2`, and eight digits, of which the last checks.
fn taiwanese(text: Text<'_>, place: usize) -> Option<usize> {
    // The order in which the letters were given their numbers, from 10 on.
    const LETTERS: &[u8] = b"ABCDEFGHJKLMNPQRSTUVXYWZIO";
    let letter = text.at(place);
    let digits = text.slice(place + 1, place + 10);
    let shape = digits.len() == 9
        && digits.iter().all(u8::is_ascii_digit)
        && matches!(digits.first(), Some(b'1' | b'2'));
    if !shape {
        return None;
    }
    let number = LETTERS.iter().position(|own| *own == letter)? as u32 + 10;
    let weights = (1..=8).rev().chain([1_u32]);
    let sum: u32 = digits
        .iter()
        .zip(weights)
        .map(|(byte, weight)| u32::from(byte - b'0') * weight)
        .sum();
    ((number / 10 + number % 10 * 9 + sum).is_multiple_of(10)).then_some(place + 10)
}

/// `A123456(3)`.
fn hong_kong(text: Text<'_>, place: usize) -> Option<usize> {
    let letters = text.while_at(place, |byte| byte.is_ascii_uppercase());
    let digits = text.slice(letters, letters + 6);
    let count = letters - place;
    let check = text.at(letters + 7);
    let shape = matches!(count, 1 | 2)
        && digits.len() == 6
        && digits.iter().all(u8::is_ascii_digit)
        && text.at(letters + 6) == b'('
        && text.at(letters + 8) == b')';
    if !shape {
        return None;
    }
    // A missing first letter counts as a space, which is 36.
    let missing = (count == 1).then_some(36);
    let worth = |byte: &u8| match byte {
        b'0'..=b'9' => u32::from(byte - b'0'),
        letter => u32::from(letter - b'A') + 10,
    };
    let values = missing
        .into_iter()
        .chain(text.slice(place, letters + 6).iter().map(worth));
    let sum: u32 = values
        .zip((2..=9).rev())
        .map(|(value, weight)| value * weight)
        .sum();
    let expected = match (11 - sum % 11) % 11 {
        10 => b'A',
        digit => b'0' + digit as u8,
    };
    (check == expected).then_some(letters + 9)
}

/// First digits of debit cards that share no range.
const MAESTRO: [u64; 9] = [5018, 5020, 5038, 5893, 6304, 6759, 6761, 6762, 6763];

/// True if cards of the issuer have this number of digits.
fn issuer_has(number: &Number<'_>, total: usize) -> bool {
    match value(number.digits, 0..4) {
        4000..=4999 => matches!(total, 16 | 19),
        5100..=5599 | 2200..=2205 | 2221..=2720 | 8100..=8299 | 9792 => total == 16,
        3400..=3499 | 3700..=3799 => total == 15,
        3000..=3059 | 3600..=3699 | 3800..=3999 => total == 14,
        3528..=3589 | 6200..=6299 | 6011 | 6440..=6599 => total >= 16,
        // Debit cards of banks, below the ranges above.
        code => MAESTRO.contains(&code) && total >= 16,
    }
}

/// True if the check digit of a payment card is right (Luhn).
fn luhn(digits: &[u8]) -> bool {
    let folded = |(place, digit): (usize, &u8)| {
        let doubled = u32::from(*digit) * 2;
        match place % 2 {
            0 => u32::from(*digit),
            _ if doubled > 9 => doubled - 9,
            _ => doubled,
        }
    };
    let sum: u32 = digits.iter().rev().enumerate().map(folded).sum();
    sum.is_multiple_of(10)
}

/// True if the check digit of a barcode on goods and parcels is right.
fn barcode(digits: &[u8]) -> bool {
    let weigh =
        |(place, digit): (usize, &u8)| u32::from(*digit) * if place % 2 == 0 { 1 } else { 3 };
    let sum: u32 = digits.iter().rev().enumerate().map(weigh).sum();
    sum.is_multiple_of(10)
}

/// True if the digits are a month and a day, two digits each.
fn day(digits: &[u8], start: usize) -> bool {
    let (month, day) = (
        value(digits, start..start + 2),
        value(digits, start + 2..start + 4),
    );
    (1..=12).contains(&month) && (1..=31).contains(&day)
}

/// The digits of a range as one number; nothing outside counts.
fn value(digits: &[u8], range: std::ops::Range<usize>) -> u64 {
    let own = digits.get(range).unwrap_or_default();
    own.iter()
        .fold(0, |value, digit| value * 10 + u64::from(*digit))
}

/// Length of the account numbers of a country.
fn iban_length(country: &[u8]) -> Option<usize> {
    const LENGTHS: &[(usize, &str)] = &[
        (15, "NO"),
        (16, "BE"),
        (18, "DK FI FK FO GL NL SD"),
        (19, "MK SI"),
        (20, "AT BA EE KZ LT LU MN XK"),
        (21, "CH HR LI LV"),
        (22, "BG BH CR DE GB GE IE ME RS VA"),
        (23, "AE GI IL IQ OM SO TL"),
        (24, "AD CZ ES MD PK RO SA SE SK TN VG"),
        (25, "LY PT ST"),
        (26, "IS TR"),
        (27, "BI DJ FR GR IT MC MR SM"),
        (28, "AL AZ BY CY DO GT HU LB NI PL SV"),
        (29, "BR EG PS QA UA"),
        (30, "JO KW MU YE"),
        (31, "MT SC"),
        (32, "LC"),
        (33, "RU"),
    ];
    let is_here = |countries: &str| {
        let mut names = countries.as_bytes().chunks(3).map(<[u8]>::trim_ascii_end);
        names.any(|own| own.eq_ignore_ascii_case(country))
    };
    let own = LENGTHS.iter().find(|(_, countries)| is_here(countries))?;
    Some(own.0)
}
