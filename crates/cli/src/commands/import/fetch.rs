//! The text of a document: a file, or an answer of a server, with bounds on size and time.

use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use countersign_upstream::openapi::DOCUMENT_BYTES_MAX;
use reqwest::{Client, Response, Url, redirect};

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

/// Reads a document from a file or an address. While it is loaded from a server that says how long it is, `told` gets the bytes that are
/// there and the bytes of all.
pub(super) fn fetch(source: &str, told: &mut dyn FnMut(u64, u64)) -> Result<Fetched, Failure> {
    match Url::parse(source) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(download(url, told))
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

async fn download(url: Url, told: &mut dyn FnMut(u64, u64)) -> Result<Fetched, Failure> {
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
    let read = read(&mut answer, told).await.map_err(&failed)?;
    let bytes = read
        .ok_or_else(|| Failure::new(format!("{named} has more than {DOCUMENT_BYTES_MAX} bytes")))?;
    let text =
        String::from_utf8(bytes).map_err(|_| Failure::new(format!("{named} is not UTF-8")))?;
    Ok(Fetched {
        text,
        name: shown(&address),
        address: Some(address),
    })
}

/// The bytes of an answer; `None` if they are too many.
async fn read(
    answer: &mut Response,
    told: &mut dyn FnMut(u64, u64),
) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let length = answer.content_length().filter(|length| *length > 0);
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        if bytes.len() + chunk.len() > DOCUMENT_BYTES_MAX {
            return Ok(None);
        }
        bytes.extend_from_slice(&chunk);
        if let Some(length) = length {
            told(bytes.len() as u64, length);
        }
    }
    Ok(Some(bytes))
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

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;

    use super::*;

    /// A document whose length the server tells has an amount; one without has none.
    #[tokio::test]
    async fn a_download_tells_how_far_it_is() {
        let document = "openapi: 3.1.0\n";
        for (header, last) in [("content-length: 15\r\n", Some((15, 15))), ("", None)] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("http://{}/", listener.local_addr().unwrap());
            let answer = format!("HTTP/1.1 200 OK\r\n{header}connection: close\r\n\r\n{document}");
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 1024]).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
            });
            let client = Client::builder().no_proxy().build().unwrap();
            let mut answer = client.get(url).send().await.unwrap();
            let mut told = Vec::new();
            let bytes = read(&mut answer, &mut |done, all| told.push((done, all))).await;
            assert_eq!(bytes.unwrap().unwrap(), document.as_bytes());
            assert_eq!(told.last().copied(), last);
            server.join().unwrap();
        }
    }
}
