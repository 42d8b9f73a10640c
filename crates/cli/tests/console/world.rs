//! A server on a folder of its own, and a person who asks it as a browser does.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};

use countersign_testkit::patience::Watchdog;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::past::Past;

/// Pages without a name in their path.
pub(crate) const PAGES: [&str; 14] = [
    "/",
    "/approvals",
    "/grants",
    "/in-doubt",
    "/notifications",
    "/calls",
    "/tools",
    "/upstreams",
    "/evidence",
    "/policy",
    "/policy/report",
    "/errors",
    "/settings",
    "/docs",
];

/// A running server; it ends with the test.
pub(crate) struct World {
    folder: TempDir,
    words: Vec<String>,
    child: Child,
    pub(crate) url: String,
    address: String,
    _watchdog: Watchdog,
}

impl World {
    pub(crate) fn start(words: &[&str]) -> Self {
        Self::in_folder(tempfile::tempdir().unwrap(), words, None)
    }

    /// One with a configuration, and with files beside it that only the owner may read.
    pub(crate) fn configured(text: &str, files: &[(&str, &str)]) -> Self {
        Self::with_past(text, files, None)
    }

    /// The same with another time of day.
    pub(crate) fn with_past(text: &str, files: &[(&str, &str)], past: Option<&Past>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("countersign.toml");
        std::fs::write(&config, text).unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        let config = config.to_str().unwrap().to_owned();
        Self::in_folder(folder, &["--config", &config], past)
    }

    fn in_folder(folder: TempDir, words: &[&str], past: Option<&Past>) -> Self {
        let watchdog = Watchdog::start();
        let given = words.iter().map(ToString::to_string).collect();
        let words = [&["serve", "--json", "--listen", "127.0.0.1:0"], words].concat();
        let mut program = command(&folder, &words);
        if let Some(past) = past {
            past.apply(&mut program);
        }
        let mut child = program
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let url = said["url"].as_str().unwrap().to_owned();
        assert_eq!(said["console_url"], format!("{url}/"));
        Self {
            folder,
            words: given,
            child,
            address: url.trim_start_matches("http://").to_owned(),
            url,
            _watchdog: watchdog,
        }
    }

    /// A file of the data folder.
    pub(crate) fn data(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join("data").join(name)
    }

