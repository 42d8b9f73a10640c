//! `countersign import mcp`: MCP servers as `[[upstream]]` entries, with what they list for review.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use countersign_config::FILE_NAME;
use countersign_upstream::Upstream;
use countersign_upstream::mcp::import::{self, Found, Read};
use countersign_upstream::mcp::{Definition, Server};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::fetch::file;
use super::openapi::{replace, upstream_name};
use crate::commands::{counted, wrap};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::progress::Bar;
use crate::table::visible;
use crate::terminal::Terminal;

/// Import MCP servers: from the file of an MCP client, from a URL, or a program
///
/// Each server becomes an [[upstream]] entry. The command asks the server for its tools and writes them as comments,
/// with the effects that the server claims. Secrets are not copied: the entry names an environment variable, and a note
/// says which. No tool can be called before `countersign upstreams approve`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign import mcp ~/.cursor/mcp.json --out servers.toml
  countersign import mcp https://mcp.example.com/mcp --name crm --out crm.toml
  countersign import mcp --out files.toml -- npx -y @modelcontextprotocol/server-filesystem /srv

--json prints {\"servers\": [{\"name\", \"tools\", \"trouble\", \"notes\"}], \"refused\": […]} and writes entries
only to --out.")]
pub(crate) struct Mcp {
    /// File of an MCP client, such as mcp.json, or URL of a server
    #[arg(
        value_name = "FILE|URL",
        required_unless_present = "command",
        conflicts_with = "command"
    )]
    source: Option<String>,

    /// Name of the server, for a URL or a program [default: derived from it]
    #[arg(long, value_name = "NAME", value_parser = upstream_name)]
    name: Option<String>,

    /// File to write; one that is there is added to, and nothing in it is changed [default: stdout]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Do not start or contact servers: write the entries without tools
    #[arg(long)]
    offline: bool,

    /// Program that speaks MCP over stdin and stdout, with its arguments, after --
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Timeout for a server to list its tools; the server may have to be downloaded first.
const PATIENCE: Duration = Duration::from_mins(1);

/// The list of a server, or the reason why there is none.
type Asked = BTreeMap<String, Result<Vec<Definition>, String>>;

impl Mcp {
    pub(crate) fn run(&self, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let mut read = self.read()?;
        if read.found.is_empty() && read.refused.is_empty() {
            return Err(Failure::new("the file has no MCP server"));
        }
        let before = self.out.as_deref().map(Before::read).transpose()?;
        let before = before.unwrap_or_default();
        let (known, new) = std::mem::take(&mut read.found)
            .into_iter()
            .partition(|found| before.servers.contains(&found.upstream.name));
        read.found = new;
        let known: Vec<Found> = known;
        let asked = if self.offline {
            Asked::new()
        } else {
            let bar = terminal.bar(read.found.len() as u64, "servers asked");
            let asked = self.ask(&read.found, &bar);
            bar.finish_and_clear();
            asked?
        };
        for found in &mut read.found {
            if let Some(Err(why)) = asked.get(&found.upstream.name) {
                found
                    .notes
                    .push(format!("its tools could not be listed: {why}"));
            }
        }
        let listed = asked
            .iter()
            .filter_map(|(name, own)| Some((name.clone(), own.as_ref().ok()?.clone())));
        let text = import::toml(&read.found, &listed.collect());
        if let Some(path) = self.out.as_ref().filter(|_| !read.found.is_empty()) {
            replace(path, &before.followed_by(&text))?;
        }
        if terminal.is_for_programs() {
            writeln!(terminal.data(), "{}", summary(&read, &asked))?;
            return Ok(Exit::Ok);
        }
        if self.out.is_none() {
            terminal.data().write_all(text.as_bytes())?;
        }
        for Found { upstream, .. } in &known {
            let name = &upstream.name;
            terminal.say(visible(&format!(
                "{name}: the file has it already; it stays as it is"
            )))?;
        }
        self.tell(terminal, &read, &asked)?;
        Ok(Exit::Ok)
    }

    fn read(&self) -> Result<Read, Failure> {
        let one = |upstream: Upstream| Read {
            found: vec![Found {
                upstream,
                notes: Vec::new(),
            }],
            refused: Vec::new(),
        };
        let Some(source) = &self.source else {
            let name = self.name.clone();
            let name = name.unwrap_or_else(|| wrap::name_of(&self.command));
            return Ok(one(Upstream::mcp_child(name, self.command.iter().cloned())));
        };
        if source.starts_with("http://") || source.starts_with("https://") {
            let host = source.split('/').nth(2).unwrap_or_default();
            let name = self.name.clone();
            let name = name.unwrap_or_else(|| import::name_of(host));
            return import::server_at(&name, source)
                .map(one)
                .map_err(Failure::new);
        }
        if self.name.is_some() {
            return Err(Failure::new(
                "--name cannot be used with a file: it may have several servers",
            )
            .hint("change the names in the file that is written"));
        }
        let fetched = file(Path::new(source))?;
        import::read(&fetched.text).map_err(|error| {
            let context = format!("cannot import {}", fetched.name);
            Failure::from(anyhow::Error::new(error).context(context))
        })
    }

