//! The layers: default, file, environment, flag; the origin of each value; the difference of two files.

use countersign_config::schema::{self, sections, settings};
use countersign_config::starter::{Answers, Extent, text};
use countersign_config::value::StoreAddress;
use countersign_config::{Config, Document, Given, Loaded};
use proptest::prelude::*;
use serde_json::Value;

fn read(text: &str) -> Document {
    Document::parse("etc/countersign.toml", text).expect("the file is right")
}

fn load(text: &str, given: Vec<Given>) -> Loaded {
    Loaded::new(Some(read(text)), given).expect("the values are right")
}

/// Key, value and origin of the rows that are not the default.
fn set(loaded: &Loaded) -> String {
    let rows = loaded.rows().into_iter();
    let rows = rows.filter(|row| row.origin.to_string() != "default");
    rows.map(|row| format!("{} = {} ({})\n", row.key, row.value, row.origin))
        .collect::<Vec<_>>()
        .concat()
}

/// Issue 14, 1: each value with where it came from: default, file, environment, flag.
#[test]
fn the_later_layer_counts_and_every_value_has_its_origin() {
    let file = "\
[server]
listen = 'localhost:1'
calls_max = 7

[store]
data = 'data'
url = 'sqlite:x.db'
[telemetry]
log = 'warn'
otlp = 'http://collector:4318'
";
    let given = vec![
        Given::flag("server.listen", "--listen", "9000"),
        Given::flag("store.url", "--store", "postgres://u:s3cret@db/x"),
        Given::variable("store.url", "COUNTERSIGN_STORE", "memory"),
        Given::variable("store.data", "COUNTERSIGN_DATA", "elsewhere"),
        Given::variable(
            "keys.master",
            "COUNTERSIGN_MASTER_KEY",
            "env:COUNTERSIGN_MASTER_KEY",
        ),
        Given::unset_by("telemetry.otlp", "OTEL_SDK_DISABLED"),
        Given::flag("telemetry.sample", "--sample", "0.5"),
    ];
    let loaded = load(file, given);
    assert_eq!(
        set(&loaded),
        "\
server.listen = \"127.0.0.1:9000\" (flag --listen)
server.calls_max = 7 (etc/countersign.toml:3)
store.data = \"elsewhere\" (environment COUNTERSIGN_DATA)
store.url = \"postgres://db/x\" (flag --store)
keys.master = \"env:COUNTERSIGN_MASTER_KEY\" (environment COUNTERSIGN_MASTER_KEY)
telemetry.log = \"warn\" (etc/countersign.toml:9)
telemetry.otlp = null (environment OTEL_SDK_DISABLED)
telemetry.sample = 0.5 (flag --sample)
"
    );
    let url = loaded.config().store.url.as_ref();
    assert!(matches!(url, Some(StoreAddress::Postgres(address)) if address.contains("s3cret")));
    let shown = format!(
        "{loaded:?}{}",
        serde_json::to_string(&loaded.rows()).unwrap()
    );
    assert!(!shown.contains("s3cret"), "{shown}");
}

