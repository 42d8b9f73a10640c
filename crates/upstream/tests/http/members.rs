//! Overrides of arguments behind references, and of members inside arguments.

use serde_json::Value;

use crate::service::{Service, json as answer};
use crate::world::{World, manifest, told};

/// As a generator of schemas writes it: everything is a reference.
const IMPORTED: &str = r##"
    [[tool]]
    name = "svc.enrol"
    upstream = "svc"
    description = "Enrols a person."
    request = { method = "POST", path = "/people" }
    [tool.input]
    type = "object"
    "$ref" = "#/$defs/Enrol"
    [tool.input."$defs".Enrol]
    type = "object"
    required = ["tenant", "body"]
    properties.tenant = { type = "string" }
    properties.body = { "$ref" = "#/$defs/Person" }
    properties.filter = { type = "object", properties = { region = { type = "string" }, q = { type = "string" } } }
    properties.lines = { type = "array", items = { allOf = [{ "$ref" = "#/$defs/Line" }] } }
    [tool.input."$defs".Person]
    type = "object"
    required = ["name", "source"]
    additionalProperties = true
    properties.name = { type = "string" }
    properties.source = { type = "string" }
    properties.born = { type = "string" }
    properties.age = { type = "integer" }
    properties.ssn = { type = "integer" }
    properties.admin = { type = "boolean" }
    [tool.input."$defs".Line]
    type = "object"
    additionalProperties = true
    properties.sku = { type = "string" }
    properties.price = { type = "number" }
"##;

const NAME: &str = "svc.enrol";

fn with(overrides: &str) -> String {
    format!("{IMPORTED}\n[[tool]]\nname = \"{NAME}\"\n[tool.arguments]\n{overrides}\n")
}

const PRESETS: &str = r#"
    tenant.preset = "acme"
    "/body/source".preset = "agent"
    "/body/admin".hidden = true
    "/filter/region".preset = "eu"
    "/lines/*/price".hidden = true
"#;

async fn plain() -> Service {
    Service::start(|_, _| answer(200, "{}")).await
}

fn schema(world: &World) -> Value {
    let catalog = world.executor.catalog();
    catalog.get(NAME).unwrap().spec().json_schema()
}

/// B14: a preset argument behind a reference at the root is neither shown nor required, and arrives.
#[tokio::test]
async fn a_preset_behind_a_reference_is_not_shown() {
    let service = plain().await;
    for input in [
        "",
        "[tool.input]\nallOf = [{ \"$ref\" = \"#/$defs/Enrol\" }]\n",
    ] {
        let tools = with("tenant.preset = 'acme'");
        let tools = match input {
            "" => tools,
            own => tools.replace(
                "[tool.input]\n    type = \"object\"\n    \"$ref\" = \"#/$defs/Enrol\"\n",
                &format!("{own}type = \"object\"\n"),
            ),
        };
        let world = World::new(&service, "", &tools);
        let shown = schema(&world).to_string();
        assert!(!shown.contains("tenant"), "{shown}");
        let call = r#"{"body": {"name": "Ann", "source": "x"}}"#;
        world.data(NAME, call).await;
        let sent: Value = serde_json::from_str(&service.last().text()).unwrap();
        assert_eq!(sent["tenant"], "acme", "{sent}");
        let refused = world.call(
            NAME,
            r#"{"tenant": "evil", "body": {"name": "Ann", "source": "x"}}"#,
        );
        assert!(!refused.await.ok);
    }
}

