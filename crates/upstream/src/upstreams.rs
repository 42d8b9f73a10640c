//! All upstreams of a manifest while the gateway runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use countersign::DynTool;

use crate::http::{HttpTool, Service, ServiceError, ToolFault};
use crate::manifest::{Auth, Manifest, UpstreamKind};
use crate::user_token::StoreToken;

/// The services of a manifest, ready to be called. Tools that are made from it share its connections.
///
/// # Example
///
/// ```no_run
/// use std::path::Path;
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
    services: BTreeMap<String, Arc<Service>>,
}

impl Upstreams {
    /// Reads the secrets and prepares the clients of a manifest that was [checked](Manifest::check). Nothing is sent. Relative paths
    /// count from `folder`.
    pub fn prepare(manifest: &Manifest, folder: &Path) -> Result<Self, ServiceError> {
        let mut services = BTreeMap::new();
        for upstream in &manifest.upstream {
            let service = match upstream.kind {
                UpstreamKind::Http => Service::prepare(upstream, folder)?,
            };
            services.insert(upstream.name.clone(), service);
        }
        Ok(Self {
            manifest: manifest.clone(),
            services,
        })
    }

    /// The tools, in the order of the manifest. A tool whose upstream is not there is left out.
    pub fn tools(&self) -> Result<Vec<Arc<dyn DynTool>>, ToolFault> {
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
        let users = self.manifest.upstream.iter();
        let users = users.filter(|it| matches!(it.auth, Some(Auth::UserToken { .. })));
        if let Some(store) = StoreToken::new(users.map(|it| it.name.clone())) {
            tools.push(Arc::new(store));
        }
        Ok(tools)
    }
}
