//! The programs of PostgreSQL, the account to run them with, and the messages if something is missing.

use std::fmt;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Folder in which Debian and its descendants keep the server, with a subfolder for each version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// The programs of one installed version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    /// Makes a cluster.
    pub initdb: PathBuf,
    /// Starts and stops a server.
    pub pg_ctl: PathBuf,
    /// Sends statements.
    pub psql: PathBuf,
}

impl Programs {
    /// Looks on the path, then in the newest version that Debian's packages installed.
    pub fn find() -> Result<Self, Failure> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self::find_in(std::env::split_paths(&path), Path::new(VERSIONS))
    }

    fn find_in(path: impl Iterator<Item = PathBuf>, versions: &Path) -> Result<Self, Failure> {
        let listed = versions.read_dir().into_iter().flatten().flatten();
        let mut installed: Vec<(u32, PathBuf)> = listed
            .filter_map(|entry| {
                let version = entry.file_name().to_str()?.parse().ok()?;
                Some((version, entry.path().join("bin")))
            })
            .collect();
        installed.sort();
        let newest_first = installed.into_iter().rev().map(|(_, folder)| folder);
        path.chain(newest_first)
            .find_map(|folder| Self::all_of(&folder))
            .ok_or(Failure::Missing)
    }

    /// A folder on the path may hold links only; the server's other programs are beside their targets.
    fn all_of(folder: &Path) -> Option<Self> {
        let initdb = folder.join("initdb").canonicalize().ok()?;
        let home = initdb.parent()?;
        let (pg_ctl, psql) = (home.join("pg_ctl"), home.join("psql"));
        let complete = pg_ctl.is_file() && psql.is_file() && home.join("postgres").is_file();
        complete.then_some(Self {
            initdb,
            pg_ctl,
            psql,
        })
    }
}

/// The account that a server runs with where ours is root, which PostgreSQL refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// The user's number.
    pub user: u32,
    /// The number of the user's group.
    pub group: u32,
}

impl Account {
    /// Returns the account to run the server as; `None` if our own account will do.
    pub fn for_server() -> Result<Option<Self>, Failure> {
        if number(&["-u"]) != Some(0) {
            return Ok(None);
        }
        let known = ["postgres", "nobody"].into_iter().find_map(|name| {
            Some(Self {
                user: number(&["-u", name])?,
                group: number(&["-g", name])?,
            })
        });
        known.map(Some).ok_or(Failure::NoAccount)
    }

    pub(super) fn apply(account: Option<&Self>, command: &mut Command) {
        if let Some(account) = account {
            command.uid(account.user).gid(account.group);
        }
    }
}

/// Runs `id`, and returns the number that it prints.
fn number(args: &[&str]) -> Option<u32> {
    let output = Command::new("id").args(args).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

/// Reason for which there is no server.
#[derive(Debug)]
pub enum Failure {
    /// PostgreSQL is not installed.
    Missing,
    /// We are root, and there is no other account to run a server as.
    NoAccount,
    /// The folder, the port or the watcher could not be had.
    Io(io::Error),
    /// A program could not be started.
    Unstarted {
        /// The program.
        program: String,
        /// The cause.
        source: io::Error,
    },
    /// A program says that it failed.
    Refused {
        /// The program.
        program: String,
        /// Output of the program.
        said: String,
    },
}

impl Failure {
    pub(super) fn unstarted(command: &Command, source: io::Error) -> Self {
        let program = command.get_program().to_string_lossy().into_owned();
        Self::Unstarted { program, source }
    }

    pub(super) fn refused(command: &Command, output: &Output) -> Self {
        let texts = [&output.stdout, &output.stderr];
        let said = texts.map(|text| String::from_utf8_lossy(text)).concat();
        let program = command.get_program().to_string_lossy().into_owned();
        Self::Refused { program, said }
    }

    /// Adds the log of the server: the program that starts it does not know why it ended.
    pub(super) fn with_log(mut self, log: &Path) -> Self {
        if let Self::Refused { said, .. } = &mut self {
            said.push_str(&std::fs::read_to_string(log).unwrap_or_default());
        }
        self
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => write!(
                f,
                "no PostgreSQL server on the path or under {VERSIONS}: install one with \
                 `apt-get install postgresql`, or let `cargo xtask test` do it"
            ),
            Self::NoAccount => write!(
                f,
                "PostgreSQL does not run as root, and there is no user `postgres` or `nobody` to run it as: \
                 add one with `useradd --system postgres`"
            ),
            Self::Io(error) => write!(f, "cannot prepare a PostgreSQL server: {error}"),
            Self::Unstarted { program, source } => write!(f, "cannot start {program}: {source}"),
            Self::Refused { program, said } => write!(f, "{program} failed: {}", said.trim()),
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(source) | Self::Unstarted { source, .. } => Some(source),
            Self::Missing | Self::NoAccount | Self::Refused { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A place where nothing is installed.
    #[test]
    fn a_missing_server_is_told_with_the_command_that_installs_it() {
        let nowhere = Path::new(env!("CARGO_MANIFEST_DIR"));
        let failure = Programs::find_in([nowhere.to_owned()].into_iter(), nowhere).unwrap_err();
        let text = failure.to_string();
        assert!(
            text.contains("apt-get install postgresql") && text.contains("cargo xtask test"),
            "{text}"
        );
    }

    #[test]
    fn the_newest_version_is_taken_and_an_incomplete_one_passed_over() {
        let home =
            std::env::temp_dir().join(format!("countersign-{}", super::super::random_name()));
        for (version, programs) in [
            ("9", &["initdb", "pg_ctl", "psql", "postgres"][..]),
            ("15", &["initdb", "pg_ctl", "psql", "postgres"]),
            ("16", &["psql"]),
        ] {
            let bin = home.join(version).join("bin");
            std::fs::create_dir_all(&bin).unwrap();
            for program in programs {
                std::fs::write(bin.join(program), "").unwrap();
            }
        }
        let found = Programs::find_in(std::iter::empty(), &home).unwrap();
        assert!(found.pg_ctl.ends_with("15/bin/pg_ctl"), "{found:?}");
        std::fs::remove_dir_all(home).unwrap();
    }
}
