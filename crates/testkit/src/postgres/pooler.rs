//! PgBouncer in front of a server, for tests: on a free port of the loopback interface, gone with its value.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::{Account, Failure, fresh_folder};
use crate::patience::{PATIENCE, comes_true};

/// A running pooler. Dropping it stops it and removes its folder.
#[derive(Debug)]
pub struct Pooler {
    process: Child,
    folder: PathBuf,
    url: String,
}

impl Pooler {
    /// A pooler in this mode (`session` or `transaction`) in front of the database of this URL.
    ///
    /// # Panics
    ///
    /// Where there is no `pgbouncer`, or it does not start: a test that needs one is never skipped.
    pub fn start(url: &str, mode: &str) -> Self {
        Self::try_start(url, mode).expect("pgbouncer starts")
    }

    fn try_start(url: &str, mode: &str) -> Result<Self, Failure> {
        let account = Account::for_server()?;
        let folder = fresh_folder(account.as_ref())?;
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let (server, database) = url.rsplit_once('/').unwrap_or((url, ""));
        let (_, server_port) = server.rsplit_once(':').unwrap_or((server, "5432"));
        let settings = folder.join("pgbouncer.ini");
        let text = format!(
            "[databases]\n* = host=127.0.0.1 port={server_port} user=postgres\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
             auth_type = any\npool_mode = {mode}\n"
        );
        fs::write(&settings, text)?;
        let mut command = Command::new("pgbouncer");
        Account::apply(account.as_ref(), &mut command);
        command.arg("--quiet").arg(&settings).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let process = command.stderr(Stdio::null()).spawn();
        let process = process.map_err(|error| Failure::unstarted(&command, error))?;
        let listens = || TcpStream::connect(("127.0.0.1", port)).is_ok();
        assert!(comes_true(PATIENCE, listens), "pgbouncer listens");
        let url = format!("postgres://postgres@127.0.0.1:{port}/{database}");
        Ok(Self {
            process,
            folder,
            url,
        })
    }

    /// The address of the database, through the pooler.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
        fs::remove_dir_all(&self.folder).ok();
    }
}
