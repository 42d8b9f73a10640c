//! An answer cut to a size, and its other parts.
//!
//! A cut answer is JSON of the same shape: lists and objects lose members at their end, texts lose characters at theirs. The places that
//! lost something are numbered, and [`part`] gives what is missing there, piece by piece. Both are functions of the answer and the size
//! alone, so a part can be computed from the record of the call at any time, and nothing is kept for it.
//!
//! Nothing is cut inside of an image or another block of MCP that a client decodes: a list loses it whole.

use serde::Serialize;
use serde_json::{Map, Value, json};

/// Maximum number of places that one answer is cut at.
const PLACES_MAX: usize = 16;

/// Room for what stands around a piece.
const FRAME_BYTES: usize = 192;

/// The smallest text or list that is worth cutting.
const WORTH_BYTES: usize = 48;

/// An answer that was cut.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cut {
    pub(super) data: Value,
    pub(super) places: Vec<Place>,
}

/// A place that lost something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// JSON pointer in the answer.
    pub(super) path: String,
    pub(super) unit: Unit,
    /// Items, members or characters that are left.
    pub(super) kept: usize,
    /// Items, members or characters that there were.
    pub(super) of: usize,
}

/// Unit in which a place is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Items,
    Members,
    Characters,
}

/// A point in what is missing of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    /// The number of the place.
    pub(super) place: usize,
    /// The first item, member or character that comes next.
    pub(super) from: usize,
    /// The first character of that item, where it is given as text because it is too large by itself.
    pub(super) within: usize,
}

/// One piece of what is missing.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    pub(super) data: Map<String, Value>,
    /// Beginning of the next piece; `None` after the last.
    pub(super) next: Option<Position>,
}

/// Cuts an answer to about this many bytes; `None` if it is no longer than that.
pub(super) fn cut(data: &Value, bytes_max: usize) -> Option<Cut> {
    let mut size = size_of(data);
    if size <= bytes_max {
        return None;
    }
    let mut data = data.clone();
    let mut places: Vec<Place> = Vec::new();
    for _ in 0..PLACES_MAX {
        let path = largest(&data);
        let Some(target) = data.pointer_mut(&path) else {
            break;
        };
        let own = size_of(target);
        let room = bytes_max.saturating_sub(size - own);
        let Some((unit, kept, of)) = shrink(target, room) else {
            break;
        };
        match places.iter_mut().find(|place| place.path == path) {
            Some(place) => place.kept = kept,
            None => places.push(Place {
                path,
                unit,
                kept,
                of,
            }),
        }
        let before = size;
        size = size_of(&data);
        if size <= bytes_max || size >= before {
            break;
        }
    }
    // What was cut inside of something that is gone now comes with the rest of that.
    places.retain(|place| data.pointer(&place.path).is_some());
    (!places.is_empty()).then_some(Cut { data, places })
}

/// The piece of a cut answer that begins here; `None` if there is nothing.
pub(super) fn part(data: &Value, bytes_max: usize, at: Position) -> Option<Part> {
    let places = cut(data, bytes_max)?.places;
    let place = places.get(at.place)?;
    let target = data.pointer(&place.path)?;
    let room = bytes_max
        .saturating_sub(FRAME_BYTES + place.path.len())
        .max(64);
    let (mut data, next) = match target {
        Value::String(text) => {
            let (data, next) = characters(text, at.from, room, place);
            (data, next.map(|(_, from, _)| (at.place, from, 0)))
        }
        Value::Array(items) => {
            let item = |at: usize| Some((at.to_string(), items.get(at)?));
            let (taken, next) = members(item, at, room, place)?;
            (
                named(taken, "items", |taken| {
                    Value::Array(taken.into_iter().map(|(_, item)| item.clone()).collect())
                }),
                next,
            )
        }
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort_unstable();
            let member = |at: usize| {
                let name = names.get(at)?;
                Some(((*name).clone(), fields.get(*name)?))
            };
            let (taken, next) = members(member, at, room, place)?;
            (
                named(taken, "members", |taken| {
                    let taken = taken.into_iter().map(|(name, value)| (name, value.clone()));
                    Value::Object(taken.collect())
                }),
                next,
            )
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => return None,
    };
    data.entry("path")
        .or_insert_with(|| place.path.clone().into());
    let next = next.or_else(|| {
        let following = places.get(at.place + 1)?;
        Some((at.place + 1, following.kept, 0))
    });
    Some(Part {
        data,
        next: next.map(|(place, from, within)| Position {
            place,
            from,
            within,
        }),
    })
}

type Next = Option<(usize, usize, usize)>;

