//! Collects errors, so that one run of the compiler shows all of them.

use std::cell::RefCell;
use std::fmt::Display;
use std::thread;

use quote::ToTokens;

/// The errors so far. It must be consumed by [`Ctxt::check`]: dropping it unread is a bug of ours
/// which would turn a wrong declaration into a silent one.
pub(crate) struct Ctxt {
    errors: RefCell<Option<Vec<syn::Error>>>,
}

impl Ctxt {
    pub(crate) fn new() -> Self {
        Self {
            errors: RefCell::new(Some(Vec::new())),
        }
    }

    /// Adds an error that underlines the tokens.
    pub(crate) fn error(&self, at: impl ToTokens, message: impl Display) {
        self.push(syn::Error::new_spanned(at.into_token_stream(), message));
    }

    /// Adds an error of the parser.
    pub(crate) fn push(&self, error: syn::Error) {
        if let Some(errors) = self.errors.borrow_mut().as_mut() {
            errors.push(error);
        }
    }

    /// All the errors as one, or nothing.
    pub(crate) fn check(self) -> syn::Result<()> {
        let errors = self.errors.borrow_mut().take().unwrap_or_default();
        let combined = errors.into_iter().reduce(|mut all, error| {
            all.combine(error);
            all
        });
        combined.map_or(Ok(()), Err)
    }
}

impl Drop for Ctxt {
    fn drop(&mut self) {
        let is_checked = self.errors.borrow().is_none();
        assert!(
            is_checked || thread::panicking(),
            "the errors of this declaration were not looked at"
        );
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::Ctxt;

    #[test]
    fn every_error_is_reported_in_order() {
        let cx = Ctxt::new();
        cx.error(quote!(a), "first");
        cx.error(quote!(b), "second");
        let messages: Vec<String> = cx
            .check()
            .unwrap_err()
            .into_iter()
            .map(|e| e.to_string())
            .collect();
        assert_eq!(messages, ["first", "second"]);
    }

    #[test]
    fn nothing_wrong_is_ok() {
        assert!(Ctxt::new().check().is_ok());
    }

    #[test]
    #[should_panic(expected = "not looked at")]
    fn dropped_unread_is_a_bug() {
        drop(Ctxt::new());
    }
}
