//! An installation at work: keyed calls, budgets, questions and their answers, holds and API keys, and a copy from the
//! middle of it.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::faults::{Place, Server, Started, ask_as};

/// Two states of one installation.
#[derive(Debug)]
pub struct Scene {
    program: PathBuf,
    /// The earlier state.
    pub old: PathBuf,
    /// The later state.
    pub new: PathBuf,
    copies: PathBuf,
}

const POLICY: &str = r#"revision = "1"
defaults = { unlisted = "allow" }

[[budgets]]
name = "missions"
scope = "user"
limit = "1000.00"
currency = "EUR"
per = "1d"

[[budgets.tools]]
match = "mission.create"
amount = "/budget/amount"
currency = "/budget/currency"
unit = "minor"

[[budgets]]
name = "for_ever"
scope = "agent"
limit = "1000.00"
currency = "EUR"

[[budgets.tools]]
match = "mission.create"
amount = "/budget/amount"
currency = "/budget/currency"
unit = "minor"
"#;

impl Scene {
    /// The installation in a folder.
    pub fn place(&self, data: &Path) -> Place {
        Place {
            program: self.program.clone(),
            data: data.to_owned(),
            store: None,
        }
    }

    /// The database in a folder.
    pub fn database(&self, data: &Path) -> PathBuf {
        data.join("countersign.db")
    }

    /// A fresh copy of the later state.
    pub fn copy(&self) -> Result<TempDir> {
        let copy = tempfile::tempdir_in(&self.copies)?;
        copy_folder(&self.new, copy.path())?;
        Ok(copy)
    }
}

/// Plays the scene in a folder, by a real server and real commands.
pub fn play(program: &Path, folder: &Path) -> Result<Scene> {
    let scene = Scene {
        program: program.to_owned(),
        old: folder.join("old"),
        new: folder.join("new"),
        copies: folder.join("copies"),
    };
    std::fs::create_dir_all(&scene.copies)?;
    let place = scene.place(&scene.new);
    std::fs::write(folder.join("policy.toml"), POLICY)?;
    let begun = Actor::start(&place, folder, None)?;
    begun.add("1")?;
    begun.add("2")?;
    begun.mission("boat", 6_000)?;
    let first = begun.ask_to_clear(5)?;
    let unused = begun.ask_to_clear(6)?;
    command(&place, &["approvals", "approve", &first])?;
    begun.clear(5)?;
    command(
        &place,
        &["evidence", "hold", "u_1", "--reason", "dispute 1"],
    )?;
    begun.end()?;
    let (_, used) = key(&place, "caller")?;
    let (revoked, _) = key(&place, "revoked")?;
    copy_folder(&scene.new, &scene.old)?;
    command(&place, &["keys", "revoke", &revoked])?;
    let later = Actor::start(&place, folder, Some(used))?;
    later.add("3")?;
    later.mission("tent", 5_000)?;
    command(&place, &["approvals", "approve", &unused])?;
    let second = later.ask_to_clear(8)?;
    command(&place, &["approvals", "approve", &second])?;
    later.clear(8)?;
    later.ask_to_clear(7)?;
    later.end()?;
    Ok(scene)
}

/// Makes an API key; returns its id and its secret.
fn key(place: &Place, label: &str) -> Result<(String, String)> {
    let words = ["keys", "create", "--agent", label, "--for", "u_1", "--json"];
    let made: Value = serde_json::from_str(&command(place, &words)?)?;
    let text = |name: &str| {
        let text = made.pointer(name).and_then(Value::as_str);
        text.map(str::to_owned)
            .with_context(|| format!("no {name}: {made}"))
    };
    Ok((text("/key/id")?, text("/secret")?))
}

fn command(place: &Place, words: &[&str]) -> Result<String> {
    let output = place.command(words).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        bail!("{words:?}: {said}");
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A server that runs, and a caller of it.
struct Actor {
    server: Server,
    credential: Option<String>,
}

impl Actor {
    fn start(place: &Place, folder: &Path, credential: Option<String>) -> Result<Self> {
        let policy = folder.join("policy.toml");
        let policy = policy.to_str().context("a path of ours is text")?;
        match Server::start_with(place, None, &["--policy", policy])? {
            Started::Listens(server) => Ok(Self { server, credential }),
            Started::Refused(said) => bail!("no start: {said}"),
        }
    }

    fn end(self) -> Result<()> {
        self.server.stop(Signal::TERM)
    }

    fn call(&self, tool: &str, key: &str, arguments: &Value) -> Result<Value> {
        let body = json!({"arguments": arguments, "user_id": "u_1", "idempotency_key": key});
        let path = format!("/v1/tools/{tool}");
        let credential = self.credential.as_deref();
        let address = &self.server.address;
        let (_, reply) = ask_as(credential, address, "POST", &path, &body.to_string())?;
        Ok(reply)
    }

    fn done(&self, tool: &str, key: &str, arguments: &Value) -> Result<()> {
        let reply = self.call(tool, key, arguments)?;
        if reply.get("ok") != Some(&Value::Bool(true)) {
            bail!("{tool} {key}: {reply}");
        }
        Ok(())
    }

    fn add(&self, text: &str) -> Result<()> {
        self.done("notes.add", &format!("add-{text}"), &json!({"text": text}))
    }

    fn mission(&self, goal: &str, amount: u32) -> Result<()> {
        let budget = json!({"amount": amount, "currency": "EUR"});
        let arguments = json!({"goal": goal, "budget": budget});
        self.done("mission.create", goal, &arguments)
    }

    fn clear(&self, keep: u32) -> Result<()> {
        let key = format!("clear-{keep}");
        self.done("notes.clear", &key, &json!({"keep": keep}))
    }

    /// Asks for a confirmation and returns the id of the question.
    fn ask_to_clear(&self, keep: u32) -> Result<String> {
        let key = format!("clear-{keep}");
        let reply = self.call("notes.clear", &key, &json!({"keep": keep}))?;
        let id = reply.pointer("/error/details/approval_id");
        let id = id.and_then(Value::as_str).map(str::to_owned);
        id.with_context(|| format!("no question: {reply}"))
    }
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else if kind.is_file() {
            std::fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}