#[test]
fn relative_paths_count_from_the_folder_of_the_file_and_flags_do_not() {
    let file = "\
policy = 'policy.toml'
[store]
data = '/srv/data'
url = 'sqlite:a.db'
[log]
copies = ['file:kept', 'https://a.example/c']
[keys]
master = 'file:master'
[rules]
folder = 'rules'
";
    let given = vec![Given::flag("rules.knowledge", "--knowledge", "texts")];
    assert_eq!(
        set(&load(file, given)),
        "\
policy = \"etc/policy.toml\" (etc/countersign.toml:1)
store.data = \"/srv/data\" (etc/countersign.toml:3)
store.url = \"sqlite:etc/a.db\" (etc/countersign.toml:4)
log.copies = [\"file:etc/kept\",\"https://a.example/c\"] (etc/countersign.toml:6)
keys.master = \"file:etc/master\" (etc/countersign.toml:8)
rules.folder = \"etc/rules\" (etc/countersign.toml:10)
rules.knowledge = \"texts\" (flag --knowledge)
"
    );
}

/// Without a file the shop is there; with one it is off unless the file says otherwise.
#[test]
fn the_shop_is_there_without_a_file_and_off_with_one() {
    let without = Loaded::new(None, Vec::new()).unwrap();
    assert!(without.config().shop.enabled);
    assert!(!load("", Vec::new()).config().shop.enabled);
    assert!(
        load("[shop]\nenabled = true\n", Vec::new())
            .config()
            .shop
            .enabled
    );
}

/// The difference names keys, and which of them a running server takes; it shows no value that may be a secret.
#[test]
fn the_difference_of_two_files_names_keys() {
    let old = load("[server]\nlisten = '1'\n", Vec::new());
    let new = load(
        "[server]\nlisten = '2'\n[telemetry]\nlog = 'warn'\n[policy]\nrevision = 's3cret'\n[[policy.tools]]\nmatch = '*'\n",
        Vec::new(),
    );
    let changes = old.changes(&new);
    let changes: Vec<String> = changes
        .iter()
        .map(|change| format!("{change} {}", change.is_live))
        .collect();
    assert_eq!(
        changes,
        [
            "policy true",
            "policy.revision true",
            "policy.tools[0].match true",
            "server.listen (\"127.0.0.1:1\" → \"127.0.0.1:2\") false",
            "telemetry.log (\"info\" → \"warn\") true",
        ]
    );
}

/// Issue 14, 1: entries are compared by their names. One that is inserted first is one change, not one of every entry behind it.
#[test]
fn an_entry_that_is_inserted_first_is_one_change() {
    let entries = |first: &str, more: &str, key: &str| {
        let text = format!(
            "{first}
            [[upstream]]
            name = 'svc'
            base_url = 'https://svc.example'
            auth.bearer.token = 'env:{key}'
            headers = {{ X-Team = '{key}' }}
            [[tool]]
            name = 'svc.b'
            deadline_ms = 2
            [[tool]]
            name = 'svc.c'
            deadline_ms = {more}
            parameters = [{{ name = 'n', kind = 'integer' }}, {{ name = 'm', kind = 'string' }}]
            [[tool]]
            name = 'svc.c'
            title = 'C'
            "
        );
        load(&text, Vec::new())
    };
    let old = entries("", "3", "ONE");
    let changes = |new: &Loaded| {
        let changes = old.changes(new).into_iter();
        changes.map(|it| it.to_string()).collect::<Vec<_>>()
    };
    let inserted = "[[tool]]\nname = 'svc.a'\ndeadline_ms = 1";
    assert_eq!(
        changes(&entries(inserted, "3", "ONE")),
        [
            "tool[svc.a].deadline_ms (null → 1)",
            "tool[svc.a].name (null → \"svc.a\")",
        ]
    );
    assert_eq!(
        changes(&entries(inserted, "4", "TWO")),
        [
            "tool[svc.a].deadline_ms (null → 1)",
            "tool[svc.a].name (null → \"svc.a\")",
            "tool[svc.c].deadline_ms (3 → 4)",
            "upstream[svc].auth.bearer.token",
            "upstream[svc].headers.X-Team",
        ]
    );
}

/// A running server takes the first entry of a list like every further one.
#[test]
fn the_first_tool_is_taken_by_a_running_server() {
    let tool = "[[tool]]\nname = 'notes.add'\ntitle = 'Adds a note'\n";
    let (old, new) = (load("", Vec::new()), load(tool, Vec::new()));
    let changes = old.changes(&new);
    let waiting: Vec<_> = changes.iter().filter(|change| !change.is_live).collect();
    assert!(!changes.is_empty() && waiting.is_empty(), "{waiting:?}");
}

/// Every setting has a text, a form and one key; every flag and variable belongs to one setting.
#[test]
fn every_setting_is_documented_once() {
    let mut count = 0;
    let mut names: Vec<&str> = Vec::new();
    for setting in settings() {
        count += 1;
        assert!(
            setting.text.len() > 5 && setting.text.ends_with('.'),
            "{setting:?}"
        );
        let is_open = setting.key.contains("[]");
        assert!(is_open || setting.form != "a value", "{setting:?}");
        names.extend(
            [setting.env.as_deref(), setting.flag.as_deref()]
                .into_iter()
                .flatten(),
        );
        names.push(&setting.key);
    }
    assert!(count >= 100, "{count} settings");
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "a name is used twice");
    assert!(
        sections()
            .iter()
            .all(|section| section.key.is_empty() || section.text.ends_with('.'))
    );
}

