//! The examples: services with and without the decorator, in Python, TypeScript and Go.

use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::files::compiler;
use crate::world::{Gateway, Running, SECRET, Says, node_project, python_command, root, run, told};

/// The example in Python as a process: with `FastAPI` by uvicorn, else by itself.
fn python_example(name: &str, folder: &TempDir) -> Running {
    let mut command = python_command();
    let path = root().join("examples/python");
    let says = if name.ends_with("fastapi") {
        let module = format!("{name}:app");
        command.args(["-m", "uvicorn", &module, "--port", "0", "--app-dir"]);
        command.arg(path);
        Says::Error
    } else {
        command.arg(path.join(format!("{name}.py")));
        Says::Out
    };
    command
        .current_dir(folder.path())
        .env("ORDERS_IDENTITY_SECRET", SECRET)
        .env("ORDERS_DB", folder.path().join("orders.db"))
        .env("PORT", "0");
    Running::start(&mut command, says)
}

/// The entries that an example in Python prints, for the port that it listens on.
fn python_entries(name: &str, port: u16) -> String {
    run(python_command()
        .arg(root().join(format!("examples/python/{name}.py")))
        .arg("--countersign")
        .env("ORDERS_IDENTITY_SECRET", SECRET)
        .env("PORT", port.to_string()))
}

/// The examples in TypeScript, with their types checked.
fn compiled() -> TempDir {
    let folder = node_project();
    for file in [
        "bare-express.ts",
        "governed-express.ts",
        "orders.ts",
        "tsconfig.json",
    ] {
        let source = root().join("examples/typescript").join(file);
        std::fs::copy(source, folder.path().join(file)).unwrap();
    }
    run(compiler().args(["-p", "."]).current_dir(folder.path()));
    folder
}

fn node_example(name: &str, folder: &TempDir) -> Command {
    let mut command = Command::new("node");
    command
        .arg(format!("{name}.js"))
        .current_dir(folder.path())
        .env("ORDERS_IDENTITY_SECRET", SECRET)
        .env("ORDERS_FILE", folder.path().join("orders.jsonl"))
        .env("PORT", "0");
    command
}

/// A call of a bound text, and the same call again: one effect, one answer.
fn assert_once(gateway: &Gateway, arguments: &str) -> Value {
    let first = gateway.keyed("orders.place", arguments, "k_1");
    assert_eq!(first["data"]["quantity"], 2, "{first}");
    assert!(told(&first).contains("TEXT_TO_INTEGER"), "{first}");
    let second = gateway.keyed("orders.place", arguments, "k_1");
    assert_eq!(
        (&second["data"], &second["replayed"]),
        (&first["data"], &json!(true))
    );
    first
}

