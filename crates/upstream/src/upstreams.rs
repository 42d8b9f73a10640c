//! All upstreams of a manifest while the gateway runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use countersign::{Catalog, DynTool};
use tokio::sync::{broadcast, watch};
use tokio::task::JoinSet;

use crate::declare::{self, Declared, Undeclared};
use crate::http::{HttpTool, Service, ServiceError, ToolFault};
use crate::manifest::{Manifest, Upstream, UpstreamKind};
use crate::mcp::follow::Follower;
use crate::mcp::pins::{Pin, Pins, PinsError};
use crate::mcp::shelf::{self, Names, Shelf};
use crate::mcp::{Following, LeftOut, NotListed, Server, Witness};
use crate::user_token::{ListTokens, StoreToken};

/// The services of a manifest, ready to be called. Tools that are made from it share its connections.
///
/// # Example
///
/// ```no_run
/// use std::path::{Path, PathBuf};
///
/// use countersign::Catalog;
/// use countersign_upstream::{Manifest, Upstreams};
///
/// # fn read() -> Manifest { Manifest::default() }
/// let manifest: Manifest = read();
/// let upstreams = Upstreams::prepare(&manifest, Path::new("."))?;
/// let catalog = Catalog::builder().build()?;
/// for tool in upstreams.tools()? {
///     catalog.add(tool)?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Upstreams {
    manifest: Manifest,
    folder: PathBuf,
    services: BTreeMap<String, Arc<Service>>,
    servers: BTreeMap<String, Arc<Server>>,
    shelf: Arc<Shelf>,
    /// Counts the changes of what MCP servers list.
    pub(crate) changes: watch::Sender<u64>,
    /// The addresses of resources that have changed.
    pub(crate) updates: broadcast::Sender<String>,
    witness: OnceLock<Arc<dyn Witness>>,
    /// Every MCP server of this set, and of the sets before and after it.
    all: Arc<Mutex<Vec<Weak<Server>>>>,
}

/// Services and servers that a new set takes over from the set before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Servers whose entries are unchanged, with their connections, breakers and fetched tokens.
    Unchanged,
    /// None: every secret is read again.
    None,
}

/// Maximum number of changed resources that wait for a subscriber.
const UPDATES_MAX: usize = 256;

impl Upstreams {
    /// Reads the secrets and prepares the clients of a manifest that was [checked](Manifest::check). Nothing is sent. Relative paths
    /// count from `folder`.
    pub fn prepare(manifest: &Manifest, folder: &Path) -> Result<Self, ServiceError> {
        Self::prepare_after(manifest, folder, None)
    }

    /// Prepares the upstreams after a change of the configuration. Those who follow the changes of the set before go on with this one.
    /// Once this set is in use, [`Upstreams::retire`] closes what it did not take over.
    pub fn prepare_after(
        manifest: &Manifest,
        folder: &Path,
        before: Option<(&Self, Keep)>,
    ) -> Result<Self, ServiceError> {
        let same = |upstream: &Upstream| {
            let (before, keep) = before?;
            let is_same = before.manifest.upstream(&upstream.name) == Some(upstream);
            (is_same && keep == Keep::Unchanged).then_some(before)
        };
        let before = before.map(|(before, _)| before);
        let all = before.map(|it| it.all.clone()).unwrap_or_default();
        let mut services = BTreeMap::new();
        let mut servers = BTreeMap::new();
        let pins = pins_of(manifest, folder)?;
        let changes = before.map(|it| it.changes.clone()).unwrap_or_default();
        let updates = before.map(|it| it.updates.clone());
        let updates = updates.unwrap_or_else(|| broadcast::Sender::new(UPDATES_MAX));
        for upstream in &manifest.upstream {
            let name = &upstream.name;
            let same = same(upstream);
            match upstream.kind {
                UpstreamKind::Http => {
                    let service = match same.and_then(|it| it.services.get(name)) {
                        Some(service) => service.clone(),
                        None => Service::prepare(upstream, folder)?,
                    };
                    services.insert(name.clone(), service);
                }
                UpstreamKind::Mcp => {
                    let pin = || pins.upstreams.get(name).cloned();
                    let server = match same.and_then(|it| it.servers.get(name)) {
                        Some(server) => server.clone(),
                        None => register(&all, Server::prepare(upstream, folder, pin())?),
                    };
                    server.tell(changes.clone(), updates.clone());
                    servers.insert(name.clone(), server);
                }
            }
        }
        Ok(Self {
            manifest: manifest.clone(),
            folder: folder.to_owned(),
            shelf: Shelf::new(manifest, &servers),
            services,
            servers,
            changes,
            updates,
            witness: before.map(|it| it.witness.clone()).unwrap_or_default(),
            all,
        })
    }

