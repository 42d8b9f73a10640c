//! Values of a filter that count their cost: a filter that would exceed its budget of time or memory ends with an error.
//!
//! The language itself has no bound: `.price * .quantity` repeats a string if the upstream sends one for the price. So every step that
//! makes or walks something pays for it here, before it is done.

use std::cell::Cell;
use std::cmp::Ordering;
use std::fmt::{self, Write as _};
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};

use jaq_core::box_iter::BoxIter;
use jaq_core::path::Opt;
use jaq_core::val::Range;
use jaq_core::{Error, Exn, ValR, ValT, ValX};
use jaq_json::{Map, Rc, Val, read};
use serde_json::Value;

thread_local! {
    /// Budget that is left to the filter on this thread.
    static LEFT: Cell<usize> = const { Cell::new(0) };
    static IS_SPENT: Cell<bool> = const { Cell::new(false) };
}

/// The most that a filter costs. One is a step, or 16 bytes; so it is about 128 MiB, and well below a second.
const COST_MAX: usize = if cfg!(test) { 1 << 20 } else { 8 << 20 };

/// The cost of a member of an object.
const MEMBER: usize = 8;

/// Begins a filter on this thread.
pub(super) fn begin() {
    LEFT.set(COST_MAX);
    IS_SPENT.set(false);
}

/// True if the filter that ran on this thread has spent everything.
pub(super) fn is_spent() -> bool {
    IS_SPENT.get()
}

/// Pays; false if there is not enough. Then nothing is left for anything else either.
pub(super) fn pay(cost: usize) -> bool {
    let rest = LEFT.get().checked_sub(cost);
    LEFT.set(rest.unwrap_or_default());
    if rest.is_none() {
        IS_SPENT.set(true);
    }
    rest.is_some()
}

pub(super) fn spent() -> Error<Metered> {
    Error::str("it costs too much")
}

/// Replaces an error of the inner values, which would quote them.
pub(super) fn failed<E>(_: E) -> Error<Metered> {
    Error::str("a value of another type")
}

/// A value of a filter, and a number of levels that it does not nest deeper than. Values are written, compared and dropped level by
/// level, so that one that nests without end would end the program.
#[derive(Debug, Clone)]
pub(super) struct Metered(pub(super) Val, usize);

/// The deepest nesting of a value.
const LEVELS_MAX: usize = 256;

impl PartialEq for Metered {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Metered {}

impl PartialOrd for Metered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Metered {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

/// The cost of a copy.
pub(super) fn size(value: &Val) -> usize {
    match value {
        Val::Null | Val::Bool(_) | Val::Num(_) => 1,
        Val::BStr(text) | Val::TStr(text) => text.len() / 16 + 1,
        Val::Arr(items) => items.len() + 1,
        Val::Obj(members) => members.len() * MEMBER + 1,
    }
}

/// True if changing the value copies nothing.
fn is_unique(value: &Val) -> bool {
    match value {
        Val::Null | Val::Bool(_) | Val::Num(_) => true,
        Val::BStr(text) | Val::TStr(text) => text.is_unique(),
        Val::Arr(items) => Rc::strong_count(items) == 1,
        Val::Obj(members) => Rc::strong_count(members) == 1,
    }
}

impl Metered {
    /// A value of an answer.
    pub(super) fn read(value: &Value) -> Self {
        Self(inner(value), levels(value))
    }

    /// A value of a text that is JSON. A text that nests too deep is refused before it is read.
    pub(super) fn parse(text: &[u8]) -> ValR<Self> {
        let (mut levels, mut deepest): (usize, usize) = (0, 0);
        for byte in text {
            match byte {
                b'[' | b'{' => levels += 1,
                b']' | b'}' => levels = levels.saturating_sub(1),
                _ => {}
            }
            deepest = deepest.max(levels);
        }
        if deepest > LEVELS_MAX {
            return Err(failed(()));
        }
        let value = read::parse_single(text).map_err(failed)?;
        Self::nested(value, deepest)
    }

    /// A value without levels: a text, a number.
    pub(super) const fn flat(value: Val) -> Self {
        Self(value, 0)
    }

    /// A value that nests so deep; an error if that is too deep.
    fn nested(value: Val, levels: usize) -> ValR<Self> {
        if levels > LEVELS_MAX {
            pay(usize::MAX);
            return Err(spent());
        }
        Ok(Self(value, levels))
    }

    /// Returns the value as JSON; `None` if it has more than `left` bytes, or is not JSON.
    pub(super) fn value(&self, left: &mut usize) -> Option<Value> {
        outer(&self.0, left)
    }