    /// The same server again, after its store was changed while it was not in use.
    pub(crate) fn restarted(mut self, change: impl FnOnce(&std::path::Path)) -> Self {
        let _ = self.child.kill();
        let _ = self.child.wait();
        change(&self.folder.path().join("data"));
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap());
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        Self::in_folder(folder, &words, None)
    }

    /// A person who has signed in with a key.
    pub(crate) fn person(&self, key: &str) -> Person<'_> {
        let mut person = Person::new(self);
        let (head, html) = person.post("/sign-in", &[("key", key)]);
        assert_eq!(head.status, 303, "{html}");
        person.keep(&head);
        person
    }

    /// The shape of the questions that its operator can answer together.
    pub(crate) fn shape(&self) -> String {
        let (_, html) = self.operator().get("/approvals");
        let shape = html.split_once("/approvals?shape=").unwrap().1;
        shape.split_once('"').unwrap().0.to_owned()
    }

    /// Lets a program find the command and the data of this server.
    pub(crate) fn in_place(&self, program: &mut Command) {
        let command = std::path::Path::new(env!("CARGO_BIN_EXE_countersign"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let own = command.parent().unwrap().to_owned();
        let folders = std::iter::once(own).chain(std::env::split_paths(&path));
        program
            .env("PATH", std::env::join_paths(folders).unwrap())
            .env("COUNTERSIGN_DATA", self.folder.path().join("data"))
            .env("COUNTERSIGN_OPERATOR", "tester")
            .env_remove("COUNTERSIGN_STORE")
            .env_remove("COUNTERSIGN_MASTER_KEY")
            .env_remove("http_proxy")
            .env_remove("HTTP_PROXY");
    }

    /// Output of a command.
    pub(crate) fn run(&self, words: &[&str]) -> String {
        let output = command(&self.folder, words).output().unwrap();
        assert!(
            output.status.success(),
            "{words:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout)
            .unwrap()
            .trim_end()
            .to_owned()
    }

    /// The complaint of a command that refuses.
    pub(crate) fn refused(&self, words: &[&str]) -> String {
        let output = command(&self.folder, words).output().unwrap();
        assert!(!output.status.success(), "{words:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    /// A call over the API.
    pub(crate) fn call(&self, tool: &str, body: &Value, key: Option<&str>) -> Value {
        let headers = key.map(|key| ("authorization", format!("Bearer {key}")));
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let (_, text) = self.ask(
            "POST",
            &format!("/v1/tools/{tool}"),
            &headers,
            &body.to_string(),
        );
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// An answer of the API to a caller on this machine.
    pub(crate) fn api(&self, path: &str) -> (Head, String) {
        self.ask("GET", path, &[], "")
    }

    /// The newest call, as the operator sees it.
    pub(crate) fn newest_call(&self) -> Value {
        let listed = self.run(&["calls", "--limit", "1", "--json"]);
        let listed: Value = serde_json::from_str(&listed).unwrap();
        let first = listed.get("calls").unwrap_or(&listed)[0].clone();
        json!({
            "request_id": first["request_id"],
            "evidence": first.get("evidence").or(first.get("id")).cloned(),
        })
    }

    /// The way in which the newest call was made.
    pub(crate) fn newest_call_manner(&self) -> String {
        let (_, text) = self.ask("GET", "/v1/calls?limit=1", &[], "");
        let listed: Value = serde_json::from_str(&text).unwrap();
        listed["calls"][0]["manner"].as_str().unwrap().to_owned()
    }

    /// A visit of one session: from a search to a chosen way of shipping, which rests on what was quoted. `before` is called before
    /// each of its calls.
    pub(crate) fn visit(&self, session: &str, key: Option<&str>, before: &mut dyn FnMut()) {
        let mut call = |tool: &str, arguments: Value| {
            before();
            let body = json!({"arguments": arguments, "user_id": "u_anna", "session_id": session});
            self.call(tool, &body, key)
        };
        call(
            "catalog.search_offers",
            json!({"query": "desk lamp", "limit": 3}),
        );
        call("catalog.get_availability", json!({"sku": "SKU-0002-01"}));
        let items = json!([{"sku": "SKU-0002-01", "quantity": 2}]);
        let to = json!({"country": "DE", "postal_code": "10115"});
        let quoted = call(
            "shipping.quote_options",
            json!({"items": items, "destination": to}),
        );
        let made = call("cart.create", json!({}));
        let cart = made["data"]["cart_id"].clone();
        call(
            "cart.add_item",
            json!({"cart_id": cart, "sku": "SKU-0002-01", "quantity": 2}),
        );
        call(
            "checkout.select_shipping_option",
            json!({
                "cart_id": cart,
                "shipping_snapshot_id": quoted["evidence"]["snapshot_id"],
                "shipping_option_id": quoted["data"]["options"][0]["option_id"],
            }),
        );
    }

    /// A call whose arguments had to be repaired.
    pub(crate) fn newest_repaired(&self, key: Option<&str>) -> String {
        let text = "{items: [{sku: 'SKU-0002-01', quantity: '2'}], destination: {country: 'de', postal_code: 10115,},}";
        let reply = self.call(
            "shipping.quote_options",
            &json!({"arguments": text, "user_id": "u_anna"}),
            key,
        );
        reply["request_id"].as_str().unwrap().to_owned()
    }

    /// Calls that worked, were refused, were repaired, repeated, and wait for a person.
    pub(crate) fn busy(&self) {
        self.call(
            "notes.add",
            &json!({"arguments": {"text": "call the bank"}, "idempotency_key": "k1"}),
            None,
        );
        self.call(
            "notes.add",
            &json!({"arguments": {"text": "call the bank"}, "idempotency_key": "k1"}),
            None,
        );
        self.call(
            "notes.add",
            &json!({"arguments": {"text": "renew the passport"}, "dry_run": true}),
            None,
        );
        self.call(
            "catalog.search_offers",
            &json!({"arguments": "{query: 'wireless earbuds', limit: '3',}"}),
            None,
        );
        self.call(
            "catalog.search_offers",
            &json!({"arguments": {"query": "earbuds", "limit": "many"}}),
            None,
        );
        self.call("notes.clear", &json!({"arguments": {}}), None);
    }

    /// A person who has opened the link of the command.
    pub(crate) fn operator(&self) -> Person<'_> {
        let link = self.run(&["console"]);
        let token = link.split_once("link=").unwrap().1.to_owned();
        let mut person = Person::new(self);
        let (head, _) = person.post("/sign-in", &[("link", &token)]);
        assert_eq!(head.status, 303);
        person.keep(&head);
        person
    }

    fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (Head, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let mut text = format!(
            "{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n",
            body.len()
        );
        if !headers.iter().any(|(name, _)| *name == "host") {
            write!(text, "host: {}\r\n", self.address).unwrap();
        }
        for (name, value) in headers {
            write!(text, "{name}: {value}\r\n").unwrap();
        }
        write!(stream, "{text}\r\n{body}").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        // A tile is no text; nobody looks into it here.
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let head = Head::read(head);
        let body = match head.of("transfer-encoding") {
            "chunked" => unchunked(body),
            _ => body.to_owned(),
        };
        (head, body)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The complaint of a command that cannot work with a configuration.
pub(crate) fn fails(text: &str, words: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("countersign.toml");
    std::fs::write(&config, text).unwrap();
    let words = [words, &["--config", config.to_str().unwrap()]].concat();
    let output = command(&folder, &words).output().unwrap();
    assert!(!output.status.success());
    [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8(bytes).unwrap())
        .concat()
}

fn command(folder: &TempDir, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command
        .args(words)
        .env("COUNTERSIGN_DATA", folder.path().join("data"))
        .env("COUNTERSIGN_OPERATOR", "tester")
        .env_remove("COUNTERSIGN_STORE")
        .env_remove("COUNTERSIGN_MASTER_KEY");
    command
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        whole.push_str(&rest[..length]);
        body = rest[length..].trim_start_matches("\r\n");
    }
    whole
}

/// Status and headers of an answer.
pub(crate) struct Head {
    pub(crate) status: u16,
    headers: BTreeMap<String, Vec<String>>,
}

impl Head {
    pub(crate) fn read(text: &str) -> Self {
        let mut lines = text.lines();
        let status = lines
            .next()
            .unwrap()
            .split(' ')
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        let mut headers: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in lines {
            let (name, value) = line.split_once(':').unwrap();
            let values = headers.entry(name.to_lowercase()).or_default();
            values.push(value.trim().to_owned());
        }
        Self { status, headers }
    }

    /// The first header of a name.
    pub(crate) fn of(&self, name: &str) -> &str {
        self.all(name).first().map_or("", String::as_str)
    }

    /// All headers of a name.
    pub(crate) fn all(&self, name: &str) -> &[String] {
        self.headers.get(name).map_or(&[], Vec::as_slice)
    }
}

/// A browser without a screen: it keeps cookies and the token of its session.
#[derive(Clone)]
pub(crate) struct Person<'w> {
    world: &'w World,
    cookies: Vec<String>,
}

impl<'w> Person<'w> {
    pub(crate) fn new(world: &'w World) -> Self {
        Self {
            world,
            cookies: Vec::new(),
        }
    }

    pub(crate) fn get(&self, path: &str) -> (Head, String) {
        self.with_header("x-none", "none", path)
    }

    pub(crate) fn with_header(&self, name: &str, value: &str, path: &str) -> (Head, String) {
        let cookies = self.cookies.join("; ");
        let headers = [("accept", "text/html"), ("cookie", &cookies), (name, value)];
        self.world.ask("GET", path, &headers, "")
    }

    /// Looks at a page and keeps the session that begins there.
    pub(crate) fn visit(&mut self, path: &str) {
        let (head, _) = self.get(path);
        self.keep(&head);
    }

    /// A form as it is, without the session's token.
    pub(crate) fn post(&self, path: &str, fields: &[(&str, &str)]) -> (Head, String) {
        let encoded = |text: &str| {
            let mut encoded = String::new();
            for byte in text.bytes() {
                write!(encoded, "%{byte:02X}").unwrap();
            }
            encoded
        };
        let fields = fields
            .iter()
            .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)));
        let body = fields.collect::<Vec<_>>().join("&");
        let cookies = self.cookies.join("; ");
        let headers = [
            ("accept", "text/html"),
            ("cookie", &*cookies),
            ("content-type", "application/x-www-form-urlencoded"),
            ("origin", &*self.world.url),
        ];
        self.world.ask("POST", path, &headers, &body)
    }

    /// A form of a page, with the token that stands there.
    pub(crate) fn send(&mut self, path: &str, fields: &[(&str, &str)]) -> (Head, String) {
        let (_, page) = self.get("/tools/notes.add");
        let token = page.split_once("name=\"csrf\" value=\"").unwrap().1;
        let token = token.split_once('"').unwrap().0.to_owned();
        let mut fields = fields.to_vec();
        fields.push(("csrf", &token));
        self.post(path, &fields)
    }

    pub(crate) fn keep(&mut self, head: &Head) {
        for cookie in head.all("set-cookie") {
            let cookie = cookie.split(';').next().unwrap_or_default();
            self.cookies.push(cookie.to_owned());
        }
    }
}
