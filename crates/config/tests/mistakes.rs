//! Every mistake in a file has its line, its column, its key and what was expected; all of them are reported at once, and none of them
//! repeats a value.

use countersign_config::{Document, Given, Loaded, Mistake};

/// The mistakes of a text, one line each.
fn mistakes(text: &str) -> String {
    match Document::parse("c.toml", text) {
        Ok(_) => String::new(),
        Err(mistakes) => mistakes.to_string(),
    }
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(mistakes(text), expected.join("\n"), "{text}");
}

/// Issue 14, 1: errors have line, column, the key, and what was expected.
#[test]
fn a_wrong_key_has_its_place_and_what_was_meant() {
    check(
        "[server]\nlisen = \"127.0.0.1:1\"\n",
        &["c.toml:2:1: server.lisen: there is no such key; did you mean server.listen?"],
    );
    check(
        "# 中文\n[servr]\n",
        &["c.toml:2:2: servr: there is no such key; did you mean server?"],
    );
    check(
        "[[tool]]\nname = 'a.b'\ndescription = 'Does it.'\nupstream = 'a'\ninclude = ['b.toml']\n[[upstream]]\nname = 'a'\nbase_url = 'http://a.example'\n",
        &[
            "c.toml:5:1: tool[0].include: there is no such key in this table; a key of the whole file stands above the first [table]; did you mean include?",
        ],
    );
    check(
        "listen = 8787\n",
        &["c.toml:1:1: listen: there is no such key; did you mean server.listen?"],
    );
    check(
        "store = {postgres = {  Lock-Timeout = \"2s\"}}\n",
        &[
            "c.toml:1:24: store.postgres.Lock-Timeout: there is no such key; did you mean store.postgres.lock_timeout?",
        ],
    );
    check(
        "[mcp]\n\"a b\" = 1\nzzzzzzzz = 1",
        &[
            "c.toml:2:1: mcp.\"a b\": there is no such key; expected one of conformance, sessions_max, streams_max, streams_per_caller_max",
            "c.toml:3:1: mcp.zzzzzzzz: there is no such key; expected one of conformance, sessions_max, streams_max, streams_per_caller_max",
        ],
    );
}

#[test]
fn a_wrong_value_has_its_place_and_what_was_expected() {
    check(
        "[server]\ncalls_max = \"many\"\nread_timeout = 10\n",
        &[
            "c.toml:2:13: server.calls_max: got a string; expected a whole number from 1 to 1000000",
            "c.toml:3:16: server.read_timeout: got a whole number; expected a duration such as \"500ms\", \"10s\", \"15m\", \"24h\" or \"30d\"",
        ],
    );
    check(
        "[server]\ncalls_max = 0\nbody_bytes_max = -1\n[telemetry]\nsample = 1.5\n",
        &[
            "c.toml:2:13: server.calls_max: it is out of range; expected a whole number from 1 to 1000000",
            "c.toml:3:18: server.body_bytes_max: it is out of range; expected a whole number from 1024",
            "c.toml:5:10: telemetry.sample: it is out of range; expected a number from 0 to 1",
        ],
    );
    check(
        "[telemetry]\nlog_format = \"yaml\"\nsample = nan\n",
        &[
            "c.toml:2:14: telemetry.log_format: the value is not one of those allowed; expected \"text\" or \"json\"",
            "c.toml:3:10: telemetry.sample: it is out of range; expected a number from 0 to 1",
        ],
    );
    check(
        "[retention]\nshort = \"soon\"\n",
        &[
            "c.toml:2:9: retention.short: the value is not valid; expected a duration such as \"90d\", or \"forever\"",
        ],
    );
    check(
        "policy = 7\n",
        &[
            "c.toml:1:10: policy: got a whole number; expected the path of a policy file, or a table with a policy",
        ],
    );
    check(
        "[store.postgres]\nlanes = 8\nconnections_max = 9\n",
        &[
            "c.toml:3:19: store.postgres.connections_max: there are too few connections; expected at least two more than store.postgres.lanes",
        ],
    );
    check(
        "[server]\nlisten = \"here\"\nlisen = 1\n[keys]\nmaster = \"s3cret\"\n",
        &[
            "c.toml:2:10: server.listen: the value is not valid; expected an address and a port such as 127.0.0.1:8787, [::1]:8787 or localhost:8787, or a port alone; 0.0.0.0:8787 is every network",
            "c.toml:3:1: server.lisen: there is no such key; did you mean server.listen?",
            "c.toml:5:10: keys.master: the value is not valid; expected \"env:NAME\" or \"file:PATH\"; the secret itself is never written here",
        ],
    );
    check(
        "server = 3\nshop = []\n",
        &[
            "c.toml:1:10: server: got a whole number; expected a table",
            "c.toml:2:8: shop: got a list; expected a table",
        ],
    );
}

