//! A real PostgreSQL server for tests: made in a fresh folder, on a free port of the loopback interface,
//! gone with the process that started it.
//!
//! The machine's own cluster, if it has one, is never touched. No server is left behind, however its owner
//! ends: a small shell watches a pipe whose other end only the owner holds, and the kernel closes that end
//! even for a process that is killed. The shell then stops the server and removes its folder. It stands in a
//! process group of its own, so that Ctrl-C reaches the owner and not the shell.

use std::fs::{self, DirBuilder};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

mod pooler;
mod programs;

pub use pooler::Pooler;
pub use programs::{Account, Failure, Programs};

/// The variable that hands the server of a test run to the processes of its tests.
pub const VARIABLE: &str = "COUNTERSIGN_TEST_POSTGRES";

/// Maximum number of ports that are tried, because another process can take a free port first.
const STARTS_MAX: u32 = 5;

/// Settings of the server, except its port.
///
/// `fsync` stays on because the tests are about durability. A server that stops waits for connections that have not authenticated yet, so
/// their timeout is short.
const SETTINGS: &str = "\
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = on
shared_buffers = 16MB
max_connections = 200
authentication_timeout = 5s
";

/// Script that stops the server if its owner ends without doing so.
///
/// `cat` ends when the owner's end of the pipe is closed.
const WATCHER: &str = r#"
cat > /dev/null
"$1" stop --pgdata "$2/data" --mode immediate --wait
rm -rf "$2"
"#;

/// A server with a folder of its own. Dropping it stops the server and removes the folder.
#[derive(Debug)]
pub struct TempPostgres {
    programs: Programs,
    account: Option<Account>,
    folder: PathBuf,
    port: u16,
    watcher: Child,
}

impl TempPostgres {
    /// A running server.
    ///
    /// # Panics
    ///
    /// Where there is no PostgreSQL, or it does not start: a test that needs one is never skipped.
    #[expect(
        clippy::panic,
        reason = "a test without its database has nothing to show"
    )]
    pub fn start() -> Self {
        match Self::try_start() {
            Ok(server) => server,
            Err(failure) => panic!("{failure}"),
        }
    }

    /// Starts a server. Fails if PostgreSQL or an account for it is missing, or a program fails.
    pub fn try_start() -> Result<Self, Failure> {
        let programs = Programs::find()?;
        let account = Account::for_server()?;
        let folder = fresh_folder(account.as_ref())?;
        let watcher = watch(&programs, account.as_ref(), &folder)?;
        let mut server = Self {
            programs,
            account,
            folder,
            port: 0,
            watcher,
        };
        server.make_cluster()?;
        let mut starts = 0;
        loop {
            starts += 1;
            server.take_port()?;
            match server.resume() {
                Ok(()) => return Ok(server),
                Err(failure) if starts == STARTS_MAX => return Err(failure),
                Err(_) => {}
            }
        }
    }

    /// The address of the database that every cluster has.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// The address of a new, empty database.
    pub fn fresh_database(&self) -> String {
        fresh_database(&self.programs.psql, &self.url())
    }

    /// Ends every process of the server at once, as a loss of power would, and starts it again: it has to
    /// recover from its log.
    ///
    /// # Panics
    ///
    /// Where the server does not run, or does not come back.
    pub fn restart_immediate(&self) {
        let done = self.stop_by("immediate").and_then(|()| self.resume());
        done.expect("a server that runs can be restarted");
    }

    /// Stops the server in order; connections are cut. Its folder and its port stay for [`Self::resume`].
    ///
    /// # Panics
    ///
    /// Where the server does not run.
    pub fn stop(&self) {
        self.stop_by("fast")
            .expect("a server that runs can be stopped");
    }

    /// Starts the server where it was stopped.
    pub fn resume(&self) -> Result<(), Failure> {
        let log = self.folder.join("log");
        let mut start = self.control("start");
        start.arg("--wait").arg("--log").arg(&log);
        run(&mut start).map_err(|failure| failure.with_log(&log))
    }

    fn stop_by(&self, mode: &str) -> Result<(), Failure> {
        run(self.control("stop").args(["--wait", "--mode", mode]))
    }

    fn make_cluster(&self) -> Result<(), Failure> {
        let mut make = self.command(&self.programs.initdb);
        make.args(["--username=postgres", "--auth=trust", "--encoding=UTF8"]);
        make.args(["--no-locale", "--no-sync", "--pgdata"]);
        run(make.arg(self.data()))
    }

    /// Writes a port that was free a moment ago to the settings. The last line counts.
    fn take_port(&mut self) -> Result<(), Failure> {
        self.port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let path = self.data().join("postgresql.conf");
        let mut file = fs::OpenOptions::new().append(true).open(path)?;
        writeln!(file, "{SETTINGS}port = {}", self.port)?;
        Ok(())
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn control(&self, action: &str) -> Command {
        let mut command = self.command(&self.programs.pg_ctl);
        command.arg(action).arg("--pgdata").arg(self.data());
        command
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        Account::apply(self.account.as_ref(), &mut command);
        command.current_dir(&self.folder);
        command
    }
}

