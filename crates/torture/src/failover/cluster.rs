//! Three PostgreSQL servers that patroni keeps as one, and the etcd in which it keeps who leads.

use std::fs::{File, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use countersign_testkit::patience::comes_true;
use countersign_testkit::postgres::{Account, Programs};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::faults::ask;

/// Longest wait for a cluster that starts, fails over or becomes whole again.
const PATIENCE: Duration = Duration::from_mins(3);

/// Number of servers.
const NODES: usize = 3;

/// A cluster. All of its processes end when it is dropped.
#[derive(Debug)]
pub struct Cluster {
    folder: TempDir,
    account: Option<Account>,
    programs: PathBuf,
    etcd: Child,
    etcd_port: u16,
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    name: String,
    port: u16,
    rest: u16,
    patroni: Option<Child>,
}

/// An end of the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blow {
    /// The server dies, and patroni sees it.
    Server,
    /// The server and its patroni die: the others wait until the lease is over.
    Machine,
    /// The server and its patroni stand still until another one leads, and then go on.
    Pause,
}

impl Blow {
    /// Every end.
    pub const ALL: [Self; 3] = [Self::Server, Self::Machine, Self::Pause];
}

impl Cluster {
    /// Starts a cluster. Fails where etcd, patroni or PostgreSQL is not installed.
    pub fn start() -> Result<Self> {
        let initdb = Programs::find()?.initdb;
        let programs = initdb
            .parent()
            .context("a program is in a folder")?
            .to_owned();
        let account = Account::for_server()?;
        let folder = tempfile::tempdir()?;
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o700))?;
        if let Some(account) = &account {
            chown(folder.path(), Some(account.user), Some(account.group))?;
        }
        let etcd_port = free_port()?;
        let etcd = etcd(folder.path(), account.as_ref(), etcd_port)?;
        let mut cluster = Self {
            folder,
            account,
            programs,
            etcd,
            etcd_port,
            nodes: Vec::new(),
        };
        for n in 0..NODES {
            cluster.nodes.push(Node {
                name: format!("n{n}"),
                port: free_port()?,
                rest: free_port()?,
                patroni: None,
            });
            cluster.begin(n)?;
        }
        cluster.wait_whole()?;
        Ok(cluster)
    }

    /// The address of a new database: every server, and the one that takes writes is meant.
    pub fn fresh_database(&self, name: &str) -> Result<String> {
        let leader = self.leader().context("nobody leads")?;
        let node = self.nodes.get(leader).context("it is one of ours")?;
        let url = format!("postgres://postgres@127.0.0.1:{}/postgres", node.port);
        let made = Command::new(self.programs.join("psql"))
            .args(["--no-psqlrc", "--quiet", "--dbname", &url, "--command"])
            .arg(format!("CREATE DATABASE {name}"))
            .output()?;
        if !made.status.success() {
            bail!("{}", String::from_utf8_lossy(&made.stderr));
        }
        let hosts: Vec<_> = self
            .nodes
            .iter()
            .map(|node| format!("127.0.0.1:{}", node.port))
            .collect();
        let hosts = hosts.join(",");
        Ok(format!(
            "postgres://postgres@{hosts}/{name}?target_session_attrs=read-write"
        ))
    }

    /// Place of the server that leads; `None` while none does.
    pub fn leader(&self) -> Option<usize> {
        let leads = |node: &Node| {
            let address = format!("127.0.0.1:{}", node.rest);
            matches!(ask(&address, "GET", "/primary", ""), Ok((200, _)))
        };
        let candidates = self.nodes.iter().enumerate();
        candidates
            .into_iter()
            .find(|(_, node)| leads(node))
            .map(|(n, _)| n)
    }

    /// Ends the leader, and waits until another one leads. Returns the one that was ended.
    pub fn strike(&mut self, blow: Blow) -> Result<usize> {
        let led = self.leader().context("nobody leads")?;
        let server = self.server(led)?;
        match blow {
            Blow::Server => kill_process(server, Signal::KILL)?,
            Blow::Machine => {
                self.signal_patroni(led, Signal::KILL)?;
                kill_process(server, Signal::KILL)?;
                if let Some(mut patroni) = self.node(led)?.patroni.take() {
                    patroni.wait()?;
                }
            }
            Blow::Pause => {
                self.signal_patroni(led, Signal::STOP)?;
                self.signal_servers(led, Signal::STOP)?;
            }
        }
        let another = || self.leader_beside(led).is_some();
        if !comes_true(PATIENCE, another) {
            bail!("no other server leads after {blow:?}: {}", self.said());
        }
        Ok(led)
    }

    /// The same as [`Self::leader`], without asking one that may stand still.
    fn leader_beside(&self, led: usize) -> Option<usize> {
        let leads = |node: &Node| {
            let address = format!("127.0.0.1:{}", node.rest);
            matches!(ask(&address, "GET", "/primary", ""), Ok((200, _)))
        };
        let others = self.nodes.iter().enumerate().filter(|(n, _)| *n != led);
        others
            .into_iter()
            .find(|(_, node)| leads(node))
            .map(|(n, _)| n)
    }

    /// Lets the one that was ended take part again, and waits until the cluster is whole.
    pub fn mend(&mut self, struck: usize, blow: Blow) -> Result<()> {
        match blow {
            Blow::Server => {}
            Blow::Machine => self.begin(struck)?,
            Blow::Pause => {
                self.signal_servers(struck, Signal::CONT)?;
                self.signal_patroni(struck, Signal::CONT)?;
            }
        }
        self.wait_whole()
    }

    /// Waits until all servers take part, and one of them is synchronous.
    fn wait_whole(&self) -> Result<()> {
        let is_whole = || {
            self.nodes.iter().any(|node| {
                let address = format!("127.0.0.1:{}", node.rest);
                let Ok((200, cluster)) = ask(&address, "GET", "/cluster", "") else {
                    return false;
                };
                let members = cluster.get("members").and_then(Value::as_array);
                members.is_some_and(|members| is_whole(members))
            })
        };
        if !comes_true(PATIENCE, is_whole) {
            bail!("the cluster does not become whole: {}", self.said());
        }
        Ok(())
    }

    fn node(&mut self, n: usize) -> Result<&mut Node> {
        self.nodes.get_mut(n).context("it is one of ours")
    }

    fn data(&self, n: usize) -> PathBuf {
        self.folder.path().join(format!("data{n}"))
    }

    /// The first process of a server.
    fn server(&self, n: usize) -> Result<Pid> {
        let file = self.data(n).join("postmaster.pid");
        let text = std::fs::read_to_string(file)?;
        let first = text.lines().next().unwrap_or_default().trim();
        Pid::from_raw(first.parse()?).context("a process has a number")
    }

    /// Sends a signal to a server and all of its processes, each of which leads a session of its own.
    fn signal_servers(&self, n: usize, signal: Signal) -> Result<()> {
        let server = self.server(n)?;
        kill_process(server, signal)?;
        for child in children(server)? {
            // It may have ended since it was listed.
            kill_process(child, signal).ok();
        }
        Ok(())
    }

    fn signal_patroni(&mut self, n: usize, signal: Signal) -> Result<()> {
        let patroni = self.node(n)?.patroni.as_ref().context("it runs")?;
        let pid = Pid::from_raw(i32::try_from(patroni.id())?).context("it has a number")?;
        Ok(kill_process(pid, signal)?)
    }

    /// Starts the patroni of a server, which starts the server.
    fn begin(&mut self, n: usize) -> Result<()> {
        let settings = self.folder.path().join(format!("n{n}.yml"));
        let node = self.nodes.get(n).context("it is one of ours")?;
        // JSON is YAML.
        std::fs::write(&settings, self.settings(n, node).to_string())?;
        let mut command = Command::new("patroni");
        command.arg(&settings);
        self.log_to(&mut command, &format!("n{n}.log"))?;
        let patroni = command.spawn().context(MISSING)?;
        self.node(n)?.patroni = Some(patroni);
        Ok(())
    }

    fn log_to(&self, command: &mut Command, name: &str) -> Result<()> {
        let log = self.folder.path().join(name);
        let log = File::options().create(true).append(true).open(log)?;
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .process_group(0);
        if let Some(account) = &self.account {
            command.uid(account.user).gid(account.group);
        }
        Ok(())
    }

    fn settings(&self, n: usize, node: &Node) -> Value {
        let at = |port: u16| format!("127.0.0.1:{port}");
        json!({
            "scope": "torture",
            "name": node.name,
            "restapi": {"listen": at(node.rest), "connect_address": at(node.rest)},
            "etcd3": {"host": at(self.etcd_port)},
            "bootstrap": {
                "dcs": {
                    "ttl": 20,
                    "loop_wait": 1,
                    "retry_timeout": 3,
                    "synchronous_mode": true,
                    "synchronous_mode_strict": true,
                    // A server that dies is not waited for: another one leads.
                    "master_start_timeout": 0,
                    "postgresql": {
                        "use_pg_rewind": true,
                        "parameters": {
                            "wal_log_hints": "on",
                            "max_connections": 100,
                            "shared_buffers": "16MB",
                            "hot_standby_feedback": "on",
                        },
                    },
                },
                "initdb": [{"encoding": "UTF8"}, "no-locale"],
            },
            "postgresql": {
                "listen": at(node.port),
                "connect_address": at(node.port),
                "data_dir": self.data(n),
                "bin_dir": self.programs,
                "pgpass": self.folder.path().join(format!("pgpass{n}")),
                "authentication": {
                    "superuser": {"username": "postgres"},
                    "replication": {"username": "postgres"},
                    "rewind": {"username": "postgres"},
                },
                "pg_hba": [
                    "host all all 127.0.0.1/32 trust",
                    "host replication all 127.0.0.1/32 trust",
                    "local all all trust",
                ],
                "parameters": {"unix_socket_directories": self.folder.path()},
            },
        })
    }

    /// The end of what every process has said.
    fn said(&self) -> String {
        let mut said = String::new();
        for node in &self.nodes {
            let log = self.folder.path().join(format!("{}.log", node.name));
            let text = std::fs::read_to_string(log).unwrap_or_default();
            let lines: Vec<_> = text.lines().rev().take(6).collect();
            said.extend(
                lines
                    .iter()
                    .rev()
                    .map(|line| format!("{}: {line}\n", node.name)),
            );
        }
        said
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for n in 0..self.nodes.len() {
            // They may have ended, or stand still.
            let server = self.server(n);
            if let Ok(node) = self.node(n)
                && let Some(mut patroni) = node.patroni.take()
            {
                let _ = patroni.kill();
                let _ = patroni.wait();
            }
            if let Ok(server) = server {
                // Without the first of them the others end.
                let _ = kill_process(server, Signal::KILL);
                let _ = self.signal_servers(n, Signal::KILL);
            }
        }
        let _ = self.etcd.kill();
        let _ = self.etcd.wait();
    }
}