/// The schema for editors allows the same values as the reader, the defaults included.
#[test]
fn the_schema_is_a_schema_and_agrees_with_the_reader() {
    let validator = jsonschema::validator_for(schema::schema()).expect("it is a schema");
    let mut defaults = serde_json::to_value(Config::default()).unwrap();
    drop_nulls(&mut defaults);
    assert!(validator.is_valid(&defaults));
    for (text, is_right) in [
        ("[server]\nlisten = '1'\n", true),
        ("[server]\nlisen = '1'\n", false),
        ("[server]\ncalls_max = 0\n", false),
        ("policy = 'x'\n", true),
        ("[policy]\nrevision = '1'\n", true),
        ("policy = 3\n", false),
        ("[telemetry]\nlog_format = 'yaml'\n", false),
        // Settings that are called like a keyword of JSON Schema.
        (
            "[[upstream]]\nname = 'a'\nbase_url = 'https://a.example'\n\
             [[tool]]\nname = 'a.b'\nupstream = 'a'\ndescription = 'B.'\n\
             parameters = [{ name = 'n', default = 'x' }]\narguments.n.default = 'y'\n",
            true,
        ),
    ] {
        let value: toml::Table = text.parse().expect("it is TOML");
        let value = serde_json::to_value(value).expect("it is JSON");
        assert_eq!(validator.is_valid(&value), is_right, "{text}");
        assert_eq!(Document::parse("c.toml", text).is_ok(), is_right, "{text}");
    }
}

fn drop_nulls(value: &mut Value) {
    if let Value::Object(members) = value {
        members.retain(|_, member| !member.is_null());
        members.values_mut().for_each(drop_nulls);
    }
}

/// A new file can be read as it is, has the answers, and shows each default as it is.
#[test]
fn a_new_file_says_what_was_answered() {
    let usual = text(&Answers::default(), Extent::Usual);
    assert_eq!(
        set(&load(&usual, Vec::new()))
            .replace("etc/countersign.toml:", "")
            .lines()
            .map(|line| line.split(" (").next().unwrap().to_owned())
            .collect::<Vec<_>>(),
        ["server.listen = \"127.0.0.1:8787\"", "shop.enabled = false"]
    );
    let answers = Answers {
        listen: "9000".parse().unwrap(),
        store: Some("postgres://app@db/x".parse().unwrap()),
        upstream: Some("http://127.0.0.1:8000".parse().unwrap()),
        shop: true,
        confirm_writes: true,
    };
    for extent in [Extent::Usual, Extent::Everything] {
        let config = load(&text(&answers, extent), Vec::new()).config().clone();
        assert_eq!(config.server.listen.to_string(), "127.0.0.1:9000");
        assert!(config.shop.enabled && config.policy.is_some());
        assert_eq!(config.upstream[0].allow_private, ["loopback"]);
        assert_eq!(config.store.url.unwrap().to_string(), "postgres://app@db/x");
    }
    let everything = text(&Answers::default(), Extent::Everything);
    // Every line that shows a default is right when it is switched on.
    let on: String = everything
        .lines()
        .take_while(|line| !line.starts_with("# Which caller may call which tool"))
        .filter(|line| !line.ends_with('='))
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest.split(' ').nth(1) == Some("=") => format!("{rest}\n"),
            Some(_) | None => format!("{line}\n"),
        })
        .collect();
    let on = load(&on, Vec::new());
    assert_eq!(on.config(), &Config::default());
    for setting in settings().filter(|one| one.key.contains('.') && !one.key.contains('[')) {
        let name = setting.key.rsplit('.').next().unwrap();
        let line = everything
            .lines()
            .find(|line| line.trim_start_matches("# ").starts_with(name));
        assert!(line.is_some(), "{} is not in the file", setting.key);
    }
}

proptest! {
    /// Every text is read or refused, and a mistake has a place inside the text.
    #[test]
    fn any_text_is_read_or_refused_at_its_place(text in "([\\[\\]{}=\"'.,#\\n a-z0-9-]|server|listen|store|url|policy|é){0,80}") {
        if let Err(mistakes) = Document::parse("c.toml", &text) {
            let lines = text.matches('\n').count() + 1;
            prop_assert!(!mistakes.0.is_empty());
            for mistake in mistakes.0 {
                prop_assert!((1..=lines).contains(&mistake.line), "{mistake}");
            }
        }
    }
}
