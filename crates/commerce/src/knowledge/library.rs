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

/// The maximum number of documents.
const DOCUMENTS_MAX: usize = 1_000;

/// The shop's knowledge base, in one version.
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

/// The library as it is written in a rule set.
#[derive(Deserialize)]
struct Files {
    documents: Vec<File>,
}

#[derive(Deserialize)]
struct File {
    name: String,
    text: String,
}

/// The reason why texts are not a valid library.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// A file or folder cannot be read, or a file is not UTF-8. Usually the path is wrong or the process has no
    /// permission.
    #[error("{path} cannot be read")]
    Read {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file is not a valid document. Usually its first line lacks a field.
    #[error("the document {file} cannot be used: {problem}")]
    Invalid {
        /// The name of the file.
        file: String,
        /// The problem.
        problem: String,
    },
    /// Two documents have the same id. Usually one was copied from the other.
    #[error("there are two documents with the id {id:?}")]
    Twice {
        /// The id.
        id: String,
    },
    /// The library has no documents, or too many. Usually another folder was given.
    #[error(
        "there are {count} documents; between 1 and {DOCUMENTS_MAX} are needed, each a file that ends in .md"
    )]
    Count {
        /// The number of documents.
        count: usize,
    },
    /// The documents cannot be made into a search corpus. Usually a document is too long, or two have the same name.
    #[error("the documents cannot be searched")]
    Corpus(#[from] CorpusError),
    /// The documents have no canonical form; a bug.
    #[error("the documents cannot be written")]
    Unwritable(#[from] canonical::Error),
}

impl Library {
    /// The documents of the program.
    pub fn embedded() -> Result<Self, LibraryError> {
        let files = embedded::FILES.iter();
        Self::of(files.map(|(name, text)| ((*name).to_owned(), (*text).to_owned())))
    }

    /// The files of a folder with the extension `.md`, without those of its subfolders.
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

    /// A library of files with their names.
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

    /// Every document, in the order of the file names.
    pub fn documents(&self) -> &[Document] {
        &self.documents
    }

    /// The document with this id.
    pub fn document(&self, id: &str) -> Option<&Document> {
        self.documents.iter().find(|document| document.id == id)
    }

    /// The chunk with this id, and its document.
    pub fn chunk(&self, id: &str) -> Option<(&Document, &Chunk)> {
        let (document, chunk) = self.by_chunk.get(id)?;
        let document = self.documents.get(*document)?;
        Some((document, document.chunks().get(*chunk)?))
    }

    /// The languages of the documents.
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

/// The documents of the program as a rule set, without parsing them: most processes never need them.
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

/// Two libraries are equal if their versions are.
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
