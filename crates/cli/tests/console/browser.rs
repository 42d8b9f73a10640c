//! A real browser: Chromium without a screen, over the protocol of `WebDriver`.
//!
//! The protocol is a dozen JSON requests. The clients that there are for it bring a second HTTP stack and do not reach what
//! these tests are about: the log of the browser and its network events.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Timeout for a page to reach the expected state.
const PATIENCE: Duration = Duration::from_secs(20);

/// Errors that go away when the page has come to rest; nothing was clicked.
const UNSETTLED: [&str; 4] = [
    "element click intercepted",
    "element not interactable",
    "no such element",
    "stale element reference",
];

/// Maximum number of times that a driver is started: one that finds its port taken for IPv6 ends again.
const STARTS_MAX: usize = 5;

/// Starts a driver; its process and its port, or nothing if it ended at once.
fn driver() -> Option<(Child, String)> {
    let mut driver = Command::new("chromedriver")
        .arg("--port=0")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("chromedriver is there; `cargo xtask test` installs it (apt-get install chromium chromium-driver)");
    let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    let port = lines.by_ref().map_while(Result::ok).find_map(|line| {
        let port = line.split_once("successfully on port ")?.1;
        Some(port.trim_end_matches('.').to_owned())
    });
    let Some(port) = port else {
        driver.kill().ok();
        driver.wait().unwrap();
        return None;
    };
    // Whatever else it says has to go somewhere.
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
    Some((driver, port))
}

/// A browser with one window; it ends with the test.
pub(crate) struct Browser {
    driver: Child,
    runtime: tokio::runtime::Runtime,
    client: reqwest::Client,
    session: String,
}