    /// Approvals of first lists are written down here from now on. A second call changes nothing.
    pub fn set_witness(&self, witness: Arc<dyn Witness>) {
        let _ = self.witness.set(witness);
    }

    /// The MCP server of this name.
    pub fn server(&self, name: &str) -> Option<&Arc<Server>> {
        self.servers.get(name)
    }

    /// Every MCP server, by name.
    pub fn servers(&self) -> impl Iterator<Item = &Arc<Server>> {
        self.servers.values()
    }

    /// True if the first list of an MCP server will be approved by being seen, and was not seen yet.
    pub fn waits_for_a_first_list(&self) -> bool {
        let mut servers = self.servers.values();
        servers.any(|server| server.trusts_first_use() && server.pin().is_none())
    }

    /// The definitions that an MCP server lists now, as they would be approved. Nothing is approved by it.
    pub async fn proposed(&self, name: &str) -> Result<Pin, ApproveError> {
        let server = self.servers.get(name);
        let server = server.ok_or_else(|| ApproveError::NoServer(name.to_owned()))?;
        Ok(Pin::of(server.discover().await?))
    }

    /// Approves definitions of an MCP server: they are written beside the configuration, and are in force from now on.
    pub fn approve(&self, name: &str, pin: Pin) -> Result<(), ApproveError> {
        let server = self.servers.get(name);
        let server = server.ok_or_else(|| ApproveError::NoServer(name.to_owned()))?;
        Pins::approve(&self.folder, name, pin.clone())?;
        server.approve(pin);
        Ok(())
    }

    /// Returns the tools of a set that could not be used if it were approved: their names belong to other tools, or nothing can be bound
    /// against their schemas.
    pub fn unusable(&self, name: &str, pin: &Pin) -> Vec<LeftOut> {
        self.shelf.unusable(name, pin)
    }

    /// Lists the tools of every MCP server once, and puts the approved ones into a catalog that has [the tools](Self::tools) already. It
    /// does not wait longer than this for a server: the last known tools of one that does not answer stay.
    pub async fn discover(&self, catalog: &Catalog, limit: Duration) {
        let mut tasks = JoinSet::new();
        for follower in self.followers(catalog) {
            tasks.spawn(async move { follower.once(limit).await });
        }
        while tasks.join_next().await.is_some() {}
    }

    /// Follows every MCP server from now on: a catalog that has [the tools](Self::tools) already gets what changes.
    pub fn follow(&self, catalog: &Catalog) -> Following {
        let mut following = Following::default();
        for follower in self.followers(catalog) {
            following.add(follower);
        }
        following
    }

    /// Closes the MCP servers of an earlier set that this one has not taken over, each as soon as its running calls have ended. Further
    /// calls to such a server fail before anything is sent.
    pub fn retire(&self, before: &Self) {
        for old in before.servers.values() {
            let is_kept = |own: &Arc<Server>| Arc::ptr_eq(own, old);
            if !self.server(old.name()).is_some_and(is_kept) {
                let old = old.clone();
                tokio::spawn(async move { old.retire().await });
            }
        }
    }

    /// Closes the connections of every MCP server, also of the sets before and after this one; no child is left when it returns.
    pub async fn close(&self) {
        let all: Vec<Arc<Server>> = lock(&self.all).iter().filter_map(Weak::upgrade).collect();
        for server in all {
            server.close().await;
        }
    }

    fn followers(&self, catalog: &Catalog) -> Vec<Follower> {
        let follower = |server: &Arc<Server>| Follower {
            server: server.clone(),
            shelf: self.shelf.clone(),
            catalog: catalog.clone(),
            folder: self.folder.clone(),
            witness: self.witness.get().cloned(),
        };
        self.servers.values().map(follower).collect()
    }

