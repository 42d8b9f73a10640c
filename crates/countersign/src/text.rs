//! Full text search in Chinese and English: splitting texts into words, and ranking them for a question.
//!
//! One word splitter serves every store, so that all of them find the same. The stores index the words as they get them
//! and never use a tokenizer of their own: SQLite's `trigram` finds Chinese only from three characters on, and most
//! words have two; PostgreSQL's `simple` takes a whole Chinese sentence for one word, and its letters depend on the
//! locale of the server.
//!
//! - A text is folded: compatibility forms (full-width letters, ligatures) become plain ones, accents go, letters
//!   become small.
//! - Latin words lose their plural, `-ing` and `-ed`, and nothing else.
//! - A run of Chinese, Japanese or Korean characters becomes each character and each pair of neighbours. A
//!   question of two characters or more asks for pairs, a single character for itself.
//!
//! A question finds every chunk that has one of its words; chunks are ranked by BM25, computed here, with the
//! numbers of the whole corpus.

mod excerpt;
mod fold;
mod rank;
mod reader;
mod stem;
mod words;

pub use excerpt::excerpt;
pub use rank::{Statistics, length, rank};
pub use reader::TextReader;
pub use words::{QUESTION_WORDS_MAX, Word, indexed_words, question_words, words};
