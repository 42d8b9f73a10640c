//! The approved tools of all MCP servers beside the other tools of a catalog: which of them are there, and why the others are not.
//!
//! A server chooses the names and schemas of its tools, so nothing in its list may keep another server from working. A tool that cannot be
//! used is left out and told. A name belongs to a tool that isn't of an MCP server first, and then to the first server of the configuration,
//! however long that one takes to answer.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use countersign::DynTool;
use countersign::alias::alias;
use countersign::catalog::{self, Catalog};
use countersign_contract::{Digest, ToolName};

use super::pins::Pin;
use super::server::{LeftOut, Server, Standing};
use super::tool::McpTool;
use crate::declare::{self, Declared};
use crate::manifest::{Manifest, ToolEntry, Upstream};

/// The tools of all MCP servers of a manifest.
pub(crate) struct Shelf {
    /// In the order of the configuration.
    rows: Vec<Row>,
    kept: Mutex<Kept>,
}

/// A server, with what the configuration says on top of its tools.
struct Row {
    server: Arc<Server>,
    said: BTreeMap<String, ToolEntry>,
}

#[derive(Default)]
struct Kept {
    /// Tools that were made, by server: they are the same until something else is approved.
    made: HashMap<String, (Digest, Vec<Candidate>)>,
    /// Tools that were given to the catalog, by name.
    placed: HashMap<String, Arc<dyn DynTool>>,
    /// Names of the tools of others.
    others: Names,
}

/// Names and provider names that have a tool.
#[derive(Clone, Default)]
pub(crate) struct Names(HashMap<String, ToolName>);

/// An approved tool, by its name at the server; or the reason for which it cannot be used.
#[derive(Clone)]
pub(crate) struct Candidate {
    name: String,
    made: Result<Arc<dyn DynTool>, String>,
}

/// The candidates of one server.
pub(crate) struct Group<'a> {
    upstream: &'a Upstream,
    /// True if its tools are not known yet, and will be approved when they are.
    is_awaited: bool,
    candidates: Vec<Candidate>,
}

/// The tools of one server that can be used, and those that cannot.
type Chosen = (Vec<Arc<dyn DynTool>>, Vec<LeftOut>);

impl Names {
    pub(crate) fn of<'t>(tools: impl IntoIterator<Item = &'t Arc<dyn DynTool>>) -> Self {
        let mut names = Self::default();
        for tool in tools {
            names.insert(&tool.spec().name);
        }
        names
    }

    fn insert(&mut self, name: &ToolName) {
        self.0.insert(name.to_string(), name.clone());
        self.0.insert(alias(name), name.clone());
    }

    /// Refuses a tool whose name or provider name another one has.
    fn check(&self, name: &ToolName) -> Result<(), catalog::Error> {
        let (name, alias) = (name.clone(), alias(name));
        if self.0.get(name.as_str()) == Some(&name) {
            return Err(catalog::Error::Duplicate { name });
        }
        let other = self.0.get(name.as_str()).or_else(|| self.0.get(&alias));
        match other.cloned() {
            Some(other) => Err(catalog::Error::AliasTaken { name, alias, other }),
            None => Ok(()),
        }
    }
}

impl Candidate {
    /// A tool that a catalog would take if it were empty.
    fn of(name: &str, tool: Result<Arc<dyn DynTool>, String>) -> Self {
        let tried = |tool: Arc<dyn DynTool>| {
            let alone = Catalog::builder().dyn_tool(tool.clone()).build();
            alone.map(|_| tool).map_err(|error| error.to_string())
        };
        Self {
            name: name.to_owned(),
            made: tool.and_then(tried),
        }
    }
}

