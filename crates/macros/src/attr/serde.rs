//! serde's attributes: those that change the names are followed, those that change the shape are refused, because the declaration would
//! then differ from the wire format.

use syn::meta::ParseNestedMeta;
use syn::{Attribute, Expr, LitStr, Token, parenthesized, token};

use super::{ContainerAttrs, FieldAttrs, VariantAttrs};
use crate::ctxt::Ctxt;
use crate::rename::RenameRule;

pub(super) fn container(cx: &Ctxt, attributes: &[Attribute], attrs: &mut ContainerAttrs) {
    each_setting(attributes, |name, meta| {
        match name {
            "rename_all" => {
                if let Some(rule) = deserialize_text(meta)? {
                    attrs.rename_all = RenameRule::parse(&rule.value());
                }
                return Ok(());
            }
            "default" => attrs.has_default = true,
            "tag" | "content" | "untagged" => cx.error(
                &meta.path,
                "a tagged or untagged enum is no kind of parameter: use an enum whose variants hold nothing, or one optional field a case",
            ),
            "transparent" | "from" | "try_from" | "remote" => cx.error(
                &meta.path,
                format!("`{name}` reads another shape than the fields declare: implement `countersign::ArgValue` for the type by hand"),
            ),
            _ => {}
        }
        skip_value(meta)
    });
}

pub(super) fn field(cx: &Ctxt, attributes: &[Attribute], attrs: &mut FieldAttrs) {
    each_setting(attributes, |name, meta| {
        match name {
            "rename" => {
                attrs.rename = deserialize_text(meta)?;
                return Ok(());
            }
            "alias" => {
                attrs.aliases.push(meta.value()?.parse()?);
                return Ok(());
            }
            "skip" | "skip_deserializing" => attrs.is_skipped = true,
            "default" => attrs.serde_default = Some(meta.path.clone()),
            "flatten" => cx.error(
                &meta.path,
                "`flatten` hides which parameters there are: write the fields here, or remove it to nest them as an object",
            ),
            "with" | "deserialize_with" => cx.error(
                &meta.path,
                format!("`{name}` reads another shape than the field's type declares: use a newtype that implements `countersign::ArgValue`"),
            ),
            _ => {}
        }
        skip_value(meta)
    });
}

pub(super) fn variant(cx: &Ctxt, attributes: &[Attribute], attrs: &mut VariantAttrs) {
    each_setting(attributes, |name, meta| {
        match name {
            "rename" => {
                attrs.rename = deserialize_text(meta)?;
                return Ok(());
            }
            "alias" => {
                attrs.aliases.push(meta.value()?.parse()?);
                return Ok(());
            }
            "skip" | "skip_deserializing" => attrs.is_skipped = true,
            "other" => cx.error(
                &meta.path,
                "a value that is not declared is refused before the tool runs, so `other` is never reached: remove it",
            ),
            _ => {}
        }
        skip_value(meta)
    });
}

/// A syntax error ends the reading without a word: serde's derive reports it better.
fn each_setting(
    attributes: &[Attribute],
    mut read: impl FnMut(&str, &ParseNestedMeta<'_>) -> syn::Result<()>,
) {
    for attribute in attributes.iter().filter(|it| it.path().is_ident("serde")) {
        let _ = attribute.parse_nested_meta(|meta| {
            let name = meta.path.get_ident().map(ToString::to_string);
            read(name.as_deref().unwrap_or_default(), &meta)
        });
    }
}

/// `= "…"`, or the `deserialize` side of `(serialize = "…", deserialize = "…")`.
fn deserialize_text(meta: &ParseNestedMeta<'_>) -> syn::Result<Option<LitStr>> {
    if meta.input.peek(Token![=]) {
        return meta.value()?.parse().map(Some);
    }
    let mut text = None;
    meta.parse_nested_meta(|side| {
        let value = side.value()?.parse()?;
        if side.path.is_ident("deserialize") {
            text = Some(value);
        }
        Ok(())
    })?;
    Ok(text)
}

fn skip_value(meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
    if meta.input.peek(Token![=]) {
        meta.value()?.parse::<Expr>()?;
    } else if meta.input.peek(token::Paren) {
        let content;
        parenthesized!(content in meta.input);
        content.parse::<proc_macro2::TokenStream>()?;
    }
    Ok(())
}
