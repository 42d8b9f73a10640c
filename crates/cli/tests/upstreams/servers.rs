//! MCP servers that die or lie: no caller waits for them, or gets what they claim.

use std::io::{ErrorKind, Read as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::installation::{Installation, NEW, OLD, Served, message, result_of};

/// No child outlives a gateway that is killed, even one that ignores the end of its input.
#[test]
fn no_child_outlives_a_gateway_that_is_killed() {
    let own = Installation::new();
    let mut words = own.server_words();
    words.push("--stubborn".to_owned());
    let text = format!(
        "[[upstream]]\nname = 'plain'\nkind = 'mcp'\ntrust = 'first_use'\ncommand = {}\n",
        json!(words)
    );
    std::fs::write(own.path("countersign.toml"), text).unwrap();
    let mut serve = own
        .command(&["serve", "--json", "--listen", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The watchdog ends a wait that does not end.
    let started = || std::fs::read_to_string(own.path("world/started")).unwrap_or_default();
    while !started().ends_with('\n') || !own.path("countersign.lock.json").exists() {
        std::thread::yield_now();
    }
    serve.kill().unwrap();
    serve.wait().unwrap();
    while started().lines().any(is_alive) {
        std::thread::yield_now();
    }
}

/// A15: a list waits for no server. The gateway has sent a dead server its first message, and still waits for the answer after the lists
/// of both eras have come, the first one included: a list that waited for that server would come after its deadline, when the connection is closed.
#[test]
fn a_list_waits_for_no_server() {
    let own = Installation::new();
    let command = json!(own.server_words()).to_string();
    let alive =
        |name: &str| format!("[[upstream]]\nname = '{name}'\nkind = 'mcp'\ncommand = {command}\n");
    let names = ["good", "silent"];
    std::fs::write(own.path("countersign.toml"), names.map(alive).concat()).unwrap();
    for name in names {
        own.ok(&["upstreams", "approve", name]);
    }
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let text = format!(
        "{}[[upstream]]\nname = 'silent'\nkind = 'mcp'\nurl = 'http://{address}/mcp'\nallow_private = ['loopback']\n\
         connections.start_ms = 60000\ntimeouts.attempt_ms = 60000\nretries.attempts_max = 1\n",
        alive("good")
    );
    std::fs::write(own.path("countersign.toml"), text).unwrap();
    let served = own.serve();
    // The watchdog ends a wait that does not end.
    let (mut heard, _) = silent.accept().unwrap();
    let mut part = [0; 4096];
    assert_ne!(heard.read(&mut part).unwrap(), 0, "the gateway hung up");
    for era in [NEW, OLD] {
        let (headers, body) = message(era, "tools/list", &json!({}));
        for _ in 0..3 {
            let answer = served.ask("POST", "/mcp", &headers, &body);
            for name in names {
                assert!(answer.contains(&format!("{name}_say")), "{era}: {answer}");
            }
        }
    }
    heard.set_nonblocking(true).unwrap();
    let still = loop {
        match heard.read(&mut part) {
            // The rest of its message.
            Ok(1..) => {}
            other => break other.map_err(|error| error.kind()),
        }
    };
    assert_eq!(
        still,
        Err(ErrorKind::WouldBlock),
        "the lists came only after the gateway had given the dead server up"
    );
}

/// A server that is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dead {
    /// Takes connections and says nothing.
    Silent,
    /// Refuses connections.
    Refusing,
    /// A child that was killed after it had worked, and says nothing when it is started again.
    Killed,
}

/// A15, A17: of three MCP servers one is dead, each in its way, and ten minutes would pass before it is given up. The lists of both eras and of
/// the API come while a call to it is under way, with its tools, which stay for the grace; the calls to it are errors that may be repeated.
#[test]
fn one_dead_server_of_three_delays_no_list() {
    for how in [Dead::Silent, Dead::Refusing, Dead::Killed] {
        // It takes every connection, as long as the test runs, and reads nothing.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = Installation::new();
        configure(&own, how, silent.local_addr().unwrap());
        let served = own.serve();
        if how == Dead::Killed {
            let route = "/v1/tools/dead.say";
            let (_, reply) = served.post(route, "", r#"{"arguments": {"text": "hi"}}"#);
            assert_eq!(reply["ok"], true, "{reply}");
            std::fs::write(own.path("dead"), "").unwrap();
            kill_last(&own.path("other"));
        }
        let say = r#"{"arguments": {"text": "hi"}}"#;
        let json = [("Content-Type".to_owned(), "application/json".to_owned())];
        let mut calling = served.open("POST", "/v1/tools/dead.say", &json, say);
        check_lists(&served, how);
        let mut answer = String::new();
        calling.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let first: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"));
        let (_, second) = served.post("/v1/tools/dead.say", "", say);
        for reply in [first, second] {
            let error = &reply["error"];
            let code = error["code"].as_str().unwrap_or_default();
            eprintln!("{how:?}: {code}: {}", error["message"]);
            assert!(
                ["UPSTREAM_ERROR", "TIMEOUT"].contains(&code),
                "{how:?}: {reply}"
            );
            assert_eq!(error["details"]["retryable"], true, "{how:?}: {reply}");
        }
        let (_, reply) = served.post("/v1/tools/two.say", "", say);
        assert_eq!(reply["ok"], true, "{how:?}: {reply}");
    }
}

/// Names of the servers.
const NAMES: [&str; 3] = ["one", "two", "dead"];

/// Approves three servers while they work, and configures the last one as it dies.
fn configure(own: &Installation, how: Dead, silent: SocketAddr) {
    std::fs::create_dir(own.path("other")).unwrap();
    let words = own.server_words();
    let alive = |name: &str, words: &[String]| {
        let command = json!(words);
        format!("[[upstream]]\nname = '{name}'\nkind = 'mcp'\ncommand = {command}\n")
    };
    // Another world, so that its processes are known. It works until there is a file that says that it is dead.
    let (dead, other) = (own.path("dead"), own.path("other"));
    let script = format!(
        "if [ -e '{}' ]; then exec sleep 3600; fi; exec {} '{}'",
        dead.display(),
        words[..3].join(" "),
        other.display()
    );
    let mortal = ["sh", "-c", &script].map(str::to_owned);
    let text = [
        alive("one", &words),
        alive("two", &words),
        alive("dead", &mortal),
    ]
    .concat();
    std::fs::write(own.path("countersign.toml"), &text).unwrap();
    for name in NAMES {
        own.ok(&["upstreams", "approve", name]);
    }
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let at = |address: SocketAddr| {
        format!(
            "[[upstream]]\nname = 'dead'\nkind = 'mcp'\nurl = 'http://{address}/mcp'\nallow_private = ['loopback']\n"
        )
    };
    let last = match how {
        Dead::Silent => at(silent),
        Dead::Refusing => at(closed),
        Dead::Killed => alive("dead", &mortal),
    };
    let text = [
        alive("one", &words),
        alive("two", &words),
        last,
        "connections.start_ms = 600000\ntimeouts.attempt_ms = 600000\nretries.attempts_max = 1\n"
            .to_owned(),
        "[[tool]]\nname = 'dead.say'\neffect = 'read'\ndeadline_ms = 1500\n".to_owned(),
    ];
    std::fs::write(own.path("countersign.toml"), text.concat()).unwrap();
}

/// Asks for the lists of both eras and of the API.
fn check_lists(served: &Served, how: Dead) {
    let (new, old) = (
        message(NEW, "tools/list", &json!({})),
        message(OLD, "tools/list", &json!({})),
    );
    for (what, (method, path), (headers, body), joint) in [
        (NEW, ("POST", "/mcp"), new, '_'),
        (OLD, ("POST", "/mcp"), old, '_'),
        (
            "API",
            ("GET", "/v1/tools"),
            (Vec::new(), String::new()),
            '.',
        ),
    ] {
        let started = Instant::now();
        let mut stream = served.open(method, path, &headers, &body);
        stream.set_read_timeout(Some(FAR_BELOW)).unwrap();
        let mut answer = String::new();
        let read = stream.read_to_string(&mut answer);
        eprintln!("{how:?}, {what}: {:?}", started.elapsed());
        assert!(read.is_ok(), "{how:?} {what}: {read:?}");
        for name in NAMES {
            let tool = format!("{name}{joint}say");
            assert!(answer.contains(&tool), "{how:?} {what}: {answer}");
        }
    }
}

/// Longest wait for a list: a tenth of the time until a dead server is given up.
const FAR_BELOW: Duration = Duration::from_mins(1);

/// Kills the newest server of a world, and waits until it is gone.
fn kill_last(world: &Path) {
    let started = std::fs::read_to_string(world.join("started")).unwrap();
    let process = started.lines().last().unwrap();
    let words = std::fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap();
    assert!(words.contains(&*world.to_string_lossy()), "{words}");
    let killed = Command::new("kill").args(["-9", process]).status();
    assert!(killed.unwrap().success());
    while is_alive(process) {
        std::thread::yield_now();
    }
}

fn is_alive(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// A client of the newest era watches a resource of a server of an older one: the gateway subscribes at the server, tells the client of a
/// change in the stream that is open, and ends the subscription with the stream.
#[test]
fn a_resource_is_watched_by_a_newer_client() {
    let own = Installation::new();
    let mut words = own.server_words();
    words.push("--offers".to_owned());
    let text = format!(
        "[[upstream]]\nname = 'plain'\nkind = 'mcp'\ntrust = 'first_use'\ncommand = {}\n",
        json!(words)
    );
    std::fs::write(own.path("countersign.toml"), text).unwrap();
    let served = own.serve();
    let list = || {
        let (headers, body) = message(NEW, "resources/list", &json!({}));
        served.ask("POST", "/mcp", &headers, &body)
    };
    let uri = "upstream://plain/notes://today";
    // The watchdog ends a wait that does not end.
    while !list().contains(uri) {
        std::thread::yield_now();
    }
    let wanted =
        json!({"notifications": {"resourceSubscriptions": [uri, "upstream://none/notes://today"]}});
    let (headers, body) = message(NEW, "subscriptions/listen", &wanted);
    let mut stream = served.open("POST", "/mcp", &headers, &body);
    let mut heard = String::new();
    let mut hear = |stream: &mut TcpStream, what: &str| {
        let mut part = [0; 4096];
        while !heard.contains(what) {
            let count = stream.read(&mut part).unwrap();
            assert_ne!(count, 0, "{heard}");
            heard.push_str(&String::from_utf8_lossy(&part[..count]));
        }
        heard.clone()
    };
    let acknowledged = hear(&mut stream, "subscriptions/acknowledged");
    assert!(!acknowledged.contains("upstream://none"), "{acknowledged}");
    let watched = || std::fs::read_to_string(own.path("world/watched")).unwrap_or_default();
    while watched() != "+ notes://today\n" {
        std::thread::yield_now();
    }
    std::fs::write(own.path("world/touched"), "").unwrap();
    let told = hear(&mut stream, "notifications/resources/updated");
    assert!(told.contains(uri), "{told}");
    drop(stream);
    while watched() != "+ notes://today\n- notes://today\n" {
        std::thread::yield_now();
    }
}

/// A8: a server whose structured answers break its own schema. In both eras a client is never given them as `structuredContent`, which it may
/// check against the schema: they stand in the text, or the read fails where the entry says so.
#[test]
fn a_client_is_given_no_untrue_structured_content() {
    let own = Installation::new();
    let tool = |name: &str| {
        let any = json!({"type": "object", "additionalProperties": true});
        let output =
            json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        json!({"name": name, "description": "x", "inputSchema": any, "outputSchema": output})
            .to_string()
            + "\n"
    };
    let names = ["lie_read", "lie_write", "lie_refuse"];
    std::fs::write(own.path("world/tools"), names.map(tool).concat()).unwrap();
    let command = json!(own.server_words());
    let text = format!(
        "[[upstream]]\nname = 'plain'\nkind = 'mcp'\ntrust = 'first_use'\ncommand = {command}\n\
         [[tool]]\nname = 'plain.lie_read'\neffect = 'read'\n\
         [[tool]]\nname = 'plain.lie_refuse'\neffect = 'read'\nresponse.on_mismatch = 'refuse'\n"
    );
    std::fs::write(own.path("countersign.toml"), text).unwrap();
    let served = own.serve();
    let call = |era: &str, tool: &str, arguments: Value| {
        let params = json!({"name": format!("plain_{tool}"), "arguments": arguments});
        let (headers, body) = message(era, "tools/call", &params);
        result_of(&served.ask("POST", "/mcp", &headers, &body))
    };
    // The watchdog ends a wait that does not end.
    while !served
        .ask("GET", "/v1/tools", &[], "")
        .contains("plain.lie_read")
    {
        std::thread::yield_now();
    }
    for era in [NEW, OLD] {
        let (headers, body) = message(era, "tools/list", &json!({}));
        let listed = result_of(&served.ask("POST", "/mcp", &headers, &body));
        let listed = listed["tools"].as_array().unwrap().iter();
        let has_schema = |name: &str| {
            let mut all = listed.clone();
            let own = all.find(|tool| tool["name"] == format!("plain_{name}"));
            own.is_some_and(|tool| tool["outputSchema"].is_object())
        };
        for (name, is_error) in [
            ("lie_read", false),
            ("lie_write", false),
            ("lie_refuse", true),
        ] {
            assert!(has_schema(name), "{era}: {name} has no schema to break");
            let lie = call(era, name, json!({}));
            assert!(
                lie.get("structuredContent").is_none(),
                "{era} {name}: {lie}"
            );
            assert_eq!(lie["isError"], is_error, "{era} {name}: {lie}");
            let said = lie["content"][0]["text"].as_str().unwrap();
            assert_eq!(said.contains("many"), !is_error, "{era} {name}: {lie}");
            let true_one = call(era, name, json!({"n": 3}));
            assert_eq!(
                true_one["structuredContent"]["n"], 3,
                "{era} {name}: {true_one}"
            );
        }
    }
}

/// The answer of the tool that says who it is.
fn who(served: &Served) -> Value {
    // The watchdog ends a wait that does not end.
    loop {
        let (_, reply) = served.post("/v1/tools/plain.who", "", r#"{"arguments": {}}"#);
        if reply["ok"] == true {
            return reply["data"].clone();
        }
        std::thread::yield_now();
    }
}

/// A21: a child ends with the entry that it was started for, while the gateway runs: a changed credential is for another child, and a server that is
/// removed has none.
#[test]
fn a_child_ends_with_its_entry() {
    let own = Installation::new();
    let tokens = [("old", "hunter2"), ("new", "hunter3")];
    for (name, token) in tokens {
        std::fs::write(own.path(name), token).unwrap();
    }
    let write = |text: &str| std::fs::write(own.path("countersign.toml"), text).unwrap();
    let entry = |token: &str| {
        format!(
            "[[upstream]]\nname = 'plain'\nkind = 'mcp'\ntrust = 'first_use'\ncommand = {}\nenv.TOKEN = 'file:{token}'\n\
             [[tool]]\nname = 'plain.who'\neffect = 'read'\n",
            json!(own.server_words())
        )
    };
    write(&entry("old"));
    let served = own.serve();
    let first = who(&served)["pid"].to_string();
    let started = || std::fs::read_to_string(own.path("world/started")).unwrap_or_default();
    let old = started();
    assert!(old.lines().any(|pid| pid == first), "{old}");

    write(&entry("new"));
    while old.lines().any(is_alive) {
        std::thread::yield_now();
    }
    let second = who(&served)["pid"].to_string();
    assert_ne!(second, first);
    let environ = std::fs::read_to_string(format!("/proc/{second}/environ")).unwrap();
    assert!(environ.contains("TOKEN=hunter3"), "{environ}");

    write("");
    while started().lines().any(is_alive) {
        std::thread::yield_now();
    }
    // What was started after a reload ends with the gateway.
    write(&entry("new"));
    let last = who(&served)["pid"].to_string();
    let gateway = served.process.id().to_string();
    let stopped = Command::new("kill").arg(gateway).status();
    assert!(stopped.unwrap().success());
    while is_alive(&last) {
        std::thread::yield_now();
    }
}

/// Images and links beside a structured answer reach a client as blocks of their own, and the structured answer is as the server gave it. Where
/// the answer is cut to a size, an image is whole or left out.
#[test]
fn blocks_beside_a_structured_answer_reach_the_client() {
    for (rule, has_image) in [("", true), ("[results]\nbytes_max = 256\n", false)] {
        let own = Installation::new();
        let output =
            json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let any = json!({"type": "object", "additionalProperties": true});
        let tool = json!({"name": "mixed", "inputSchema": any, "outputSchema": output});
        std::fs::write(own.path("world/tools"), tool.to_string()).unwrap();
        let command = json!(own.server_words());
        let text = format!(
            "{rule}[[upstream]]\nname = 'plain'\nkind = 'mcp'\ntrust = 'first_use'\ncommand = {command}\n\
             [[tool]]\nname = 'plain.mixed'\neffect = 'read'\n"
        );
        std::fs::write(own.path("countersign.toml"), text).unwrap();
        let served = own.serve();
        let listed = || served.ask("GET", "/v1/tools", &[], "");
        // The watchdog ends a wait that does not end.
        while !listed().contains("plain.mixed") {
            std::thread::yield_now();
        }
        for era in [NEW, OLD] {
            let params = json!({"name": "plain_mixed", "arguments": {"size": 400}});
            let (headers, body) = message(era, "tools/call", &params);
            let result = result_of(&served.ask("POST", "/mcp", &headers, &body));
            let structured = &result["structuredContent"];
            assert_eq!(structured["n"], 1, "{era}: {result}");
            let members = structured.as_object().unwrap().keys();
            let is_ours = |name: &&String| name.starts_with("dev.countersign/content");
            assert_eq!(members.filter(is_ours).count(), 0, "{era}: {result}");
            let blocks = result["content"].as_array().unwrap().iter();
            let image = blocks.clone().find(|block| block["type"] == "image");
            assert_eq!(image.is_some(), has_image, "{era}: {result}");
            if let Some(image) = image {
                assert_eq!(image["data"].as_str().unwrap().len(), 400);
                let mut links = blocks.filter(|block| block["type"] == "resource_link");
                assert!(links.any(|link| link["uri"] == "upstream://plain/notes://today"));
            } else {
                let note = result["content"].to_string();
                assert!(note.contains("fetch_rest"), "{era}: {result}");
            }
        }
    }
}
