//! The layers of a configuration: default, file, environment, flag.

use serde_json::{Value, json};

use crate::world::World;

fn row<'r>(rows: &'r Value, key: &str) -> &'r Value {
    let mut rows = rows.as_array().into_iter().flatten();
    let row = rows.find(|row| row["key"] == key);
    row.unwrap_or_else(|| panic!("there is no {key}"))
}

/// A flag counts before a variable, that before the file, and the file before the default; each says where it came from.
#[test]
fn the_later_layer_counts_and_is_named() {
    let world = World::new(
        "[server]\nlisten = \"127.0.0.1:9999\"\n[store]\ndata = \"of-file\"\nurl = \"memory\"\n[telemetry]\nlog = \"warn\"\n",
    );
    let show = ["config", "show", "--origin"];
    let rows = world.json(&show);
    let file = |line: usize| json!({"from": "file", "file": "countersign.toml", "line": line});
    assert_eq!(row(&rows, "server.listen")["origin"], file(2));
    assert_eq!(row(&rows, "store.data")["value"], "of-file");
    assert_eq!(row(&rows, "telemetry.log")["origin"], file(7));
    assert_eq!(
        row(&rows, "log.lease")["origin"],
        json!({"from": "default"})
    );
    assert_eq!(row(&rows, "log.lease")["value"], "10s");

    let world = world
        .set("COUNTERSIGN_DATA", "of-variable")
        .set("COUNTERSIGN_LOG", "debug")
        .set("COUNTERSIGN_STORE", "postgres://u:s3cret@db/x");
    let rows = world.json(&show);
    let variable = |name: &str| json!({"from": "environment", "name": name});
    assert_eq!(row(&rows, "store.data")["value"], "of-variable");
    assert_eq!(
        row(&rows, "store.data")["origin"],
        variable("COUNTERSIGN_DATA")
    );
    assert_eq!(row(&rows, "telemetry.log")["value"], "debug");
    assert_eq!(row(&rows, "store.url")["value"], "postgres://db/x");

    let rows = world.json(&[&show[..], &["--data", "of-flag", "--store", "memory"]].concat());
    assert_eq!(row(&rows, "store.data")["value"], "of-flag");
    assert_eq!(
        row(&rows, "store.data")["origin"],
        json!({"from": "flag", "name": "--data"})
    );
    // Paths of the file count from its folder; those of flags from where the command is run.
    let below = World::empty();
    std::fs::create_dir(below.path("etc")).expect("a folder can be made");
    below.write("etc/c.toml", "[store]\ndata = \"x\"\n");
    let rows = below.json(&["config", "show", "--config", "etc/c.toml"]);
    assert_eq!(row(&rows, "store.data")["value"], "etc/x");
}

/// Every variable and every flag that the reference names is there, and the variables win over the file.
#[test]
fn variables_and_flags_are_those_of_the_reference() {
    let world = World::new("");
    let help = world.run(&["serve", "--help"]);
    let help = String::from_utf8(help.stdout).expect("it is text");
    let (mut flags, mut variables) = (0, 0);
    for setting in countersign_config::schema::settings() {
        if let Some(flag) = &setting.flag {
            assert!(
                help.contains(&format!("{flag} ")) || help.contains(&format!("{flag}\n")),
                "{flag}"
            );
            flags += 1;
        }
        if let Some(variable) = &setting.env {
            let value = match setting.key.as_str() {
                "store.url" => "memory",
                "telemetry.otlp" => "http://collector:4318",
                _ => "warn",
            };
            let rows = World::new("").set(variable, value);
            let rows = rows.json(&["config", "show", "--origin"]);
            let origin = &row(&rows, &setting.key)["origin"];
            assert_eq!(origin["name"], variable.as_str(), "{}", setting.key);
            variables += 1;
        }
    }
    assert!(
        flags >= 15 && variables >= 6,
        "{flags} flags, {variables} variables"
    );
}

