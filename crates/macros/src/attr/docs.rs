//! A doc comment as the description that a model reads.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// The lines of a paragraph joined by spaces, paragraphs and list items kept apart.
pub(crate) fn text(attributes: &[Attribute]) -> String {
    let mut text = String::new();
    let mut is_new_paragraph = false;
    for block in attributes.iter().filter_map(doc_text) {
        for line in block.lines().map(str::trim) {
            if line.is_empty() {
                is_new_paragraph = !text.is_empty();
                continue;
            }
            if is_new_paragraph {
                text.push_str("\n\n");
            } else if line.starts_with("- ") || line.starts_with("* ") {
                text.push('\n');
            } else if !text.is_empty() {
                text.push(' ');
            }
            is_new_paragraph = false;
            text.push_str(line);
        }
        // An empty `///` line has no lines of its own.
        is_new_paragraph |= block.trim().is_empty() && !text.is_empty();
    }
    text.trim_start().to_owned()
}

fn doc_text(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use syn::{Field, parse_quote};

    use super::text;

    #[track_caller]
    fn check(field: &Field, expected: &str) {
        assert_eq!(text(&field.attrs), expected);
    }

    #[test]
    fn lines_join_and_paragraphs_stay() {
        check(
            &parse_quote! {
                /// One line
                /// and another.
                ///
                /// A second paragraph:
                /// - first
                /// - second
                field: u8
            },
            "One line and another.\n\nA second paragraph:\n- first\n- second",
        );
    }

    #[test]
    fn an_empty_comment_is_no_description() {
        check(&parse_quote! { #[doc = "  "] field: u8 }, "");
    }
}