    /// The service of this name.
    pub fn service(&self, name: &str) -> Option<&Arc<Service>> {
        self.services.get(name)
    }

    /// The tools, in the order of the manifest. A tool whose upstream is not there is left out.
    pub fn tools(&self) -> Result<Vec<Arc<dyn DynTool>>, ToolFault> {
        self.tools_beside(&[])
    }

    /// The same beside tools of others, in one catalog: a tool of an MCP server that has a name of theirs is left out. So is one that
    /// cannot be used for another reason; [`Server::state`] tells both.
    pub fn tools_beside(
        &self,
        others: &[Arc<dyn DynTool>],
    ) -> Result<Vec<Arc<dyn DynTool>>, ToolFault> {
        let mut tools: Vec<Arc<dyn DynTool>> = Vec::new();
        for entry in self.manifest.tools() {
            let service = entry
                .upstream
                .as_ref()
                .and_then(|name| self.services.get(name));
            if let Some(service) = service {
                tools.push(Arc::new(HttpTool::new(&entry, service.clone())?));
            }
        }
        tools.extend(token_tools(&self.manifest));
        let names = Names::of(others.iter().chain(&tools));
        tools.extend(self.shelf.tools(names));
        Ok(tools)
    }

    /// Returns the tools of a manifest without their services, for callers that read declarations and call nothing. No secret is read.
    ///
    /// Of an MCP server, the approved tools are declared, as far as they can be used beside tools of others.
    pub fn declared(
        manifest: &Manifest,
        pins: &Pins,
        others: &[Arc<dyn DynTool>],
    ) -> Result<Vec<Arc<dyn DynTool>>, Undeclared> {
        let entries = manifest.tools().into_iter();
        let tools = entries.map(|entry| {
            let tool: Arc<dyn DynTool> = Arc::new(Declared::new(declare::spec_of(&entry)?));
            Ok(tool)
        });
        let mut tools: Vec<_> = tools.collect::<Result<_, Undeclared>>()?;
        tools.extend(token_tools(manifest));
        let names = Names::of(others.iter().chain(&tools));
        let pin_of = |name: &str| pins.upstreams.get(name).cloned();
        tools.extend(shelf::declared(manifest, pin_of, names));
        Ok(tools)
    }
}

/// Adds a server to those that are closed together.
fn register(all: &Mutex<Vec<Weak<Server>>>, server: Arc<Server>) -> Arc<Server> {
    let mut all = lock(all);
    all.retain(|own| own.strong_count() > 0);
    all.push(Arc::downgrade(&server));
    server
}

fn lock(all: &Mutex<Vec<Weak<Server>>>) -> MutexGuard<'_, Vec<Weak<Server>>> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the pins of the MCP servers. If there is no such server, no file is read.
fn pins_of(manifest: &Manifest, folder: &Path) -> Result<Pins, ServiceError> {
    match manifest.servers().next() {
        None => Ok(Pins::default()),
        Some(upstream) => Pins::read(folder).map_err(|source| ServiceError::Pins {
            upstream: upstream.name.clone(),
            source,
        }),
    }
}

/// Definitions cannot be approved.
#[derive(Debug, thiserror::Error)]
pub enum ApproveError {
    /// The configuration has no MCP server of this name. Usually the name is misspelt, or is that of an HTTP service.
    #[error("there is no MCP server {0:?} in the configuration")]
    NoServer(String),
    /// The server does not list its tools, usually because it is down.
    #[error(transparent)]
    NotListed(#[from] NotListed),
    /// The file of the pins cannot be read or written. Usually it belongs to another account, or the disk is full.
    #[error(transparent)]
    Pins(#[from] PinsError),
}

/// The tools that take and list tokens of users, where an upstream has any.
fn token_tools(manifest: &Manifest) -> Vec<Arc<dyn DynTool>> {
    let users = manifest.upstream.iter();
    let users = users.filter(|it| it.takes_user_tokens());
    let names: Vec<String> = users.map(|it| it.name.clone()).collect();
    let store = StoreToken::new(names.clone()).map(|it| Arc::new(it) as Arc<dyn DynTool>);
    let list = ListTokens::new(names).map(|it| Arc::new(it) as Arc<dyn DynTool>);
    store.into_iter().chain(list).collect()
}
