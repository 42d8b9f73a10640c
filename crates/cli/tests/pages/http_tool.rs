//! `docs/http-tool.md` is run: its settings are a server's, and its Python checks the tokens that the server signs.

use crate::page;
use crate::shell::Shell;

/// A service around the function of the page: it answers with the claims, and with the names of the checks that refuse.
const SERVICE: &str = r#"
import http.server, os

class Service(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        right = {"token": self.headers["Countersign-Identity"], "secret": os.environ["ORDERS_IDENTITY_SECRET"].encode(),
                 "upstream": "orders", "tool": self.path.split("/")[2], "purpose": "call",
                 "key": self.headers["Idempotency-Key"], "body": body}
        head, payload, mac = right["token"].split(".")
        other = base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').decode().rstrip("=")
        wrong = {"secret": b"another", "upstream": "others", "tool": "orders.cancel", "purpose": "dry_run", "key": "another",
                 "body": body + b" ", "token": f"{other}.{payload}.{mac}"}
        refused = sorted(name for name in wrong if caller(**{**right, name: wrong[name]}) is None)
        real, time.time = time.time, lambda: 99999999999
        refused += ["time"] if caller(**right) is None else []
        time.time = real
        answer = json.dumps({"caller": caller(**right), "refused": refused}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Service).serve_forever()
"#;

/// P1: the check of the caller on the page accepts a token that the gateway has signed, and refuses it for anything else.
#[test]
fn the_python_of_the_page_checks_a_real_token() {
    let text = page::read("docs/http-tool.md");
    let block = |wanted: &str| {
        let found = page::blocks(&text)
            .into_iter()
            .find(|(kind, _)| *kind == wanted);
        found.unwrap().1
    };
    let mut shell = Shell::start();
    let own = format!("127.0.0.1:{}", shell.service_port());
    let settings = block("toml").replace("127.0.0.1:9000", &own);
    assert_ne!(settings, block("toml"));
    shell.write("countersign.toml", &settings);
    shell.write("service.py", &(block("python") + SERVICE));
    shell.run("export ORDERS_IDENTITY_SECRET=0123456789abcdef0123456789abcdef");
    shell.start_program("python3 service.py");
    shell.start_program("countersign serve --listen 127.0.0.1:8787");
    let reply = shell.run(
        "curl -s 127.0.0.1:8787/v1/tools/orders.place -d '{\"arguments\": {\"sku\": \"SKU-1\", \"quantity\": \"2\"}, \"idempotency_key\": \"k1\"}'",
    );
    let reply: serde_json::Value = serde_json::from_str(&reply.concat()).unwrap();
    let claim = |name: &str| reply.pointer(&format!("/data/caller/{name}"));
    assert_eq!(claim("sub"), Some(&"u_local".into()), "{reply:#}");
    assert_eq!(claim("tool"), Some(&"orders.place".into()), "{reply:#}");
    let refused = serde_json::json!([
        "body", "key", "purpose", "secret", "token", "tool", "upstream", "time"
    ]);
    assert_eq!(reply.pointer("/data/refused"), Some(&refused), "{reply:#}");
}
