//! A text with `{name}` in it: the path of a request.

/// A text with places for values.
///
/// # Example
///
/// ```
/// use countersign_upstream::manifest::Template;
///
/// let path = Template::parse("/customers/{id}/notes")?;
/// assert_eq!(path.names().collect::<Vec<_>>(), ["id"]);
/// assert!(Template::parse("/customers/{id").is_err());
/// # Ok::<(), countersign_upstream::manifest::TemplateError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text as it is.
    Text(String),
    /// Place of a value.
    Name(String),
}

/// The text is not a valid template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A brace has no partner. Usually a brace was forgotten, or a literal brace is meant, which a path cannot have.
    #[error("a {{ or }} has no partner; write {{name}}")]
    Unbalanced,
    /// The template has no name between two braces. Usually the name of the argument was forgotten.
    #[error("{{}} names nothing; write {{name}}")]
    Empty,
}

impl Template {
    /// Reads a template.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, behind) = after.split_once('}').ok_or(TemplateError::Unbalanced)?;
            if before.contains('}') || name.contains('{') {
                return Err(TemplateError::Unbalanced);
            }
            if name.is_empty() {
                return Err(TemplateError::Empty);
            }
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            pieces.push(Piece::Name(name.to_owned()));
            rest = behind;
        }
        if rest.contains('}') {
            return Err(TemplateError::Unbalanced);
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Ok(Self { pieces })
    }

    /// A text without places.
    pub fn fixed(text: &str) -> Self {
        Self {
            pieces: vec![Piece::Text(text.to_owned())],
        }
    }

    /// The pieces, in order.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Name(name) => Some(name.as_str()),
        })
    }
}
