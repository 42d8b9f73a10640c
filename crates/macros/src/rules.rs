//! Checks that a field's settings agree with its type and with each other.

use std::cmp::Ordering;

use proc_macro2::TokenStream;

use crate::attr::{FieldAttrs, Set};
use crate::ctxt::Ctxt;
use crate::literal::{Json, Literal, Number};
use crate::ty::{FieldType, Item, Shape};

/// Adds an error for everything that does not fit.
pub(crate) fn check(cx: &Ctxt, attrs: &FieldAttrs, ty: &FieldType) {
    fits_the_type(cx, attrs, ty);
    bounds_fit_the_type(cx, attrs, ty.item);
    in_order(cx, "min", attrs.min.as_ref(), "max", attrs.max.as_ref());
    let whole = |set: &Option<Set<u64>>| {
        set.as_ref().map(|it| Set {
            value: Number::Whole(it.value.into()),
            at: it.at.clone(),
        })
    };
    in_order(
        cx,
        "min_length",
        whole(&attrs.min_length).as_ref(),
        "max_length",
        whole(&attrs.max_length).as_ref(),
    );
    in_order(
        cx,
        "min_items",
        whole(&attrs.min_items).as_ref(),
        "max_items",
        whole(&attrs.max_items).as_ref(),
    );
    for (what, literal) in [("default", &attrs.default), ("example", &attrs.example)] {
        if let Some(literal) = literal {
            Judge {
                cx,
                what,
                attrs,
                ty,
            }
            .whole_value(literal);
        }
    }
}

/// A setting that has no meaning for the type, as far as the type is known.
fn fits_the_type(cx: &Ctxt, attrs: &FieldAttrs, ty: &FieldType) {
    let noun = ty.item.noun();
    let refuse = |at: Option<&TokenStream>, rule: &str| {
        if let Some(at) = at {
            cx.error(at, format!("{rule}, but the field is {noun}"));
        }
    };
    let is_known = ty.item != Item::Unknown;
    if is_known && !matches!(ty.item, Item::Integer { .. } | Item::Decimal) {
        for bound in [&attrs.min, &attrs.max] {
            refuse(
                bound.as_ref().map(|it| &it.at),
                "`min` and `max` bound a number",
            );
        }
    }
    if is_known && ty.item != Item::Text {
        let rule = "`min_length`, `max_length` and `pattern` bound a text";
        refuse(attrs.min_length.as_ref().map(|it| &it.at), rule);
        refuse(attrs.max_length.as_ref().map(|it| &it.at), rule);
        refuse(attrs.pattern.as_ref().map(|it| &it.at), rule);
    }
    if is_known && !matches!(ty.item, Item::Integer { .. }) {
        let rule = "`truncate` cuts a decimal to an integer";
        refuse(attrs.truncate.as_ref().map(|it| &it.at), rule);
    }
    if is_known {
        refuse(
            attrs.case.as_ref().map(|it| &it.at),
            "`case` belongs to an enum",
        );
    }
    if matches!(ty.shape, Shape::One | Shape::Map) {
        for bound in [&attrs.min_items, &attrs.max_items].into_iter().flatten() {
            cx.error(
                &bound.at,
                "`min_items` and `max_items` bound a list such as `Vec<T>`",
            );
        }
    }
}

fn bounds_fit_the_type(cx: &Ctxt, attrs: &FieldAttrs, item: Item) {
    for (name, bound) in [("min", &attrs.min), ("max", &attrs.max)] {
        if let (Some(bound), Item::Integer { .. }) = (bound, item) {
            whole_in_range(cx, name, bound.value, item, &bound.at);
        }
    }
}

fn in_order(
    cx: &Ctxt,
    low_name: &str,
    low: Option<&Set<Number>>,
    high_name: &str,
    high: Option<&Set<Number>>,
) {
    if let (Some(low), Some(high)) = (low, high)
        && low.value.compare(high.value) == Ordering::Greater
    {
        let (low_value, high_value) = (low.value, high.value);
        cx.error(
            &low.at,
            format!("`{low_name}` is {low_value} and `{high_name}` is {high_value}: no value fits between them"),
        );
    }
}

