//! Secrets are named in the file and never printed: every output of every command is searched for them.

use std::os::unix::fs::PermissionsExt as _;

use crate::service::Service;
use crate::world::World;

const TOKEN: &str = "tok-3f9a7c-do-not-print";
const PASSWORD: &str = "pw-81bc-do-not-print";
const MASTER: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// A configuration that names a secret of each kind.
fn config(service: &Service) -> String {
    format!(
        r#"
[server]
listen = "127.0.0.1:0"
[store]
data = "data"
[keys]
master = "env:OUR_MASTER"
[[upstream]]
name = "app"
base_url = "{}"
allow_private = ["loopback"]
auth.bearer.token = "env:OUR_TOKEN"
identity_secret = "file:identity.key"
[[tool]]
name = "app.echo"
upstream = "app"
description = "Answers with what it was sent."
effect = "read"
parameters = [{{ name = "text" }}]
"#,
        service.url
    )
}

fn world(service: &Service) -> World {
    let world = World::new(&config(service))
        .set("OUR_TOKEN", TOKEN)
        .set("OUR_MASTER", MASTER);
    world.write("identity.key", &format!("{PASSWORD}-{}\n", "x".repeat(32)));
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(world.path("identity.key"), mode).expect("it is ours");
    world
}

fn is_shown(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    [TOKEN, PASSWORD, MASTER]
        .iter()
        .any(|secret| text.contains(secret))
}

/// A21: secrets stand in no output, no log and no file that a command writes.
#[test]
fn no_command_prints_a_secret() {
    let service = Service::start();
    let world = world(&service);
    let commands: &[&[&str]] = &[
        &["config", "show", "--origin"],
        &["config", "show", "--origin", "--json"],
        &["lint"],
        &["lint", "--json", "--connect"],
        &["tools", "app.echo"],
        &["tools", "--json"],
        &["call", "app.echo", "--args", "{text: 'x'}"],
        &["call", "app.echo", "--args", "{text: 'x'}", "--json"],
        &["calls"],
        &["doctor"],
        &["status", "--json"],
        &["keys", "list"],
        &["evidence", "list", "--json"],
        &["verify", "--all"],
    ];
    for words in commands {
        let output = world.run(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {output:?}");
        assert!(!is_shown(&output.stdout), "{words:?}");
        assert!(!is_shown(&output.stderr), "{words:?}");
    }
    let heard = service.heard();
    let sent = heard
        .iter()
        .filter_map(|heard| heard.header("authorization"));
    let expected = format!("Bearer {TOKEN}");
    assert!(sent.clone().count() >= 2 && sent.clone().all(|sent| sent == expected));
    let server = world.serve(&["--log", "debug"]);
    let answers = [
        server.ask(
            "POST",
            "/v1/tools/app.echo",
            r#"{"arguments": {"text": "y"}}"#,
        ),
        server.ask("GET", "/v1/status", ""),
        server.ask("GET", "/metrics", ""),
    ];
    for (status, answer) in answers {
        assert_eq!(status, 200, "{answer}");
        assert!(!is_shown(answer.to_string().as_bytes()), "{answer}");
    }
    assert_eq!(server.stop(), Some(0));
    let log = std::fs::read(world.path("server.log")).expect("it is there");
    assert!(!log.is_empty() && !is_shown(&log));
    for file in std::fs::read_dir(world.path("data")).expect("it is there") {
        let path = file.expect("it can be looked at").path();
        if path.is_file() {
            let bytes = std::fs::read(&path).expect("it is ours");
            assert!(!is_shown(&bytes), "{}", path.display());
        }
    }
}

/// A secret that is written instead of named is refused, and not repeated; one that is missing is named by its key.
#[test]
fn secrets_are_named_and_have_to_be_there() {
    let service = Service::start();
    for (key, wrong) in [
        ("upstream[0].auth.bearer.token", "\"env:OUR_TOKEN\""),
        ("keys.master", "\"env:OUR_MASTER\""),
    ] {
        let world = world(&service);
        let written = config(&service).replace(wrong, &format!("\"{TOKEN}\""));
        world.write("countersign.toml", &written);
        for words in [&["serve"][..], &["lint"], &["config", "show"], &["tools"]] {
            let output = world.run(words);
            let said =
                String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            assert!(said.contains(key) && !said.contains(TOKEN), "{said}");
        }
    }
    let world = World::new(&config(&service)).set("OUR_MASTER", MASTER);
    let said = world.refusal(&["serve"], 2);
    let expected = "countersign.toml:12:13: upstream[0].auth.bearer.token: the environment variable OUR_TOKEN is not set";
    assert!(said.contains(expected), "{said}");
    let said = world.refusal(&["lint"], 1);
    assert!(said.contains("2 errors"), "{said}");
    // The tools can be looked at without their secrets.
    assert_eq!(world.json(&["tools"])[0]["name"], "app.echo");
    let world = World::new("[keys]\nmaster = \"env:OUR_MASTER\"\n");
    let said = world.refusal(&["call", "x.y"], 2);
    assert!(!said.contains("panicked"), "{said}");
    let world = World::new("[shop]\nenabled = true\n[keys]\nmaster = \"file:m.key\"\n");
    world.write("m.key", MASTER);
    let mode = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(world.path("m.key"), mode).expect("it is ours");
    let said = world.refusal(&["call", "notes.list"], 2);
    assert!(
        said.contains("other accounts can read ") && said.contains("(mode 0644)"),
        "{said}"
    );
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(world.path("m.key"), mode).expect("it is ours");
    assert_eq!(world.json(&["call", "notes.list"])["ok"], true);
    let said = world.refusal(&["keys", "rotate-master"], 2);
    assert!(said.contains("keys.master_old"), "{said}");
}
