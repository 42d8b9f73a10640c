//! `#[arg(…)]`: what serde has no word for.

use quote::ToTokens;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, LitInt, LitStr};

use super::{
    Case, ContainerAttrs, FieldAttrs, Leniency, OnOptionalError, Sensitivity, Set, VariantAttrs,
};
use crate::ctxt::Ctxt;
use crate::literal::{Json, Literal};

const FIELD_SETTINGS: &str = "`example`, `default`, `min`, `max`, `min_length`, `max_length`, `pattern`, `min_items`, `max_items`, `strict`, `lenient`, `truncate`, `on_optional_error`, `sensitive`, `harmless`, `alias`, `case`";

pub(super) fn container(cx: &Ctxt, attributes: &[Attribute], attrs: &mut ContainerAttrs) {
    each_setting(cx, attributes, |meta| {
        if meta.path.is_ident("case") {
            let case = case(meta)?;
            set(meta, &mut attrs.case, case)
        } else {
            Err(unknown(
                meta,
                "of a struct or an enum",
                "`case` (of an enum)",
            ))
        }
    });
}

pub(super) fn field(cx: &Ctxt, attributes: &[Attribute], attrs: &mut FieldAttrs) {
    each_setting(cx, attributes, |meta| {
        let Some(name) = meta.path.get_ident().map(ToString::to_string) else {
            return Err(unknown(meta, "of a field", FIELD_SETTINGS));
        };
        match name.as_str() {
            "example" => set_literal(meta, &mut attrs.example),
            "default" => set_literal(meta, &mut attrs.default),
            "min" => set_number(meta, &mut attrs.min),
            "max" => set_number(meta, &mut attrs.max),
            "min_length" => set_count(meta, &mut attrs.min_length),
            "max_length" => set_count(meta, &mut attrs.max_length),
            "min_items" => set_count(meta, &mut attrs.min_items),
            "max_items" => set_count(meta, &mut attrs.max_items),
            "pattern" => {
                let pattern = meta.value()?.parse::<LitStr>()?;
                set(meta, &mut attrs.pattern, pattern.value())
            }
            "strict" => set_leniency(meta, &mut attrs.leniency, Leniency::Strict),
            "lenient" => set_leniency(meta, &mut attrs.leniency, Leniency::Lenient),
            "truncate" => set(meta, &mut attrs.truncate, ()),
            "harmless" => set(meta, &mut attrs.harmless, ()),
            "on_optional_error" => {
                let rule = on_optional_error(meta)?;
                set(meta, &mut attrs.on_optional_error, rule)
            }
            "sensitive" => {
                let sensitivity = sensitivity(meta)?;
                set(meta, &mut attrs.sensitivity, sensitivity)
            }
            "alias" => {
                attrs.aliases.push(meta.value()?.parse()?);
                Ok(())
            }
            "case" => {
                let case = case(meta)?;
                set(meta, &mut attrs.case, case)
            }
            _ => Err(unknown(meta, "of a field", FIELD_SETTINGS)),
        }
    });
}

pub(super) fn variant(cx: &Ctxt, attributes: &[Attribute], attrs: &mut VariantAttrs) {
    each_setting(cx, attributes, |meta| {
        if meta.path.is_ident("alias") {
            attrs.aliases.push(meta.value()?.parse()?);
            Ok(())
        } else {
            Err(unknown(meta, "of a variant", "`alias`"))
        }
    });
}

fn each_setting(
    cx: &Ctxt,
    attributes: &[Attribute],
    mut read: impl FnMut(&ParseNestedMeta<'_>) -> syn::Result<()>,
) {
    for attribute in attributes.iter().filter(|it| it.path().is_ident("arg")) {
        if let Err(error) = attribute.parse_nested_meta(|meta| read(&meta)) {
            cx.push(error);
        }
    }
}

fn unknown(meta: &ParseNestedMeta<'_>, owner: &str, known: &str) -> syn::Error {
    let name = meta.path.to_token_stream();
    meta.error(format!("`{name}` is no setting {owner}: there is {known}"))
}

fn set<T>(meta: &ParseNestedMeta<'_>, slot: &mut Option<Set<T>>, value: T) -> syn::Result<()> {
    if slot.is_some() {
        return Err(twice(meta));
    }
    *slot = Some(Set {
        value,
        at: meta.path.to_token_stream(),
    });
    Ok(())
}

fn twice(meta: &ParseNestedMeta<'_>) -> syn::Error {
    let name = meta.path.to_token_stream();
    meta.error(format!("`{name}` is set twice: keep one of them"))
}

fn set_literal(meta: &ParseNestedMeta<'_>, slot: &mut Option<Literal>) -> syn::Result<()> {
    let literal = meta.value()?.parse()?;
    match slot.replace(literal) {
        None => Ok(()),
        Some(_) => Err(twice(meta)),
    }
}

fn set_number(
    meta: &ParseNestedMeta<'_>,
    slot: &mut Option<Set<crate::literal::Number>>,
) -> syn::Result<()> {
    let literal: Literal = meta.value()?.parse()?;
    let Json::Number(value) = literal.value else {
        let name = meta.path.to_token_stream();
        let message = format!("`{name}` is {}, but a bound is a number", literal.noun());
        return Err(syn::Error::new_spanned(literal, message));
    };
    if slot.is_some() {
        return Err(twice(meta));
    }
    let at = literal.into_token_stream();
    *slot = Some(Set { value, at });
    Ok(())
}

fn set_count(meta: &ParseNestedMeta<'_>, slot: &mut Option<Set<u64>>) -> syn::Result<()> {
    let number: LitInt = meta.value()?.parse()?;
    if slot.is_some() {
        return Err(twice(meta));
    }
    *slot = Some(Set {
        value: number.base10_parse()?,
        at: number.into_token_stream(),
    });
    Ok(())
}

fn set_leniency(
    meta: &ParseNestedMeta<'_>,
    slot: &mut Option<Set<Leniency>>,
    leniency: Leniency,
) -> syn::Result<()> {
    if slot.is_some() {
        return Err(meta.error("a parameter is either `strict` or `lenient`: keep one of them"));
    }
    set(meta, slot, leniency)
}

fn on_optional_error(meta: &ParseNestedMeta<'_>) -> syn::Result<OnOptionalError> {
    let text: LitStr = meta.value()?.parse()?;
    match text.value().as_str() {
        "refuse" => Ok(OnOptionalError::Refuse),
        "tell" => Ok(OnOptionalError::Tell),
        _ => Err(syn::Error::new_spanned(
            text,
            "`on_optional_error` is \"refuse\" (the call is refused) or \"tell\" (the tool runs without the value and gets a warning)",
        )),
    }
}

fn sensitivity(meta: &ParseNestedMeta<'_>) -> syn::Result<Sensitivity> {
    let text: LitStr = meta.value()?.parse()?;
    match text.value().as_str() {
        "personal" => Ok(Sensitivity::Personal),
        "secret" => Ok(Sensitivity::Secret),
        _ => Err(syn::Error::new_spanned(
            text,
            "`sensitive` is \"personal\" (says something about a person) or \"secret\" (a credential, an identity number)",
        )),
    }
}

fn case(meta: &ParseNestedMeta<'_>) -> syn::Result<Case> {
    let text: LitStr = meta.value()?.parse()?;
    match text.value().as_str() {
        "exact" => Ok(Case::Exact),
        "fold" => Ok(Case::Fold),
        _ => Err(syn::Error::new_spanned(
            text,
            "`case` is \"exact\" (only the declared spelling) or \"fold\" (case, spaces, `_` and `-` do not matter)",
        )),
    }
}
