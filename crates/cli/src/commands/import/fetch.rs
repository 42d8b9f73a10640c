//! The text of a document: a file, or an answer of a server, with bounds on size and time.

use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use countersign_upstream::openapi::DOCUMENT_BYTES_MAX;
use reqwest::{Client, Url, redirect};

use crate::failure::Failure;

/// Longest time of a whole download.
const TIME_MAX: Duration = Duration::from_mins(1);

/// Most redirects that are followed.
const REDIRECTS_MAX: usize = 5;

/// A text and the address that it came from.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) text: String,
    /// The name under which entries show the document: no credential, no query.
    pub(super) name: String,
    pub(super) address: Option<Url>,
}

/// Reads a document from a file or an address.
pub(super) fn fetch(source: &str) -> Result<Fetched, Failure> {
    match Url::parse(source) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(download(url))
        }
        Ok(_) | Err(_) => file(Path::new(source)),
    }
}

/// Reads a document from a file.
pub(super) fn file(path: &Path) -> Result<Fetched, Failure> {
    let unreadable = |error| Failure::unreadable(path.display(), error);
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut text = String::new();
    let most = DOCUMENT_BYTES_MAX as u64 + 1;
    file.take(most)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    let name = path.file_name().unwrap_or(path.as_os_str());
    Ok(Fetched {
        text,
        name: name.to_string_lossy().into_owned(),
        address: None,
    })
}

async fn download(url: Url) -> Result<Fetched, Failure> {
    let client = Client::builder()
        .timeout(TIME_MAX)
        .redirect(redirect::Policy::limited(REDIRECTS_MAX))
        .build()?;
    let named = shown(&url);
    let failed = |error: reqwest::Error| {
        let context = format!("cannot fetch {named}");
        Failure::from(anyhow::Error::new(error.without_url()).context(context))
    };
    let answer = client.get(url).send().await.map_err(&failed)?;
    let mut answer = answer.error_for_status().map_err(&failed)?;
    let address = answer.url().clone();
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(&failed)? {
        if bytes.len() + chunk.len() > DOCUMENT_BYTES_MAX {
            let message = format!("{named} has more than {DOCUMENT_BYTES_MAX} bytes");
            return Err(Failure::new(message));
        }
        bytes.extend_from_slice(&chunk);
    }
    let text =
        String::from_utf8(bytes).map_err(|_| Failure::new(format!("{named} is not UTF-8")))?;
    Ok(Fetched {
        text,
        name: shown(&address),
        address: Some(address),
    })
}

/// An address without what may be secret.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // These fail for addresses that have no host, which no download has.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}