/// Some items, or a piece of the text of one that is too large by itself.
enum Taken<'v> {
    Whole(Vec<(String, &'v Value)>, Map<String, Value>),
    Piece(Map<String, Value>),
}

fn named<'v>(
    taken: Taken<'v>,
    name: &str,
    list: impl FnOnce(Vec<(String, &'v Value)>) -> Value,
) -> Map<String, Value> {
    match taken {
        Taken::Whole(items, mut data) => {
            data.insert(name.to_owned(), list(items));
            data
        }
        Taken::Piece(data) => data,
    }
}

fn members<'v>(
    member: impl Fn(usize) -> Option<(String, &'v Value)>,
    at: Position,
    room: usize,
    place: &Place,
) -> Option<(Taken<'v>, Next)> {
    let (name, first) = member(at.from)?;
    let after = |from: usize| (from < place.of).then_some((at.place, from, 0));
    if at.within > 0 || size_of(first) > room {
        let text = first.to_string();
        let path = format!("{}/{}", place.path, escaped(&name));
        let whole = Place {
            path,
            unit: Unit::Characters,
            kept: 0,
            of: text.chars().count(),
        };
        let (mut data, next) = characters(&text, at.within, room, &whole);
        data.insert("path".to_owned(), whole.path.into());
        data.insert("form".to_owned(), "a piece of JSON text".into());
        let next = match next {
            Some((_, within, _)) => Some((at.place, at.from, within)),
            None => after(at.from + 1),
        };
        return Some((Taken::Piece(data), next));
    }
    let mut taken = Vec::new();
    let mut left = room;
    let mut from = at.from;
    while let Some((name, value)) = member(from) {
        let cost = size_of(value) + name.len() + 4;
        if cost > left && !taken.is_empty() {
            break;
        }
        left = left.saturating_sub(cost);
        taken.push((name, value));
        from += 1;
    }
    let mut data = Map::new();
    data.insert("from".to_owned(), at.from.into());
    data.insert("of".to_owned(), place.of.into());
    Some((Taken::Whole(taken, data), after(from)))
}

/// A piece of a text. Its position is that of a place by itself: the caller knows which one it is.
fn characters(text: &str, from: usize, room: usize, place: &Place) -> (Map<String, Value>, Next) {
    let mut left = room;
    let mut piece = String::new();
    let mut count = 0;
    for letter in text.chars().skip(from) {
        let cost = escaped_len(letter);
        if cost > left && count > 0 {
            break;
        }
        left = left.saturating_sub(cost);
        piece.push(letter);
        count += 1;
    }
    let to = from + count;
    let data = json!({ "from": from, "of": place.of, "text": piece });
    let data = match data {
        Value::Object(data) => data,
        _ => Map::new(),
    };
    (data, (to < place.of && count > 0).then_some((0, to, 0)))
}

/// JSON pointer of the list, object or text that takes most of a value.
fn largest(value: &Value) -> String {
    let mut path = String::new();
    let mut at = value;
    loop {
        let (step, child) = match at {
            Value::Array(items) => {
                let sizes = items
                    .iter()
                    .enumerate()
                    .map(|(at, item)| (size_of(item), at));
                // The first of several that are alike.
                let Some((size, place)) = sizes.max_by_key(|(size, at)| (*size, usize::MAX - at))
                else {
                    return path;
                };
                let Some(child) = items.get(place).filter(|it| can_be_cut(it)) else {
                    return path;
                };
                if size * 2 <= size_of(at) {
                    return path;
                }
                (place.to_string(), child)
            }
            Value::Object(members) => {
                let mut named: Vec<(&String, &Value)> = members.iter().collect();
                named.sort_unstable_by_key(|(name, _)| *name);
                let sizes = named.iter().enumerate();
                let sizes = sizes.map(|(at, (_, member))| (size_of(member), at));
                let Some((size, place)) = sizes.max_by_key(|(size, at)| (*size, usize::MAX - at))
                else {
                    return path;
                };
                let Some((name, child)) = named.get(place).filter(|(_, it)| can_be_cut(it)) else {
                    return path;
                };
                if size * 8 <= size_of(at) {
                    return path;
                }
                (escaped(name), *child)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return path,
        };
        path.push('/');
        path.push_str(&step);
        at = child;
    }
}

fn can_be_cut(value: &Value) -> bool {
    is_worth(value) && !is_encoded_block(value)
}

/// True for a block of MCP whose content is base64, or a document by itself.
fn is_encoded_block(value: &Value) -> bool {
    let has = |name: &str, is_right: fn(&Value) -> bool| value.get(name).is_some_and(is_right);
    match value.get("type").and_then(Value::as_str) {
        Some("image" | "audio") => has("data", Value::is_string),
        Some("resource") => has("resource", Value::is_object),
        Some(_) | None => false,
    }
}

fn is_worth(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(_) | Value::Array(_) | Value::Object(_) => size_of(value) > WORTH_BYTES,
    }
}

/// Takes away from the end until the rest has this room; what it consists of, how much is left, and how much there was. `None` if there
/// is nothing to take away.
fn shrink(value: &mut Value, room: usize) -> Option<(Unit, usize, usize)> {
    match value {
        Value::Array(items) => {
            let of = items.len();
            let kept = fitting(items.iter().map(|item| size_of(item) + 1), room);
            items.truncate(kept);
            (kept < of).then_some((Unit::Items, kept, of))
        }
        Value::Object(members) => {
            let mut names: Vec<String> = members.keys().cloned().collect();
            names.sort_unstable();
            let cost = |name: &String| {
                let own = members.get(name).map_or(0, size_of);
                own + size_of(&Value::from(name.as_str())) + 2
            };
            let kept = fitting(names.iter().map(cost), room);
            for name in names.iter().skip(kept) {
                members.remove(name);
            }
            (kept < names.len()).then_some((Unit::Members, kept, names.len()))
        }
        Value::String(text) => {
            let of = text.chars().count();
            let kept = fitting(text.chars().map(escaped_len), room);
            *text = text.chars().take(kept).collect();
            (kept < of).then_some((Unit::Characters, kept, of))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Number of these that fit, with brackets and commas.
fn fitting(costs: impl Iterator<Item = usize>, room: usize) -> usize {
    let mut left = room.saturating_sub(2);
    costs
        .take_while(|cost| {
            let fits = *cost <= left;
            left = left.saturating_sub(*cost);
            fits
        })
        .count()
}

/// The bytes of a value as JSON.
pub(super) fn size_of(value: &impl Serialize) -> usize {
    struct Counted(usize);
    impl std::io::Write for Counted {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counted = Counted(0);
    // A value is JSON, and counting cannot fail.
    let _ = serde_json::to_writer(&mut counted, value);
    counted.0
}

/// The bytes of a character inside of a JSON text.
fn escaped_len(letter: char) -> usize {
    match letter {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        letter if u32::from(letter) < 0x20 => 6,
        letter => letter.len_utf8(),
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests;