/// The file in the working folder is used, and the command says so; a named one goes before it.
#[test]
fn the_file_of_the_working_folder_is_told() {
    let world = World::new("[shop]\nenabled = true\n");
    let output = world.run(&["tools", "notes.add"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said, "note: the configuration is countersign.toml\n");
    world.write("other.toml", "");
    let output = world.run(&["tools", "--config", "other.toml"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.starts_with("no tools"), "{said}");
    let said = world.refusal(&["tools", "--config", "missing.toml"], 2);
    assert!(said.contains("missing.toml"), "{said}");
    // What needs no configuration works beside a broken one.
    world.write("countersign.toml", "[servr]\n[server]\nlisen = 1\n");
    let said = world.refusal(&["tools"], 2);
    assert_eq!(
        said,
        "note: the configuration is countersign.toml\n\
         error: countersign.toml has 2 mistakes\n\
         countersign.toml:1:2: servr: there is no such key; did you mean server?\n\
         countersign.toml:3:1: server.lisen: there is no such key; did you mean server.listen?\n\
         hint: docs/configuration.md lists every key; `countersign lint` checks the whole configuration\n"
    );
    assert_eq!(world.run(&["bind", "--args", "{}"]).status.code(), Some(0));
    assert_eq!(world.run(&["config", "schema"]).status.code(), Some(0));
}

/// The policy of the file decides in every command, as a table or as a path, and mistakes in it have their place.
#[test]
fn the_policy_of_the_file_decides() {
    let policy = "revision = \"7\"\n[[tools]]\nmatch = \"notes.list\"\n";
    let shop =
        "[shop]\nenabled = true\n[store]\ndata = \"data\"\n[server]\nlisten = \"127.0.0.1:0\"\n";
    let inline = policy.replace("[[tools]]", "[[policy.tools]]");
    let worlds = [
        World::new(&format!("{shop}[policy]\n{inline}")),
        World::new(&format!("policy = \"p.toml\"\n{shop}")),
    ];
    for world in worlds {
        world.write("p.toml", policy);
        let denied = world.json(&["call", "notes.add", "--args", "{text: 'x'}"]);
        assert_eq!(denied["error"]["code"], "FORBIDDEN", "{denied}");
        assert_eq!(world.json(&["call", "notes.list"])["ok"], true);
        let server = world.serve(&[]);
        let (_, denied) = server.ask(
            "POST",
            "/v1/tools/notes.add",
            r#"{"arguments": {"text": "x"}}"#,
        );
        assert_eq!(denied["error"]["code"], "FORBIDDEN", "{denied}");
        let (_, status) = server.ask("GET", "/v1/status", "");
        let revision = status["policy"]["revision"].as_str().unwrap_or_default();
        assert!(revision.starts_with("7@"), "{status}");
        assert_eq!(server.stop(), Some(0));
    }
    let world = World::new("[shop]\nenabled = true\n[policy]\n[[policy.tools]]\nmatches = \"x\"\n");
    let said = world.refusal(&["serve"], 2);
    assert!(
        said.contains("countersign.toml: line 5, column 1: "),
        "{said}"
    );
    let lint = world.json(&["lint"]);
    let finding = &lint["findings"][0];
    assert_eq!(
        (&finding["line"], &finding["column"], &finding["key"]),
        (&json!(5), &json!(1), &json!("policy.tools[0].matches")),
        "{lint}"
    );
}

/// Bounds of the file hold: a body that is too long is refused, and every call of one too many.
#[test]
fn bounds_of_the_file_hold() {
    let world = World::new(
        "[server]\nlisten = \"127.0.0.1:0\"\nbody_bytes_max = 1024\n[store]\ndata = \"data\"\n[shop]\nenabled = true\n",
    );
    let server = world.serve(&[]);
    let long = format!(r#"{{"arguments": {{"text": "{}"}}}}"#, "x".repeat(2_000));
    let (status, _) = server.ask("POST", "/v1/tools/notes.add", &long);
    assert_eq!(status, 413);
    assert_eq!(server.stop(), Some(0));
}
