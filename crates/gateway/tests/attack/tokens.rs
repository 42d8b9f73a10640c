//! Tokens and keys that are invalid, or prove another user than they seem to (A3).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_testkit::patience::until;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

use crate::case::{Case, Expected, Request, Tally, UNAUTHORIZED, case};
use crate::issuers::{AUDIENCE, CORP, HOME, claims, signed, unsigned};
use crate::world::NOW;
use crate::world::{Backing, World};

const HARM: &str = "a note in the name of ann";

/// A3: only a valid credential proves anything, over HTTP and over MCP.
pub(crate) async fn attack(backing: Backing) -> Tally {
    let world = World::start(backing).await;
    let mut tally = Tally::new("tokens");
    let fetched = Trap::set().await;
    let groups = [
        ("algorithms", algorithms(&world)),
        ("headers", headers(&world, &fetched.url)),
        ("claims", wrong_claims(&world)),
        ("actors", actors(&world)),
        ("forms", forms(&world)),
        ("keys", api_keys(&world)),
    ];
    for (group, tokens) in groups {
        let cases = tokens.iter().map(|(name, token)| by_http(name, token));
        tally.run(&world, group, cases.collect()).await;
        // The same credentials over MCP.
        let cases = tokens.iter().map(|(name, token)| by_mcp(name, token));
        tally.run(&world, group, cases.collect()).await;
    }
    tally
        .run(&world, "other places", other_places(&world))
        .await;
    tally.run(&world, "other users", other_users(&world)).await;
    tally.check("keys that a token names are not fetched", fetched.hits(), 0);
    known(&world, &mut tally).await;
    tally
}

/// An accepted token is not accepted for ever, and does not help any other one.
async fn known(world: &World, tally: &mut Tally) {
    let home = world
        .issuers
        .by_home(&json!({"sub": "zoe", "exp": NOW + 3_000}));
    let short = world.issuers.by_corp(&json!({"sub": "zoe"}));
    let list = Request::call("notes.list", &json!({"arguments": {}}));
    let status = async |token: &str| world.honest(&list.clone().by(token)).await.status;
    let accepted = [
        status(&home).await,
        status(&home).await,
        status(&short).await,
    ];
    tally.check("tokens that are accepted", accepted, [200; 3]);
    let (message, signature) = home.rsplit_once('.').unwrap();
    let (_, other) = short.rsplit_once('.').unwrap();
    let claims = home.split('.').nth(1).unwrap();
    let others = short.split('.').nth(1).unwrap();
    for (name, token) in [
        ("the signature of another", format!("{message}.{other}")),
        ("the claims of another", home.replace(claims, others)),
        (
            "a signature written otherwise",
            format!("{message}.{signature}="),
        ),
        ("no signature", format!("{message}.")),
    ] {
        tally.check(
            &format!("a token that is known, with {name}"),
            status(&token).await,
            401,
        );
    }
    world.parts.clock.advance(Duration::from_mins(11));
    tally.check("a token that has ended since", status(&short).await, 401);
    world.withdraw_keys("home");
    until(async || status(&home).await == 401).await;
    tally.check("a token whose key was withdrawn", status(&home).await, 401);
    tally.stands(world, "tokens that were accepted").await;
}

type Named = (String, String);

fn by_http(name: &str, token: &str) -> Case {
    let call = Request::call("notes.add", &json!({"arguments": {"text": "forged"}}));
    case(name, call.by(token), UNAUTHORIZED, HARM)
}

fn by_mcp(name: &str, token: &str) -> Case {
    let params = json!({"name": "notes_add", "arguments": {"text": "forged"}});
    let call = Request::mcp("tools/call", params).by(token);
    case(
        format!("{name} (MCP)"),
        call,
        Expected::Rpc(401, -32001),
        HARM,
    )
}

fn named<const N: usize>(tokens: [(&str, String); N]) -> Vec<Named> {
    let tokens = tokens.into_iter();
    tokens
        .map(|(name, token)| (name.to_owned(), token))
        .collect()
}

fn good(world: &World) -> String {
    world.issuers.by_home(&json!({}))
}

