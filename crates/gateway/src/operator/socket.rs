//! The operator's socket: `countersign.sock` in the data folder, for the account of the server and for root.
//!
//! Three things keep others out: only we may write into the folder, the file has mode 0600, and the system says which account has
//! connected. The socket is made under a name of its own and gets the real one when the server is ready, in one step; what a killed
//! server left behind is replaced by that.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

/// The name of the socket in the data folder.
pub const NAME: &str = "countersign.sock";

/// Beginning and end of the name of a further server's socket; its process id stands between. Not longer than [`NAME`].
const BESIDE: (&str, &str) = ("cs-", ".sock");

/// The longest path that a socket can have on every system that we know; Linux has 107.
pub const PATH_BYTES_MAX: usize = 103;

/// Root, who may read everything anyway.
const ROOT: u32 = 0;

/// Reason why there is no socket. Usually the folder is not writable, or another program has the path.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The system cannot have a socket there. Usually the data folder is deep in a tree of folders.
    #[error("the path {path} is longer than the {PATH_BYTES_MAX} bytes that a socket can have")]
    TooLong {
        /// Path of the socket.
        path: PathBuf,
    },
    /// Others could put something of theirs in its place.
    /// Usually the data folder is in a shared folder such as `/tmp`.
    #[error(
        "others may write into the folder {folder} (mode {mode:04o}), and could put a socket of theirs there"
    )]
    OpenFolder {
        /// Folder of the socket.
        folder: PathBuf,
        /// Mode of the folder.
        mode: u32,
    },
    /// It cannot be made. Usually the folder is read-only, or on a file system without sockets.
    #[error("cannot make the socket {path}")]
    Io {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
}

/// A socket that listens.
pub struct OperatorSocket {
    listener: UnixListener,
    /// Current path of the socket.
    at: PathBuf,
    /// Path at which commands look for it.
    path: PathBuf,
    /// Identity of the file, independent of its name.
    file: (u64, u64),
    /// The account of this process.
    account: u32,
}

impl OperatorSocket {
    /// Creates the socket in a folder, under a temporary name. Call it within a runtime.
    pub fn make(folder: &Path) -> Result<Self, SocketError> {
        let path = folder.join(NAME);
        // As long as the real name, or shorter.
        let at = folder.join(format!(".{}.sock", std::process::id()));
        if path.as_os_str().len().max(at.as_os_str().len()) > PATH_BYTES_MAX {
            return Err(SocketError::TooLong { path });
        }
        let io_error = |source| SocketError::Io {
            path: path.clone(),
            source,
        };
        let open_to = fs::metadata(folder).map_err(io_error)?.mode() & 0o7777;
        if is_open(open_to) {
            let folder = folder.to_owned();
            let mode = open_to;
            return Err(SocketError::OpenFolder { folder, mode });
        }
        let made = || -> io::Result<Self> {
            // Only a process of the same number that was killed can have left it.
            remove(&at)?;
            let listener = UnixListener::bind(&at)?;
            fs::set_permissions(&at, fs::Permissions::from_mode(0o600))?;
            let metadata = fs::symlink_metadata(&at)?;
            Ok(Self {
                listener,
                at: at.clone(),
                path: path.clone(),
                file: (metadata.dev(), metadata.ino()),
                account: account()?,
            })
        };
        made().map_err(io_error)
    }

    /// Gives it the name that commands look for.
    pub fn announce(&mut self) -> Result<(), SocketError> {
        let renamed = fs::rename(&self.at, &self.path);
        renamed.map_err(|source| SocketError::Io {
            path: self.path.clone(),
            source,
        })?;
        self.at.clone_from(&self.path);
        Ok(())
    }

    /// Gives it a name of its own, beside the socket of another server of the folder. Commands look for it if that one is gone. Sockets
    /// that killed servers have left under such names are removed.
    pub fn announce_beside(&mut self) -> Result<(), SocketError> {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        for other in beside(folder) {
            let left = std::os::unix::net::UnixStream::connect(&other);
            if left.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
                // What stays behind is recognised by that nobody answers.
                let _ = remove(&other);
            }
        }
        let (start, end) = BESIDE;
        self.path = folder.join(format!("{start}{}{end}", std::process::id()));
        self.announce()
    }

    /// The next connection of the operator. Others are hung up on.
    pub(crate) async fn accept(&self) -> io::Result<UnixStream> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            match stream.peer_cred() {
                Ok(peer) if is_operator(peer.uid(), self.account) => return Ok(stream),
                Ok(peer) => {
                    tracing::warn!(
                        uid = peer.uid(),
                        "a connection to the operator socket was refused: it came from another account"
                    );
                }
                Err(error) => {
                    tracing::warn!(kind = ?error.kind(), "a connection to the operator socket was refused: its account could not be read");
                }
            }
        }
    }
}

