//! `countersign import openapi`: the file that it writes, the next import, a document at an address.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

use countersign_config::{Document, Loaded};

const FIRST: &str = include_str!("cmd/pets.openapi.yaml");
const SECOND: &str = include_str!("cmd/pets.newer.openapi.yaml");

fn import(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["import", "openapi"])
        .args(words)
        .current_dir(folder)
        .env("COUNTERSIGN_DATA", folder.join("data"))
        .output()
        .expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The configuration that includes the imported file.
fn loaded(folder: &Path, own: &str) -> Loaded {
    let mut read = |path: &Path| std::fs::read_to_string(path);
    let document = Document::parse_with(folder.join("countersign.toml"), own, &mut read);
    Loaded::new(Some(document.expect("it is right")), Vec::new()).expect("it is right")
}

/// B15: an import is a file that the configuration includes; the next one reports the differences, and overrides stay.
#[test]
fn an_import_is_a_file_and_overrides_stay() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("pets.yaml"), FIRST).unwrap();
    let done = import(folder, &["pets.yaml", "--out", "pets.toml"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    // The operator's part: an address in the imported file, and an override beside it.
    let path = folder.join("pets.toml");
    let written = std::fs::read_to_string(&path).unwrap();
    let moved = written.replace("https://pets.example/v1", "https://other.example");
    std::fs::write(&path, moved).unwrap();
    let own = "include = ['pets.toml']\n[[tool]]\nname = 'pets.add_pet'\nconfirm = 'always'\neffect = 'write'\n";
    assert_eq!(loaded(folder, own).config().manifest().tools().len(), 2);

    std::fs::write(folder.join("pets.yaml"), SECOND).unwrap();
    let done = import(folder, &["pets.yaml", "--out", "pets.toml", "--json"]);
    let told: serde_json::Value = serde_json::from_slice(&done.stdout).expect("it is JSON");
    assert_eq!(told["difference"]["changed"][0]["tool"], "pets.list_pets");
    let manifest = loaded(folder, own).config().manifest();
    let tools = manifest.tools();
    let add = tools
        .iter()
        .find(|it| it.name == "pets.add_pet")
        .expect("the name is kept");
    assert!(add.confirm.is_some() && add.guessed.is_empty());
    assert_eq!(manifest.upstream[0].base_url, "https://other.example");

    // An edit in the imported file itself would be lost.
    let written = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, written.replace("Adds a pet", "Adds a dog")).unwrap();
    let done = import(folder, &["pets.yaml", "--out", "pets.toml"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(
        text(&done.stderr).contains("edited by hand"),
        "{}",
        text(&done.stderr)
    );
    let done = import(folder, &["pets.yaml", "--out", "pets.toml", "--overwrite"]);
    assert!(done.status.success());
    assert!(
        std::fs::read_to_string(&path)
            .unwrap()
            .contains("Adds a pet")
    );
}

/// A note about an address or a credential is not repeated once the file says what was missing.
#[test]
fn settled_notes_are_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let document = FIRST
        .replace("https://pets.example/v1", "/v1")
        .replace("scheme: bearer", "scheme: basic");
    std::fs::write(folder.join("pets.yaml"), document).unwrap();
    let notes = || {
        let done = import(folder, &["pets.yaml", "--out", "pets.toml"]);
        assert!(done.status.success(), "{}", text(&done.stderr));
        let said = text(&done.stderr);
        let lines = said.lines().filter(|line| line.starts_with("note: "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let first = notes();
    let told = |text: &str| first.iter().any(|note| note.contains(text));
    assert!(
        told("set base_url") && told("set auth.basic.username"),
        "{first:?}"
    );
    // Nothing is settled yet.
    assert_eq!(notes(), first);
    let path = folder.join("pets.toml");
    let written = std::fs::read_to_string(&path).unwrap();
    let settled = written
        .replace("https://set-base-url.invalid/v1", "https://pets.example/v1")
        .replace("username = \"set-me\"", "username = \"ann\"");
    std::fs::write(&path, settled).unwrap();
    assert_eq!(notes(), [""; 0]);
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(
        written.contains("username = \"ann\"") && !written.contains("# set "),
        "{written}"
    );
}

/// Serves one answer and gives its address.
fn serve(answer: String) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = listener.local_addr().expect("a bound socket");
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the command connects");
        let mut request = [0; 4096];
        let _ = stream.read(&mut request);
        let _ = stream.write_all(answer.as_bytes());
    });
    format!("http://{address}")
}

/// B15: a document is fetched from an address, and relative servers count from it.
#[test]
fn a_document_is_fetched() {
    let folder = tempfile::tempdir().unwrap();
    let document = FIRST.replace("https://pets.example/v1", "/v9");
    let answer = format!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{document}",
        document.len()
    );
    let address = serve(answer);
    let done = import(
        folder.path(),
        &[&format!("{address}/api/pets.yaml?key=s3cret")],
    );
    let (out, said) = (text(&done.stdout), text(&done.stderr));
    assert!(done.status.success(), "{said}");
    assert!(
        out.contains("document = \"http://127.0.0.1:") && !out.contains("s3cret"),
        "{out}"
    );
    // A loopback address is told, and not written into the file.
    assert!(
        out.contains("base_url = \"https://set-base-url.invalid/v9\""),
        "{out}"
    );

    let address = serve(
        "HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n".to_owned(),
    );
    let done = import(folder.path(), &[&address]);
    assert_eq!(done.status.code(), Some(2));
    assert!(
        text(&done.stderr).contains("cannot fetch"),
        "{}",
        text(&done.stderr)
    );
}
