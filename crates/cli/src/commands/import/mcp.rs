//! `countersign import mcp`: MCP servers as `[[upstream]]` entries, with what they list for review.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use countersign_config::FILE_NAME;
use countersign_upstream::mcp::import::{self, Found, Read};
use countersign_upstream::mcp::{Definition, Server};
use countersign_upstream::{Manifest, Upstream};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::fetch::file;
use super::openapi::{earlier, replace, upstream_name};
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

    /// File to write [default: stdout]
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
        let old = self.out.as_deref().map(earlier).transpose()?.flatten();
        if let Some(tool) = old.as_ref().and_then(|old| old.tool.first()) {
            // A confirmation or an effect that an operator has set must not get lost.
            let message = format!(
                "the file has an entry for the tool {:?}, which an import would lose",
                tool.name
            );
            return Err(Failure::new(message).hint(
                "move the [[tool]] entries to another file, with include = [\"…\"] in countersign.toml, and import again",
            ));
        }
        keep(&mut read, old);
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
        if let Some(path) = &self.out {
            replace(path, &text)?;
        }
        if terminal.is_for_programs() {
            writeln!(terminal.data(), "{}", summary(&read, &asked))?;
            return Ok(Exit::Ok);
        }
        if self.out.is_none() {
            terminal.data().write_all(text.as_bytes())?;
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
        if let Some(path) = &self.out {
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

/// Entries that the file has already stay as they are: they belong to the operator.
fn keep(read: &mut Read, old: Option<Manifest>) {
    for own in old.into_iter().flat_map(|old| old.upstream) {
        let mut found = read.found.iter_mut();
        match found.find(|found| found.upstream.name == own.name) {
            Some(found) => found.upstream = own,
            None => read.found.push(Found {
                upstream: own,
                notes: Vec::new(),
            }),
        }
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