/// Sockets of further servers of a folder; empty if the folder cannot be read.
pub fn beside(folder: &Path) -> Vec<PathBuf> {
    let (start, end) = BESIDE;
    let is_one = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        let pid = name.and_then(|name| name.strip_prefix(start)?.strip_suffix(end));
        pid.is_some_and(|pid| pid.parse::<u32>().is_ok())
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_one).collect();
    found.sort();
    found
}

/// True if an account has the rights of the operator.
const fn is_operator(uid: u32, account: u32) -> bool {
    uid == account || uid == ROOT
}

/// True if accounts other than the owner may write into a folder of this mode.
pub const fn is_open(mode: u32) -> bool {
    mode & 0o022 != 0
}

/// The account of this process, as others see it at a socket.
pub fn account() -> io::Result<u32> {
    let (one, _other) = UnixStream::pair()?;
    Ok(one.peer_cred()?.uid())
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

impl Drop for OperatorSocket {
    /// Takes the name away, unless another server has taken it over.
    fn drop(&mut self) {
        let is_ours = fs::symlink_metadata(&self.at)
            .is_ok_and(|metadata| (metadata.dev(), metadata.ino()) == self.file);
        if is_ours {
            // What stays behind is recognised by that nobody answers.
            let _ = fs::remove_file(&self.at);
        }
    }
}

impl std::fmt::Debug for OperatorSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OperatorSocket")
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// U8: the account of the server and root, no other account.
    #[test]
    fn only_the_same_account_and_root_are_the_operator() {
        for (uid, account, expected) in [
            (1000, 1000, true),
            (0, 1000, true),
            (0, 0, true),
            (1001, 1000, false),
            (1000, 0, false),
        ] {
            assert_eq!(is_operator(uid, account), expected, "{uid} {account}");
        }
    }

    #[tokio::test]
    async fn a_socket_has_its_name_only_while_it_listens() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        // What a killed server left behind.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let left = fs::symlink_metadata(&path).unwrap().ino();
        let mut socket = OperatorSocket::make(folder.path()).unwrap();
        assert_eq!(fs::symlink_metadata(&path).unwrap().ino(), left);
        socket.announce().unwrap();
        let metadata = fs::symlink_metadata(&path).unwrap();
        assert_eq!(metadata.mode() & 0o7777, 0o600);
        assert_eq!(metadata.ino(), socket.file.1);

        let mut second = OperatorSocket::make(folder.path()).unwrap();
        // Of a further server that was killed.
        drop(std::os::unix::net::UnixListener::bind(folder.path().join("cs-1.sock")).unwrap());
        second.announce_beside().unwrap();
        let own = folder
            .path()
            .join(format!("cs-{}.sock", std::process::id()));
        assert_eq!(beside(folder.path()), [own]);
        assert_eq!(fs::symlink_metadata(&path).unwrap().ino(), socket.file.1);
        drop(second);
        assert_eq!(beside(folder.path()), [""; 0].map(PathBuf::from));

        let mut third = OperatorSocket::make(folder.path()).unwrap();
        third.announce().unwrap();
        drop(socket);
        assert!(path.exists(), "it is the third one's");
        drop(third);
        assert!(!path.exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    /// U8: where others could put a socket of theirs, there is none of ours. What stands in its place is replaced, never followed.
    #[tokio::test]
    async fn a_folder_that_others_may_write_into_has_no_socket() {
        let folder = tempfile::tempdir().unwrap();
        let chmod = |mode| {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
        };
        for mode in [0o777, 0o770, 0o702, 0o1777] {
            chmod(mode);
            let error = OperatorSocket::make(folder.path()).unwrap_err();
            assert!(matches!(error, SocketError::OpenFolder { .. }), "{error}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        }
        chmod(0o755);
        let (path, theirs) = (folder.path().join(NAME), folder.path().join("theirs"));
        fs::write(&theirs, "theirs").unwrap();
        std::os::unix::fs::symlink(&theirs, &path).unwrap();
        let mut socket = OperatorSocket::make(folder.path()).unwrap();
        socket.announce().unwrap();
        let metadata = fs::symlink_metadata(&path).unwrap();
        assert_eq!(
            (metadata.ino(), metadata.mode() & 0o7777),
            (socket.file.1, 0o600)
        );
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs");
    }

    #[tokio::test]
    async fn a_path_that_is_too_long_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("d".repeat(PATH_BYTES_MAX));
        fs::create_dir(&deep).unwrap();
        let error = OperatorSocket::make(&deep).unwrap_err();
        assert!(matches!(error, SocketError::TooLong { .. }), "{error}");
    }
}