impl Browser {
    /// Starts one. `cargo xtask test` installs what is missing.
    pub(crate) fn start(size: (u32, u32), dark: bool) -> Self {
        let (driver, port) = (0..STARTS_MAX)
            .find_map(|_| driver())
            .expect("it says which port it took");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let mut browser = Self {
            driver,
            runtime,
            client: reqwest::Client::builder()
                .no_proxy()
                .timeout(PATIENCE * 3)
                .build()
                .unwrap(),
            session: format!("http://127.0.0.1:{port}/session"),
        };
        let (width, height) = size;
        let begun = browser.post("", &json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            "goog:chromeOptions": {"args": [
                "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
                "--lang=en-US", format!("--window-size={width},{height}"),
            ]},
        }}}));
        let id = begun["sessionId"]
            .as_str()
            .unwrap_or_else(|| panic!("{begun}"));
        browser.session = format!("{}/{id}", browser.session);
        let scheme = if dark { "dark" } else { "light" };
        browser.devtools(
            "Emulation.setEmulatedMedia",
            &json!({"features": [
                {"name": "prefers-color-scheme", "value": scheme},
                {"name": "prefers-reduced-motion", "value": "reduce"},
            ]}),
        );
        browser.devtools(
            "Emulation.setDeviceMetricsOverride",
            &json!({
                "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
            }),
        );
        browser
    }

    pub(crate) fn open(&self, url: &str) {
        self.post("/url", &json!({"url": url}));
    }

    /// The address that is shown.
    pub(crate) fn address(&self) -> String {
        self.get("/url").as_str().unwrap().to_owned()
    }

    /// The value of an expression on the page.
    pub(crate) fn eval(&self, expression: &str) -> Value {
        self.post(
            "/execute/sync",
            &json!({"script": format!("return {expression}"), "args": []}),
        )
    }

    /// Runs a script on the page.
    pub(crate) fn eval_script(&self, script: &str) {
        self.post("/execute/sync", &json!({"script": script, "args": []}));
    }

    /// The value that a promise on the page is kept with.
    pub(crate) fn later(&self, promise: &str) -> Value {
        let script = format!(
            "const done = arguments[0]; ({promise}).then(done, error => done(String(error)))"
        );
        self.post("/execute/async", &json!({"script": script, "args": []}))
    }

    /// Waits until an expression is true.
    pub(crate) fn until(&self, expression: &str) {
        let begun = Instant::now();
        while self.eval(&format!("Boolean({expression})")) != json!(true) {
            if begun.elapsed() > PATIENCE {
                let page = self.eval("document.body.innerText");
                panic!(
                    "never became true: {expression}\n{}\n{page}",
                    self.address()
                );
            }
            std::thread::yield_now();
        }
    }

    /// Clicks an element as soon as it takes a click: while a page is laid out, the element may still move, be covered, or be replaced.
    pub(crate) fn click(&self, css: &str) {
        settled(css, || {
            let element = self.find(css);
            self.send_post(&format!("/element/{element}/click"), &json!({}))
        });
    }

    /// Clicks a button that leads to another page, and waits until that page is there.
    pub(crate) fn submit(&self, css: &str) {
        self.eval_script("window.isLeft = true");
        self.click(css);
        self.until("!window.isLeft && document.readyState === 'complete'");
    }

    /// Replaces what stands in a field.
    pub(crate) fn write(&self, css: &str, text: &str) {
        let element = self.find(css);
        self.post(&format!("/element/{element}/clear"), &json!({}));
        self.post(&format!("/element/{element}/value"), &json!({"text": text}));
    }

    /// Chooses a file in a field for files.
    pub(crate) fn attach(&self, css: &str, file: &std::path::Path) {
        let element = self.find(css);
        let path = file.canonicalize().unwrap();
        self.post(
            &format!("/element/{element}/value"),
            &json!({"text": path.to_str().unwrap()}),
        );
    }

    /// Presses a key wherever the focus is.
    pub(crate) fn press(&self, key: &str) {
        self.post(
            "/actions",
            &json!({"actions": [{"type": "key", "id": "keyboard", "actions": [
                {"type": "keyDown", "value": key}, {"type": "keyUp", "value": key},
            ]}]}),
        );
    }

    /// The page as a picture, PNG in base64.
    pub(crate) fn picture(&self) -> String {
        let shot = self.devtools("Page.captureScreenshot", &json!({"format": "png"}));
        shot["data"].as_str().unwrap().to_owned()
    }

    /// Errors of scripts, violations of the content security policy, and whatever else the browser complains of.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let entries = self.post("/se/log", &json!({"type": "browser"}));
        let entries = entries.as_array().unwrap().iter();
        let grave =
            entries.filter(|entry| entry["level"] == "SEVERE" || entry["level"] == "WARNING");
        grave.map(|entry| entry["message"].to_string()).collect()
    }

    /// Every address that was asked for since the last look.
    pub(crate) fn requests(&self) -> Vec<String> {
        let entries = self.post("/se/log", &json!({"type": "performance"}));
        let sent = entries.as_array().unwrap().iter().filter_map(|entry| {
            let message: Value = serde_json::from_str(entry["message"].as_str()?).ok()?;
            let message = &message["message"];
            (message["method"] == "Network.requestWillBeSent").then(|| {
                message["params"]["request"]["url"]
                    .as_str()
                    .map(str::to_owned)
            })?
        });
        sent.collect()
    }

    pub(crate) fn devtools(&self, command: &str, params: &Value) -> Value {
        self.post(
            "/goog/cdp/execute",
            &json!({"cmd": command, "params": params}),
        )
    }

    fn find(&self, css: &str) -> String {
        let wanted = json!({"using": "css selector", "value": css});
        let found = settled(css, || self.send_post("/element", &wanted));
        found
            .as_object()
            .unwrap()
            .values()
            .next()
            .unwrap()
            .as_str()
            .unwrap()
            .to_owned()
    }

    fn get(&self, path: &str) -> Value {
        let request = self.client.get(format!("{}{path}", self.session));
        good(self.send(request))
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        good(self.send_post(path, body))
    }

    /// The answer to a request, be it an error or not.
    fn send_post(&self, path: &str, body: &Value) -> Value {
        let request = self.client.post(format!("{}{path}", self.session));
        self.send(request.json(body))
    }

    fn send(&self, request: reqwest::RequestBuilder) -> Value {
        let answer: Value = self
            .runtime
            .block_on(async { request.send().await.unwrap().json().await.unwrap() });
        answer["value"].clone()
    }
}

/// The answer to a request that is sent again while the page is not at rest.
fn settled(css: &str, send: impl Fn() -> Value) -> Value {
    let begun = Instant::now();
    loop {
        let value = send();
        let Some(error) = value["error"].as_str() else {
            return value;
        };
        let is_over = begun.elapsed() > PATIENCE;
        assert!(UNSETTLED.contains(&error) && !is_over, "{css}: {value}");
        std::thread::yield_now();
    }
}

fn good(value: Value) -> Value {
    assert!(value.get("error").is_none(), "{value}");
    value
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The timer of a request wants to be made inside of the runtime.
        let request = self.client.delete(&self.session);
        let _ = self.runtime.block_on(async { request.send().await });
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
