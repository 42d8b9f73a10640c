//! Functions of filters that know how values are made.

use jaq_core::native::{Filter, Fun, bome, run, unary, v};
use jaq_core::{DataT, Error, RunPtr, ValR};
use jaq_json::Val;

use super::metered::{Metered, failed, is_spent, pay, size, spent};

/// The functions that know how values are made; `jaq_json` has them for its own values.
pub(super) fn all<D: for<'a> DataT<V<'a> = Metered>>() -> impl Iterator<Item = Fun<D>> {
    pointers().into_vec().into_iter().map(run)
}

fn pointers<D: for<'a> DataT<V<'a> = Metered>>() -> Box<[Filter<RunPtr<D>>]> {
    Box::new([
        ("tojson", v(0), |cv| bome(cv.1.json())),
        ("fromjson", v(0), |cv| {
            bome(match &cv.1.0 {
                Val::TStr(text) if pay(text.len()) => Metered::parse(text),
                _ => Err(failed(())),
            })
        }),
        ("length", v(0), |cv| bome(length(&cv.1.0))),
        ("contains", v(1), |cv| {
            unary(cv, |own, part| {
                let contains = contains(&own.0, &part.0);
                contains.map(Metered::from).ok_or_else(spent)
            })
        }),
        ("has", v(1), |cv| {
            unary(cv, |own, name| has(&own.0, &name.0).map(Metered::from))
        }),
        ("indices", v(1), |cv| {
            unary(cv, |own, part| indices(&own, &part))
        }),
    ])
}

fn length(value: &Val) -> ValR<Metered> {
    let count = match value {
        Val::Null => 0,
        Val::Num(_) if *value < Val::from(0_usize) => return -Metered::flat(value.clone()),
        Val::Num(_) => return Ok(Metered::flat(value.clone())),
        Val::TStr(text) => String::from_utf8_lossy(text).chars().count(),
        Val::BStr(bytes) => bytes.len(),
        Val::Arr(items) => items.len(),
        Val::Obj(members) => members.len(),
        Val::Bool(_) => return Err(failed(())),
    };
    if !pay(size(value)) {
        return Err(spent());
    }
    Ok(Metered::from(count))
}

/// `None` if it costs too much.
fn contains(own: &Val, part: &Val) -> Option<bool> {
    if !pay(size(own).min(64) + size(part).min(64)) {
        return None;
    }
    match (own, part) {
        (Val::BStr(own) | Val::TStr(own), Val::BStr(part) | Val::TStr(part)) => {
            let (own, part) = (String::from_utf8_lossy(own), String::from_utf8_lossy(part));
            pay(own.len() / 16).then(|| own.contains(&*part))
        }
        (Val::Arr(own), Val::Arr(parts)) => {
            for part in parts.iter() {
                let mut is_in = false;
                for own in own.iter() {
                    is_in = contains(own, part)?;
                    if is_in {
                        break;
                    }
                }
                if !is_in {
                    return Some(false);
                }
            }
            Some(true)
        }
        (Val::Obj(own), Val::Obj(parts)) => {
            for (name, part) in parts.iter() {
                let is_in = match own.get(name) {
                    Some(own) => contains(own, part)?,
                    None => false,
                };
                if !is_in {
                    return Some(false);
                }
            }
            Some(true)
        }
        _ => Some(own == part),
    }
}

fn has(own: &Val, name: &Val) -> Result<bool, Error<Metered>> {
    match (own, name) {
        (Val::Obj(own), name) => Ok(own.contains_key(name)),
        (Val::Arr(own), Val::Num(at)) => {
            let at = at.as_isize().and_then(|at| usize::try_from(at).ok());
            Ok(at.is_some_and(|at| at < own.len()))
        }
        _ => Err(failed(())),
    }
}

fn indices(own: &Metered, part: &Metered) -> ValR<Metered> {
    let places: Vec<usize> = match (&own.0, &part.0) {
        (Val::TStr(own), Val::TStr(part)) => {
            let (own, part) = (String::from_utf8_lossy(own), String::from_utf8_lossy(part));
            if part.is_empty() || !pay(own.len()) {
                Vec::new()
            } else {
                let bytes = own.match_indices(&*part).map(|(at, _)| at);
                bytes
                    .map(|at| own.get(..at).map_or(0, |it| it.chars().count()))
                    .collect()
            }
        }
        (Val::Arr(own), Val::Arr(part)) => {
            if part.is_empty() || !pay(own.len().saturating_mul(part.len())) {
                Vec::new()
            } else {
                let windows = own.windows(part.len()).enumerate();
                windows
                    .filter(|(_, it)| *it == part.as_slice())
                    .map(|it| it.0)
                    .collect()
            }
        }
        (Val::Arr(own), part) => {
            if !pay(own.len()) {
                return Err(spent());
            }
            let items = own.iter().enumerate();
            items.filter(|(_, it)| *it == part).map(|it| it.0).collect()
        }
        (Val::Null, _) => return Ok(Metered::flat(Val::Null)),
        _ => return Err(failed(())),
    };
    if is_spent() {
        return Err(spent());
    }
    Ok(places.into_iter().map(Metered::from).collect())
}
