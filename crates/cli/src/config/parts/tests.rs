//! Every setting of the file arrives in an option of the code.

use std::collections::BTreeSet;

use countersign_config::{Document, Loaded, schema};
use countersign_evidence::note::SigningKey;

use super::*;
use crate::rules::RuleOptions;

/// Every option that is built from a configuration, as text.
fn built(text: &str) -> String {
    let document = Document::parse("c.toml", text).unwrap_or_else(|wrong| panic!("{wrong}"));
    let loaded = Loaded::new(Some(document), Vec::new()).expect("nothing else is given");
    let config = loaded.config();
    let key = SigningKey::from_seed("example.com/log", &[7; 32]).expect("it is a name");
    let binding = Binding::new("in_1".to_owned(), "m", key.verifying_key());
    let settings = settings(config);
    let limits = approval_limits(&config.approvals);
    let binder = binder_limits(&config.binder);
    let retention = retention_plan(&config.retention);
    let sqlite = sqlite_options(&config.store.sqlite, binding);
    let postgres = postgres_options(&config.store.postgres, "postgres://db/x");
    let telemetry = telemetry_options(&config.telemetry, false);
    let rules = RuleOptions::configured(&config.rules);
    // What the commands look at themselves.
    let (server, store, log) = (&config.server, &config.store, &config.log);
    let looked_at = format!(
        "listen={} anonymous={} data={:?} url={:?} origin={:?} lease={:?} grace={:?} copies={:?} keys={:?} shop={} policy={:?} sign_in={:?}",
        server.listen,
        server.allow_anonymous_loopback,
        store.data,
        store.url,
        log.origin,
        log.lease,
        log.signing_grace,
        log.copies,
        config.keys,
        config.shop.enabled,
        config.policy,
        config.sign_in,
    );
    format!(
        "{settings:?} {limits:?} {binder:?} {retention:?} {sqlite:?} {postgres:?} {telemetry:?} {rules:?} {looked_at}"
    )
}

