//! The configuration of upstreams and tools: how it is read, joined and checked.

#![expect(
    clippy::unwrap_used,
    clippy::too_many_lines,
    reason = "tests stop where they cannot go on, and are tables"
)]

use countersign_contract::tool::{KeyRule, Recovery};
use countersign_contract::{Effect, Input};
use countersign_upstream::declare::spec_of;
use countersign_upstream::mcp::pins::Pins;
use countersign_upstream::{Keep, Manifest, ToolEntry, Upstreams};

fn read(text: &str) -> Manifest {
    toml::from_str(text).unwrap()
}

fn complaints(text: &str) -> String {
    let complaints = read(text).check();
    let lines: Vec<_> = complaints.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

const CRM: &str = r#"
    [[upstream]]
    name = "crm"
    base_url = "https://crm.example.com/api"
    auth.bearer.token = "env:CRM_TOKEN"
"#;

/// B14: a whole configuration, with every kind of member, has nothing to complain about and comes back as it was.
#[test]
fn a_whole_configuration_is_read_and_written() {
    let manifest = read(
        r#"
        [[upstream]]
        name = "orders"
        kind = "http"
        base_url = "http://10.1.2.3:8080"
        hosts = ["files.example.com"]
        allow_private = ["10.1.0.0/16", "loopback"]
        identity_secret = "file:identity.key"
        headers = { X-Tenant = "acme" }
        timeouts = { connect_ms = 500 }
        breaker.failures = 2
        [upstream.auth.client_credentials]
        token_url = "https://login.example.com/token"
        client_id = "gateway"
        client_secret = "env:ORDERS_SECRET"
        scopes = ["orders:write"]

        [[tool]]
        name = "orders.place"
        upstream = "orders"
        description = "Places an order."
        key_fields = ["/order_id"]
        recovery.reconcile.grace_seconds = 30
        parameters = [{ name = "order_id" }, { name = "quantity", kind = "integer", minimum = 1 }]

        [[tool]]
        name = "orders.search"
        upstream = "orders"
        description = "Finds orders."
        guessed = ["effect"]
        request = { method = "POST", path = "/search/{region}", query = { v = "2" } }
        pagination = { by.cursor = { parameter = "cursor", next = "/next" }, items = "/items" }
        response = { data = "/items", on_mismatch = "refuse" }
        errors = [{ status = "200", pointer = "/error", code = "UPSTREAM_ERROR" }]
        [tool.input]
        type = "object"
        required = ["region", "tenant"]
        [tool.input.properties]
        region = { type = "string" }
        tenant = { type = "string" }
        after = { type = "string" }
        tags = { type = "array", items = { type = "string" } }
        [tool.arguments]
        tags = { in = "query", style = "pipeDelimited", explode = false }
        tenant = { preset = "acme" }

        [[tool]]
        name = "orders.search"
        effect = "read"
        ttl_seconds = 60
        arguments.after.kind = "timestamp"
        arguments.region.sensitivity = "personal"
        "#,
    );
    assert_eq!(manifest.check(), []);
    let written = toml::to_string(&manifest).unwrap();
    assert_eq!(read(&written), manifest);

    let tools = manifest.tools();
    let [place, search] = tools.as_slice() else {
        unreachable!("two tools: {tools:?}");
    };
    let place = spec_of(place).unwrap();
    assert_eq!(place.behaviour.idempotency.key, KeyRule::Derive);
    assert_eq!(
        place.behaviour.recovery,
        Recovery::Reconcile { grace_seconds: 30 }
    );
    assert_eq!(place.behaviour.effect, Effect::External);
    assert!(matches!(place.input, Input::Parameters(_)));
    // What the second entry sets is no guess any more.
    assert_eq!(search.guessed, [""; 0]);
    let search = spec_of(search).unwrap();
    assert_eq!(search.behaviour.effect, Effect::Read);
    insta::assert_snapshot!(serde_json::to_string_pretty(&search.json_schema()).unwrap(), @r#"
    {
      "properties": {
        "after": {
          "format": "date-time",
          "type": "string",
          "x-kind": "timestamp"
        },
        "region": {
          "type": "string",
          "x-sensitivity": "personal"
        },
        "tags": {
          "items": {
            "type": "string"
          },
          "type": "array"
        }
      },
      "required": [
        "region"
      ],
      "type": "object"
    }
    "#);
}

/// B14: all mistakes are reported at once, each with its key.
#[test]
fn mistakes_are_named_by_their_key() {
    insta::assert_snapshot!(complaints(r#"
        [[upstream]]
        name = "Bad Name"
        base_url = "ftp://example.com"
        allow_private = ["local"]
        hosts = ["https://a"]
        response_bytes_max = 0
        headers = { "Content-Length" = "1", "a b" = "1" }
        [[upstream]]
        name = "a"
        base_url = "http://example.com/?x=1"
        auth.header = { name = "Host", value = "env:A" }
        [[upstream]]
        name = "a"
        base_url = "http://example.com"
        auth.basic = { username = "u", password = "env:A" }
        [[tool]]
        name = "no spaces"
        upstream = "b"
        [[tool]]
        name = "a.b"
        upstream = "a"
        description = "x"
        request = { method = "POST", path = "things/{id}/{other}", body = "text" }
        parameters = [{ name = "id" }, { name = "list", kind = "array" }]
        errors = [{ code = "NOT_FOUND" }, { status = "4x", code = "NOT_FOUND" }]
        key_fields = ["id"]
        confirm = "always"
        recovery = { reconcile = { grace_seconds = 1 } }
        [tool.arguments]
        typo = { in = "query" }
        list = { in = "header", style = "form" }
        id = { preset = 1, from_call = "user_id" }
        [[tool]]
        name = "a.c"
        upstream = "a"
        description = "x"
        request = { method = "GET", path = "/x/{y" }
        input = { type = "object", properties = { q = { type = "text" } } }
        confirm = "always"
        recovery = "retry"
        arguments.q.kind = "timestamp"
        [[tool]]
        name = "a.c"
        upstream = "a"
        [[tool]]
        name = "shop.none"
        ttl_seconds = 1
        change = "nothing"
    "#), @r#"
    upstream[0].name: "Bad Name" is not 1 to 64 lower-case letters, digits, - and _
    upstream[0].base_url: "ftp://example.com" is not an http or https address
    upstream[0].hosts[0]: "https://a" is not a host name; write it without scheme and path
    upstream[0].allow_private[0]: "local": it is not valid: use an address such as 192.168.1.7, a network such as 10.1.0.0/16, loopback
    upstream[0].headers.Content-Length: the header Content-Length cannot be set
    upstream[0].headers.a b: "a b" is not a header name
    upstream[0].response_bytes_max: 0 is not between 1 and 268435456
    upstream[1].base_url: leave ? and # out; fixed parameters stand in request.query
    upstream[1].auth.header.name: the header Host cannot be set
    upstream[2].name: there is another upstream "a"; rename one of them
    upstream[2].base_url: the credential would be sent unencrypted; use https, or name the private network of the upstream in allow_private
    tool[0].name: tool name "no spaces" is not valid: 1 to 128 of A-Z a-z 0-9 _ - . and a letter first
    tool[0].upstream: there is no upstream "b"; add it as [[upstream]]
    tool[0].description: a tool needs a description: it is what a model chooses it by
    tool[1].request.path: "things/{id}/{other}" does not start with /
    tool[1].request.path: {other} is not an argument of the tool; declare it
    tool[1].arguments.id.from_call: the argument has a preset value already
    tool[1].arguments.list.style: OpenAPI does not define this style for this place
    tool[1].arguments.typo: the tool has no such argument; declare it, or correct the name
    tool[1].request.body: exactly one argument needs in = "whole_body"
    tool[1].errors[0]: a rule without status and pointer would fit every answer
    tool[1].errors[1].status: "4x" is none of 404, 4xx, 500-599
    tool[1].reconcile: say how a lost call is looked up: add reconcile.request
    tool[1].key_fields[0]: "id" is not a JSON pointer; write /id
    tool[2].input: the tool a.c cannot be registered: the schema cannot be used at "/properties/q/type": "text" is not one of null, boolean, integer, number, string, array, object
    tool[2].request.path: a { or } has no partner; write {name}
    tool[2].recovery: a read needs no recovery
    tool[2].confirm: a read is not confirmed; declare the effect, or leave this out
    tool[3].upstream: tool[2] defines this tool already; name the upstream once
    tool[4].change: a tool that changes nothing has effect = "read"; leave this out
    tool[4].name: no entry defines this tool: name its upstream, or correct the name
    "#);
}

/// A20, B14: unknown members are refused when they are read, and a secret is not quoted.
#[test]
fn unknown_members_and_bare_secrets_are_refused() {
    let check = |text: &str, complaint: &str| {
        let error = toml::from_str::<Manifest>(text)
            .unwrap_err()
            .message()
            .to_owned();
        assert!(error.contains(complaint), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    };
    check(
        "[[upstream]]\nname = 'a'\nbase_url = 'x'\nretires = 1",
        "unknown field `retires`",
    );
    check(
        "[[tool]]\nname = 'a'\neffekt = 'read'",
        "unknown field `effekt`",
    );
    check(
        "[[tool]]\nname = 'a'\narguments.a.inn = 'query'",
        "unknown field `inn`",
    );
    check(
        "[[upstream]]\nname = 'a'\nbase_url = 'x'\nauth.bearer.token = 'hunter2'",
        "a secret is written as a reference, env:NAME or file:PATH",
    );
    check(
        "[[upstream]]\nname = 'a'\nbase_url = 'x'\nauth.bearer.tokn = 'env:A'",
        "tokn",
    );
}

/// A17, A20: the look-up of a tool of an MCP server is checked before it is needed: another tool of the same server, which is known to read.
#[test]
fn a_look_up_over_mcp_is_checked() {
    let files = "[[upstream]]\nname = 'files'\nkind = 'mcp'\ncommand = ['files']\n\
                 [[upstream]]\nname = 'crm'\nbase_url = 'https://crm.example.com'\n";
    let put = |rest: &str| {
        let put = "[[tool]]\nname = 'files.put'\nrecovery.reconcile.grace_seconds = 1\n";
        complaints(&format!("{files}{put}{rest}"))
    };
    let reads = "[[tool]]\nname = 'files.find'\neffect = 'read'\n";
    let arguments = "reconcile.arguments = { key = '{idempotency_key}', most = 1 }\n";
    let whole = format!("reconcile.tool = 'files.find'\n{arguments}{reads}");
    assert_eq!(put(&whole), "");
    insta::assert_snapshot!(put(""), @"tool[0].reconcile: say which tool of the server looks a lost call up: add reconcile.tool");
    insta::assert_snapshot!(put("reconcile.found = 'x'\nreconcile.request = { method = 'GET', path = '/x' }\n"), @r#"
    tool[0].reconcile.request: it is not for a tool of an MCP server; use tool and arguments
    tool[0].reconcile.found: "x" is not a JSON pointer; it has to start with /
    tool[0].reconcile.tool: say which tool of the server looks a lost call up
    "#);
    insta::assert_snapshot!(put("reconcile = { tool = 'files.find', arguments = { key = '{x' } }\n"), @r#"
    tool[0].reconcile.arguments.key: a { or } has no partner; write {name}
    tool[0].reconcile.tool: confirm that files.find changes nothing: add effect = "read" to it
    "#);
    for other in ["crm.find", "files.put"] {
        let text = put(&format!("reconcile.tool = '{other}'\n"));
        let expected = format!("{other:?} is no other tool of the same MCP server");
        assert!(text.starts_with("tool[0].reconcile.tool: "), "{text}");
        assert!(text.contains(&expected), "{text}");
    }
    let unused = "[[tool]]\nname = 'files.put'\nreconcile.tool = 'files.find'\n";
    insta::assert_snapshot!(complaints(&format!("{files}{unused}{reads}")), @"tool[0].reconcile: it is not used without recovery.reconcile");
    let http = "[[tool]]\nname = 'crm.put'\nupstream = 'crm'\ndescription = 'x'\n\
                recovery.reconcile.grace_seconds = 1\nreconcile.tool = 'files.find'\n";
    insta::assert_snapshot!(complaints(&format!("{files}{http}")), @"tool[0].reconcile.tool: it is for a tool of an MCP server; use request");
}

/// B14: a hidden argument is shown nowhere: not in the schema, not as required, not in examples.
#[test]
fn hidden_arguments_are_not_shown() {
    let manifest = read(&format!(
        r#"{CRM}
        [[tool]]
        name = "crm.a"
        upstream = "crm"
        description = "x"
        [tool.input]
        type = "object"
        required = ["token", "q"]
        allOf = [{{ type = "object", required = ["token"], properties = {{ token = {{ type = "string" }} }} }}]
        examples = [{{ q = "milk", token = "t" }}]
        [tool.input.properties]
        q = {{ type = "string" }}
        tenant = {{ type = "string" }}
        user = {{ type = "string" }}
        [tool.arguments]
        token.hidden = true
        tenant.preset = "acme"
        user.from_call = "user_id"
        q.example = "milk"
        "#
    ));
    assert_eq!(manifest.check(), []);
    let tools = manifest.tools();
    let schema = spec_of(tools.first().unwrap()).unwrap().json_schema();
    insta::assert_snapshot!(schema, @r#"{"allOf":[{"properties":{},"required":[],"type":"object"}],"examples":[{"q":"milk"}],"properties":{"q":{"examples":["milk"],"type":"string"}},"required":["q"],"type":"object"}"#);
}

/// B14: overrides of tools that the program brings are kept apart.
#[test]
fn overrides_of_other_tools_are_handed_on() {
    let manifest = read("[[tool]]\nname = 'pricing.get_quote'\nttl_seconds = 5\n");
    assert_eq!(manifest.tools(), []);
    let ours = |name: &str| name == "pricing.get_quote";
    assert_eq!(manifest.check_beside(ours), []);
    let expected = ToolEntry {
        ttl_seconds: Some(5),
        ..ToolEntry::named("pricing.get_quote")
    };
    assert_eq!(manifest.overrides(), [expected]);
}

/// After a change of the configuration, an upstream whose entry is as before keeps its service, and with it its connections and
/// its breaker. Tools can be looked at without any service and without a secret.
#[test]
fn an_unchanged_upstream_is_kept() {
    let text = "[[upstream]]\nname = 'a'\nbase_url = 'https://a.example'\n\
                [[upstream]]\nname = 'b'\nbase_url = 'https://b.example'\n\
                [[tool]]\nname = 'a.get'\nupstream = 'a'\ndescription = 'One.'\n";
    let before: Manifest = toml::from_str(text).unwrap();
    let folder = std::path::Path::new(".");
    let old = Upstreams::prepare(&before, folder).unwrap();
    let after = text.replace("https://b.", "https://c.");
    let after: Manifest = toml::from_str(&after).unwrap();
    let new = Upstreams::prepare_after(&after, folder, Some((&old, Keep::Unchanged))).unwrap();
    let is_kept = ["a", "b"].map(|name| {
        let (old, new) = (old.service(name).unwrap(), new.service(name).unwrap());
        std::sync::Arc::ptr_eq(old, new)
    });
    assert_eq!(is_kept, [true, false]);
    let secret = text.replace(
        "'https://a.example'",
        "'https://a.example'\nauth.bearer.token = 'env:NOT_SET_ANYWHERE'",
    );
    let secret: Manifest = toml::from_str(&secret).unwrap();
    assert!(Upstreams::prepare(&secret, folder).is_err());
    let declared = Upstreams::declared(&secret, &Pins::default(), &[]).unwrap();
    assert_eq!(declared[0].spec(), old.tools().unwrap()[0].spec());
}