/// Mistakes of several kinds are reported at once: what is wrong alone, and what only the entries together show. What only follows from
/// another mistake is not told.
#[test]
fn mistakes_of_every_kind_are_told_at_once() {
    let entries = "[[upstream]]\nname = \"a\"\nbase_url = \"https://a.example\"\n[[tool]]\nname = \"x.y\"\nupstream = \"nope\"\ndescription = \"d\"\n";
    let nope = "there is no upstream \"nope\"; add it as [[upstream]]";
    check(
        &format!("[server]\nlisen = 1\n{entries}colour = 1\n"),
        &[
            "c.toml:2:1: server.lisen: there is no such key; did you mean server.listen?",
            &format!("c.toml:8:12: tool[0].upstream: {nope}"),
            "c.toml:10:1: tool[0].colour: there is no such key",
        ],
    );
    check(
        &format!("[retention]\nshort = \"soon\"\n{entries}"),
        &[
            "c.toml:2:9: retention.short: the value is not valid; expected a duration such as \"90d\", or \"forever\"",
            &format!("c.toml:8:12: tool[0].upstream: {nope}"),
        ],
    );
    check(
        "[[upstream]]\nname = \"a\"\nbase_url = \"https://a.example\"\n[[tool]]\nname = \"x.y\"\nupstream = 7\ndescription = \"d\"\n",
        &["c.toml:6:12: tool[0].upstream: got a whole number; expected a string"],
    );
}

#[test]
fn a_text_that_is_no_toml_has_its_place() {
    let wrong = Document::parse("c.toml", "[server]\nlisten = \n[shop\n").unwrap_err();
    let places: Vec<(usize, usize)> = wrong.0.iter().map(|m| (m.line, m.column)).collect();
    assert_eq!(places.first(), Some(&(2, 10)), "{wrong}");
    assert!(places.len() >= 2, "both are told: {wrong}");
    assert!(wrong.0.iter().all(|mistake| mistake.key.is_empty()));
    let twice = mistakes("[shop]\nenabled = true\nenabled = false\n");
    assert!(twice.starts_with("c.toml:3:1: duplicate key"), "{twice}");
}

/// Secrets are named and never written; a secret that was written there is not repeated.
#[test]
fn a_secret_in_the_file_is_refused_and_not_repeated() {
    for (text, place) in [
        ("[keys]\nmaster = \"s3cret\"\n", "c.toml:2:10: keys.master"),
        (
            "[store]\nurl = \"postgres://u:s3cret@db/x\"\n",
            "c.toml:2:7: store.url",
        ),
        (
            "[store]\nurl = \"postgres://u@db/x?password=s3cret\"\n",
            "c.toml:2:7: store.url",
        ),
        (
            "[telemetry]\notlp = \"https://u:s3cret@otel/\"\n",
            "c.toml:2:8: telemetry.otlp",
        ),
        (
            "[keys]\ns3cret = 1\nmaster = 7\n",
            "c.toml:2:1: keys.s3cret",
        ),
    ] {
        let wrong = mistakes(text);
        assert!(wrong.starts_with(place), "{wrong}");
        // A key is no value: it has to be named.
        let rest = wrong.replace("keys.s3cret", "");
        assert!(!rest.contains("s3cret"), "{wrong}");
    }
}

/// Bounds: neither a huge file nor a thousand mistakes take more than a few lines to tell.
#[test]
fn huge_files_are_refused_shortly() {
    let huge = "#".repeat(countersign_config::FILE_BYTES_MAX + 1);
    assert_eq!(
        mistakes(&huge),
        "c.toml: the file has more than 16777216 bytes"
    );
    let many: Vec<String> = (0..1_000).map(|n| format!("k{n} = 1\n")).collect();
    let many = many.concat();
    assert_eq!(mistakes(&many).lines().count(), 50);
    let deep = format!("policy = {}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(!mistakes(&deep).is_empty());
}

/// A variable and a flag are named where a file has its line.
#[test]
fn a_wrong_variable_or_flag_is_named() {
    let wrong = |given: Given| -> Vec<Mistake> { Loaded::new(None, vec![given]).unwrap_err().0 };
    let said = |given: Given| {
        wrong(given)
            .iter()
            .map(ToString::to_string)
            .collect::<String>()
    };
    assert_eq!(
        said(Given::variable(
            "store.url",
            "COUNTERSIGN_STORE",
            "mysql://s3cret"
        )),
        "COUNTERSIGN_STORE: store.url: the value is not valid; expected sqlite:PATH, postgres://USER@HOST/DATABASE, memory, env:NAME or file:PATH"
    );
    assert_eq!(
        said(Given::flag("telemetry.sample", "--sample", 2.0)),
        "--sample: telemetry.sample: it is out of range; expected a number from 0 to 1"
    );
    assert_eq!(
        said(Given::flag("mcp.sessions_max", "--mcp-sessions", "few")),
        "--mcp-sessions: mcp.sessions_max: the value is not valid; expected a whole number"
    );
}

/// The entries of `[[upstream]]` and `[[tool]]` are checked like the rest, at their place.
#[test]
fn upstreams_and_tools_are_checked_at_their_place() {
    let file = "[[upstream]]\nname = \"crm\"\nbase_url = \"https://crm.example.com/\"\n\n[[tool]]\nname = \"crm.get\"\nupstream = \"crm\"\ndescription = \"A customer.\"\nrequest = { method = \"GET\", path = \"/c\" }\n";
    check(file, &[]);
    check(
        &file.replace("base_url", "base_ulr"),
        &[
            "c.toml:3:1: upstream[0].base_ulr: there is no such key; did you mean upstream[0].base_url?",
        ],
    );
    let wrong = mistakes(&file.replace("upstream = \"crm\"", "upstream = \"other\""));
    assert!(
        wrong.starts_with("c.toml:7:12: tool[0].upstream: "),
        "{wrong}"
    );
}
