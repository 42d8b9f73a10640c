//! All texts together: one version, one corpus.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use countersign::contract::{Digest, canonical};
use countersign::ledger::{Corpus, CorpusError};
use countersign::{CallContext, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::document::{Chunk, Document};
use super::{NAME, embedded};
use crate::rulebook::{Book, RuleData};

static BOOK: Book<Library> = Book::new();

/// How many documents there may be.
const DOCUMENTS_MAX: usize = 1_000;

/// What the shop knows, in one version.
///
/// # Example
///
/// A folder of the operator's own documents, in place of those that come with the program:
///
/// ```no_run
/// use std::path::Path;
///
/// use countersign_commerce::knowledge::Library;
/// use countersign_commerce::rulebook::RuleFiles;
///
/// let library = Library::folder(Path::new("texts"))?;
/// let rules = RuleFiles::embedded()?.knowledge(library).rules()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Files")]
pub struct Library {
    documents: Vec<Document>,
    by_chunk: HashMap<String, (usize, usize)>,
    corpus: Arc<Corpus>,
}

/// The library as a rule set is written.
#[derive(Deserialize)]
struct Files {
    documents: Vec<File>,
}

#[derive(Deserialize)]
struct File {
    name: String,
    text: String,
}

/// Texts that cannot be a library.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// A file or folder cannot be read, or a file is no text.
    #[error("{path} cannot be read")]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is no document.
    #[error("the document {file} cannot be used: {problem}")]
    Invalid {
        /// Its name.
        file: String,
        /// What is wrong.
        problem: String,
    },
    /// Two documents of one name.
    #[error("there are two documents with the id {id:?}")]
    Twice {
        /// Their name.
        id: String,
    },
    /// There are too many, or none.
    #[error(
        "there are {count} documents; between 1 and {DOCUMENTS_MAX} are needed, each a file that ends in .md"
    )]
    Count {
        /// How many there are.
        count: usize,
    },
    /// Together they are no corpus.
    #[error("the documents cannot be searched")]
    Corpus(#[from] CorpusError),
    /// They have no canonical form; a bug.
    #[error("the documents cannot be written")]
    Unwritable(#[from] canonical::Error),
}

impl Library {
    /// What comes with the program.
    pub fn embedded() -> Result<Self, LibraryError> {
        let files = embedded::FILES.iter();
        Self::of(files.map(|(name, text)| ((*name).to_owned(), (*text).to_owned())))
    }

    /// The files of a folder that end in `.md`; not those of folders in it.
    pub fn folder(folder: &Path) -> Result<Self, LibraryError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| LibraryError::Read { path, source }
        };
        let mut files = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed(folder))? {
            let path = entry.map_err(failed(folder))?.path();
            if path.extension().is_none_or(|ending| ending != "md") {
                continue;
            }
            if files.len() >= DOCUMENTS_MAX {
                let count = files.len() + 1;
                return Err(LibraryError::Count { count });
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let text = fs::read_to_string(&path).map_err(failed(&path))?;
            files.push((name.into_owned(), text));
        }
        Self::of(files)
    }

    /// Files with their names.
    pub fn of(files: impl IntoIterator<Item = (String, String)>) -> Result<Self, LibraryError> {
        let mut documents = Vec::new();
        for (file, text) in files {
            let read = Document::read(&file, text);
            documents.push(read.map_err(|problem| LibraryError::Invalid { file, problem })?);
        }
        let count = documents.len();
        if !(1..=DOCUMENTS_MAX).contains(&count) {
            return Err(LibraryError::Count { count });
        }
        documents.sort_by(|a, b| a.file().cmp(b.file()));
        let mut ids = BTreeSet::new();
        if let Some(twice) = documents.iter().find(|document| !ids.insert(&document.id)) {
            let id = twice.id.clone();
            return Err(LibraryError::Twice { id });
        }
        let mut by_chunk = HashMap::new();
        let mut chunks = Vec::new();
        for (at, document) in documents.iter().enumerate() {
            for (chunk_at, chunk) in document.chunks().iter().enumerate() {
                by_chunk.insert(chunk.id.clone(), (at, chunk_at));
                chunks.push(document.indexed(chunk));
            }
        }
        let version = Digest::of_canonical(&data(&documents))?;
        let corpus = Arc::new(Corpus::new(NAME, version, chunks)?);
        Ok(Self {
            documents,
            by_chunk,
            corpus,
        })
    }

    /// The library in force; in a replay that of the record.
    pub(super) fn in_force(ctx: &CallContext) -> Result<Arc<Self>, ToolError> {
        BOOK.get(ctx)
    }

    /// Every document, by the name of its file.
    pub fn documents(&self) -> &[Document] {
        &self.documents
    }

    /// A document by its id.
    pub fn document(&self, id: &str) -> Option<&Document> {
        self.documents.iter().find(|document| document.id == id)
    }

    /// A chunk by its id, with its document.
    pub fn chunk(&self, id: &str) -> Option<(&Document, &Chunk)> {
        let (document, chunk) = self.by_chunk.get(id)?;
        let document = self.documents.get(*document)?;
        Some((document, document.chunks().get(*chunk)?))
    }

    /// The languages that there are texts in.
    pub fn languages(&self) -> BTreeSet<&str> {
        let languages = self.documents.iter();
        languages
            .map(|document| document.language.as_str())
            .collect()
    }

    /// The version: the digest of the canonical JSON of all files with their names.
    pub fn version(&self) -> Digest {
        self.corpus.id().version
    }

    pub(super) fn corpus(&self) -> &Arc<Corpus> {
        &self.corpus
    }

    /// The library as a rule set.
    pub(crate) fn data(&self) -> Value {
        data(&self.documents)
    }
}

/// What comes with the program as a rule set, without reading it: a process that nobody asks needs none of it.
pub(crate) fn embedded_data() -> Value {
    let mut files: Vec<_> = embedded::FILES.to_vec();
    files.sort_unstable_by_key(|(name, _)| *name);
    written(files.into_iter())
}

fn data(documents: &[Document]) -> Value {
    let documents = documents.iter();
    written(documents.map(|document| (document.file(), document.text())))
}

fn written<'f>(files: impl Iterator<Item = (&'f str, &'f str)>) -> Value {
    let documents = files.map(|(name, text)| json!({ "name": name, "text": text }));
    json!({ "documents": documents.collect::<Vec<_>>() })
}

/// The same texts are the same library.
impl PartialEq for Library {
    fn eq(&self, other: &Self) -> bool {
        self.version() == other.version()
    }
}

impl TryFrom<Files> for Library {
    type Error = LibraryError;

    fn try_from(files: Files) -> Result<Self, LibraryError> {
        let files = files.documents.into_iter();
        Self::of(files.map(|file| (file.name, file.text)))
    }
}

impl RuleData for Library {
    const NAME: &'static str = NAME;
}
