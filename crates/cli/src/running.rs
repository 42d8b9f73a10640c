//! A server that runs on a data folder: how commands find it, make sure that it is the one, and talk to it.
//!
//! Commands ask it at the socket in the folder. The listener there has to run as the account that owns the folder, or as root, and has to
//! work in this very folder. If a folder can have no socket, commands ask the server over TCP, and it has to prove first that it knows the
//! secret in the folder.

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use countersign::contract::Digest;
use countersign_gateway::operator::socket::{self, PATH_BYTES_MAX};
use countersign_gateway::operator::{OperatorSocket, Secret, SocketError};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::backend::StoreName;
use crate::failure::Failure;
use crate::folder::Folder;

mod client;
pub(crate) mod wire;

/// File in which a server announces how it is reached; only its own account can read it.
const FILE: &str = "server.json";

/// Root, who may do everything here anyway.
const ROOT: u32 = 0;

/// A server that has shown that it is the one of this folder.
pub(crate) struct Running {
    way: Way,
    pub(crate) about: About,
}

/// Way to reach a server.
#[derive(Debug)]
enum Way {
    /// At the socket in the folder.
    Socket(PathBuf),
    /// Over TCP, with a proof both ways.
    Tcp { url: String, secret: Secret },
}

/// Description of a server by itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct About {
    /// Version of the program.
    pub(crate) version: String,
    /// Process id.
    pub(crate) pid: u32,
    /// URL for callers; `None` if it listens for commands only.
    pub(crate) url: Option<String>,
    /// Device and inode of its data folder, whatever the name.
    folder: (u64, u64),
    /// The file of its store; `None` if the store is not a file.
    file: Option<PathBuf>,
    /// The digest of the store's address, where it has one. The address may hold a password.
    address: Option<Digest>,
}

/// Content of the file that announces a running server.
#[derive(Serialize, Deserialize)]
struct Announced {
    url: Option<String>,
    pid: u32,
    /// Secret for the proof over TCP; `None` if the folder has a socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

impl About {
    /// This process, on this store.
    pub(crate) fn here(
        folder: &Folder,
        store: &StoreName,
        url: Option<String>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            url,
            folder: identity(folder.path())
                .ok_or_else(|| Failure::new("the data folder cannot be read"))?,
            file: match store {
                StoreName::Sqlite(path) => Some(path.canonicalize()?),
                StoreName::Memory | StoreName::Postgres(_) => None,
            },
            address: address(store),
        })
    }

    /// Announces the server to the commands of this machine, with a secret if there is no socket.
    pub(crate) fn announce(&self, folder: &Folder, secret: Option<&Secret>) -> Result<(), Failure> {
        let announced = Announced {
            url: self.url.clone(),
            pid: self.pid,
            secret: secret.map(|secret| secret.text().to_string()),
        };
        let text = Zeroizing::new(serde_json::to_string(&announced)?);
        folder.write_secret(FILE, &text)
    }

    /// Takes it back, unless another server has taken over meanwhile.
    pub(crate) fn withdraw(&self, folder: &Folder) -> Result<(), Failure> {
        match announced(folder)? {
            Some(known) if known.pid == self.pid => folder.remove(FILE),
            Some(_) | None => Ok(()),
        }
    }
}

impl Running {
    /// Finds the server that runs on a folder. Files that a crash left behind count as no server; a listener that is not the server of this
    /// folder is an error.
    pub(crate) fn find(folder: &Folder) -> Result<Option<Self>, Failure> {
        // Further servers of the folder have a socket of their own, for when the first one is gone.
        let mut sockets = vec![folder.file(socket::NAME)];
        sockets.extend(socket::beside(folder.path()));
        for path in sockets {
            if let Some(way) = at_socket(folder, path)?
                && let Some(found) = Self::asked(way, folder)?
            {
                return Ok(Some(found));
            }
        }
        match over_tcp(folder)? {
            Some(way) => Self::asked(way, folder),
            None => Ok(None),
        }
    }

    /// Asks a listener if it is the server of a folder; `None` if it is gone.
    fn asked(way: Way, folder: &Folder) -> Result<Option<Self>, Failure> {
        let Some(about) = client::about(&way, folder)? else {
            return Ok(None);
        };
        if identity(folder.path()) != Some(about.folder) {
            let message =
                format!("{way} belongs to the server of another folder, so it is not asked");
            return Err(Failure::new(message).hint(format!(
                "if no server runs here, remove {}",
                folder.file(socket::NAME).display()
            )));
        }
        Ok(Some(Self { way, about }))
    }

    /// True if the server works with this store.
    pub(crate) fn is_on(&self, store: &StoreName) -> bool {
        match (&self.about.file, store) {
            (Some(ours), StoreName::Sqlite(theirs)) => {
                identity(ours).is_some_and(|ours| identity(theirs) == Some(ours))
            }
            (Some(_), StoreName::Postgres(_) | StoreName::Memory)
            | (None, StoreName::Sqlite(_)) => false,
            (None, StoreName::Postgres(_) | StoreName::Memory) => {
                self.about.address == address(store)
            }
        }
    }

    /// Returns the server's URL or, without one, how it is reached, for people.
    pub(crate) fn place(&self) -> String {
        match &self.about.url {
            Some(url) => url.clone(),
            None => self.way.to_string(),
        }
    }