    /// Asks every server for its tools, all at the same time.
    fn ask(&self, found: &[Found], bar: &Bar) -> Result<Asked, Failure> {
        let folder = self.out.as_deref().and_then(Path::parent);
        let folder = folder.filter(|it| !it.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        Ok(runtime.block_on(async {
            let mut asked = Asked::new();
            let mut asking = JoinSet::new();
            for Found { upstream, .. } in found {
                match Server::prepare(upstream, folder, None) {
                    Ok(server) => drop(asking.spawn(list(server))),
                    Err(error) => drop(asked.insert(upstream.name.clone(), Err(error.to_string()))),
                }
            }
            while let Some(Ok((name, listed))) = asking.join_next().await {
                asked.insert(name, listed);
                bar.inc(1);
            }
            asked
        }))
    }

    fn tell(&self, terminal: &mut Terminal, read: &Read, asked: &Asked) -> Result<(), Failure> {
        for Found { upstream, notes } in &read.found {
            let name = &upstream.name;
            let tools = match asked.get(name) {
                Some(Ok(listed)) => counted(listed.len(), "tool", "tools"),
                Some(Err(_)) => "its tools are not known".to_owned(),
                None => "not asked".to_owned(),
            };
            terminal.say(visible(&format!("{name}: {tools}")))?;
            for note in notes {
                terminal.say(visible(&format!("note: {name}: {note}")))?;
            }
        }
        for (name, why) in &read.refused {
            terminal.say(visible(&format!("refused {name}: {why}")))?;
        }
        if let Some(path) = self.out.as_ref().filter(|_| !read.found.is_empty()) {
            let path = path.display();
            let next = "run `countersign upstreams approve NAME`";
            let is_main = Path::new(FILE_NAME) == self.out.as_deref().unwrap_or(Path::new(""));
            terminal.say(if is_main {
                format!("written to {path}; now {next}")
            } else {
                format!("written to {path}; add include = [\"{path}\"] to {FILE_NAME}, then {next}")
            })?;
        }
        Ok(())
    }
}

/// The file before the import. It belongs to the operator: entries are added behind its end, and not a byte of it changes.
#[derive(Debug, Default)]
struct Before {
    text: String,
    /// The names of its `[[upstream]]` entries.
    servers: BTreeSet<String>,
}

impl Before {
    fn read(path: &Path) -> Result<Self, Failure> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => return Err(Failure::unreadable(path.display(), error)),
        };
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            let context = format!("cannot add to {}", path.display());
            Failure::from(anyhow::Error::new(error).context(context))
        })?;
        let entries = table.get("upstream").and_then(toml::Value::as_array);
        let names = entries.into_iter().flatten();
        let names = names.filter_map(|entry| entry.get("name")?.as_str().map(str::to_owned));
        let servers = names.collect();
        let before = Self { text, servers };
        // Entries cannot follow where the file has them in one line: `upstream = [{…}]`.
        let follows = before.followed_by("[[upstream]]\nname = \"x\"\n");
        if follows.parse::<toml::Table>().is_err() {
            let message = format!("{} has its servers in one line", path.display());
            return Err(Failure::new(message).hint(
                "write each server as an [[upstream]] entry, or choose another file for --out",
            ));
        }
        Ok(before)
    }

    fn followed_by(&self, text: &str) -> String {
        let own = self.text.trim_end();
        if own.is_empty() {
            return text.to_owned();
        }
        format!("{own}\n\n{text}")
    }
}

async fn list(server: Arc<Server>) -> (String, Result<Vec<Definition>, String>) {
    let listed = tokio::time::timeout(PATIENCE, server.discover()).await;
    let listed = match listed {
        Ok(Ok(listed)) => Ok(listed),
        Ok(Err(error)) => Err(error.why),
        Err(_) => Err("no answer in time".to_owned()),
    };
    server.close().await;
    (server.name().to_owned(), listed)
}

fn summary(read: &Read, asked: &Asked) -> Value {
    let servers = read.found.iter().map(|Found { upstream, notes }| {
        let own = asked.get(&upstream.name);
        let names = own.and_then(|own| own.as_ref().ok());
        let names = names.map(|listed| listed.iter().map(|it| &it.name).collect::<Vec<_>>());
        let trouble = own.and_then(|own| own.as_ref().err());
        json!({"name": upstream.name, "tools": names, "trouble": trouble, "notes": notes})
    });
    let refused = read.refused.iter();
    let refused = refused.map(|(name, why)| json!({"name": name, "reason": why}));
    json!({
        "servers": servers.collect::<Vec<_>>(),
        "refused": refused.collect::<Vec<_>>(),
    })
}
