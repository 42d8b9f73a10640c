//! Citations: the exact bytes of the file that a text is from.

use countersign::contract::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Place of a part in a document. A reader who has the file can check it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct Citation {
    /// SHA-256 of the whole file.
    pub document_digest: Digest,
    /// First byte of the part.
    pub start: usize,
    /// First byte after the part.
    pub end: usize,
    /// SHA-256 of the part.
    pub chunk_digest: Digest,
}

/// The reason why a citation is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CitationError {
    /// The digest of the document differs. Usually the document was edited after the citation, or it is another
    /// document.
    #[error("the document is {found}, the citation is of {cited}")]
    Document {
        /// The digest in the citation.
        cited: Digest,
        /// The digest of the document.
        found: Digest,
    },
    /// The document has no such range of bytes, or it is not valid UTF-8. Usually the citation was not made from this
    /// file.
    #[error("the document has no text from byte {start} to {end}")]
    Place {
        /// The first byte of the range.
        start: usize,
        /// The byte after its last one.
        end: usize,
    },
    /// The digest of the range differs. Usually the range of the citation was changed.
    #[error("the part is {found}, the citation is of {cited}")]
    Chunk {
        /// The digest in the citation.
        cited: Digest,
        /// The digest of the range.
        found: Digest,
    },
}

/// Checks a citation and returns the text that it is of. It needs the file and nothing else.
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

    /// Each error of a citation has its own variant.
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
        // In the middle of a character, beyond the end, and the wrong way round.
        check(|wrong| wrong.end = 8, "no text from byte 0 to 8");
        check(|wrong| wrong.end = 99, "no text from byte 0 to 99");
        check(|wrong| wrong.start = 10, "no text from byte 10 to 9");
        check(|wrong| wrong.start = 9, "no text from byte 9 to 9");
    }
}
