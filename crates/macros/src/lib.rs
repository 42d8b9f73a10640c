//! The derive macro behind `countersign::ToolArgs`.
//!
//! Read [`input`] first (what a declaration is made of), then [`rules`] (what must agree) and
//! [`expand`] (the code that comes out).

mod attr;
mod ctxt;
mod expand;
mod input;
mod literal;
mod rename;
mod rules;
mod ty;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Declares a tool's parameters from a struct with named fields.
#[proc_macro_derive(ToolArgs, attributes(arg, serde))]
pub fn derive_tool_args(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::derive(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
