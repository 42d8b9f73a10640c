//! A JSON value as it is written in an attribute: `3`, `-0.5`, `"text"`, `true`, `[…]`, `{"a": …}`.

use std::cmp::Ordering;
use std::fmt;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Lit, LitStr, Token, braced, bracketed};

/// A value, and the tokens it was written with, for the errors about it.
#[derive(Clone)]
pub(crate) struct Literal {
    pub(crate) value: Json,
    tokens: TokenStream,
}

#[derive(Clone)]
pub(crate) enum Json {
    Text(String),
    Number(Number),
    Boolean(bool),
    List(Vec<Literal>),
    Object(Vec<(String, Literal)>),
}

/// A number; a whole one stays exact.
#[derive(Clone, Copy)]
pub(crate) enum Number {
    Whole(i128),
    Decimal(f64),
}

impl Number {
    /// A decimal that is not finite cannot be written, so there is always an order.
    pub(crate) fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Whole(left), Self::Whole(right)) => left.cmp(&right),
            _ => self.approximate().total_cmp(&other.approximate()),
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "only where a decimal is compared with it"
    )]
    fn approximate(self) -> f64 {
        match self {
            Self::Whole(number) => number as f64,
            Self::Decimal(number) => number,
        }
    }

    /// A `countersign::args::check::Literal`.
    pub(crate) fn to_checked(self) -> TokenStream {
        match self {
            Self::Whole(number) => quote!(::countersign::args::check::Literal::Whole(#number)),
            Self::Decimal(_) => quote!(::countersign::args::check::Literal::Decimal),
        }
    }

    /// An `Option<serde_json::Number>`.
    pub(crate) fn to_json_number(self) -> TokenStream {
        match self {
            Self::Whole(number) => quote! {
                ::countersign::__private::serde_json::Number::from_i128(#number)
            },
            Self::Decimal(number) => quote! {
                ::countersign::__private::serde_json::Number::from_f64(#number)
            },
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(number) => number.fmt(f),
            Self::Decimal(number) => number.fmt(f),
        }
    }
}

impl Literal {
    /// Returns its noun, for a sentence.
    pub(crate) fn noun(&self) -> &'static str {
        match &self.value {
            Json::Text(_) => "a text",
            Json::Number(Number::Whole(_)) => "a whole number",
            Json::Number(Number::Decimal(_)) => "a decimal",
            Json::Boolean(_) => "a boolean",
            Json::List(_) => "a list",
            Json::Object(_) => "an object",
        }
    }

    /// A `serde_json::Value`.
    pub(crate) fn to_json_value(&self) -> TokenStream {
        let json = match &self.value {
            Json::Text(text) => quote!(#text),
            Json::Number(Number::Whole(number)) => {
                let in_64_bits = i64::try_from(*number).map(|number| quote!(#number));
                in_64_bits.unwrap_or_else(|_| {
                    // The parser refuses what a `u64` does not hold.
                    let number = u64::try_from(*number).unwrap_or(u64::MAX);
                    quote!(#number)
                })
            }
            Json::Number(Number::Decimal(number)) => quote!(#number),
            Json::Boolean(boolean) => quote!(#boolean),
            Json::List(items) => {
                let items = items.iter().map(Self::to_json_value);
                return quote! {
                    ::countersign::__private::serde_json::Value::Array(::std::vec![#(#items),*])
                };
            }
            Json::Object(members) => {
                let names = members.iter().map(|(name, _)| name);
                let values = members.iter().map(|(_, value)| value.to_json_value());
                return quote! {
                    ::countersign::__private::serde_json::Value::Object(
                        ::std::iter::FromIterator::from_iter([
                            #((::std::string::String::from(#names), #values)),*
                        ])
                    )
                };
            }
        };
        quote!(::countersign::__private::serde_json::Value::from(#json))
    }

    /// A `countersign::args::check::Literal`.
    pub(crate) fn to_checked(&self) -> TokenStream {
        let literal = match &self.value {
            Json::Text(text) => quote!(Text(#text)),
            Json::Number(number) => return number.to_checked(),
            Json::Boolean(_) => quote!(Boolean),
            Json::List(items) => {
                let items = items.iter().map(Self::to_checked);
                quote!(List(&[#(#items),*]))
            }
            Json::Object(members) => {
                let values = members.iter().map(|(_, value)| value.to_checked());
                quote!(Object(&[#(#values),*]))
            }
        };
        quote!(::countersign::args::check::Literal::#literal)
    }
}

impl ToTokens for Literal {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.extend(self.tokens.clone());
    }
}

impl Parse for Literal {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let fork = input.fork();
        let value = parse_value(input)?;
        let mut tokens = TokenStream::new();
        while fork.cursor() != input.cursor() {
            tokens.extend([fork.parse::<proc_macro2::TokenTree>()?]);
        }
        Ok(Self { value, tokens })
    }
}

fn parse_value(input: ParseStream<'_>) -> syn::Result<Json> {
    if input.peek(syn::token::Bracket) {
        let content;
        bracketed!(content in input);
        let items = Punctuated::<Literal, Token![,]>::parse_terminated(&content)?;
        return Ok(Json::List(items.into_iter().collect()));
    }
    if input.peek(syn::token::Brace) {
        let content;
        braced!(content in input);
        let members = content.parse_terminated(parse_member, Token![,])?;
        return Ok(Json::Object(members.into_iter().collect()));
    }
    let minus: Option<Token![-]> = input.parse()?;
    if !input.peek(Lit) {
        return Err(input.error(
            "expected a JSON value: a text, a number, `true`, `false`, `[…]` or `{\"name\": …}`",
        ));
    }
    match input.parse()? {
        Lit::Str(text) if minus.is_none() => Ok(Json::Text(text.value())),
        Lit::Bool(boolean) if minus.is_none() => Ok(Json::Boolean(boolean.value)),
        Lit::Int(number) => {
            let magnitude: i128 = number.base10_parse()?;
            let signed = if minus.is_some() {
                -magnitude
            } else {
                magnitude
            };
            if signed < i64::MIN.into() || signed > u64::MAX.into() {
                return Err(syn::Error::new(
                    number.span(),
                    "a whole number has at most 64 bits",
                ));
            }
            Ok(Json::Number(Number::Whole(signed)))
        }
        Lit::Float(number) => {
            let magnitude: f64 = number.base10_parse()?;
            if !magnitude.is_finite() {
                return Err(syn::Error::new(number.span(), "a number must be finite"));
            }
            let signed = if minus.is_some() {
                -magnitude
            } else {
                magnitude
            };
            Ok(Json::Number(Number::Decimal(signed)))
        }
        other => Err(syn::Error::new_spanned(
            other,
            "not a JSON value: write a text, a number, `true`, `false`, `[…]` or `{\"name\": …}`",
        )),
    }
}

fn parse_member(input: ParseStream<'_>) -> syn::Result<(String, Literal)> {
    let name: LitStr = input.parse()?;
    input.parse::<Token![:]>()?;
    Ok((name.value(), input.parse()?))
}
