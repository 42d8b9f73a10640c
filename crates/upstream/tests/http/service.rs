//! A real HTTP service on a real socket, which behaves as badly as a test asks for.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use countersign_testkit::patience::within;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// A request as it arrived.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) method: String,
    /// Path and query, as they were sent.
    pub(crate) target: String,
    /// By lower-case name.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// One line: method, target and body.
    pub(crate) fn line(&self) -> String {
        format!("{} {} {}", self.method, self.target, self.text())
    }
}

/// Reaction of the service to a request.
pub(crate) enum Act {
    /// Answers with this status, these headers and this body.
    Answer(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// Writes these bytes, and goes on with the connection.
    Raw(Vec<u8>),
    /// Writes these bytes and closes the connection.
    Cut(Vec<u8>),
    /// Says nothing until the test lets it.
    Wait(Arc<Notify>),
    /// Answers with this JSON when the test lets it.
    Late(Arc<Notify>, Vec<u8>),
}

pub(crate) fn json(status: u16, body: &str) -> Act {
    let kind = vec![("content-type", "application/json".to_owned())];
    Act::Answer(status, kind, body.as_bytes().to_vec())
}

type Handler = Arc<dyn Fn(&Seen, usize) -> Act + Send + Sync>;

/// A running service.
pub(crate) struct Service {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    arrived: Arc<Notify>,
    connections: Arc<AtomicUsize>,
}

impl Service {
    /// A service that acts by a function of the request and of how many came before it.
    pub(crate) async fn start(
        handler: impl Fn(&Seen, usize) -> Act + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let arrived = Arc::new(Notify::new());
        let handler: Handler = Arc::new(handler);
        let connections = Arc::new(AtomicUsize::new(0));
        let (all, told, opened) = (seen.clone(), arrived.clone(), connections.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                opened.fetch_add(1, Ordering::SeqCst);
                let (handler, all, told) = (handler.clone(), all.clone(), told.clone());
                tokio::spawn(connection(stream, handler, all, told));
            }
        });
        Self {
            url,
            seen,
            arrived,
            connections,
        }
    }

    /// Returns the number of connections that were opened so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Every request so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The last request.
    pub(crate) fn last(&self) -> Seen {
        self.seen().pop().expect("a request")
    }

    /// Waits until a request has arrived.
    pub(crate) async fn arrival(&self) {
        within(self.arrived.notified()).await;
    }
}

async fn connection(
    mut stream: TcpStream,
    handler: Handler,
    all: Arc<Mutex<Vec<Seen>>>,
    arrived: Arc<Notify>,
) {
    while let Some(seen) = request(&mut stream).await {
        let before = {
            let mut all = all.lock().unwrap();
            all.push(seen.clone());
            all.len() - 1
        };
        arrived.notify_one();
        let is_head = seen.method == "HEAD";
        match handler(&seen, before) {
            Act::Answer(status, headers, body) => {
                let mut head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
                for (name, value) in headers {
                    head += &format!("{name}: {value}\r\n");
                }
                head += "\r\n";
                let mut bytes = head.into_bytes();
                if !is_head {
                    bytes.extend(body);
                }
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Act::Raw(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Act::Cut(bytes) => {
                let _ = stream.write_all(&bytes).await;
                let _ = stream.shutdown().await;
                return;
            }
            Act::Wait(notify) => notify.notified().await,
            Act::Late(notify, body) => {
                notify.notified().await;
                let head = format!("HTTP/1.1 200 X\r\ncontent-length: {}\r\n\r\n", body.len());
                if stream
                    .write_all(&[head.as_bytes(), &body].concat())
                    .await
                    .is_err()
                {
                    return;
                }
            }
        }
    }
}

async fn request(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let end = loop {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(end) = end {
            break end;
        }
        let mut chunk = [0; 4096];
        let read = stream
            .read(&mut chunk)
            .await
            .ok()
            .filter(|read| *read > 0)?;
        bytes.extend_from_slice(&chunk[..read]);
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let mut seen = Seen {
        method: first.next()?.to_owned(),
        target: first.next()?.to_owned(),
        ..Seen::default()
    };
    for line in lines {
        let (name, value) = line.split_once(':')?;
        seen.headers
            .insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length: usize = seen.header("content-length").parse().unwrap_or(0);
    let mut body = bytes[end + 4..].to_vec();
    while body.len() < length {
        let mut chunk = [0; 4096];
        let read = stream
            .read(&mut chunk)
            .await
            .ok()
            .filter(|read| *read > 0)?;
        body.extend_from_slice(&chunk[..read]);
    }
    seen.body = body;
    Some(seen)
}
