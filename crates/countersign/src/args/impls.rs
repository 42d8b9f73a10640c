//! The types of the standard library and of our dependencies that a field may have.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use countersign_contract::{Cardinality, Parameter, ValueKind};
use serde_json::{Map, Number, Value};

use super::{ArgType, ArgValue};

impl ArgValue for String {
    const KIND: ValueKind = ValueKind::String;
}

impl ArgValue for bool {
    const KIND: ValueKind = ValueKind::Boolean;
}

impl ArgValue for i64 {
    const KIND: ValueKind = ValueKind::Integer;
}

/// Integers with another range than `i64`, which declare it.
macro_rules! bounded_integers {
    ($($integer:ty),*) => {$(
        impl ArgValue for $integer {
            const KIND: ValueKind = ValueKind::Integer;
            const RANGE: Option<(i128, i128)> =
                Some((<$integer>::MIN as i128, <$integer>::MAX as i128));
        }
    )*};
}

bounded_integers!(i8, i16, i32, u8, u16, u32, u64);

impl ArgValue for f64 {
    const KIND: ValueKind = ValueKind::Number;
}

impl ArgValue for f32 {
    const KIND: ValueKind = ValueKind::Number;

    // Beyond these a number would silently arrive as infinity.
    fn describe(parameter: Parameter) -> Parameter {
        parameter.range(
            Number::from_f64(f32::MIN.into()),
            Number::from_f64(f32::MAX.into()),
        )
    }
}

impl ArgValue for Map<String, Value> {
    const KIND: ValueKind = ValueKind::Object;
}

impl ArgValue for Vec<Value> {
    const KIND: ValueKind = ValueKind::Array;
}

impl ArgValue for jiff::Timestamp {
    const KIND: ValueKind = ValueKind::Timestamp;
}

impl<T: ArgValue> ArgType for T {
    type Item = T;
    const CARDINALITY: Cardinality = Cardinality::One;
}

impl<T: ArgType> ArgType for Option<T> {
    type Item = T::Item;
    const CARDINALITY: Cardinality = match T::CARDINALITY {
        Cardinality::One | Cardinality::Optional => Cardinality::Optional,
        Cardinality::List { .. } => Cardinality::List { required: false },
        Cardinality::Map { .. } => Cardinality::Map { required: false },
    };
}

/// Lists: one item type, no list within a list.
macro_rules! lists {
    ($([$($generics:tt)*] $list:ty),* $(,)?) => {$(
        impl<$($generics)*> ArgType for $list {
            type Item = T;
            const CARDINALITY: Cardinality = Cardinality::List { required: true };
        }
    )*};
}

lists! {
    [T: ArgValue] Vec<T>,
    [T: ArgValue] BTreeSet<T>,
    [T: ArgValue, S] HashSet<T, S>,
}

impl<T: ArgValue> ArgType for BTreeMap<String, T> {
    type Item = T;
    const CARDINALITY: Cardinality = Cardinality::Map { required: true };
}

impl<T: ArgValue, S> ArgType for HashMap<String, T, S> {
    type Item = T;
    const CARDINALITY: Cardinality = Cardinality::Map { required: true };
}
