//! A text as the scanners read it: one byte a character, with full-width and other spellings of digits,
//! letters, spaces and dashes as the plain ones, and invisible characters left out.

use std::borrow::Cow;

/// A letter of an alphabet that is not ASCII.
pub(super) const LETTER: u8 = 0x80;
/// A character of a script that is written without spaces; it ends a word of ours.
pub(super) const HAN: u8 = 0x81;
/// Anything else that is not ASCII.
pub(super) const OTHER: u8 = 0x82;
/// Ends the name of a province.
pub(super) const PROVINCE: u8 = 0x90;
/// Ends the name of a city.
pub(super) const CITY: u8 = 0x91;
/// Ends the name of a district or a county.
pub(super) const DISTRICT: u8 = 0x92;
/// Ends the name of a town or a village.
pub(super) const TOWN: u8 = 0x93;
/// Ends the name of a street or a lane.
pub(super) const STREET: u8 = 0x94;
/// Stands behind the number of a house.
pub(super) const HOUSE: u8 = 0x95;
/// Stands behind the number of a building, a floor or a room.
pub(super) const BUILDING: u8 = 0x96;
/// A Chinese numeral.
pub(super) const HAN_DIGIT: u8 = 0x97;
/// A word that stands before an address and is no part of it.
pub(super) const BEFORE: u8 = 0x98;

/// The folded text, and the places that its characters come from.
pub(super) struct Folded<'t> {
    bytes: Cow<'t, [u8]>,
    /// Place in the text of each folded character; `None` if both texts are the same.
    starts: Option<Vec<usize>>,
    text_bytes: usize,
}

impl<'t> Folded<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        if text.is_ascii() {
            return Self {
                bytes: Cow::Borrowed(text.as_bytes()),
                starts: None,
                text_bytes: text.len(),
            };
        }
        let mut bytes = Vec::with_capacity(text.len());
        let mut starts = Vec::with_capacity(text.len());
        for (at, character) in text.char_indices() {
            if let Some(byte) = fold(character) {
                bytes.push(byte);
                starts.push(at);
            }
        }
        Self {
            bytes: Cow::Owned(bytes),
            starts: Some(starts),
            text_bytes: text.len(),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The place in the text of a place in the folded one.
    pub(super) fn original(&self, at: usize) -> usize {
        match &self.starts {
            None => at,
            Some(starts) => starts.get(at).copied().unwrap_or(self.text_bytes),
        }
    }
}

/// The folded form of a character; `None` if it is invisible.
fn fold(character: char) -> Option<u8> {
    if character.is_ascii() {
        return Some(character as u8);
    }
    let code = u32::from(character);
    let folded = match character {
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}' => return None,
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => b' ',
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' => b'-',
        // The full-width forms of all of visible ASCII.
        '\u{ff01}'..='\u{ff5e}' => (code - 0xff01 + 0x21) as u8,
        '\u{660}'..='\u{669}' => digit(code - 0x660),
        '\u{6f0}'..='\u{6f9}' => digit(code - 0x6f0),
        '\u{966}'..='\u{96f}' => digit(code - 0x966),
        '\u{1d7ce}'..='\u{1d7ff}' => digit((code - 0x1d7ce) % 10),
        '。' => b'.',
        '省' => PROVINCE,
        '市' => CITY,
        '区' | '區' | '县' | '縣' | '旗' => DISTRICT,
        '镇' | '鎮' | '乡' | '鄉' | '村' => TOWN,
        '路' | '街' | '巷' | '弄' | '道' => STREET,
        '号' | '號' => HOUSE,
        '栋' | '棟' | '幢' | '楼' | '樓' | '座' | '室' | '层' | '層' => BUILDING,
        '〇' | '零' | '一' | '二' | '三' | '四' | '五' | '六' | '七' | '八' | '九' | '十'
        | '百' => HAN_DIGIT,
        '到' | '在' | '至' | '往' | '寄' | '址' | '是' | '于' | '於' | '住' | '给' | '給'
        | '从' | '從' | '为' | '為' | '发' | '送' | '的' => BEFORE,
        '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}'
        | '\u{20000}'..='\u{3ffff}' => HAN,
        _ if character.is_alphabetic() => LETTER,
        _ => OTHER,
    };
    Some(folded)
}

fn digit(value: u32) -> u8 {
    b'0' + value as u8
}