    /// Runs an operation after it was paid for.
    fn paid(cost: usize, levels: usize, make: impl FnOnce() -> ValR<Val>) -> ValR<Self> {
        if !pay(cost) {
            return Err(spent());
        }
        Self::nested(make().map_err(failed)?, levels)
    }

    /// The cost of joining two values.
    fn joined(&self, other: &Self) -> usize {
        let own = if is_unique(&self.0) { 1 } else { size(&self.0) };
        own.saturating_add(size(&other.0))
    }

    /// The value as JSON text.
    pub(super) fn json(&self) -> ValR<Self> {
        let mut text = Paid(String::new());
        write!(text, "{}", self.0).map_err(|_| spent())?;
        Ok(Self::flat(Val::from(text.0)))
    }
}

fn levels(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        Value::Array(items) => 1 + items.iter().map(levels).max().unwrap_or_default(),
        Value::Object(members) => 1 + members.values().map(levels).max().unwrap_or_default(),
    }
}

fn inner(value: &Value) -> Val {
    match value {
        Value::Null => Val::Null,
        Value::Bool(own) => Val::Bool(*own),
        Value::Number(number) => {
            let whole = number.as_i64().and_then(|own| isize::try_from(own).ok());
            // Larger ones keep their digits.
            let text = || read::parse_single(number.to_string().as_bytes()).unwrap_or_default();
            whole.map_or_else(text, Val::from)
        }
        Value::String(text) => Val::from(text.clone()),
        Value::Array(items) => items.iter().map(inner).collect(),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| (Val::from(name.clone()), inner(value));
            Val::obj(members.iter().map(member).collect())
        }
    }
}

fn outer(value: &Val, left: &mut usize) -> Option<Value> {
    let mut take = |bytes: usize| {
        *left = left.checked_sub(bytes)?;
        Some(())
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some(match value {
        Val::Null => {
            take(4)?;
            Value::Null
        }
        Val::Bool(own) => {
            take(4)?;
            Value::Bool(*own)
        }
        Val::Num(number) => {
            let text = number.to_string();
            take(text.len())?;
            serde_json::from_str(&text).unwrap_or_default()
        }
        Val::BStr(own) | Val::TStr(own) => {
            take(own.len() + 2)?;
            Value::String(text(own))
        }
        Val::Arr(items) => {
            take(items.len() + 1)?;
            let items = items.iter().map(|item| outer(item, left));
            Value::Array(items.collect::<Option<_>>()?)
        }
        Val::Obj(members) => {
            take(members.len() + 1)?;
            let mut made = serde_json::Map::new();
            for (name, value) in members.iter() {
                let (Val::BStr(name) | Val::TStr(name)) = name else {
                    return None;
                };
                *left = left.checked_sub(name.len() + 3)?;
                made.insert(text(name), outer(value, left)?);
            }
            Value::Object(made)
        }
    })
}

/// A text that is paid for while it is written.
struct Paid(String);

impl fmt::Write for Paid {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if !pay(text.len() / 16 + 1) {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// Items that are paid for one by one; the last one is an error if there is not enough.
struct Walk<I> {
    items: I,
    is_over: bool,
}

impl<T, I: Iterator<Item = Result<T, Error<Metered>>>> Iterator for Walk<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        if self.is_over {
            return None;
        }
        if pay(1) {
            return self.items.next();
        }
        self.is_over = true;
        Some(Err(spent()))
    }
}

fn walk<T: 'static>(
    whole: usize,
    items: impl Iterator<Item = Result<T, Error<Metered>>> + 'static,
) -> BoxIter<'static, Result<T, Error<Metered>>> {
    Box::new(Walk {
        is_over: false,
        // What is shared is copied whole before its first item.
        items: pay(whole).then_some(items).into_iter().flatten(),
    })
}

impl fmt::Display for Metered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! from {
    ($($kind:ty),+) => {$(
        impl From<$kind> for Metered {
            fn from(own: $kind) -> Self {
                Self::flat(Val::from(own))
            }
        }
    )+};
}

from!(bool, isize, usize, f64);

impl From<String> for Metered {
    fn from(own: String) -> Self {
        pay(own.len() / 16 + 1);
        Self::flat(Val::from(own))
    }
}

impl From<Range<Self>> for Metered {
    fn from(own: Range<Self>) -> Self {
        let (start, end) = (own.start.map(|it| it.0), own.end.map(|it| it.0));
        Self(Val::from(start..end), 1)
    }
}

