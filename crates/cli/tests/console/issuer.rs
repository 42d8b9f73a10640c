//! Signing in at an issuer that is a process of its own.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use countersign_testkit::patience::Watchdog;
use serde_json::{Value, json};

use super::browser::Browser;
use super::world::{Head, Person, World};

/// A running issuer; it ends with the test.
pub(crate) struct Issuer {
    child: Child,
    port: u64,
    pub(crate) name: String,
}

impl Issuer {
    pub(crate) fn start() -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/console/issuer.py");
        let python = std::env::var("COUNTERSIGN_TEST_PYTHON");
        let mut child = Command::new(python.as_deref().unwrap_or("python3"))
            .arg(script)
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 starts");
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        Self {
            child,
            port: said["port"].as_u64().unwrap(),
            name: said["issuer"].as_str().unwrap().to_owned(),
        }
    }

    /// A server whose people sign in here.
    pub(crate) fn server(&self) -> World {
        let world = World::configured(
            &format!(
                r#"
                [sign_in]
                issuer = "{0}"
                client_id = "console"
                client_secret = "file:client"
                scopes = ["openid", "offline_access"]
                audience = "countersign"

                [[policy.issuers]]
                issuer = "{0}"
                audience = "countersign"
                user_clients = ["console"]
                grants = ["calls:read"]
                clock_skew = "1s"

                [policy.defaults]
                unlisted = "allow"
                "#,
                self.name
            ),
            &[("client", "p@ss word\n")],
        );
        self.tell("return_to", &format!("{}/sign-in/return", world.url));
        world
    }

    /// Changes what the issuer does next; the grants that it was asked for so far.
    pub(crate) fn tell(&self, name: &str, value: &str) -> Vec<String> {
        let (_, body) = self.post("/test", &format!("{name}={}", encoded(value)));
        let said: Value = serde_json::from_str(&body).unwrap();
        let grants = said["grants"].as_array().unwrap().iter();
        grants.map(|it| it.as_str().unwrap().to_owned()).collect()
    }

    /// Logs a user in on the issuer's page; where it leads back to.
    fn log_in(&self, way: &str, user: &str) -> Result<String, String> {
        let path = way.strip_prefix(&self.name).unwrap();
        let (head, body) = self.post(path, &format!("user={user}"));
        match head.status {
            302 => Ok(head.of("location").to_owned()),
            _ => Err(body),
        }
    }

    fn post(&self, path: &str, body: &str) -> (Head, String) {
        let mut stream =
            TcpStream::connect(("127.0.0.1", u16::try_from(self.port).unwrap())).unwrap();
        let length = body.len();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (Head::read(head), body.to_owned())
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        write!(encoded, "%{byte:02X}").unwrap();
    }
    encoded
}

