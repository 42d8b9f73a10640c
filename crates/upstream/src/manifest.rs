//! The configuration of upstreams and tools, as types. The comments on the members are the reference: the JSON Schema of
//! the configuration and its page are made from them.
//!
//! Nothing here is read from a file or sent anywhere. [`Manifest::check`] finds mistakes that the types cannot express.

mod argument;
mod auths;
mod check;
mod mcp;
mod network;
mod secret;
mod statuses;
mod template;
mod tool;
mod upstream;
mod way;

use std::collections::HashMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use argument::{
    ArgumentEntry, CallMember, FileEncoding, FilePart, ParameterEntry, Place, Style,
};
pub use auths::Auths;
pub(crate) use check::{complaints_about_request, default_place, is_free_header, is_header};
pub use mcp::{Connections, Discovery, Trust};
pub use network::{Network, NotANetwork, is_public};
pub use secret::{NotAReference, Secret, SecretError, SecretRef};
pub use statuses::Statuses;
pub use template::{Piece, Template, TemplateError};
pub use tool::{
    BodyFormat, DryRunRule, ErrorRule, Imported, Method, OnMismatch, PageBy, PagePlace, Pagination,
    ReconcileEntry, RequestEntry, ResponseEntry, ResponseFormat, ToolEntry,
};
pub use upstream::{
    Auth, Breaker, ClientAuth, ClientCredentials, Pool, Retries, Timeouts, TokenExchange, Upstream,
    UpstreamKind,
};
pub(crate) use way::{EVERY_ITEM, Way};

/// The upstreams and tools of a configuration.
///
/// # Example
///
/// ```
/// use countersign_upstream::Manifest;
///
/// let manifest: Manifest = toml::from_str(r#"
///     [[upstream]]
///     name = "crm"
///     base_url = "https://crm.example.com/api"
///     auth.bearer.token = "env:CRM_TOKEN"
///
///     [[tool]]
///     name = "crm.get_customer"
///     upstream = "crm"
///     description = "A customer by id."
///     request = { method = "GET", path = "/customers/{id}" }
///     parameters = [{ name = "id", description = "Id of the customer, such as c_17." }]
/// "#)?;
/// assert!(manifest.check().is_empty());
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Manifest {
    /// Services that tools call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub upstream: Vec<Upstream>,
    /// Tools, and what is said about tools that another entry defines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool: Vec<ToolEntry>,
}

/// A mistake in a configuration, and the key that it is at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// Steps from the root of the configuration to the key.
    pub at: Vec<Step>,
    /// The mistake, and what to do about it.
    pub message: String,
}

/// A step on the way to a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A member of a table.
    Key(String),
    /// An item of a list, from 0.
    Item(usize),
}

impl Manifest {
    /// Every mistake that the types cannot express, in the order of the file. A tool that no entry defines is one of them.
    pub fn check(&self) -> Vec<Complaint> {
        self.check_beside(|_| false)
    }

    /// Like [`check`](Self::check), beside tools that the program brings itself: entries may say something about those.
    pub fn check_beside(&self, is_built_in: impl Fn(&str) -> bool) -> Vec<Complaint> {
        check::manifest(self, &is_built_in)
    }

    /// The tools with all entries of a name joined, in the order of their first entries. Those that are switched off, and
    /// entries about tools that are not defined here, are left out.
    pub fn tools(&self) -> Vec<ToolEntry> {
        let joined = self.joined();
        let is_on = |tool: &ToolEntry| tool.is_definition() && tool.enabled != Some(false);
        joined.into_iter().filter(is_on).collect()
    }

    /// Returns the entries for tools that the configuration does not define: overrides for those of the program.
    pub fn overrides(&self) -> Vec<ToolEntry> {
        let joined = self.joined().into_iter();
        joined.filter(|tool| !tool.is_definition()).collect()
    }

    /// The upstream of this name.
    pub fn upstream(&self, name: &str) -> Option<&Upstream> {
        self.upstream.iter().find(|upstream| upstream.name == name)
    }

    /// The MCP servers, in their order.
    pub fn servers(&self) -> impl Iterator<Item = &Upstream> + Clone {
        let is_server = |upstream: &&Upstream| upstream.kind == UpstreamKind::Mcp;
        self.upstream.iter().filter(is_server)
    }

    /// The MCP server that a tool of this name belongs to: its name and a dot stand in front. What has no such name belongs to the
    /// server without a prefix, if there is one.
    pub fn server_of(&self, tool: &str) -> Option<&Upstream> {
        let mut servers = self.servers();
        let named = tool.split_once('.').map(|(prefix, _)| prefix);
        let own = |server: &&Upstream| server.prefix && Some(server.name.as_str()) == named;
        let found = servers.clone().find(own);
        found.or_else(|| servers.find(|server| !server.prefix))
    }

    fn joined(&self) -> Vec<ToolEntry> {
        let mut joined: Vec<ToolEntry> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for entry in &self.tool {
            let first = places.get(&*entry.name).copied();
            if let Some(first) = first.and_then(|at| joined.get_mut(at)) {
                first.join(entry.clone());
            } else {
                places.insert(&entry.name, joined.len());
                joined.push(entry.clone());
            }
        }
        joined
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, step) in self.at.iter().enumerate() {
            match step {
                Step::Key(key) if place == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Item(at) => write!(f, "[{at}]")?,
            }
        }
        write!(f, ": {}", self.message)
    }
}
