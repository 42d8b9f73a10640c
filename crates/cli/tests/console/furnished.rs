//! A server at which everything has happened that a page can show: an upstream with changed tools, calls in doubt, a grant, an order, a
//! policy with rules, limits and budgets, and notifications.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use super::dispute::purchase;
use super::past::Past;
use super::world::World;

/// Rules of every kind, which refuse and limit nothing that the walk does.
const POLICY: &str = r#"
[[policy.tools]]
match = "*"
[[policy.tools]]
match = "sample.vat"
scopes = ["tax", "admin"]
[[policy.tools]]
match = "notes.clear"
four_eyes = false
confirm = "always"
[[policy.rules]]
name = "no-secrets"
match = "notes.add"
when = "args.text.startsWith('secret')"
then = "deny"
[[policy.rules]]
name = "long-notes"
match = "notes.add"
when = "args.text.size() > 200"
then = "confirm"
mode = "observe"
[[policy.rules]]
name = "large-payments"
match = "payment.create_payment_intent"
when = "args.amount > 26000"
then = "four_eyes"
[[policy.rules]]
name = "many-at-once"
match = "cart.add_item"
when = "args.quantity > 5"
then = "confirm"
[[policy.agents]]
id = "reader-*"
effects = ["read"]
[[policy.limits.user]]
calls = 100000
per = "1m"
[policy.limits.tools."catalog.*"]
calls = 5000
per = "1h"
counted = "together"
[policy.breaker]
identical = 1000
per = "10m"
[[policy.budgets]]
name = "daily"
scope = "user"
limit = "500000.00"
currency = "EUR"
per = "1d"
[[policy.budgets.tools]]
match = "payment.create_payment_intent"
amount = "/amount"
currency = "/currency"
unit = "minor"
"#;

/// The file with the secret of the receiver of notifications.
const HOOK: (&str, &str) = ("hook", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");

/// The server, and what is behind it.
pub(crate) struct Furnished {
    pub(crate) world: World,
    /// Id of a paid order.
    pub(crate) order: String,
    /// Record of a call that a rule refused.
    pub(crate) refused: String,
    _behind: TempDir,
}

impl Furnished {
    pub(crate) fn start() -> Self {
        Self::with_past(None)
    }

    /// The same, where all of it happened some time ago.
    pub(crate) fn with_past(past: Option<&Past>) -> Self {
        let behind = tempfile::tempdir().unwrap();
        let world = World::with_past(&config(behind.path()), &[HOOK], past);
        world.busy();
        let order = purchase(&world);
        world.visit("visit-7", None, &mut || {});
        for (user, key) in [("ann", "k-1"), ("ann", "k-2"), ("bob", "k-3")] {
            let body = json!({"arguments": {"sku": "a1"}, "user_id": user, "idempotency_key": key});
            let reply = world.call("orders.place", &body, None);
            assert_eq!(reply["ok"], false, "{reply}");
        }
        let secret = json!({"arguments": {"text": "secret plan"}});
        let refused = world.call("notes.add", &secret, None);
        assert_eq!(refused["error"]["code"], "FORBIDDEN", "{refused}");
        let refused = refused["evidence"]["snapshot_id"].as_str().unwrap();
        let long = json!({"arguments": {"text": "and so on ".repeat(30)}});
        let observed = world.call("notes.add", &long, None);
        assert_eq!(observed["ok"], true, "{observed}");
        let grant = [
            "grants",
            "make",
            "--user",
            "u_anna",
            "--to",
            "agent:shopper",
            "--tool",
            "notes.clear",
            "--calls",
            "3",
            "--until",
            "7d",
        ];
        world.run(&grant);
        changed(&world, behind.path());
        world.run(&["verify", "--all"]);
        // The look for what needs a person runs every few seconds; the watchdog ends a wait that does not end.
        while !world.run(&["notify", "list"]).contains("call_in_doubt") {
            std::thread::yield_now();
        }
        Self {
            order,
            refused: refused.to_owned(),
            world,
            _behind: behind,
        }
    }
}

/// A shop, an MCP server, and a service that takes every order and never answers. Notifications go to a receiver that takes them, and to a
/// closed port.
fn config(folder: &Path) -> String {
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("../upstream/tests/mcp/server.py");
    let words = json!([
        "python3",
        "-S",
        server.to_str().unwrap(),
        folder.to_str().unwrap()
    ]);
    let silent = answering("");
    let desk = answering("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
    format!(
        "[shop]\nenabled = true\n\
         [[upstream]]\nname = 'crm'\nkind = 'mcp'\ntrust = 'first_use'\ncommand = {words}\n\
         [[upstream]]\nname = 'orders'\nbase_url = 'http://{silent}'\nallow_private = ['loopback']\nbreaker = {{ failures = 0 }}\n\
         [[tool]]\nname = 'orders.place'\nupstream = 'orders'\ndescription = 'Places an order.'\neffect = 'external'\n\
         parameters = [{{ name = 'sku' }}]\n\
         [[notify]]\nname = 'ops'\nkind = 'webhook'\nurl = 'http://127.0.0.1:9/'\n\
         secret = 'file:hook'\n\
         [[notify]]\nname = 'desk'\nkind = 'webhook'\nurl = 'http://{desk}/countersign'\n\
         secret = 'file:hook'\n{POLICY}"
    )
}

/// The address of a service that says the same to everyone, and hangs up.
fn answering(text: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 16 * 1024]);
            let _ = stream.write_all(text.as_bytes());
        }
    });
    address
}

/// The server behind changes what one of its tools says, after its tools were approved.
fn changed(world: &World, folder: &Path) {
    let mut person = world.operator();
    while !person
        .send("/upstreams/crm/test", &[])
        .1
        .contains("as approved")
    {
        std::thread::yield_now();
    }
    let other = json!({
        "name": "say", "description": "Answers with a text, and keeps a copy of it.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    });
    std::fs::write(folder.join("tools"), other.to_string()).unwrap();
    person.send("/upstreams/crm/test", &[]);
}