/// Returns the tools of each group that can be used beside the others, and why the rest cannot.
fn choose(groups: Vec<Group<'_>>, mut taken: Names) -> Vec<Chosen> {
    let mut awaited: Vec<(String, &str)> = Vec::new();
    let mut all = Vec::new();
    for group in groups {
        let mut chosen = Chosen::default();
        for Candidate { name, made } in group.candidates {
            let usable = made.and_then(|tool| {
                let own = &tool.spec().name;
                taken.check(own).map_err(|error| error.to_string())?;
                let short = alias(own);
                let first = awaited.iter().find(|(front, _)| short.starts_with(front));
                match first {
                    Some((_, upstream)) => Err(format!(
                        "a tool of {upstream} may have the provider name {short:?}, and {upstream} has not listed its tools yet"
                    )),
                    None => Ok(tool),
                }
            });
            match usable {
                Ok(tool) => {
                    taken.insert(&tool.spec().name);
                    chosen.0.push(tool);
                }
                Err(why) => chosen.1.push(LeftOut { tool: name, why }),
            }
        }
        let front = group.upstream.prefix().replace('.', "_");
        if group.is_awaited && !front.is_empty() {
            awaited.push((front, &group.upstream.name));
        }
        all.push(chosen);
    }
    all
}

/// The approved tools of a manifest's servers without the servers, as far as they can be used beside others.
pub(crate) fn declared(
    manifest: &Manifest,
    pin_of: impl Fn(&str) -> Option<Pin>,
    taken: Names,
) -> Vec<Arc<dyn DynTool>> {
    let groups = manifest.servers().map(|upstream| {
        let said = said_of(manifest, &upstream.name);
        let pin = pin_of(&upstream.name).unwrap_or_else(|| Pin::of([]));
        let candidates = pin.tools.values().filter_map(|definition| {
            let mut entry = definition.entry(upstream);
            if let Some(own) = said.get(&entry.name) {
                entry.join(own.clone());
            }
            if entry.enabled == Some(false) {
                return None;
            }
            let spec = definition
                .check_size()
                .and_then(|()| declare::spec_of(&entry).map_err(|error| error.to_string()));
            let tool = spec.map(|spec| Arc::new(Declared::new(spec)) as Arc<dyn DynTool>);
            Some(Candidate::of(&definition.name, tool))
        });
        Group {
            upstream,
            is_awaited: false,
            candidates: candidates.collect(),
        }
    });
    let chosen = choose(groups.collect(), taken);
    chosen.into_iter().flat_map(|(tools, _)| tools).collect()
}

/// Returns a manifest's entries for the tools of a server, by name.
fn said_of(manifest: &Manifest, server: &str) -> BTreeMap<String, ToolEntry> {
    let said = manifest.overrides().into_iter();
    let is_own = |entry: &ToolEntry| {
        let own = manifest.server_of(&entry.name);
        own.is_some_and(|own| own.name == server)
    };
    let said = said.filter(is_own);
    said.map(|entry| (entry.name.clone(), entry)).collect()
}

impl Shelf {
    /// A shelf for the servers of a manifest.
    pub(crate) fn new(manifest: &Manifest, servers: &BTreeMap<String, Arc<Server>>) -> Arc<Self> {
        let rows = manifest.servers().filter_map(|upstream| {
            Some(Row {
                server: servers.get(&upstream.name)?.clone(),
                said: said_of(manifest, &upstream.name),
            })
        });
        Arc::new(Self {
            rows: rows.collect(),
            kept: Mutex::default(),
        })
    }

    /// The tools for a catalog that has those of others.
    pub(crate) fn tools(&self, others: Names) -> Vec<Arc<dyn DynTool>> {
        let mut kept = self.kept();
        kept.others = others;
        self.choose(&mut kept)
    }

    /// Makes a catalog have the approved tools of the servers, and no others of them.
    pub(crate) fn publish(&self, catalog: &Catalog) {
        let mut kept = self.kept();
        let before = kept.placed.clone();
        let is_ours = |entry: &catalog::Entry| {
            let own = before.get(entry.name().as_str());
            own.is_some_and(|own| Arc::ptr_eq(own, entry.tool()))
        };
        let there = catalog.list();
        let others = there.iter().filter(|entry| !is_ours(entry));
        kept.others = Names::of(others.map(|entry| entry.tool()));
        let tools = self.choose(&mut kept);
        for entry in there.iter().filter(|entry| is_ours(entry)) {
            if !kept.placed.contains_key(entry.name().as_str()) {
                let _ = catalog.remove(entry.name().as_str());
            }
        }
        for tool in tools {
            // It fails where somebody else has changed the catalog meanwhile; the next look finds out.
            let _ = match catalog.get(tool.spec().name.as_str()) {
                Some(entry) if Arc::ptr_eq(entry.tool(), &tool) => Ok(()),
                Some(entry) if is_ours(&entry) => catalog.replace(tool),
                Some(_) | None => catalog.add(tool),
            };
        }
    }