impl Drop for TempPostgres {
    fn drop(&mut self) {
        // The watcher does all of it; waiting for it makes sure that it is done.
        drop(self.watcher.stdin.take());
        let _ = self.watcher.wait();
    }
}

/// A server that all tests of a run use, each with a database of its own.
#[derive(Debug, Clone)]
pub struct Shared {
    url: String,
    psql: PathBuf,
}

impl Shared {
    /// The address of the database that every cluster has.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The address of a new, empty database.
    pub fn fresh_database(&self) -> String {
        fresh_database(&self.psql, &self.url)
    }

    /// The program that dumps a database; it stands beside `psql`.
    pub fn pg_dump(&self) -> PathBuf {
        self.psql.with_file_name("pg_dump")
    }
}

/// The server of this run of the tests: the one that `cargo xtask test` started, or else one that this
/// process starts at the first call and that goes with it.
///
/// # Panics
///
/// Where there is no PostgreSQL, or it does not start: a test that needs one is never skipped.
pub fn shared_postgres() -> Shared {
    static OWN: OnceLock<TempPostgres> = OnceLock::new();
    if let Ok(url) = std::env::var(VARIABLE) {
        let psql = Programs::find().map_or_else(|_| PathBuf::from("psql"), |found| found.psql);
        return Shared { url, psql };
    }
    let own = OWN.get_or_init(TempPostgres::start);
    Shared {
        url: own.url(),
        psql: own.programs.psql.clone(),
    }
}

/// Makes a database with a unique name and returns its address.
fn fresh_database(psql: &Path, url: &str) -> String {
    let name = format!("countersign_{}", random_name());
    let mut create = Command::new(psql);
    create.args(["--no-psqlrc", "--quiet", "--dbname", url, "--command"]);
    create.arg(format!("CREATE DATABASE {name}"));
    run(&mut create).expect("a server that runs makes databases");
    let (server, _) = url.rsplit_once('/').unwrap_or((url, ""));
    format!("{server}/{name}")
}

/// A folder that only the server's account can enter; PostgreSQL insists on it.
fn fresh_folder(account: Option<&Account>) -> Result<PathBuf, Failure> {
    let name = format!("countersign-postgres-{}", random_name());
    let folder = std::env::temp_dir().join(name);
    DirBuilder::new().mode(0o700).create(&folder)?;
    if let Some(account) = account {
        chown(&folder, Some(account.user), Some(account.group))?;
    }
    Ok(folder)
}

fn watch(programs: &Programs, account: Option<&Account>, folder: &Path) -> Result<Child, Failure> {
    let mut shell = Command::new("sh");
    Account::apply(account, &mut shell);
    shell.args(["-c", WATCHER, "sh"]);
    shell.arg(&programs.pg_ctl).arg(folder);
    // A test runner waits for everybody who holds the output of a test: this one must not.
    shell.stdout(Stdio::null()).stderr(Stdio::null());
    shell.stdin(Stdio::piped()).process_group(0);
    Ok(shell.current_dir("/").spawn()?)
}

/// Sixteen digits that no other process draws. The keys of a hash map are the randomness that the standard
/// library has.
fn random_name() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

fn run(command: &mut Command) -> Result<(), Failure> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| Failure::unstarted(command, error))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Failure::refused(command, &output))
}