/// B14: members inside arguments are preset and hidden: not shown, refused from a client in every spelling, and sent.
#[tokio::test]
async fn members_are_preset_and_hidden() {
    let service = plain().await;
    let world = World::new(&service, "", &with(PRESETS));
    let shown = schema(&world).to_string();
    for name in ["tenant", "source", "admin", "region", "price"] {
        assert!(!shown.contains(name), "{name}: {shown}");
    }
    let mut lines = Vec::new();
    for arguments in [
        r#"{"body": {"name": "Ann", "extra": 1.10}}"#,
        r#"{"body": {"name": "Ann"}, "filter": {"q": "x"}, "lines": [{"sku": "a"}]}"#,
        r#"{"body": {"name": "Ann", "source": "me"}}"#,
        r#"{"body": {"name": "Ann", "SOURCE": "me"}}"#,
        r#"{"body": {"name": "Ann", "admin": true}}"#,
        r#"{"body": {"name": "Ann"}, "filter": {"region": "us"}}"#,
        r#"{"body": {"name": "Ann"}, "lines": [{"sku": "a"}, {"price": 1}]}"#,
    ] {
        let before = service.seen().len();
        let reply = world.call(NAME, arguments).await;
        let field = reply.error.as_ref().and_then(|it| it.details.field.clone());
        let seen = service.seen();
        let sent = seen.get(before).map(crate::service::Seen::text);
        let told = field.map_or_else(
            || sent.unwrap_or_default(),
            |at| {
                let code = told(&reply);
                format!("{} at {at}", code.split(':').next().unwrap())
            },
        );
        lines.push(told);
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    {"body":{"name":"Ann","extra":1.10,"source":"agent"},"tenant":"acme","filter":{"region":"eu"}}
    {"body":{"name":"Ann","source":"agent"},"filter":{"q":"x","region":"eu"},"lines":[{"sku":"a"}],"tenant":"acme"}
    INVALID_ARGUMENT at /body/source
    INVALID_ARGUMENT at /body/SOURCE
    INVALID_ARGUMENT at /body/admin
    INVALID_ARGUMENT at /filter/region
    INVALID_ARGUMENT at /lines/1/price
    "#);
}

/// B14: kind, leniency and sensitivity of members, on top of the foreign schema.
#[tokio::test]
async fn members_are_bound_as_the_entry_says() {
    let service = plain().await;
    let call = async |overrides: &str, body: &str| {
        let world = World::new(&service, "", &with(overrides));
        let arguments = format!(r#"{{"tenant": "t", "body": {body}}}"#);
        world.call(NAME, &arguments).await
    };
    let body = |member: &str| format!(r#"{{"name": "Ann", "source": "x", {member}}}"#);
    for (overrides, member, is_bound) in [
        ("", r#""born": "long ago""#, true),
        (
            "'/body/born'.kind = 'timestamp'",
            r#""born": "long ago""#,
            false,
        ),
        (
            "'/body/born'.kind = 'timestamp'",
            r#""born": "2001-01-01T00:00:00Z""#,
            true,
        ),
        ("", r#""age": "7""#, true),
        ("'/body/age'.leniency = 'strict'", r#""age": "7""#, false),
        ("'/body/ssn'.leniency = 'strict'", r#""age": "7""#, true),
    ] {
        let reply = call(overrides, &body(member)).await;
        assert_eq!(reply.ok, is_bound, "{overrides} {member}: {}", told(&reply));
    }
    for (overrides, is_quoted) in [("", true), ("'/body/ssn'.sensitivity = 'secret'", false)] {
        let reply = call(overrides, &body(r#""ssn": "hunter2""#)).await;
        let text = serde_json::to_string(&reply).unwrap();
        assert_eq!(text.contains("hunter2"), is_quoted, "{text}");
    }
}

/// B14: a pointer that leads nowhere, and a setting that a member cannot have, are mistakes at the entry that has them.
#[tokio::test]
async fn pointers_lead_to_declared_members() {
    let service = plain().await;
    let check = |overrides: &str| {
        let complaints = manifest(&service, "", &with(overrides)).check();
        let lines: Vec<_> = complaints.iter().map(ToString::to_string).collect();
        lines.join("\n")
    };
    insta::assert_snapshot!(check("'/body/sn'.sensitivity = 'secret'"), @"tool[1].arguments./body/sn: the pointer leads to no declared member; correct it, or declare the member");
    insta::assert_snapshot!(check("'/body/sn'.preset = 1"), @"tool[1].arguments./body/sn: the pointer leads to no declared member; correct it, or declare the member");
    insta::assert_snapshot!(check("'/lines/price'.hidden = true"), @"tool[1].arguments./lines/price: the pointer leads to no declared member; correct it, or declare the member");
    insta::assert_snapshot!(check("'/lines/*'.hidden = true"), @"tool[1].arguments./lines/*: the pointer leads to no declared member; correct it, or declare the member");
    insta::assert_snapshot!(check("'/body/ssn' = { in = 'query', name = 'x', preset = 1, from_call = 'user_id' }"), @r"
    tool[1].arguments./body/ssn.from_call: the argument has a preset value already
    tool[1].arguments./body/ssn.in: it is for a whole argument, not for a member inside one; leave it out
    tool[1].arguments./body/ssn.name: it is for a whole argument, not for a member inside one; leave it out
    ");
    insta::assert_snapshot!(check("tenant.preset = 'a'\n'/tenant'.hidden = true"), @"tool[1].arguments./tenant: the argument has an entry under its name already; join them");
    insta::assert_snapshot!(check("'/body/ssn'.kind = 'string'"), @r#"tool[1].arguments./body/ssn: the schema has the type "integer", which no value of kind string has; choose another kind"#);
    insta::assert_snapshot!(check("'/body/ssn'.sensitivity = 'secret'"), @"");
}