    /// Returns the tools of a set that could not be used if it were approved.
    pub(crate) fn unusable(&self, name: &str, pin: &Pin) -> Vec<LeftOut> {
        let kept = self.kept();
        let groups = self.rows.iter().map(|row| {
            let is_it = row.server.name() == name;
            let own = if is_it {
                Some(pin.clone())
            } else {
                row.server.pin()
            };
            let candidates = own.map(|pin| row.made(&pin)).unwrap_or_default();
            row.group(candidates)
        });
        let chosen = choose(groups.collect(), kept.others.clone());
        let mut chosen = self.rows.iter().zip(chosen);
        let own = chosen.find(|(row, _)| row.server.name() == name);
        own.map(|(_, (_, left_out))| left_out).unwrap_or_default()
    }

    /// Chooses the tools that can be used, and tells the servers about the rest.
    fn choose(&self, kept: &mut Kept) -> Vec<Arc<dyn DynTool>> {
        let groups = self.rows.iter().map(|row| {
            let candidates = row.candidates(&mut kept.made);
            row.group(candidates)
        });
        let chosen = choose(groups.collect(), kept.others.clone());
        let mut tools = Vec::new();
        for (row, (own, left_out)) in self.rows.iter().zip(chosen) {
            row.server.leave_out(left_out);
            tools.extend(own);
        }
        let name = |tool: &Arc<dyn DynTool>| tool.spec().name.to_string();
        kept.placed = tools
            .iter()
            .map(|tool| (name(tool), tool.clone()))
            .collect();
        tools
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Shelf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let servers = self.rows.iter().map(|row| row.server.name());
        f.debug_list().entries(servers).finish()
    }
}

impl Row {
    fn group(&self, candidates: Vec<Candidate>) -> Group<'_> {
        let server = &self.server;
        Group {
            upstream: &server.entry,
            is_awaited: server.trusts_first_use() && !server.was_approved(),
            candidates,
        }
    }

    /// The tools that are approved and still listed.
    fn candidates(&self, made: &mut HashMap<String, (Digest, Vec<Candidate>)>) -> Vec<Candidate> {
        let server = &self.server;
        let grace = Duration::from_secs(server.entry.discovery.grace_seconds);
        let is_lost = server.state().trouble.is_some() && server.silent_for() > grace;
        let Some(pin) = server.pin().filter(|_| !is_lost) else {
            return Vec::new();
        };
        let known = made.get(server.name());
        let known = known.filter(|(digest, _)| *digest == pin.digest);
        let all = if let Some((_, all)) = known {
            all.clone()
        } else {
            let all = self.made(&pin);
            made.insert(server.name().to_owned(), (pin.digest, all.clone()));
            all
        };
        let is_listed = |own: &Candidate| {
            let definition = pin.tools.get(&own.name);
            definition.is_some_and(|own| server.standing(own) != Standing::Unlisted)
        };
        all.into_iter().filter(is_listed).collect()
    }

    /// Makes the tools of an approved set. One that the configuration leaves out is not among them.
    fn made(&self, pin: &Pin) -> Vec<Candidate> {
        let mut all = Vec::new();
        for definition in pin.tools.values() {
            let name = super::tool_name(&self.server.entry.prefix(), &definition.name);
            let own = self.said.get(&name);
            if own.is_some_and(|own| own.enabled == Some(false)) {
                continue;
            }
            let tool = definition.check_size().and_then(|()| {
                let tool = McpTool::new(definition, own.cloned(), pin, self.server.clone());
                let tool = tool.map_err(|error| error.to_string())?;
                Ok(Arc::new(tool) as Arc<dyn DynTool>)
            });
            all.push(Candidate::of(&definition.name, tool));
        }
        all
    }
}
