//! Numbers: their groups are collected, and the longest run of whole groups that is a known kind of number is taken.

use super::fold::LETTER;
use super::scan::{Span, Text, is_word};
use super::{Kind, identity, phone};

/// Minimum number of digits: fewer are not personal.
const DIGITS_MIN: usize = 8;

/// Bound of the digits: more than any number that we look for has.
const DIGITS_MAX: usize = 20;

/// Bound of the groups: more than any number that we look for has.
const GROUPS_MAX: usize = 8;

/// Digits that stand together, and the separator before them.
#[derive(Clone, Copy, Default)]
struct Group {
    /// The end of the group.
    end: usize,
    /// Number of digits up to here.
    digits: usize,
    /// The separator from the group before: a space, `-`, `.` or `)`.
    separator: u8,
}

/// A number with its groups, as the detectors see it.
pub(super) struct Number<'n> {
    /// The values of the digits.
    pub(super) digits: &'n [u8],
    /// Number of digits of each group.
    pub(super) groups: &'n [usize],
    /// The separators between the groups.
    pub(super) separators: &'n [u8],
    /// True if a `+` stands before it.
    pub(super) plus: bool,
    /// True if it continues a word: `PO-4155552671`.
    pub(super) glued: bool,
    /// True if other digits stand before it, so that it may be the rest of a longer number.
    pub(super) follows: bool,
}

impl Number<'_> {
    pub(super) fn digit(&self, place: usize) -> u8 {
        self.digits.get(place).copied().unwrap_or(0)
    }

    /// True if every group has at least this many digits.
    pub(super) fn groups_have(&self, digits_min: usize) -> bool {
        self.groups.iter().all(|digits| *digits >= digits_min)
    }
}

/// The number that starts here, or at the `+` or `(` here; `None` if it is no known kind.
pub(super) fn find(text: Text<'_>, place: usize) -> Option<Span> {
    let sign = matches!(text.at(place), b'+' | b'(');
    let start = place + usize::from(sign);
    if !text.at(start).is_ascii_digit() {
        return None;
    }
    let before = text.before(place);
    // What follows a point is a fraction, and `x+1` is no telephone.
    let fraction = before == b'.' && text.before(place - 1).is_ascii_digit();
    if fraction || sign && is_word(before) {
        return None;
    }
    let run = Run::collect(text, start);
    let place_before = place.saturating_sub(1);
    let glued = before == b'-' && is_word(text.before(place_before));
    let follows = before == b' ' && text.before(place_before).is_ascii_digit();
    run.longest(text, [text.at(place) == b'+', glued, follows])
        .map(|(end, kind, closed)| Span {
            start: if text.at(place) == b'(' && !closed {
                start
            } else {
                place
            },
            end,
            kind,
        })
}

/// Groups of digits that may be one number.
#[derive(Default)]
struct Run {
    digits: [u8; DIGITS_MAX],
    groups: [Group; GROUPS_MAX],
    count: usize,
}

impl Run {
    fn collect(text: Text<'_>, start: usize) -> Self {
        let mut run = Self::default();
        let mut at = start;
        let mut total = 0;
        let mut separator = 0;
        let mut short = false;
        for slot in &mut run.groups {
            let mut end = at;
            while text.at(end).is_ascii_digit() {
                let Some(digit) = run.digits.get_mut(total) else {
                    return run;
                };
                *digit = text.at(end) - b'0';
                total += 1;
                end += 1;
            }
            *slot = Group {
                end,
                digits: total,
                separator,
            };
            run.count += 1;
            // No number is written digit by digit; a list is, and would be read again and again.
            if short && end == at + 1 {
                break;
            }
            short = end == at + 1;
            match next_group(text, end) {
                Some(next) => (at, separator) = next,
                None => break,
            }
        }
        run
    }

    /// The longest run of whole groups that is a known kind: its end, its kind, and true if it has a closing bracket.
    fn longest(&self, text: Text<'_>, around: [bool; 3]) -> Option<(usize, Kind, bool)> {
        let [plus, glued, follows] = around;
        let total = self.groups.get(self.count.wrapping_sub(1))?.digits;
        if total < DIGITS_MIN {
            return None;
        }
        let mut lengths = [0; GROUPS_MAX];
        let mut separators = [0; GROUPS_MAX];
        let mut before = 0;
        for ((group, length), separator) in
            (self.groups.iter().zip(&mut lengths)).zip(&mut separators)
        {
            *length = group.digits.saturating_sub(before);
            *separator = group.separator;
            before = group.digits;
        }
        for count in (1..=self.count).rev() {
            let last = self.groups.get(count - 1)?;
            if last.digits < DIGITS_MIN {
                return None;
            }
            let next = self.groups.get(count).filter(|_| count < self.count);
            let number = Number {
                digits: self.digits.get(..last.digits)?,
                groups: lengths.get(..count)?,
                separators: separators.get(1..count)?,
                plus,
                glued,
                follows,
            };
            // `11010519491231002X`: the check digit ten.
            let ten = matches!(text.at(last.end), b'x' | b'X') && !is_word(text.at(last.end + 1));
            if ten && identity::chinese(&number, Some(10)) {
                return Some((last.end + 1, Kind::Identity, false));
            }
            let ends = match next {
                Some(next) => next.separator == b' ',
                None => ends_at(text, last.end),
            };
            if let Some(kind) = ends.then(|| kind(&number)).flatten() {
                let closed = number.separators.contains(&b')');
                return Some((last.end, kind, closed));
            }
        }
        None
    }
}

fn kind(number: &Number<'_>) -> Option<Kind> {
    if identity::is_identity(number) {
        Some(Kind::Identity)
    } else if identity::is_card(number) {
        Some(Kind::Card)
    } else if !number.glued && phone::is_phone(number) {
        Some(Kind::Phone)
    } else {
        None
    }
}

/// Start of the next group, and its separator.
fn next_group(text: Text<'_>, end: usize) -> Option<(usize, u8)> {
    let (first, second) = (text.at(end), text.at(end + 1));
    let (length, separator) = match (first, second) {
        (b')', b' ' | b'-') => (2, b')'),
        (b' ' | b'-', b'(') => (2, b'-'),
        (b')', _) => (1, b')'),
        (b' ' | b'-' | b'.', _) => (1, first),
        _ => return None,
    };
    let at = end + length;
    text.at(at).is_ascii_digit().then_some((at, separator))
}

/// True if a number can end here: it is not part of a longer word, version or fraction.
fn ends_at(text: Text<'_>, end: usize) -> bool {
    let (next, after) = (text.at(end), text.at(end + 1));
    match next {
        b'-' => !after.is_ascii_alphanumeric() && after != LETTER,
        b'.' => !after.is_ascii_digit(),
        _ => !is_word(next),
    }
}