/// A6: a bare service becomes a governed tool with at most ten added lines, its look-up among them. A line that is only changed counts, too.
#[test]
fn a_bare_service_is_governed_with_ten_lines() {
    let code = |file: &str| {
        let text = std::fs::read_to_string(root().join("examples").join(file)).unwrap();
        // What is said about the file is no part of the program.
        let text = match text.strip_prefix("\"\"\"") {
            Some(documented) => documented.split_once("\"\"\"").unwrap().1.to_owned(),
            None => text,
        };
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    for (bare, governed) in [
        ("python/bare_fastapi.py", "python/governed_fastapi.py"),
        (
            "typescript/bare-express.ts",
            "typescript/governed-express.ts",
        ),
    ] {
        let mut known = code(bare);
        let added = code(governed).into_iter().filter(|line| {
            let at = known.iter().position(|own| own == line);
            at.map(|at| known.remove(at)).is_none()
        });
        let added: Vec<_> = added.collect();
        assert!((1..=10).contains(&added.len()), "{governed}: {added:#?}");
    }
}

const ARGUMENTS: &str = r#"{"sku": "SKU-1", "quantity": "2"}"#;

/// A6, B15: a `FastAPI` service as it is, by configuration alone; and with the decorator, which gives it a look-up.
#[test]
fn fastapi_with_and_without_the_decorator() {
    let folder = tempfile::tempdir().unwrap();
    let bare = python_example("bare_fastapi", &folder);
    let entries = format!(
        "[[upstream]]\nname = 'orders'\nbase_url = 'http://127.0.0.1:{}'\nallow_private = ['loopback']\n\
         [[tool]]\nname = 'orders.place'\nupstream = 'orders'\ndescription = 'Places an order.'\n\
         request = {{ method = 'POST', path = '/orders' }}\n\
         parameters = [{{ name = 'sku' }}, {{ name = 'quantity', kind = 'integer', default = 1 }}]\n\
         arguments = {{ sku = {{ in = 'query' }}, quantity = {{ in = 'query' }} }}\n",
        bare.port
    );
    let gateway = Gateway::start(&entries);
    assert_once(&gateway, ARGUMENTS);
    let missing = gateway.keyed("orders.place", r#"{"sku": "other"}"#, "k_2");
    assert_eq!(missing["error"]["code"], "NOT_FOUND", "{missing}");

    let governed = python_example("governed_fastapi", &folder);
    let gateway = Gateway::start(&python_entries("governed_fastapi", governed.port));
    let reply = assert_once(&gateway, ARGUMENTS);
    let missing = gateway.keyed("orders.place", r#"{"sku": "other"}"#, "k_2");
    assert_eq!(missing["error"]["code"], "NOT_FOUND", "{missing}");
    let message = &missing["error"]["details"]["upstream_message"];
    assert_eq!(message, "there is no such item");
    assert_eq!(rows(&folder), 2, "one of each: {reply}");
}

fn rows(folder: &TempDir) -> u64 {
    let count = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM orders').fetchone()[0])";
    let said = run(python_command()
        .args(["-c", count])
        .arg(folder.path().join("orders.db")));
    said.trim().parse().unwrap()
}

/// A6, B15: the same with Express.
#[test]
fn express_with_and_without_the_declaration() {
    let folder = compiled();
    let bare = Running::start(&mut node_example("bare-express", &folder), Says::Out);
    let entries = format!(
        "[[upstream]]\nname = 'orders'\nbase_url = 'http://127.0.0.1:{}'\nallow_private = ['loopback']\n\
         [[tool]]\nname = 'orders.place'\nupstream = 'orders'\ndescription = 'Places an order.'\n\
         request = {{ method = 'POST', path = '/orders' }}\n\
         parameters = [{{ name = 'sku' }}, {{ name = 'quantity', kind = 'integer', default = 1 }}]\n",
        bare.port
    );
    assert_once(&Gateway::start(&entries), ARGUMENTS);

    let governed = Running::start(&mut node_example("governed-express", &folder), Says::Out);
    let entries = run(node_example("governed-express", &folder).arg("--countersign"));
    let entries = entries.replace(":8000", &format!(":{}", governed.port));
    let gateway = Gateway::start(&entries);
    let reply = assert_once(&gateway, ARGUMENTS);
    let few = gateway.keyed("orders.place", r#"{"sku": "a", "quantity": 0}"#, "k_2");
    assert_eq!(few["error"]["code"], "INVALID_ARGUMENT", "{few}");
    let lines = std::fs::read_to_string(folder.path().join("orders.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 2, "one of each: {reply}");
}

/// A5, A17: the whole contract as the examples have it, with a user who confirms.
#[test]
fn the_orders_are_confirmed_and_placed_once() {
    let (sqlite, node) = (tempfile::tempdir().unwrap(), compiled());
    let python = python_example("orders", &sqlite);
    let typescript = Running::start(&mut node_example("orders", &node), Says::Out);
    let shown = run(node_example("orders", &node)
        .arg("--countersign")
        .env("PORT", typescript.port.to_string()));
    for entries in [python_entries("orders", python.port), shown] {
        let gateway = Gateway::start(&entries);
        let asked = gateway.keyed("orders.place", ARGUMENTS, "k_1");
        let approval = &asked["error"]["details"]["approval_id"];
        let approval = approval.as_str().unwrap_or_else(|| panic!("{asked}"));
        let approved = gateway.run(&["approvals", "approve", approval]);
        assert!(approved.status.success(), "{approved:?}");
        let reply = assert_once(&gateway, ARGUMENTS);
        assert!(reply["data"]["order_id"].is_string(), "{reply}");
        let too_many = r#"{"sku": "SKU-2", "quantity": 5}"#;
        // It is simulated first: nobody is asked about what cannot be.
        let refused = gateway.keyed("orders.place", too_many, "k_2");
        assert_eq!(told(&refused), "OUT_OF_STOCK: 3 are left [final]");
        assert_eq!(refused["error"]["details"]["left"], 3);
        let count = gateway.call("orders.count", "{}", json!({}));
        assert_eq!(count["data"], json!({"orders": 1}));
    }
}

/// A6: the page of the contract is enough for a language without an SDK.
#[test]
fn go_needs_no_sdk() {
    let source = root().join("examples/go");
    let lines = std::fs::read_to_string(source.join("main.go")).unwrap();
    assert!(lines.lines().count() <= 60, "{}", lines.lines().count());
    if Command::new("go").arg("version").output().is_err() {
        eprintln!("there is no go; the example was not run");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("orders");
    run(Command::new("go")
        .args(["build", "-o"])
        .args([&program])
        .current_dir(source)
        .env("GOFLAGS", "-mod=mod")
        .env("GOCACHE", root().join("target/test-go-cache")));
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let mut command = Command::new(program);
    let mut child = command
        .env("PORT", port.to_string())
        .env("ORDERS_IDENTITY_SECRET", SECRET)
        .spawn()
        .unwrap();
    let entries = format!(
        "[[upstream]]\nname = 'orders'\nbase_url = 'http://127.0.0.1:{port}'\nallow_private = ['loopback']\n\
         identity_secret = 'env:ORDERS_IDENTITY_SECRET'\n\
         [[tool]]\nname = 'orders.place'\nupstream = 'orders'\ndescription = 'Places an order.'\n\
         parameters = [{{ name = 'sku' }}, {{ name = 'quantity', kind = 'integer', default = 1 }}]\n\
         recovery.reconcile.grace_seconds = 0\n"
    );
    let gateway = Gateway::start(&entries);
    let connect = || std::net::TcpStream::connect(("127.0.0.1", port)).is_err();
    while connect() {
        std::thread::yield_now();
    }
    assert_once(&gateway, ARGUMENTS);
    let request = "POST /tools/orders.place HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
    let (status, _) = crate::world::ask(&format!("127.0.0.1:{port}"), request.as_bytes());
    assert_eq!(status, 401);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A20: an answer that never ends is read to the bound, and then the connection is closed.
#[test]
fn an_endless_answer_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let text = "from fastapi import FastAPI\nfrom fastapi.responses import StreamingResponse\n\
                app = FastAPI()\n@app.get('/stream')\ndef stream():\n    def chunks():\n        while True:\n            yield b'x' * 65536\n    \
                return StreamingResponse(chunks(), media_type='text/plain')\n";
    std::fs::write(folder.path().join("endless.py"), text).unwrap();
    let mut command = python_command();
    command
        .args(["-m", "uvicorn", "endless:app", "--port", "0"])
        .current_dir(folder.path());
    let service = Running::start(&mut command, Says::Error);
    let gateway = Gateway::start(&format!(
        "[[upstream]]\nname = 'endless'\nbase_url = 'http://127.0.0.1:{}'\nallow_private = ['loopback']\nresponse_bytes_max = 100000\n\
         [[tool]]\nname = 'endless.read'\nupstream = 'endless'\ndescription = 'Never ends.'\n\
         request = {{ method = 'GET', path = '/stream' }}\nparameters = []\n",
        service.port
    ));
    let reply = gateway.call("endless.read", "{}", json!({}));
    assert_eq!(reply["error"]["code"], "UPSTREAM_ERROR", "{reply}");
    assert!(told(&reply).contains("100000"), "{reply}");
}
