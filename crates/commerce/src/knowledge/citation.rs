//! Which bytes of which file something was said in.

use countersign::contract::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A part of a document. It can be checked by anybody who has the file: [`verify`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct Citation {
    /// SHA-256 of the whole file.
    pub document_digest: Digest,
    /// The first byte of the part.
    pub start: usize,
    /// The byte after its last one.
    pub end: usize,
    /// SHA-256 of the part.
    pub chunk_digest: Digest,
}

/// A citation that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CitationError {
    /// The document is another one, or was changed.
    #[error("the document is {found}, the citation is of {cited}")]
    Document {
        /// What was cited.
        cited: Digest,
        /// What it is.
        found: Digest,
    },
    /// There are no such bytes, or they are no text.
    #[error("the document has no text from byte {start} to {end}")]
    Place {
        /// Where it should begin.
        start: usize,
        /// Where it should end.
        end: usize,
    },
    /// The bytes are others.
    #[error("the part is {found}, the citation is of {cited}")]
    Chunk {
        /// What was cited.
        cited: Digest,
        /// What it is.
        found: Digest,
    },
}

/// The text that a citation is of, where everything about it is right. It needs the file and nothing else.
///
/// # Example
///
/// ```
/// use countersign_commerce::knowledge::{Library, verify};
///
/// let library = Library::embedded()?;
/// let document = library.document("batteries.en").ok_or("it comes with the program")?;
/// let citation = document.cite(document.chunks().first().ok_or("it has text")?);
/// assert!(verify(&citation, document.text().as_bytes())?.contains("lithium"));
///
/// let tampered = document.text().replace("lithium", "litium");
/// assert!(verify(&citation, tampered.as_bytes()).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn verify<'d>(citation: &Citation, document: &'d [u8]) -> Result<&'d str, CitationError> {
    let found = Digest::of_bytes(document);
    if found != citation.document_digest {
        let cited = citation.document_digest;
        return Err(CitationError::Document { cited, found });
    }
    let (start, end) = (citation.start, citation.end);
    let part = document.get(start..end).filter(|part| !part.is_empty());
    let text = part.and_then(|part| std::str::from_utf8(part).ok());
    let text = text.ok_or(CitationError::Place { start, end })?;
    let found = Digest::of_bytes(text.as_bytes());
    if found != citation.chunk_digest {
        let cited = citation.chunk_digest;
        return Err(CitationError::Chunk { cited, found });
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each way in which a citation can be wrong has its name.
    #[test]
    fn what_does_not_hold_is_refused() {
        let document = "锂电池 by road".as_bytes();
        let right = Citation {
            document_digest: Digest::of_bytes(document),
            start: 0,
            end: 9,
            chunk_digest: Digest::of_bytes("锂电池".as_bytes()),
        };
        assert_eq!(verify(&right, document), Ok("锂电池"));
        let check = |change: fn(&mut Citation), expected: &str| {
            let mut wrong = right.clone();
            change(&mut wrong);
            let error = verify(&wrong, document).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(
            |wrong| wrong.document_digest.0[0] ^= 1,
            "the document is sha256:",
        );
        check(|wrong| wrong.chunk_digest.0[31] ^= 1, "the part is sha256:");
        check(|wrong| wrong.start = 3, "the part is sha256:");
        // In the middle of a character, behind the end, and the wrong way round.
        check(|wrong| wrong.end = 8, "no text from byte 0 to 8");
        check(|wrong| wrong.end = 99, "no text from byte 0 to 99");
        check(|wrong| wrong.start = 10, "no text from byte 10 to 9");
        check(|wrong| wrong.start = 9, "no text from byte 9 to 9");
    }
}