/// Tokens that choose their own algorithm.
fn algorithms(world: &World) -> Vec<Named> {
    let issuers = &world.issuers;
    let said = claims(HOME, &json!({})).to_string();
    let of = |header: Value| unsigned(&header.to_string(), &said);
    let shared = |secret: &str, algorithm: Algorithm| {
        let mut header = Header::new(algorithm);
        header.kid = Some("home".to_owned());
        let key = EncodingKey::from_secret(secret.as_bytes());
        encode(&header, &claims(HOME, &json!({})), &key).unwrap()
    };
    let public = issuers.home.public();
    let x = public["x"].as_str().unwrap();
    let raw = URL_SAFE_NO_PAD.decode(x).unwrap();
    let raw = String::from_utf8_lossy(&raw).into_owned();
    let signature = good(world).rsplit_once('.').unwrap().1.to_owned();
    let zeros = URL_SAFE_NO_PAD.encode([0; 64]);
    let es = json!({"alg": "ES256", "kid": "home-es"});
    named([
        ("alg none", of(json!({"alg": "none"})) + "."),
        ("alg nOnE", of(json!({"alg": "nOnE", "typ": "JWT"})) + "."),
        (
            "alg none with a signature",
            format!("{}.{signature}", of(json!({"alg": "none"}))),
        ),
        ("no alg", of(json!({"typ": "JWT", "kid": "home"})) + "."),
        ("an unknown alg", of(json!({"alg": "XX999"})) + ".AA"),
        ("alg as a list", of(json!({"alg": ["EdDSA"]})) + ".AA"),
        ("HS256 with the public key", shared(x, Algorithm::HS256)),
        ("HS256 with its bytes", shared(&raw, Algorithm::HS256)),
        (
            "HS512 with the set of keys",
            shared(&public.to_string(), Algorithm::HS512),
        ),
        ("HS256 without a secret", shared("", Algorithm::HS256)),
        (
            "the name of one key, the algorithm of another",
            signed(&issuers.home, r#"{"alg":"ES256","kid":"home"}"#, &said),
        ),
        (
            "another key of the issuer",
            signed(&issuers.home, &es.to_string(), &said),
        ),
        (
            "a signature of zeros",
            format!("{}.{zeros}", of(es.clone())),
        ),
        (
            "RS256 over the other key",
            signed(&issuers.home, r#"{"alg":"RS256","kid":"home"}"#, &said),
        ),
        (
            "the key of nobody",
            issuers.stranger.token(&claims(HOME, &json!({}))),
        ),
        (
            "the key of the other issuer",
            issuers.corp.token(&claims(HOME, &json!({}))),
        ),
    ])
}

/// Headers that name a key, or say that something has to be understood.
fn headers(world: &World, trap: &str) -> Vec<Named> {
    let (home, stranger) = (&world.issuers.home, &world.issuers.stranger);
    let said = claims(HOME, &json!({})).to_string();
    let by_stranger = |header: Value| signed(stranger, &header.to_string(), &said);
    let by_home = |header: Value| signed(home, &header.to_string(), &said);
    let jwk = stranger.public();
    named([
        (
            "kid with a path",
            by_stranger(json!({"alg": "EdDSA", "kid": "../../../dev/null"})),
        ),
        (
            "kid with SQL",
            by_stranger(json!({"alg": "EdDSA", "kid": "home' OR '1'='1"})),
        ),
        (
            "kid is empty",
            by_stranger(json!({"alg": "EdDSA", "kid": ""})),
        ),
        (
            "kid with a NUL",
            by_stranger(json!({"alg": "EdDSA", "kid": "home\0"})),
        ),
        (
            "kid of another case",
            by_home(json!({"alg": "EdDSA", "kid": "HOME"})),
        ),
        (
            "kid as a number",
            by_home(json!({"alg": "EdDSA", "kid": 1})),
        ),
        (
            "kid of 4 KiB",
            by_home(json!({"alg": "EdDSA", "kid": "k".repeat(4096)})),
        ),
        (
            "no kid, a key of nobody",
            by_stranger(json!({"alg": "EdDSA"})),
        ),
        (
            "jku",
            by_stranger(json!({"alg": "EdDSA", "kid": "x", "jku": trap})),
        ),
        (
            "x5u",
            by_stranger(json!({"alg": "EdDSA", "kid": "x", "x5u": trap})),
        ),
        ("jwk", by_stranger(json!({"alg": "EdDSA", "jwk": jwk}))),
        ("x5c", by_stranger(json!({"alg": "EdDSA", "x5c": ["MIIB"]}))),
        (
            "crit",
            by_home(json!({"alg": "EdDSA", "kid": "home", "crit": ["exp"]})),
        ),
        (
            "b64",
            by_home(json!({"alg": "EdDSA", "kid": "home", "b64": false, "crit": ["b64"]})),
        ),
        (
            "a logout token",
            by_home(json!({"alg": "EdDSA", "kid": "home", "typ": "logout+jwt"})),
        ),
        (
            "a token about a token",
            by_home(json!({"alg": "EdDSA", "kid": "home", "typ": "dpop+jwt"})),
        ),
        (
            "alg twice",
            signed(home, r#"{"alg":"none","alg":"EdDSA","kid":"home"}"#, &said),
        ),
        (
            "a header that is a list",
            signed(home, r#"["EdDSA"]"#, &said),
        ),
    ])
}

/// Claims with a wrong audience, a wrong time, or no subject.
fn wrong_claims(world: &World) -> Vec<Named> {
    let home = |more: Value| world.issuers.by_home(&more);
    let text = |claims: &str| {
        signed(
            &world.issuers.home,
            r#"{"alg":"EdDSA","kid":"home"}"#,
            claims,
        )
    };
    let nested = good(world);
    let twice = format!(
        r#"{{"iss":"{CORP}","iss":"{HOME}","aud":"{AUDIENCE}","sub":"ann","exp":{}}}"#,
        NOW + 300
    );
    let subjects = format!(
        r#"{{"iss":"{HOME}","aud":"{AUDIENCE}","sub":"bob","sub":"ann","exp":{}}}"#,
        NOW + 300
    );
    let infinite = format!(r#"{{"iss":"{HOME}","aud":"{AUDIENCE}","sub":"ann","exp":1e400}}"#);
    named([
        ("over", home(json!({"exp": NOW - 61}))),
        ("no end", home(json!({"exp": null}))),
        ("an end in words", home(json!({"exp": "2027-01-01"}))),
        (
            "an end as text",
            home(json!({"exp": (NOW + 300).to_string()})),
        ),
        (
            "an end in the year 5138",
            home(json!({"exp": 99_999_999_999_i64})),
        ),
        ("an end before time", home(json!({"exp": -1}))),
        ("an end beyond numbers", text(&infinite)),
        (
            "an end beyond a second more than an hour",
            home(json!({"exp": NOW + 3_700})),
        ),
        ("not yet", home(json!({"nbf": NOW + 120}))),
        ("nbf as text", home(json!({"nbf": "0"}))),
        ("made in the future", home(json!({"iat": NOW + 120}))),
        (
            "for another server",
            home(json!({"aud": "https://other.example.com"})),
        ),
        (
            "for a server that begins alike",
            home(json!({"aud": format!("{AUDIENCE}.evil.example")})),
        ),
        ("for nobody", home(json!({"aud": null}))),
        ("for no one of a list", home(json!({"aud": []}))),
        ("for an object", home(json!({"aud": {AUDIENCE: true}}))),
        (
            "of an issuer that nobody knows",
            home(json!({"iss": "https://evil.example/"})),
        ),
        (
            "of an issuer without its slash",
            home(json!({"iss": "https://home.example"})),
        ),
        ("of another issuer than its key", home(json!({"iss": CORP}))),
        ("of a list of issuers", home(json!({"iss": [HOME]}))),
        ("of two issuers", text(&twice)),
        ("of two subjects", text(&subjects)),
        ("a token in a token", text(&json!(nested).to_string())),
        ("claims that are a list", text("[]")),
        ("claims that are no JSON", text("sub=ann")),
    ])
}

/// Subjects, actors and applications that name another user.
fn actors(world: &World) -> Vec<Named> {
    let home = |more: Value| world.issuers.by_home(&more);
    let chain = |depth| {
        (0..depth).fold(
            json!({"sub": "a"}),
            |act, _| json!({"sub": "a", "act": act}),
        )
    };
    let subjects = [
        ("", "empty"),
        (" ann", "space"),
        ("ann\u{0}", "NUL"),
        ("a\u{202e}nn", "bidi"),
        ("ann\u{200b}", "zero width"),
        ("\u{feff}ann", "BOM"),
        ("ann\u{e0001}", "tag"),
        ("corp::ann", "a realm"),
        ("home::ann", "the realm home"),
        ("agent/shopper", "a program"),
        ("system/desk", "a system"),
    ];
    let mut tokens: Vec<Named> = subjects
        .map(|(sub, name)| (format!("sub: {name}"), home(json!({"sub": sub}))))
        .into();
    tokens.push((
        "sub of 256".to_owned(),
        home(json!({"sub": "a".repeat(256)})),
    ));
    for (name, claims) in [
        ("sub null", json!({"sub": null})),
        ("sub a number", json!({"sub": 7})),
        ("sub a list", json!({"sub": ["ann"]})),
        ("act null", json!({"act": null})),
        ("act a text", json!({"act": "shopper"})),
        ("act a list", json!({"act": [{"sub": "shopper"}]})),
        ("act without a name", json!({"act": {}})),
        ("act a number", json!({"act": {"sub": 7}})),
        (
            "act of another realm",
            json!({"act": {"sub": "corp::shopper"}}),
        ),
        ("act hidden", json!({"act": {"sub": "shop\u{2066}per"}})),
        (
            "act behind act is a text",
            json!({"act": {"sub": "a", "act": "b"}}),
        ),
        ("a chain of nine", json!({"act": chain(8)})),
        ("client_id a list", json!({"client_id": ["console"]})),
        ("client_id null", json!({"client_id": null})),
        ("azp a number", json!({"client_id": "console", "azp": 1})),
    ] {
        tokens.push((name.to_owned(), home(claims)));
    }
    tokens
}

/// Texts that are not tokens.
fn forms(world: &World) -> Vec<Named> {
    let good = good(world);
    let parts: Vec<&str> = good.split('.').collect();
    let (head, body, signature) = (parts[0], parts[1], parts[2]);
    let other = world.issuers.by_home(&json!({"sub": "bob"}));
    let others: Vec<&str> = other.split('.').collect();
    named([
        (
            "claims of another token",
            format!("{head}.{}.{signature}", others[1]),
        ),
        ("two parts", format!("{head}.{body}")),
        ("two parts and a dot", format!("{head}.{body}.")),
        ("four parts", format!("{good}.{signature}")),
        (
            "five parts",
            format!("{head}.{body}.{head}.{body}.{signature}"),
        ),
        ("no head", format!(".{body}.{signature}")),
        ("no claims", format!("{head}..{signature}")),
        ("dots", "..".to_owned()),
        ("a signature cut short", good[..good.len() - 4].to_owned()),
        ("a signature with more", format!("{good}AAAA")),
        ("a signature with padding", format!("{good}==")),
        (
            "a line break in it",
            format!("{head}.{body}.%0A{signature}"),
        ),
        ("two tokens", format!("{good},{good}")),
        (
            "8 KiB and a byte",
            format!("{good}.{}", "a".repeat(8_193 - good.len() - 1)),
        ),
        ("quoted", format!("\"{good}\"")),
        ("null", "null".to_owned()),
        ("undefined", "undefined".to_owned()),
    ])
}

/// API keys that have ended, or are composed of parts.
fn api_keys(world: &World) -> Vec<Named> {
    let cast = &world.cast;
    let split = |token: &str| {
        let mut parts = token.splitn(3, '_').skip(1).map(str::to_owned);
        (parts.next().unwrap(), parts.next().unwrap())
    };
    let (id, secret) = split(&cast.ann);
    let (other, _) = split(&cast.bob);
    named([
        ("a key that has ended", cast.expired.clone()),
        ("a key that was taken back", cast.revoked.clone()),
        ("a key of an erased user", cast.erased.clone()),
        ("the secret of another key", format!("csk_{other}_{secret}")),
        (
            "a key that nobody made",
            format!("csk_0123456789abcdef_{secret}"),
        ),
        (
            "an id of another case",
            format!("csk_{}_{secret}", id.to_uppercase()),
        ),
        ("an id alone", format!("csk_{id}")),
        ("no secret", format!("csk_{id}_")),
        ("a secret cut short", format!("csk_{id}_{}", &secret[1..])),
        ("a secret with more", format!("csk_{id}_{secret}A")),
        ("another prefix", format!("CSK_{id}_{secret}")),
        ("a secret of zeros", format!("csk_{id}_{}", "A".repeat(43))),
        ("a wild card", format!("csk_{}_{secret}", "*".repeat(16))),
    ])
}

/// Credentials in places where none are read.
fn other_places(world: &World) -> Vec<Case> {
    let ann = &world.cast.ann;
    let body = json!({"arguments": {"text": "forged"}});
    let call = || Request::call("notes.add", &body);
    let nobody = |name: &str, request: Request| case(name, request, UNAUTHORIZED, HARM);
    let (user, secret) = ("ann", ann);
    let basic = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{secret}"));
    let queried = Request::post(
        format!("/v1/tools/notes.add?access_token={ann}"),
        body.to_string(),
    );
    let with = |name: &str, value: String| call().with(name, value);
    vec![
        nobody("no credential", call()),
        nobody("in the query", queried),
        nobody("in a cookie", with("cookie", format!("token={ann}"))),
        nobody("X-Api-Key", with("x-api-key", ann.clone())),
        nobody(
            "Proxy-Authorization",
            with("proxy-authorization", format!("Bearer {ann}")),
        ),
        nobody("Basic", with("authorization", format!("Basic {basic}"))),
        nobody("Token", with("authorization", format!("Token {ann}"))),
        nobody("no scheme", with("authorization", ann.clone())),
        nobody("an empty scheme", with("authorization", format!(" {ann}"))),
        nobody("a scheme alone", with("authorization", "Bearer".to_owned())),
        nobody(
            "two in one",
            with("authorization", format!("Bearer {ann}, Bearer {ann}")),
        ),
        nobody("a tab", with("authorization", format!("Bearer\t{ann}"))),
        case(
            "a token of 20 KiB",
            with("authorization", format!("Bearer {}", "a".repeat(20_000))),
            Expected::Code(431, "INVALID_ARGUMENT"),
            HARM,
        ),
    ]
}

/// Valid tokens that prove another user than their subject suggests.
fn other_users(world: &World) -> Vec<Case> {
    let issuers = &world.issuers;
    let list = Request::call("notes.list", &json!({"arguments": {}}));
    let harm = "the notes of ann";
    let empty = |name: &str, token: String| {
        let request = list.clone().by(&token);
        case(name, request, Expected::Data(json!([])), harm)
    };
    vec![
        empty(
            "ann of the other issuer",
            issuers.by_corp(&json!({"sub": "ann"})),
        ),
        empty(
            "an ann in capitals",
            issuers.by_home(&json!({"sub": "ANN"})),
        ),
        empty(
            "an ann in Cyrillic",
            issuers.by_home(&json!({"sub": "\u{430}nn"})),
        ),
        empty(
            "an ann in full width",
            issuers.by_home(&json!({"sub": "\u{ff41}nn"})),
        ),
        empty(
            "an ann with an accent apart",
            issuers.by_home(&json!({"sub": "ann\u{301}"})),
        ),
        empty(
            "an application that is its subject",
            issuers.by_home(&json!({"client_id": "ann"})),
        ),
    ]
}

/// An address that counts its visitors.
struct Trap {
    url: String,
    hits: std::sync::Arc<std::sync::atomic::AtomicUsize>,
}

impl Trap {
    async fn set() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        let hits = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counted = hits.clone();
        tokio::spawn(async move {
            while listener.accept().await.is_ok() {
                counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            }
        });
        Self { url, hits }
    }

    fn hits(&self) -> usize {
        self.hits.load(std::sync::atomic::Ordering::SeqCst)
    }
}
