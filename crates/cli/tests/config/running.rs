//! A file that changes while a server runs: what can change does so at once, and a bad file changes nothing.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::service::Service;
use crate::world::{Server, World};

/// The longest that a change may take to be seen: the file is looked at every two seconds.
const SEEN_WITHIN: Duration = Duration::from_secs(20);

/// Asks until the answer is as expected.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < SEEN_WITHIN, "{what}");
        std::thread::yield_now();
    }
}

fn config(service: &Service, more: &str) -> String {
    format!(
        "[server]\nlisten = \"127.0.0.1:0\"\n{more}\n[store]\ndata = \"data\"\n[telemetry]\nlog = \"info\"\n\
         [[upstream]]\nname = \"app\"\nbase_url = \"{}\"\nallow_private = [\"loopback\"]\n\
         [[tool]]\nname = \"app.one\"\nupstream = \"app\"\ndescription = \"One.\"\neffect = \"read\"\n",
        service.url
    )
}

const SECOND: &str =
    "[[tool]]\nname = \"app.two\"\nupstream = \"app\"\ndescription = \"Two.\"\neffect = \"read\"\n";

/// Asked from elsewhere: a command beside a broken file says that it is broken.
fn operator_status(world: &World) -> Value {
    let data = world.path("data").display().to_string();
    World::empty().json(&["status", "--data", &data])
}

fn metric(server: &Server) -> String {
    let (_, text) = server.ask("GET", "/metrics", "");
    let text = text.as_str().unwrap_or_default().to_owned();
    let line = text
        .lines()
        .find(|line| line.starts_with("countersign_config_refused "));
    line.unwrap_or_default().to_owned()
}

fn log(world: &World) -> String {
    std::fs::read_to_string(world.path("server.log")).expect("it is there")
}

/// B14: tools come and go without a restart; the log names the keys that changed, and never their values.
#[test]
fn tools_and_policy_change_in_a_running_server() {
    let service = Service::start();
    let world = World::new(&config(&service, ""));
    let server = world.serve(&[]);
    assert_eq!(server.tools(), ["app.one"]);
    let before = operator_status(&world)["server"]["config"].clone();
    assert_eq!(before["file"], "countersign.toml", "{before}");

    let more = config(&service, "calls_max = 17") + SECOND;
    world.write("countersign.toml", &more);
    server.signal("-HUP");
    until("the second tool is there", || {
        server.tools() == ["app.one", "app.two"]
    });
    let status = operator_status(&world);
    let file = &status["server"]["config"];
    assert_eq!(
        file["at_next_start"],
        serde_json::json!(["server.calls_max"])
    );
    assert_ne!(file["digest"], before["digest"]);
    assert_eq!(status["server"]["upstreams"][0]["name"], "app");
    until("the log says so", || {
        log(&world).contains("a new configuration is in force")
    });
    let said = log(&world);
    assert!(
        said.contains(r#"tool[app.two].name (null → \"app.two\")"#)
            && said.contains("server.calls_max (512 → 17)"),
        "{said}"
    );

    // Without a signal it takes two seconds.
    let policy = "[policy]\nrevision = \"9\"\n[[policy.tools]]\nmatch = \"app.two\"\n";
    world.write("countersign.toml", &format!("{more}{policy}"));
    until("the policy decides", || server.tools() == ["app.two"]);
    let (_, denied) = server.ask("POST", "/v1/tools/app.one", "{}");
    assert_eq!(denied["error"]["code"], "FORBIDDEN", "{denied}");
    assert_eq!(server.stop(), Some(0));
    let verified = world.run(&["verify", "--all"]);
    assert_eq!(verified.status.code(), Some(0), "{verified:?}");
}

/// A file that is included is watched like the file itself.
#[test]
fn an_included_file_is_watched() {
    let service = Service::start();
    let world = World::new(&format!(
        "include = [\"more.toml\"]\n{}",
        config(&service, "")
    ));
    let said = world.refusal(&["tools"], 2);
    assert!(
        said.contains("countersign.toml:1:12: include[0]: more.toml cannot be read"),
        "{said}"
    );
    world.write("more.toml", SECOND);
    let server = world.serve(&[]);
    assert_eq!(server.tools(), ["app.one", "app.two"]);
    world.write("more.toml", &SECOND.replace("app.two", "app.three"));
    server.signal("-HUP");
    until("the included tool is another", || {
        server.tools() == ["app.one", "app.three"]
    });
    world.write("more.toml", "[server]\n");
    server.signal("-HUP");
    until("it is refused", || {
        metric(&server) == "countersign_config_refused 1"
    });
    let refused = operator_status(&world)["server"]["config"]["refused"].clone();
    assert_eq!(
        (&refused["file"], &refused["key"]),
        (&"more.toml".into(), &"server".into()),
        "{refused}"
    );
    world.write("more.toml", SECOND);
    until("it is mended", || {
        metric(&server) == "countersign_config_refused 0"
    });
    assert_eq!(server.tools(), ["app.one", "app.two"]);
    assert_eq!(server.stop(), Some(0));
}

/// A bad file is refused whole while the old one serves, for every kind of mistake, and is reported until it is mended.
#[test]
fn a_bad_file_is_refused_while_the_old_one_serves() {
    let service = Service::start();
    let good = config(&service, "");
    let world = World::new(&good);
    let server = world.serve(&[]);
    assert_eq!(metric(&server), "countersign_config_refused 0");
    let with_second = good.clone() + SECOND;
    for (bad, key) in [
        (format!("{with_second}[servr]\n"), "servr"),
        (
            with_second.replace(
                "upstream = \"app\"\ndescription = \"Two",
                "upstream = \"ap\"\ndescription = \"Two",
            ),
            "tool[1].upstream",
        ),
        (
            format!("{with_second}[policy]\n[[policy.tools]]\nmatches = \"x\"\n"),
            "policy.tools[0].matches",
        ),
        (
            with_second.replace("\"info\"", "\"loud=&\""),
            "telemetry.log",
        ),
        (
            with_second.replace(
                "name = \"app\"\n",
                "name = \"app\"\nauth.bearer.token = \"env:NOT_SET\"\n",
            ),
            "upstream[0].auth.bearer.token",
        ),
        ("\u{0}".to_owned(), ""),
    ] {
        world.write("countersign.toml", &bad);
        server.signal("-HUP");
        until(key, || {
            let status = operator_status(&world);
            let refused = &status["server"]["config"]["refused"];
            refused["key"] == key && status["server"]["config"]["is_file_in_force"] == false
        });
        assert_eq!(metric(&server), "countersign_config_refused 1");
        assert_eq!(server.tools(), ["app.one"], "{key}");
    }
    std::fs::remove_file(world.path("countersign.toml")).expect("it is there");
    let data = world.path("data").display().to_string();
    let shown = world.run(&["status", "--data", &data]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        shown.contains("problem: the configuration was rejected"),
        "{shown}"
    );
    assert!(shown.contains("refused configuration"), "{shown}");
    world.write("countersign.toml", &good);
    until("it is mended", || {
        metric(&server) == "countersign_config_refused 0"
    });
    assert_eq!(server.stop(), Some(0));
    assert!(log(&world).contains("the earlier one stays in force"));
}