/// Each setting with a value that is not its default, and the option that it becomes.
const SETTINGS: &[(&str, &str, &str)] = &[
    ("policy", "'p.toml'", r#"policy=Some(File("p.toml"))"#),
    ("server.listen", "'127.0.0.1:9'", "listen=127.0.0.1:9 "),
    (
        "server.public_url",
        "'https://a.b'",
        r#"public_url: Some("https://a.b")"#,
    ),
    ("server.allow_anonymous_loopback", "true", "anonymous=true"),
    ("server.body_bytes_max", "2001", "body_bytes_max: 2001"),
    (
        "server.arriving_bytes_max",
        "2002",
        "arriving_bytes_max: 2002",
    ),
    ("server.head_bytes_max", "2003", "head_bytes_max: 2003"),
    ("server.connections_max", "2004", " connections_max: 2004"),
    (
        "server.connections_per_peer_max",
        "2005",
        "connections_per_peer_max: 2005",
    ),
    (
        "server.requests_per_caller_max",
        "2006",
        "requests_per_caller_max: 2006",
    ),
    ("server.calls_max", "2007", " calls_max: 2007"),
    (
        "server.calls_per_caller_max",
        "2008",
        " calls_per_caller_max: 2008",
    ),
    (
        "server.waiting_calls_max",
        "2009",
        "waiting_calls_max: 2009",
    ),
    (
        "server.waiting_calls_per_caller_max",
        "2010",
        "waiting_calls_per_caller_max: 2010",
    ),
    ("server.read_timeout", "'2011s'", "read_timeout: 2011s"),
    ("server.threads", "207", "threads: 207"),
    (
        "server.body_bytes_per_second_min",
        "2012",
        "body_bytes_per_second_min: 2012",
    ),
    ("server.body_grace", "'2013s'", "body_grace: 2013s"),
    (
        "server.store_figures_interval",
        "'2014s'",
        "store_figures_interval: 2014s",
    ),
    ("server.drain_notice", "'2016s'", "drain_notice: 2016s"),
    ("server.drain", "'2015s'", "drain: 2015s"),
    ("store.data", "'d'", r#"data=Some("d")"#),
    ("store.url", "'sqlite:x.db'", "sqlite:x.db"),
    (
        "store.sqlite.disk_free_bytes_min",
        "3001",
        "disk_free_bytes_min: 3001",
    ),
    (
        "store.sqlite.jobs_waiting_max",
        "3002",
        "jobs_waiting_max: 3002",
    ),
    (
        "store.sqlite.drafts_waiting_max",
        "3003",
        "drafts_waiting_max: 3003",
    ),
    ("store.sqlite.readers", "31", "readers: 31"),
    ("store.sqlite.cache_bytes", "70001", "cache_bytes: 70001"),
    (
        "store.postgres.ca_file",
        "'ca.pem'",
        r#"ca_file: Some("ca.pem")"#,
    ),
    (
        "store.postgres.connections_max",
        "41",
        "connections_max: 41",
    ),
    ("store.postgres.lanes", "7", "lanes: 7"),
    ("store.postgres.batch_max", "4003", "batch_max: 4003"),
    ("store.postgres.queue_max", "4004", "queue_max: 4004"),
    (
        "store.postgres.connect_timeout",
        "'4005s'",
        "connect_timeout: 4005s",
    ),
    (
        "store.postgres.acquire_timeout",
        "'4006s'",
        "acquire_timeout: 4006s",
    ),
    (
        "store.postgres.statement_timeout",
        "'4007s'",
        "statement_timeout: 4007s",
    ),
    (
        "store.postgres.lock_timeout",
        "'4008s'",
        "lock_timeout: 4008s",
    ),
    (
        "store.postgres.doubt_limit",
        "'4009s'",
        "doubt_limit: 4009s",
    ),
    (
        "store.postgres.accept_lossy_server",
        "true",
        "accepts_lossy_server: true",
    ),
    (
        "log.origin",
        "'example.org/log'",
        r#"origin=Some("example.org/log")"#,
    ),
    ("log.lease", "'5001s'", "lease=Period(5001s)"),
    ("log.signing_grace", "'5002s'", "grace=Period(5002s)"),
    (
        "log.copies",
        "['file:elsewhere']",
        r#"copies=[File("elsewhere")]"#,
    ),
    ("retention.short", "'6001s'", "short: Some(6001s)"),
    ("retention.standard", "'forever'", "standard: None"),
    ("retention.long", "'6003s'", "long: Some(6003s)"),
    ("keys.master", "'env:M'", r#"master: Some(Env("M"))"#),
    (
        "keys.master_old",
        "'file:old'",
        r#"master_old: Some(File("old"))"#,
    ),
    ("telemetry.log", "'warn'", r#"log: "warn""#),
    ("telemetry.log_format", "'json'", "log_format: Json"),
    (
        "telemetry.otlp",
        "'http://o:1'",
        r#"otlp: Some("http://o:1")"#,
    ),
    ("telemetry.sample", "0.25", "sample_ratio: 0.25"),
    ("telemetry.genai_semconv", "'1.41'", "convention: V1_41"),
    ("mcp.sessions_max", "8001", "mcp_sessions_max: 8001"),
    ("mcp.streams_max", "8002", "mcp_streams_max: 8002"),
    (
        "mcp.streams_per_caller_max",
        "8003",
        "mcp_streams_per_caller_max: 8003",
    ),
    ("mcp.conformance", "true", "conformance: true"),
    (
        "sign_in.issuer",
        "'https://id.example.com/t'",
        r#"issuer: Some(WebUrl("https://id.example.com/t"))"#,
    ),
    (
        "sign_in.client_id",
        "'console'",
        r#"client_id: Some("console")"#,
    ),
    (
        "sign_in.client_secret",
        "'env:S'",
        r#"client_secret: Some(Env("S"))"#,
    ),
    (
        "sign_in.scopes",
        "['openid', 'x']",
        r#"scopes: ["openid", "x"]"#,
    ),
    ("sign_in.audience", "'here'", r#"audience: Some("here")"#),
    (
        "sign_in.resource",
        "'https://here'",
        r#"resource: Some("https://here")"#,
    ),
    (
        "approvals.url",
        "'https://a/{id}'",
        r#"approvals_url: Some("https://a/{id}")"#,
    ),
    ("approvals.valid_for", "'9001s'", "valid_for: 9001s"),
    ("approvals.pending_max", "9002", "pending_max: 9002"),
    ("approvals.wait_max", "'9003s'", "wait_max: 9003s"),
    ("approvals.waiting_max", "9004", " waiting_max: 9004"),
    (
        "approvals.waiting_per_user_max",
        "9005",
        "waiting_per_user_max: 9005",
    ),
    ("approvals.cool_down", "'9006s'", "cool_down: 9006s"),
    ("binder.raw_bytes_max", "9201", "raw_bytes_max: 9201"),
    ("binder.depth_max", "101", "depth_max: 101"),
    ("binder.nodes_max", "9203", "nodes_max: 9203"),
    ("binder.candidates_max", "902", "candidates_max: 902"),
    ("binder.decode_nesting_max", "15", "decode_nesting_max: 15"),
    (
        "binder.lookahead_bytes_max",
        "907",
        "lookahead_bytes_max: 907",
    ),
    ("binder.lookaheads_max", "9207", "lookaheads_max: 9207"),
    (
        "binder.union_attempts_per_node_max",
        "908",
        "union_attempts_per_node_max: 908",
    ),
    ("binder.issues_max", "9209", "issues_max: 9209"),
    (
        "binder.number_digits_max",
        "9210",
        "number_digits_max: 9210",
    ),
    ("binder.members_max", "9211", "members_max: 9211"),
    ("catalog.facade", "'on'", "facade: On"),
    ("catalog.listed_tools_max", "9101", "listed_tools_max: 9101"),
    (
        "catalog.listed_tokens_max",
        "9102",
        "listed_tokens_max: 9102",
    ),
    (
        "catalog.pinned",
        "['a.*']",
        r#"pinned: [ToolPattern("a.*")]"#,
    ),
    ("results.bytes_max", "9103", "result_bytes_max: Some(9103)"),
    (
        "results.rules",
        "[{tool = 'b.*', bytes_max = 9104}]",
        r#"(ToolPattern("b.*"), Some(9104))"#,
    ),
    ("rules.folder", "'r'", r#"folder: Some("r")"#),
    ("rules.knowledge", "'k'", r#"knowledge: Some("k")"#),
    ("shop.enabled", "true", "shop=true"),
    (
        "shop.checkout_url",
        "'https://c/{id}'",
        r#"checkout_url: Some("https://c/{id}")"#,
    ),
];

/// Every setting arrives in the code that it governs, and no setting is left out here.
#[test]
fn every_setting_arrives() {
    let usual = built("");
    for (key, value, option) in SETTINGS {
        assert!(!usual.contains(option), "{key} is {option} anyway");
        let set = built(&format!("{key} = {value}\n"));
        assert!(set.contains(option), "{key} does not arrive: {set}");
    }
    let known = SETTINGS.iter().map(|(key, ..)| *key);
    // It brings entries of other files, and becomes no option.
    let known: BTreeSet<&str> = known.chain(["include"]).collect();
    let all = schema::settings().map(|setting| setting.key.as_str());
    let all: BTreeSet<&str> = all.filter(|key| !key.contains("[]")).collect();
    assert_eq!(known, all);
}

/// The defaults of the file are those of the code.
#[test]
fn defaults_are_those_of_the_code() {
    let config = Config::default();
    assert_eq!(
        format!("{:?}", settings(&config)),
        format!(
            "{:?}",
            Settings {
                // A program that embeds the server has a runtime of its own.
                threads: processors(),
                ..Settings::default()
            }
        )
    );
    assert_eq!(
        approval_limits(&config.approvals),
        approve::Limits::default()
    );
    assert_eq!(binder_limits(&config.binder), Limits::default());
    assert_eq!(
        format!("{:?}", retention_plan(&config.retention)),
        format!("{:?}", RetentionPlan::default())
    );
    assert_eq!(
        format!(
            "{:?}",
            postgres_options(&config.store.postgres, "postgres://db/x")
        ),
        format!("{:?}", PostgresOptions::new("postgres://db/x"))
    );
    assert_eq!(
        format!("{:?}", telemetry_options(&config.telemetry, false)),
        format!("{:?}", telemetry::Options::default())
    );
    assert_eq!(
        config.log.signing_grace.duration(),
        countersign::newest::SIGNING_GRACE
    );
}
