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
    /// `None` if the issuer has no such key.
    eddsa: Option<DecodingKey>,
    issued: Arc<Mutex<Vec<Value>>>,
}

impl Issuer {
    /// Our own issuer.
    pub(crate) fn start() -> Self {
        Self::of(Command::new("python3").arg(script("issuer.py")))
    }

    /// The issuer `oidc-provider` of npm: its tokens are valid for this number of seconds, and its client proves itself by this method.
    pub(crate) fn oidc_provider(seconds: u32, method: &str) -> Self {
        let folder = set("COUNTERSIGN_TEST_ISSUER_NODE");
        let mut command = Command::new("node");
        command.args([&script("oidc_provider.mjs"), &folder]);
        // Its warnings are about production.
        command
            .args([&seconds.to_string(), method])
            .stderr(Stdio::null());
        Self::of(&mut command)
    }

    /// The issuer `idpyoidc` of the Python package index.
    pub(crate) fn idpyoidc() -> Self {
        let python = set("COUNTERSIGN_TEST_MCP_PYTHON");
        Self::of(Command::new(python).arg(script("idpyoidc_issuer.py")))
    }

    fn of(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .expect("the issuer starts");
        // Other lines are words for people.
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let lines = lines.map_while(Result::ok);
        let mut lines = lines.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
        let first = lines.next().expect("the issuer says where it is");
        let part = |name: &str| first[name].as_str().unwrap();
        let issued = Arc::new(Mutex::new(Vec::new()));
        let told = issued.clone();
        std::thread::spawn(move || {
            for line in lines {
                told.lock().unwrap().push(line);
            }
        });
        Self {
            child,
            port: u16::try_from(first["port"].as_u64().unwrap()).unwrap(),
            rs256: DecodingKey::from_rsa_components(part("n"), part("e")).unwrap(),
            eddsa: first["x"]
                .as_str()
                .map(|x| DecodingKey::from_ed_components(x).unwrap()),
            issued,
        }
    }

    /// Returns the endpoint whose tokens are valid for this number of seconds.
    pub(crate) fn url(&self, seconds: u32) -> String {
        format!("http://127.0.0.1:{}/token/{seconds}", self.port)
    }

    /// Returns the endpoint of an issuer of others.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}/token", self.port)
    }

    /// Returns the number of tokens of a grant that were issued.
    pub(crate) fn issued(&self, grant: &str) -> usize {
        let issued = self.issued.lock().unwrap();
        issued.iter().filter(|it| it["grant"] == grant).count()
    }

    /// Returns the audiences that were asked for with the tokens of a grant that were issued.
    pub(crate) fn audiences(&self, grant: &str) -> Vec<Value> {
        let issued = self.issued.lock().unwrap();
        let issued = issued.iter().filter(|it| it["grant"] == grant);
        issued.map(|it| it["audience"].clone()).collect()
    }

    /// The claims of a token, if this issuer has signed it with this algorithm, for `svc`, and it has not expired.
    pub(crate) fn verified(&self, token: &str, algorithm: Algorithm) -> Option<Value> {
        let key = match algorithm {
            Algorithm::RS256 => &self.rs256,
            _ => self.eddsa.as_ref()?,
        };
        let mut rules = Validation::new(algorithm);
        rules.set_audience(&["svc"]);
        rules.leeway = 0;
        decode::<Value>(token, key, &rules).ok().map(|it| it.claims)
    }

    /// The claims of a token of this issuer for any service.
    pub(crate) fn claims(&self, token: &str) -> Option<Value> {
        let mut rules = Validation::new(Algorithm::RS256);
        rules.validate_aud = false;
        let read = decode::<Value>(token, &self.rs256, &rules);
        read.ok().map(|it| it.claims)
    }

    /// Fetches a token of a user, valid for this number of seconds.
    pub(crate) fn login(&self, user: &str, seconds: u32) -> String {
        let body = format!("grant_type=password&username={user}");
        self.token_of(&format!("POST /token/{seconds}"), &body)
    }

    /// Fetches a token of a user from `idpyoidc`, as one of its clients is given it.
    pub(crate) fn login_elsewhere(&self, client: &str, user: &str) -> String {
        self.token_of(&format!("GET /login/{client}/{user}"), "")
    }

    fn token_of(&self, what: &str, body: &str) -> String {
        let request = format!(
            "{what} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
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

fn script(name: &str) -> String {
    format!("{}/tests/issuer/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn set(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!("{variable} is not set; `cargo xtask test` installs what it names, see xtask/src/clients.rs")
    })
}

impl Drop for Issuer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
