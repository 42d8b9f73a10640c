//! The settings. Each field is one key of `countersign.toml`, and its doc comment is the text that people read
//! about it.
//!
//! The attribute `extend` has the facts beyond the type: `x-env` and `x-flag` name the variable and the flag that override the file,
//! `x-live` says that a running server takes a new value without a restart, `x-path` that a relative path counts from the folder of the
//! file (`scheme` if it stands behind a scheme such as `file:`).

use std::path::PathBuf;

use countersign_upstream::{Manifest, ToolEntry, Upstream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod approvals;
mod binder;
mod catalog;
mod keys;
mod log;
mod mcp;
pub(crate) mod notify;
mod policy;
mod retention;
mod rules;
mod server;
mod shop;
mod sign_in;
mod store;
mod telemetry;
mod witness;

pub use approvals::Approvals;
pub use binder::Binder;
pub use catalog::{CatalogView, Facade, Profile, ResultRule, Results};
pub use keys::Keys;
pub use log::Log;
pub use mcp::Mcp;
pub use notify::{NotifyEvent, NotifyKind, NotifyTarget};
pub use policy::PolicySource;
pub use retention::Retention;
pub use rules::RuleFolders;
pub use server::Server;
pub use shop::Shop;
pub use sign_in::SignIn;
pub use store::{Postgres, Sqlite, Store};
pub use telemetry::{LogFormat, Semconv, Telemetry};
pub use witness::WitnessEntry;

/// The configuration of Countersign: `countersign.toml`. A key that is not known is an error.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Further files with `[[upstream]]` and `[[tool]]` entries, such as `countersign import` writes; their paths count from the folder
    /// of this file. Entries in this file override entries of the included files. Paths inside an
    /// included file count from the folder of this file too.
    #[schemars(extend("x-live" = true))]
    pub include: Vec<PathBuf>,
    /// Policy, which decides who may call what: the path of a policy file, or the policy itself as a table, with the
    /// members that `docs/policy.md`, `docs/identity.md` and `docs/limits.md` describe. Without a policy, every
    /// caller may call every tool.
    #[schemars(extend("x-flag" = "--policy", "x-live" = true, "x-path" = true))]
    pub policy: Option<PolicySource>,
    /// The address of the server, its name for clients, and the bounds of all that arrives.
    pub server: Server,
    /// The data folder and the store.
    pub store: Store,
    /// The signed log.
    pub log: Log,
    /// Retention of the sealed arguments and answers of calls, by the class that a tool declares. Records themselves
    /// are kept for ever.
    pub retention: Retention,
    /// The master key, which wraps the keys of the users. Left out, it is a file in the data folder.
    pub keys: Keys,
    /// Logs and traces; `docs/telemetry.md` says what is in them.
    pub telemetry: Telemetry,
    /// The Model Context Protocol.
    pub mcp: Mcp,
    /// People sign in to the console at an issuer of tokens.
    pub sign_in: SignIn,
    /// Questions that a user has to answer before a call runs.
    pub approvals: Approvals,
    /// Limits on the arguments of a call; `docs/binder.md`.
    pub binder: Binder,
    /// The list of tools that models are shown, over MCP and in the words of providers; `docs/big-catalogs.md`.
    pub catalog: CatalogView,
    /// The size of answers that models are shown, over MCP and in the words of providers. Plain HTTP is not affected.
    pub results: Results,
    /// Rules and texts of one's own for the tools of the shop.
    pub rules: RuleFolders,
    /// The reference shop and the sample tools.
    pub shop: Shop,
    /// The tools that some callers are offered: a caller has the first profile that fits. A profile only takes away: no tool that the policy
    /// forbids is offered by it.
    #[schemars(extend("x-live" = true))]
    pub profile: Vec<Profile>,
    /// A receiver of notifications: questions that wait, calls in doubt, failed verifications, changed tools of upstreams and spent budgets are
    /// sent there; `docs/notifications.md`. Links lead to `server.public_url`.
    #[schemars(extend("x-live" = true))]
    pub notify: Vec<NotifyTarget>,
    /// A witness: each new checkpoint is sent there and kept with the witness's signature, which shows that the log has no
    /// second history; `docs/witness.md`.
    pub witness: Vec<WitnessEntry>,
    /// A service that tools call. Each has a name of its own.
    #[schemars(extend("x-live" = true))]
    pub upstream: Vec<Upstream>,
    /// A tool of an upstream, or what is said about a tool that another entry defines. Entries of one name are joined, and what
    /// a later one says wins.
    #[schemars(extend("x-live" = true))]
    pub tool: Vec<ToolEntry>,
}

impl Config {
    /// The upstreams and tools, as `countersign-upstream` takes them.
    pub fn manifest(&self) -> Manifest {
        Manifest {
            upstream: self.upstream.clone(),
            tool: self.tool.clone(),
        }
    }
}
