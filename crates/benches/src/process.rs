//! Servers that are measured, each a process of its own, as its users would run it.

use std::io::{Error, Result};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio::net::TcpStream;

/// A server that runs until it is dropped.
pub struct Server {
    child: Child,
    /// Address that it listens at.
    pub address: SocketAddr,
    /// Time from its start until it first answered a connection.
    pub ready_after: Duration,
}

impl Server {
    /// Starts a program that will listen at this address, and waits until it does.
    pub async fn start(mut command: Command, address: SocketAddr) -> Result<Self> {
        let begun = Instant::now();
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().map_err(|error| {
            let why =
                format!("{command:?} cannot be started, `cargo xtask bench` installs it: {error}");
            Error::new(error.kind(), why)
        })?;
        let mut server = Self {
            child,
            address,
            ready_after: Duration::ZERO,
        };
        while TcpStream::connect(address).await.is_err() {
            if let Some(status) = server.child.try_wait()? {
                return Err(Error::other(format!("{command:?} ended with {status}")));
            }
            if begun.elapsed() > Duration::from_mins(1) {
                return Err(Error::other(format!("{command:?} does not listen")));
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        server.ready_after = begun.elapsed();
        Ok(server)
    }

    /// CPU time of the process so far, all its threads together.
    pub fn cpu(&self) -> Result<Duration> {
        let mut spent = Duration::ZERO;
        for task in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            // A thread that has ended meanwhile has no figure any more.
            let Ok(text) = std::fs::read_to_string(task?.path().join("schedstat")) else {
                continue;
            };
            let nanoseconds = text
                .split_whitespace()
                .next()
                .and_then(|it| it.parse().ok());
            spent += Duration::from_nanos(nanoseconds.unwrap_or_default());
        }
        Ok(spent)
    }

    /// Memory of the process that is in use now, in bytes.
    pub fn resident(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let kilobytes = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
        kilobytes
            .map(|kilobytes| kilobytes * 1024)
            .ok_or_else(|| Error::other("the process does not say how much memory it uses"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns an address at which no process listens now.
pub fn free_address() -> Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}
