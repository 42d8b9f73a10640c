//! Telephone numbers: international ones, and national ones whose shape tells them from other numbers.

use super::number::Number;

/// True if it is a telephone number.
pub(super) fn is_phone(number: &Number<'_>) -> bool {
    if number.plus {
        return (9..=15).contains(&number.digits.len()) && number.digit(0) != 0;
    }
    let alone = || {
        north_american(number)
            || with_exit_code(number)
            || national(number)
            || french(number)
            || british_mobile(number)
    };
    chinese_mobile(number) || !number.follows && alone()
}

/// `138 1234 5678`, also with the country before it.
fn chinese_mobile(number: &Number<'_>) -> bool {
    let (skip, groups) = match (number.digits, number.groups) {
        ([0, 0, 8, 6, ..], [4, rest @ ..]) if !rest.is_empty() => (4, rest),
        ([8, 6, ..], [2, rest @ ..]) if !rest.is_empty() => (2, rest),
        ([0, 0, 8, 6, ..], [15]) => (4, &[11][..]),
        ([8, 6, ..], [13]) => (2, &[11][..]),
        (_, groups) => (0, groups),
    };
    let starts = number.digit(skip) == 1 && number.digit(skip + 1) >= 3;
    let shape = matches!(
        groups,
        [11] | [3, 4, 4] | [3, 8] | [7, 4] | [4, 4, 3] | [4, 3, 4]
    );
    starts && shape
}

/// `(415) 555-2671`. Ten digits without groups are an order's number as well.
fn north_american(number: &Number<'_>) -> bool {
    let (skip, groups) = match number.groups {
        [1, rest @ ..] if number.digit(0) == 1 => (1, rest),
        groups => (0, groups),
    };
    let (area, exchange) = (number.digit(skip), number.digit(skip + 3));
    groups == [3, 3, 4] && area >= 2 && exchange >= 2
}

/// `0049 30 123456`.
fn with_exit_code(number: &Number<'_>) -> bool {
    let shape = matches!(number.groups, [2 | 4 | 5, _, ..]);
    let total = number.digits.len();
    matches!(number.digits, [0, 0, 1..=9, ..])
        && shape
        && (11..=15).contains(&total)
        && !number.separators.contains(&b'.')
}

/// With the zero that most countries dial first: `020 7946 0958`, `0755-12345678`, `03-1234-5678`.
fn national(number: &Number<'_>) -> bool {
    let total = number.digits.len();
    let [first, .., last] = number.groups else {
        return false;
    };
    let area = (3..=5).contains(first) || number.groups == [2, 4, 4];
    matches!(number.digits, [0, 1..=9, ..])
        && (10..=12).contains(&total)
        && area
        && *last >= 3
        && number.groups_have(2)
        && !number.separators.contains(&b'.')
}

/// `06 12 34 56 78`, but not a list of sizes.
fn french(number: &Number<'_>) -> bool {
    let &[0, first @ 1..=9, a, b, ..] = number.digits else {
        return false;
    };
    number.groups == [2, 2, 2, 2, 2] && a * 10 + b != first + 1
}

fn british_mobile(number: &Number<'_>) -> bool {
    number.groups == [11] && matches!(number.digits, [0, 7, 4..=9, ..])
}