/// A whole number of the type's own range.
fn whole_in_range(
    cx: &Ctxt,
    what: &str,
    number: Number,
    item: Item,
    at: impl quote::ToTokens,
) -> bool {
    let Item::Integer { name, min, max } = item else {
        return true;
    };
    match number {
        Number::Whole(number) if (min..=max).contains(&number) => true,
        Number::Whole(number) => {
            cx.error(
                at,
                format!("`{what}` is {number}, but a `{name}` is from {min} to {max}"),
            );
            false
        }
        Number::Decimal(_) => {
            cx.error(
                at,
                format!("`{what}` is a decimal, but the field is an integer (`{name}`)"),
            );
            false
        }
    }
}

/// Check of one `default` or `example` against the type and the bounds.
struct Judge<'a> {
    cx: &'a Ctxt,
    what: &'static str,
    attrs: &'a FieldAttrs,
    ty: &'a FieldType,
}

impl Judge<'_> {
    fn whole_value(&self, literal: &Literal) {
        match (self.ty.shape, &literal.value) {
            (Shape::List, Json::List(items)) => {
                self.items(items, literal);
                for item in items {
                    self.item(item);
                }
            }
            (Shape::Map, Json::Object(members)) => {
                for (_, value) in members {
                    self.item(value);
                }
            }
            (Shape::List, _) => self.wrong(literal, "a list: write `[…]`"),
            (Shape::Map, _) => self.wrong(literal, "a map: write `{\"name\": …}`"),
            (Shape::One | Shape::Unknown, _) => self.item(literal),
        }
    }

    fn item(&self, literal: &Literal) {
        match (self.ty.item, &literal.value) {
            (Item::Text | Item::Unknown, Json::Text(text)) => {
                self.characters(text, literal);
            }
            (Item::Integer { .. } | Item::Decimal | Item::Unknown, Json::Number(number)) => {
                if whole_in_range(self.cx, self.what, *number, self.ty.item, literal) {
                    self.declared_range(*number, literal);
                }
            }
            (Item::Boolean, Json::Boolean(_)) | (Item::Unknown, _) => {}
            (Item::Text, _) => self.wrong(literal, "text: write `\"…\"`"),
            (Item::Boolean, _) => self.wrong(literal, "a `bool`: write `true` or `false`"),
            (Item::Integer { .. }, _) => self.wrong(literal, "an integer"),
            (Item::Decimal, _) => self.wrong(literal, "a number"),
        }
    }

    fn declared_range(&self, number: Number, literal: &Literal) {
        let what = self.what;
        if let Some(min) = &self.attrs.min
            && number.compare(min.value) == Ordering::Less
        {
            let min = min.value;
            self.cx.error(
                literal,
                format!("`{what}` is {number}, below `min = {min}`"),
            );
        }
        if let Some(max) = &self.attrs.max
            && number.compare(max.value) == Ordering::Greater
        {
            let max = max.value;
            self.cx.error(
                literal,
                format!("`{what}` is {number}, above `max = {max}`"),
            );
        }
    }

    fn characters(&self, text: &str, literal: &Literal) {
        let count = text.chars().count() as u64;
        let bounds = (
            self.attrs.min_length.as_ref(),
            self.attrs.max_length.as_ref(),
        );
        self.count(count, "characters", "length", bounds, literal);
    }

    fn items(&self, items: &[Literal], literal: &Literal) {
        let count = items.len() as u64;
        let bounds = (self.attrs.min_items.as_ref(), self.attrs.max_items.as_ref());
        self.count(count, "items", "items", bounds, literal);
    }

    fn count(
        &self,
        count: u64,
        unit: &str,
        suffix: &str,
        (min, max): (Option<&Set<u64>>, Option<&Set<u64>>),
        literal: &Literal,
    ) {
        let what = self.what;
        if let Some(min) = min.map(|it| it.value).filter(|min| count < *min) {
            let message = format!("`{what}` has {count} {unit}, below `min_{suffix} = {min}`");
            self.cx.error(literal, message);
        }
        if let Some(max) = max.map(|it| it.value).filter(|max| count > *max) {
            let message = format!("`{what}` has {count} {unit}, above `max_{suffix} = {max}`");
            self.cx.error(literal, message);
        }
    }

    fn wrong(&self, literal: &Literal, field: &str) {
        let (what, noun) = (self.what, literal.noun());
        self.cx.error(
            literal,
            format!("`{what}` is {noun}, but the field is {field}"),
        );
    }
}