    /// Builds the failure of a command that needs the store for itself, with the reason.
    pub(crate) fn in_the_way(&self, why: &str) -> Failure {
        let message = format!(
            "the server at {} uses this data folder, and {why}",
            self.place()
        );
        Failure::new(message).hint(format!("stop the server first: process {}", self.about.pid))
    }
}

/// An address with options, written so that a server reads the very same.
pub(crate) fn query(path: &str, options: &[(&str, Option<String>)]) -> String {
    let mut address = path.to_owned();
    for (name, value) in options {
        let Some(value) = value else { continue };
        address.push(if address.contains('?') { '&' } else { '?' });
        address.push_str(name);
        address.push('=');
        for byte in value.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                address.push(char::from(byte));
            } else {
                let _ = write!(address, "%{byte:02X}");
            }
        }
    }
    address
}

/// The socket of a folder, or why it cannot be there.
pub(crate) fn make_socket(folder: &Folder) -> Result<Option<OperatorSocket>, Failure> {
    match OperatorSocket::make(folder.path()) {
        Ok(socket) => Ok(Some(socket)),
        Err(error @ SocketError::TooLong { .. }) => {
            tracing::info!(%error, "commands are answered over TCP");
            Ok(None)
        }
        // Some file systems have no sockets.
        Err(SocketError::Io { path, source })
            if matches!(
                source.kind(),
                ErrorKind::Unsupported | ErrorKind::InvalidInput
            ) =>
        {
            tracing::info!(error = %source, path = %path.display(), "commands are answered over TCP");
            Ok(None)
        }
        Err(error @ SocketError::Io { .. }) => Err(anyhow::Error::new(error).into()),
        Err(error @ SocketError::OpenFolder { .. }) => {
            let hint = format!("run `chmod go-w {}`", folder.path().display());
            Err(Failure::from(anyhow::Error::new(error)).hint(hint))
        }
    }
}

/// Finds a listener at a socket of the folder that may be its server.
fn at_socket(folder: &Folder, path: PathBuf) -> Result<Option<Way>, Failure> {
    let file = match std::fs::symlink_metadata(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::unreadable(path.display(), error)),
    };
    if path.as_os_str().len() > PATH_BYTES_MAX {
        return Ok(None);
    }
    let trusted = Trusted::of(folder)?;
    let refuse = |why: String| {
        let message = format!("{}: {why}, so it is not asked", path.display());
        Failure::new(message).hint(format!(
            "if no server of yours runs here, run `chmod 700 {} && rm {}`",
            folder.path().display(),
            path.display()
        ))
    };
    if !file.file_type().is_socket() {
        return Err(refuse("this is not the socket of a server".to_owned()));
    }
    if !trusted.has(file.uid()) {
        return Err(refuse(format!("it belongs to account {}", file.uid())));
    }
    if file.mode() & 0o077 != 0 {
        let mode = file.mode() & 0o7777;
        return Err(refuse(format!(
            "other accounts can use it (mode {mode:04o})"
        )));
    }
    if trusted.is_open {
        return Err(refuse("other accounts can write to its folder".to_owned()));
    }
    match client::peer(&path) {
        Ok(uid) if trusted.has(uid) => Ok(Some(Way::Socket(path))),
        Ok(uid) => Err(refuse(format!("account {uid} listens at it"))),
        // A server that was killed has left it behind.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::ConnectionRefused | ErrorKind::NotFound
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(Failure::from(
            anyhow::Error::new(error).context(format!("cannot connect to {}", path.display())),
        )
        .hint("run the command as the account of the server, or as root")),
    }
}

/// The accounts whose server may be talked to.
struct Trusted {
    owner: u32,
    ours: u32,
    /// True if other accounts could put a socket of theirs into the folder.
    is_open: bool,
}

impl Trusted {
    fn of(folder: &Folder) -> Result<Self, Failure> {
        let path = folder.path();
        let metadata = std::fs::metadata(path);
        let metadata = metadata.map_err(|error| Failure::unreadable(path.display(), error))?;
        Ok(Self {
            owner: metadata.uid(),
            ours: client::account()?,
            is_open: socket::is_open(metadata.mode()),
        })
    }

    fn has(&self, uid: u32) -> bool {
        [self.owner, self.ours, ROOT].contains(&uid)
    }
}

/// A server that has written down where it listens, because its folder can have no socket.
fn over_tcp(folder: &Folder) -> Result<Option<Way>, Failure> {
    let Some(announced) = announced(folder)? else {
        return Ok(None);
    };
    let (Some(url), Some(secret)) = (announced.url, announced.secret) else {
        return Ok(None);
    };
    // A process that is gone cannot be the one that listens, whoever has its port now.
    if Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{}", announced.pid)).exists()
    {
        return Ok(None);
    }
    Ok(Secret::parse(&secret).map(|secret| Way::Tcp { url, secret }))
}

fn announced(folder: &Folder) -> Result<Option<Announced>, Failure> {
    let Some(text) = folder.read_secret(FILE)? else {
        return Ok(None);
    };
    // What cannot be read was written by another version, or by nobody: it names no server of ours.
    Ok(serde_json::from_str(&text).ok())
}

/// Returns device and inode of a file or folder, which may have many names; `None` if it cannot be read.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// The address of a store that has one, as a digest.
fn address(store: &StoreName) -> Option<Digest> {
    match store {
        StoreName::Postgres(address) => Some(Digest::of_bytes(address.as_bytes())),
        StoreName::Memory | StoreName::Sqlite(_) => None,
    }
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "{}", path.display()),
            Self::Tcp { url, .. } => f.write_str(url),
        }
    }
}
