//! The issuer, as a process of its own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode};
use serde_json::Value;

/// A running issuer; it is killed when this is dropped.
pub(crate) struct Issuer {
    child: Child,
    pub(crate) port: u16,
    rs256: DecodingKey,
    eddsa: DecodingKey,
    issued: Arc<Mutex<Vec<Value>>>,
}

impl Issuer {
    pub(crate) fn start() -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/issuer/issuer.py");
        let mut child = Command::new("python3")
            .arg(script)
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 starts");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        let part = |name: &str| first[name].as_str().unwrap();
        let issued = Arc::new(Mutex::new(Vec::new()));
        let told = issued.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                told.lock()
                    .unwrap()
                    .push(serde_json::from_str(&line).unwrap());
            }
        });
        Self {
            child,
            port: u16::try_from(first["port"].as_u64().unwrap()).unwrap(),
            rs256: DecodingKey::from_rsa_components(part("n"), part("e")).unwrap(),
            eddsa: DecodingKey::from_ed_components(part("x")).unwrap(),
            issued,
        }
    }

    /// Returns the endpoint whose tokens are valid for this number of seconds.
    pub(crate) fn url(&self, seconds: u32) -> String {
        format!("http://127.0.0.1:{}/token/{seconds}", self.port)
    }

    /// Returns the number of tokens of a grant that were issued.
    pub(crate) fn issued(&self, grant: &str) -> usize {
        let issued = self.issued.lock().unwrap();
        issued.iter().filter(|it| it["grant"] == grant).count()
    }

    /// The claims of a token, if this issuer has signed it with this algorithm, for `svc`, and it has not expired.
    pub(crate) fn verified(&self, token: &str, algorithm: Algorithm) -> Option<Value> {
        let key = match algorithm {
            Algorithm::RS256 => &self.rs256,
            _ => &self.eddsa,
        };
        let mut rules = Validation::new(algorithm);
        rules.set_audience(&["svc"]);
        rules.leeway = 0;
        decode::<Value>(token, key, &rules).ok().map(|it| it.claims)
    }

    /// Fetches a token of a user, valid for this number of seconds.
    pub(crate) fn login(&self, user: &str, seconds: u32) -> String {
        let body = format!("grant_type=password&username={user}");
        let request = format!(
            "POST /token/{seconds} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        body["access_token"].as_str().unwrap().to_owned()
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
