//! A service that tools call: it keeps every request, and answers with its content.

use std::io::{BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A service on a free port of this machine, as long as the process runs.
pub(crate) struct Service {
    pub(crate) url: String,
    heard: Arc<Mutex<Vec<Heard>>>,
}

/// A request that arrived.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Heard {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

impl Service {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let heard = Arc::<Mutex<Vec<Heard>>>::default();
        let kept = heard.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = kept.clone();
                std::thread::spawn(move || serve(stream, &kept));
            }
        });
        Self {
            url: format!("http://{address}"),
            heard,
        }
    }

    /// Returns the requests that arrived so far.
    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().expect("nobody panics in it").clone()
    }
}

/// Answers the requests of a connection until it is closed.
fn serve(stream: TcpStream, kept: &Mutex<Vec<Heard>>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a socket can be shared"));
    let mut writer = stream;
    while let Some(heard) = read(&mut reader) {
        let body = if heard.body.is_empty() {
            "null"
        } else {
            &heard.body
        };
        let answer = format!("{{\"line\":\"{}\",\"sent\":{body}}}", heard.line);
        kept.lock().expect("nobody panics in it").push(heard);
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        if writer
            .write_all(format!("{head}{answer}").as_bytes())
            .is_err()
        {
            return;
        }
    }
}

fn read(reader: &mut impl std::io::BufRead) -> Option<Heard> {
    let mut line = String::new();
    if reader.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap_or(0));
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Heard {
        line: line.trim_end().to_owned(),
        headers,
        body: String::from_utf8(body).ok()?,
    })
}
