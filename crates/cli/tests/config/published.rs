//! The published schema and the reference page: every setting, those of an inline policy among them.

use countersign_config::{page, schema};
use countersign_gateway::policy;
use serde_json::{Value, json};

fn read(name: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    std::fs::read_to_string(format!("{root}/{name}")).unwrap_or_default()
}

/// The committed page and schema are those that the texts make.
#[test]
fn generated_files_are_up_to_date() {
    let policy = policy::schema();
    let mend = "run `cargo xtask generate`";
    let text = schema::text(&policy);
    assert!(read("contracts/config.schema.json") == text, "{mend}");
    assert!(
        read("docs/configuration.md") == page::page(&policy),
        "{mend}"
    );
}

/// B14: an editor knows the members of an inline policy: those of the example, and none that is misspelt.
#[test]
fn the_schema_knows_an_inline_policy() {
    let published = schema::with_policy(&policy::schema());
    let validator = jsonschema::validator_for(&published).expect("it is a schema");
    let example: Value = toml::from_str(&read("docs/examples/policy.toml")).expect("it is TOML");
    let told: Vec<String> = validator
        .iter_errors(&json!({ "policy": example }))
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert_eq!(told, [""; 0]);
    for (policy, is_right) in [
        (r#"{"revision": "1"}"#, true),
        (r#"{"revison": "1"}"#, false),
        (r#"{"tools": [{"match": "*"}]}"#, true),
        (r#"{"tools": [{"matches": "*"}]}"#, false),
        (r#"{"limits": {"user": {"calls": 1, "per": "1m"}}}"#, true),
        (r#"{"limits": {"user": [{"calls": 1, "per": "1m"}]}}"#, true),
        (r#"{"limits": {"user": {"calls": 0, "per": "1m"}}}"#, false),
        (
            r#"{"limits": {"tools": {"a.*": {"calls": 1, "pre": "1m"}}}}"#,
            false,
        ),
        (
            r#"{"issuers": [{"issuer": "https://a.example", "audience": ["b"]}]}"#,
            true,
        ),
        (r#"{"issuers": [{"issuer": "https://a.example"}]}"#, false),
        (
            r#"{"budgets": [{"name": "a", "scope": "user", "limit": "1", "currency": "USD"}]}"#,
            true,
        ),
        (
            r#"{"budgets": [{"name": "a", "scope": "users", "limit": "1", "currency": "USD"}]}"#,
            false,
        ),
        (
            r#"{"rules": [{"name": "a", "match": "*", "then": "deny"}]}"#,
            true,
        ),
        (
            r#"{"rules": [{"name": "a", "match": "*", "then": "refuse"}]}"#,
            false,
        ),
        (r#""policy.toml""#, true),
    ] {
        let policy: Value = serde_json::from_str(policy).expect("it is JSON");
        let whole = json!({ "policy": policy });
        assert_eq!(validator.is_valid(&whole), is_right, "{whole}");
    }
}

/// Every member of a policy is on the page, with its text.
#[test]
fn the_page_lists_the_members_of_a_policy() {
    let page = page::page(&policy::schema());
    for line in [
        "## `[policy]`",
        "## `[policy.defaults]`",
        "## `[policy.limits]`",
        "## `[policy.breaker]`",
        "## `[[policy.tools]]`",
        "## `[[policy.agents]]`",
        "## `[[policy.rules]]`",
        "## `[[policy.issuers]]`",
        "## `[[policy.budgets]]`",
        "| `jwks_url` |",
        "| `counted` |",
        "| `spent` |",
        "| `when` |",
    ] {
        assert!(page.contains(line), "{line}");
    }
}