impl FromIterator<Self> for Metered {
    fn from_iter<I: IntoIterator<Item = Self>>(items: I) -> Self {
        let mut levels = 0;
        let items = items.into_iter().take_while(|_| pay(1));
        let items = items.map(|item| {
            levels = levels.max(item.1);
            item.0
        });
        let list = items.collect();
        // Where it nests too deep, the filter fails at its next step.
        Self::nested(list, levels + 1).unwrap_or(Self::flat(Val::Null))
    }
}

impl Add for Metered {
    type Output = ValR<Self>;

    fn add(self, other: Self) -> ValR<Self> {
        let levels = self.1.max(other.1);
        Self::paid(self.joined(&other), levels, || self.0 + other.0)
    }
}

impl Sub for Metered {
    type Output = ValR<Self>;

    fn sub(self, other: Self) -> ValR<Self> {
        let cost = (size(&self.0) + size(&other.0)) * 4;
        Self::paid(cost, self.1, || self.0 - other.0)
    }
}

impl Mul for Metered {
    type Output = ValR<Self>;

    fn mul(self, other: Self) -> ValR<Self> {
        let times = |text: &Val, number: &Val| match (text, number) {
            (Val::BStr(_) | Val::TStr(_), Val::Num(number)) => {
                let times = number.as_isize().map_or(usize::MAX, isize::unsigned_abs);
                Some(size(text).saturating_mul(times.max(1)))
            }
            _ => None,
        };
        let repeated = times(&self.0, &other.0).or_else(|| times(&other.0, &self.0));
        let cost = repeated.unwrap_or_else(|| size(&self.0) + size(&other.0));
        Self::paid(cost, self.1.max(other.1), || self.0 * other.0)
    }
}

impl Div for Metered {
    type Output = ValR<Self>;

    fn div(self, other: Self) -> ValR<Self> {
        // A text that is divided becomes as many texts as it has characters, at most.
        Self::paid(size(&self.0).saturating_mul(64), 1, || self.0 / other.0)
    }
}

impl Rem for Metered {
    type Output = ValR<Self>;

    fn rem(self, other: Self) -> ValR<Self> {
        Self::paid(1, 0, || self.0 % other.0)
    }
}

impl Neg for Metered {
    type Output = ValR<Self>;

    fn neg(self) -> ValR<Self> {
        Self::paid(1, 0, || -self.0)
    }
}

impl ValT for Metered {
    fn from_num(text: &str) -> ValR<Self> {
        Self::paid(1, 0, || Val::from_num(text))
    }

    fn from_map<I: IntoIterator<Item = (Self, Self)>>(members: I) -> ValR<Self> {
        let mut made = Map::default();
        let mut levels = 0;
        if !pay(MEMBER) {
            return Err(spent());
        }
        for (name, value) in members {
            if !pay(MEMBER) {
                return Err(spent());
            }
            levels = levels.max(name.1).max(value.1);
            made.insert(name.0, value.0);
        }
        Self::nested(Val::obj(made), levels + 1)
    }