/// A browser that has begun a sign-in: its way to the issuer.
fn begun<'w>(world: &'w World, next: &str) -> (Person<'w>, String) {
    let mut person = Person::new(world);
    let (head, html) = person.get(&format!("/sign-in/issuer?next={}", encoded(next)));
    assert_eq!(head.status, 303, "{html}");
    let cookie = head.of("set-cookie");
    for part in ["HttpOnly", "SameSite=Lax", "Path=/sign-in", "Max-Age=600"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    person.keep(&head);
    (person, head.of("location").to_owned())
}

/// The answer to a return.
fn returned(world: &World, person: &Person<'_>, back: &str) -> (Head, String) {
    person.get(back.strip_prefix(&world.url).unwrap())
}

/// B20: a person signs in at the issuer by authorization code with PKCE, arrives at the page that they wanted, and is whom the issuer's token proves.
/// The code counts once, and a return that this browser did not ask for counts not at all.
#[test]
fn a_person_signs_in_at_the_issuer() {
    let issuer = Issuer::start();
    let world = issuer.server();
    let (mut person, way) = begun(&world, "/calls?code=OK");
    let back = issuer.log_in(&way, "ann").unwrap();

    // Somebody else's browser, another state, another issuer, and none of them.
    let stranger = Person::new(&world);
    assert_eq!(returned(&world, &stranger, &back).0.status, 403);
    let (other, _) = begun(&world, "/");
    assert_eq!(returned(&world, &other, &back).0.status, 403);
    for wrong in [
        back.replace("state=", "state=0"),
        back.replace("localhost", "localhos"),
        back.split("&iss=").next().unwrap().to_owned(),
        format!("{}/sign-in/return", world.url),
        format!("{}/sign-in/return?code=a&code=b&state=", world.url),
    ] {
        let (head, html) = returned(&world, &person, &wrong);
        assert!([400, 403].contains(&head.status), "{wrong}: {html}");
        assert!(!head.of("set-cookie").contains("countersign_session"));
    }

    let (head, html) = returned(&world, &person, &back);
    assert_eq!(head.status, 200, "{html}");
    assert!(html.contains("content=\"0;url=/calls?code=OK\""), "{html}");
    for cookie in head.all("set-cookie") {
        assert!(cookie.contains("HttpOnly"), "{cookie}");
        let is_session = cookie.starts_with("countersign_session=");
        assert!(
            !is_session || cookie.contains("SameSite=Strict"),
            "{cookie}"
        );
    }
    let mut later = person.clone();
    person.keep(&head);
    let (_, html) = person.get("/");
    assert!(html.contains("<b>ann</b>"), "{html}");
    // The policy lets this issuer's tokens see what operators see.
    assert_eq!(person.get("/settings").0.status, 200);
    later.keep(&head);
    let again = returned(&world, &later, &back);
    assert_eq!(again.0.status, 403, "a code counts once");
    assert_eq!(person.get("/").0.status, 200);
}

/// B20: no person gets in with a token that was made for another sign-in, another client, another server or an agent; and no browser is led to another site.
#[test]
fn what_does_not_fit_is_refused() {
    let issuer = Issuer::start();
    let world = issuer.server();
    for (fault, says) in [
        ("nonce", "does not answer as it should"),
        ("identity_audience", "does not answer as it should"),
        ("identity_over", "does not answer as it should"),
        ("at_hash", "does not answer as it should"),
        ("no_identity", "does not answer as it should"),
        ("forged", "does not answer as it should"),
        ("audience", "does not accept its token"),
        ("agent", "agent"),
        ("issuer", "not begun in this browser"),
    ] {
        issuer.tell("fault", fault);
        let (person, way) = begun(&world, "/");
        let back = issuer.log_in(&way, "ann").unwrap();
        let (head, html) = returned(&world, &person, &back);
        assert_eq!(head.status, 403, "{fault}: {html}");
        assert!(html.contains(says), "{fault}: {html}");
        assert!(
            !head.of("set-cookie").contains("countersign_session"),
            "{fault}"
        );
    }
    issuer.tell("fault", "none");
    for next in [
        "//evil.example",
        "https://evil.example/",
        "/\\evil.example",
        "/\r\nx: y",
    ] {
        let (person, way) = begun(&world, next);
        let back = issuer.log_in(&way, "ann").unwrap();
        let (_, html) = returned(&world, &person, &back);
        assert!(html.contains("content=\"0;url=/\""), "{next}: {html}");
    }
    // The issuer only leads back to the address that was registered.
    let (_, way) = begun(&world, "/");
    let elsewhere = way.replace("sign-in%2Freturn", "sign-in%2Felsewhere");
    assert_ne!(elsewhere, way);
    assert!(issuer.log_in(&elsewhere, "ann").is_err());
}

/// B20: a session outlives its access token while the issuer renews it, and ends when the issuer does not.
#[test]
fn a_session_lives_as_long_as_the_issuer_lets_it() {
    let issuer = Issuer::start();
    let world = issuer.server();
    let _watchdog = Watchdog::start();
    issuer.tell("life", "1");
    let (mut person, way) = begun(&world, "/");
    let back = issuer.log_in(&way, "ann").unwrap();
    let (head, _) = returned(&world, &person, &back);
    person.keep(&head);
    while !issuer
        .tell("life", "1")
        .contains(&"refresh_token".to_owned())
    {
        assert_eq!(person.get("/docs").0.status, 200);
    }
    issuer.tell("fault", "renewal");
    while person.get("/docs").0.status == 200 {}
    assert_eq!(person.get("/docs").0.status, 303);
    issuer.tell("fault", "");
    assert_eq!(person.get("/docs").0.status, 303, "it has ended for good");
}

/// B20: the same in a real browser, in which the issuer is another site; a person who declines there reads so.
#[test]
fn a_browser_goes_to_the_issuer_and_back() {
    let issuer = Issuer::start();
    let world = issuer.server();
    let browser = Browser::start((1280, 900), false);
    browser.open(&format!("{}/tools", world.url));
    browser.click("#issuer");
    browser.click("#decline");
    browser
        .until("document.querySelector('[role=alert]')?.innerText.includes('did not let you in')");
    browser.click("#issuer");
    browser.write("#user", "ann");
    browser.click("button");
    browser.until(
        "location.pathname === '/tools' && document.querySelector('.me b')?.innerText === 'ann'",
    );
    assert_eq!(browser.eval("document.cookie"), json!(""));
    let complaints = browser.complaints();
    let is_known = |text: &String| text.contains("403") || text.contains("favicon");
    assert!(complaints.iter().all(is_known), "{complaints:?}");
    browser.click(".me button");
    browser.until("location.pathname === '/sign-in'");
}

/// A configuration that would let no person in, or would take people for agents, is refused at the start and by `lint`.
#[test]
fn a_sign_in_that_cannot_work_is_refused() {
    let rule = |clients: &str| {
        format!(
            "[[policy.issuers]]\nissuer = 'https://id.example'\naudience = 'a'\nuser_clients = [{clients}]\n"
        )
    };
    let whole = "[sign_in]\nissuer = 'https://id.example'\nclient_id = 'console'\n";
    for (text, says) in [
        (whole.to_owned(), "no [[issuers]] entry"),
        (format!("{whole}{}", rule("")), "count as an agent"),
        (
            "[sign_in]\nissuer = 'https://id.example'\n".to_owned(),
            "it has no client_id",
        ),
        (
            "[sign_in]\nclient_id = 'console'\n".to_owned(),
            "belongs to an issuer",
        ),
        (
            format!(
                "{whole}client_secret = 'env:COUNTERSIGN_NO_SUCH'\n{}",
                rule("'console'")
            ),
            "COUNTERSIGN_NO_SUCH is not set",
        ),
    ] {
        for command in ["lint", "serve"] {
            let said = super::world::fails(&text, &[command]);
            assert!(said.contains(says), "{command}: {said}");
        }
    }
}
