//! What a person is shown before they approve, and what the service behind then gets: byte for byte the same values.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use super::between;
use super::world::World;

/// A service that takes everything, and the bodies that it got.
fn service() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, bodies) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut got = Vec::new();
            let body = loop {
                let mut part = [0; 4096];
                let count = stream.read(&mut part).unwrap();
                got.extend_from_slice(&part[..count]);
                let text = String::from_utf8_lossy(&got);
                let Some((head, body)) = text.split_once("\r\n\r\n") else {
                    continue;
                };
                let length = head.lines().find_map(|line| {
                    let (name, value) = line.split_once(": ")?;
                    let is_length = name.eq_ignore_ascii_case("content-length");
                    is_length.then(|| value.parse::<usize>().unwrap())
                });
                if body.len() >= length.unwrap_or_default() {
                    break body.to_owned();
                }
            };
            let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
            stream.write_all(answer.as_bytes()).unwrap();
            if sender.send(body).is_err() {
                return;
            }
        }
    });
    (address.to_string(), bodies)
}

/// An integer that no 64 bits hold.
const LONG: &str = "123456789012345678901234567890";

/// Signs, markup, spaces and numbers that a careless reader changes. Members are in the order of their names, as the page shows them.
const ARGUMENTS: &str = r#"{"amount":123456789012345678901234567890,"count":9007199254740993,"factor":-0.125,"note":"<b>&amp; \"你好\" \\ 👩🏽 e\u0301 é","parts":[[1,2,[18446744073709551615]],[],{"<x>":[true,"</script>"],"a/b~c":null}]}"#;

/// A13: the arguments on the page of a question are those that run: the service gets the same text, and an answer to another rendering
/// does not count.
#[test]
fn the_service_gets_what_was_shown() {
    let (address, bodies) = service();
    let config = format!(
        "[[upstream]]\nname = 'pay'\nbase_url = 'http://{address}'\nallow_private = ['loopback']\n\
         [[tool]]\nname = 'pay.send'\nupstream = 'pay'\ndescription = 'Sends money.'\neffect = 'external'\nconfirm = 'always'\n\
         [tool.input]\ntype = 'object'\n\
         properties.amount = {{ type = 'integer' }}\nproperties.count = {{ type = 'integer' }}\nproperties.factor = {{ type = 'number' }}\n\
         properties.note = {{ type = 'string' }}\nproperties.parts = {{ type = 'array' }}\n"
    );
    let world = World::configured(&config, &[]);
    let body = json!({"arguments": ARGUMENTS, "idempotency_key": "k"});
    let asked = world.call("pay.send", &body, None);
    let id = asked["error"]["details"]["approval_id"].as_str();
    let path = format!("/approvals/{}", id.unwrap_or_else(|| panic!("{asked}")));
    let mut person = world.operator();
    let (_, html) = person.get(&path);
    let shown = text_of(&between(&html, "id=\"exactly\"", "</pre>"));
    let (_, twin) = person.get(&format!("{path}.json"));
    let twin: Value = serde_json::from_str(&twin).unwrap();
    let digest = twin["approval"]["shown_digest"].as_str().unwrap();
    let approve = [("decision", "approve"), ("shown_digest", digest)];
    assert_eq!(person.send(&path, &approve).0.status, 303);
    // The next number in line is another one: nobody has agreed to it.
    let next = ARGUMENTS.replace(LONG, "123456789012345678901234567891");
    let other = json!({"arguments": next, "idempotency_key": "k2"});
    let asked = world.call("pay.send", &other, None);
    assert_eq!(asked["error"]["code"], "NEEDS_USER_CONFIRMATION", "{asked}");
    let reply = world.call("pay.send", &body, None);
    assert_eq!(reply["ok"], true, "{reply}");
    let ran = bodies.recv().unwrap();
    // A number that JSON readers round is shown as a text, digit for digit.
    let spelled = ran.replace(LONG, &format!("\"{LONG}\""));
    assert_eq!(tokens(&shown), tokens(&spelled), "{shown}");
    for exact in [LONG, "9007199254740993", "你好", "</script>"] {
        assert!(ran.contains(exact), "{exact}: {ran}");
    }
}

/// The text of lines of JSON on a page.
fn text_of(html: &str) -> String {
    let lines = html.split("<span class=\"l\">").skip(1);
    let lines = lines.map(|line| line.split("</span>").next().unwrap());
    let mut text = lines.collect::<Vec<_>>().join("\n");
    for (escaped, sign) in [
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&#60;", "<"),
        ("&#62;", ">"),
        // Last: what it makes is text.
        ("&#38;", "&"),
    ] {
        text = text.replace(escaped, sign);
    }
    text
}

/// The parts of JSON: strings without escapes, everything else as it is written.
fn tokens(json: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = json.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '"' => {
                let mut strings = serde_json::Deserializer::from_str(rest).into_iter::<String>();
                let text = strings.next().unwrap().unwrap();
                tokens.push(format!("text {text}"));
                strings.byte_offset()
            }
            '{' | '}' | '[' | ']' | ',' | ':' => {
                tokens.push(first.to_string());
                1
            }
            _ => {
                let end = rest.find([',', '}', ']']).unwrap_or(rest.len());
                tokens.push(rest[..end].trim_end().to_owned());
                end
            }
        };
        rest = rest[end..].trim_start();
    }
    tokens
}