    fn key_values(self) -> BoxIter<'static, ValR<(Self, Self), Self>> {
        let whole = size(&self.0);
        let levels = self.1.saturating_sub(1);
        let pairs = self.0.key_values().map(move |pair| {
            let pair = pair.map(|(name, value)| (Self(name, levels), Self(value, levels)));
            pair.map_err(failed)
        });
        walk(whole, pairs)
    }

    fn values(self) -> Box<dyn Iterator<Item = ValR<Self>>> {
        let whole = if is_unique(&self.0) { 1 } else { size(&self.0) };
        let levels = self.1.saturating_sub(1);
        let values = self.0.values();
        walk(
            whole,
            values.map(move |it| it.map(|it| Self(it, levels)).map_err(failed)),
        )
    }

    fn index(self, index: &Self) -> ValR<Self> {
        let cost = match (&self.0, &index.0) {
            (Val::Arr(own), Val::Arr(part)) => own.len().saturating_mul(part.len().max(1)),
            (_, Val::Obj(_)) => size(&self.0),
            _ => 1,
        };
        Self::paid(cost, self.1, || self.0.index(&index.0))
    }

    fn range(self, range: Range<&Self>) -> ValR<Self> {
        let range = range.start.map(|it| &it.0)..range.end.map(|it| &it.0);
        Self::paid(size(&self.0), self.1, || self.0.range(range))
    }

    fn map_values<'a, I: Iterator<Item = ValX<'a, Self>>>(
        self,
        opt: Opt,
        f: impl Fn(Self) -> I,
    ) -> ValX<'a, Self> {
        if !pay(size(&self.0)) {
            return Err(Exn::from(spent()));
        }
        let part = |value: Val| Self(value, self.1.saturating_sub(1));
        match self.0 {
            Val::Arr(items) => {
                let items = Rc::unwrap_or_clone(items).into_iter();
                items.flat_map(|item| f(part(item))).collect()
            }
            Val::Obj(members) => {
                let members = Rc::unwrap_or_clone(members).into_iter();
                let mut levels = 0;
                let mut made = Map::default();
                for (name, value) in members {
                    if let Some(value) = f(part(value)).next().transpose()? {
                        levels = levels.max(value.1);
                        made.insert(name, value.0);
                    }
                }
                Ok(Self::nested(Val::obj(made), levels + 1)?)
            }
            other => opt.fail(Self(other, self.1), |_| Exn::from(failed(()))),
        }
    }

    fn map_index<'a, I: Iterator<Item = ValX<'a, Self>>>(
        self,
        index: &Self,
        opt: Opt,
        f: impl Fn(Self) -> I,
    ) -> ValX<'a, Self> {
        let copied = if is_unique(&self.0) {
            MEMBER
        } else {
            size(&self.0)
        };
        if !pay(copied) {
            return Err(Exn::from(spent()));
        }
        let levels = self.1;
        let part = |value: Val| Self(value, levels.saturating_sub(1));
        match self.0 {
            Val::Obj(mut members) => {
                let own = Rc::make_mut(&mut members);
                let value = own.get_mut(&index.0).map(std::mem::take);
                let made = f(part(value.unwrap_or_default())).next().transpose()?;
                let deepest = made.as_ref().map_or(0, |made| made.1 + 1);
                match made {
                    Some(made) => drop(own.insert(index.0.clone(), made.0)),
                    None => drop(own.swap_remove(&index.0)),
                }
                Ok(Self::nested(Val::Obj(members), levels.max(deepest))?)
            }
            Val::Arr(mut items) => {
                let at = match &index.0 {
                    Val::Num(number) => number.as_isize(),
                    _ => None,
                };
                let at = at.and_then(|at| match usize::try_from(at) {
                    Ok(at) => Some(at),
                    Err(_) => items.len().checked_sub(at.unsigned_abs()),
                });
                let own = Rc::make_mut(&mut items);
                let Some((at, item)) = at.and_then(|at| Some((at, own.get_mut(at)?))) else {
                    return opt.fail(Self(Val::Arr(items), levels), |_| Exn::from(failed(())));
                };
                let made = f(part(std::mem::take(item))).next().transpose()?;
                let deepest = made.as_ref().map_or(0, |made| made.1 + 1);
                match made {
                    Some(made) => *item = made.0,
                    None => drop(own.remove(at)),
                }
                Ok(Self::nested(Val::Arr(items), levels.max(deepest))?)
            }
            other => opt.fail(Self(other, levels), |_| Exn::from(failed(()))),
        }
    }

    /// A part of a list or a text cannot be assigned to.
    fn map_range<'a, I: Iterator<Item = ValX<'a, Self>>>(
        self,
        _: Range<&Self>,
        opt: Opt,
        _: impl Fn(Self) -> I,
    ) -> ValX<'a, Self> {
        opt.fail(self, |_| Exn::from(failed(())))
    }

    fn as_bool(&self) -> bool {
        self.0.as_bool()
    }

    fn into_string(self) -> Self {
        match self.0 {
            Val::BStr(text) | Val::TStr(text) => Self::flat(Val::TStr(text)),
            // Where it could not be paid for, the filter fails at its next step.
            _ => self.json().unwrap_or(Self::flat(Val::Null)),
        }
    }
}

impl jaq_std::ValT for Metered {
    fn into_seq<S: FromIterator<Self>>(self) -> Result<S, Self> {
        match self.0 {
            Val::Arr(items) if pay(items.len()) => {
                let levels = self.1.saturating_sub(1);
                let items = Rc::unwrap_or_clone(items).into_iter();
                Ok(items.map(|item| Self(item, levels)).collect())
            }
            other => Err(Self(other, self.1)),
        }
    }

    fn is_int(&self) -> bool {
        self.0.is_int()
    }

    fn as_isize(&self) -> Option<isize> {
        self.0.as_isize()
    }

    fn as_f64(&self) -> Option<f64> {
        self.0.as_f64()
    }

    fn is_utf8_str(&self) -> bool {
        self.0.is_utf8_str()
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        self.0.as_bytes()
    }

    fn as_sub_str(&self, sub: &[u8]) -> Self {
        Self::flat(self.0.as_sub_str(sub))
    }

    fn from_utf8_bytes(bytes: impl AsRef<[u8]> + Send + 'static) -> Self {
        pay(bytes.as_ref().len() / 16 + 1);
        Self::flat(Val::from_utf8_bytes(bytes))
    }
}