/// Commands that install the programs.
const MISSING: &str = "`etcd` and `patroni` are needed: apt-get install etcd-server patroni";

/// True if every member runs, one leads, and one that follows is synchronous.
fn is_whole(members: &[Value]) -> bool {
    let is = |member: &Value, name: &str, values: &[&str]| {
        let value = member.get(name).and_then(Value::as_str);
        value.is_some_and(|value| values.contains(&value))
    };
    let run = |member: &&Value| is(member, "state", &["running", "streaming"]);
    let count = |role: &str| {
        members
            .iter()
            .filter(|member| is(member, "role", &[role]))
            .count()
    };
    members.iter().filter(run).count() == NODES
        && count("leader") == 1
        && count("sync_standby") >= 1
}

fn etcd(folder: &Path, account: Option<&Account>, port: u16) -> Result<Child> {
    let peer = format!("http://127.0.0.1:{}", free_port()?);
    let client = format!("http://127.0.0.1:{port}");
    let log = File::create(folder.join("etcd.log"))?;
    let mut command = Command::new("etcd");
    command
        .args(["--name", "e", "--initial-cluster", &format!("e={peer}")])
        .args([
            "--listen-client-urls",
            &client,
            "--advertise-client-urls",
            &client,
        ])
        .args([
            "--listen-peer-urls",
            &peer,
            "--initial-advertise-peer-urls",
            &peer,
        ])
        .arg("--data-dir")
        .arg(folder.join("etcd"))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0);
    if let Some(account) = account {
        command.uid(account.user).gid(account.group);
    }
    let etcd = command.spawn().context(MISSING)?;
    let address = format!("127.0.0.1:{port}");
    if !comes_true(PATIENCE, || {
        matches!(ask(&address, "GET", "/health", ""), Ok((200, _)))
    }) {
        bail!("etcd does not start");
    }
    Ok(etcd)
}

/// The processes that a process has started.
fn children(of: Pid) -> Result<Vec<Pid>> {
    let parent = of.as_raw_nonzero().to_string();
    let mut children = Vec::new();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // The name in brackets may have spaces in it; the state and the parent follow.
        let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
        if after.split_whitespace().nth(1) == Some(parent.as_str()) {
            let number = entry.file_name().to_string_lossy().parse().ok();
            children.extend(number.and_then(Pid::from_raw));
        }
    }
    Ok(children)
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
