//! A child that speaks MCP over its standard input and output. It has a process group of its own, and the whole group ends with
//! it: the programs that `npx` has started end when `npx` does, and hold no pipe open that a call waits for.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader, ReadBuf};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::manifest::Secret;
use crate::scrub;

/// The program of an upstream, ready to be started.
pub(super) struct Program {
    pub(super) command: Vec<String>,
    pub(super) env: Vec<(String, Secret)>,
    pub(super) folder: PathBuf,
}

/// A child that runs. Its group is killed when it is dropped.
pub(super) struct Child {
    id: Option<u32>,
    group: Option<Pid>,
    /// True when the process has ended and was waited for.
    ended: watch::Receiver<bool>,
    last_words: LastWords,
}

/// The output of a child, none of whose lines is longer than the bound: a longer one ends it.
pub(super) struct Lines {
    output: ChildStdout,
    size: usize,
    most: usize,
    is_over: Arc<AtomicBool>,
}

/// The last line that a child wrote to its standard error: why it could not start, in most cases.
#[derive(Clone, Default)]
pub(super) struct LastWords(Arc<Mutex<String>>);

/// Environment variables that a program inherits, to be found and to write text. Every other variable may be a secret of the gateway.
const INHERITED: [&str; 14] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
];

/// Longest time that a child may take to end after its input has.
const FAREWELL: Duration = Duration::from_secs(2);

/// Most bytes of a line of a child's standard error that are looked at.
const LINE_BYTES_MAX: u64 = 4 * 1024;

/// Most characters of the last line that are kept.
const WORDS_CHARS_MAX: usize = 300;

impl Program {
    /// Starts a child, with a variable of the user's own if there is one.
    pub(super) fn start(
        &self,
        own: Option<&(String, Secret)>,
    ) -> io::Result<(Child, ChildStdout, ChildStdin)> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        };
        let inherited = INHERITED
            .into_iter()
            .filter_map(|name| Some((name, std::env::var_os(name)?)));
        let mut process = Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(inherited)
            .envs(
                self.env
                    .iter()
                    .chain(own)
                    .map(|(name, own)| (name, own.expose())),
            )
            .current_dir(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let id = process.id();
        let group = id.and_then(|id| i32::try_from(id).ok());
        let group = group.and_then(Pid::from_raw);
        let last_words = LastWords::default();
        if let Some(errors) = process.stderr.take() {
            let secrets = self.env.iter().chain(own).map(|(_, own)| own.clone());
            tokio::spawn(listen(errors, last_words.clone(), secrets.collect()));
        }
        let (output, input) = (process.stdout.take(), process.stdin.take());
        let (end, ended) = watch::channel(false);
        let heir = heir(group);
        tokio::spawn(async move {
            // Whoever is not waited for stays in the table of processes.
            let _ = process.wait().await;
            kill(group);
            if let Some(mut heir) = heir {
                let _ = heir.kill().await;
            }
            end.send_replace(true);
        });
        let child = Child {
            id,
            group,
            ended,
            last_words,
        };
        match (output, input) {
            (Some(output), Some(input)) => Ok((child, output, input)),
            _ => Err(io::Error::from(io::ErrorKind::BrokenPipe)),
        }
    }
}

impl Child {
    /// Waits for the end of a child whose input has ended; one that does not end is killed.
    pub(super) async fn end(mut self) {
        if timeout(FAREWELL, self.ended.wait_for(|is| *is))
            .await
            .is_err()
        {
            kill(self.group);
            let _ = self.ended.wait_for(|is| *is).await;
        }
    }

    pub(super) fn last_words(&self) -> LastWords {
        self.last_words.clone()
    }

    /// The id of the process while it runs.
    pub(super) fn id(&self) -> Option<u32> {
        self.id.filter(|_| !*self.ended.borrow())
    }
}

impl Lines {
    /// The lines of an output. `is_over` becomes true with the first one that is too long.
    pub(super) fn new(output: ChildStdout, most: usize, is_over: Arc<AtomicBool>) -> Self {
        Self {
            output,
            size: 0,
            most,
            is_over,
        }
    }
}

impl AsyncRead for Lines {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        read: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = read.filled().len();
        ready!(Pin::new(&mut self.output).poll_read(context, read))?;
        for byte in read.filled().get(before..).unwrap_or_default() {
            self.size = if *byte == b'\n' { 0 } else { self.size + 1 };
            if self.size > self.most {
                self.is_over.store(true, Ordering::Release);
                return Poll::Ready(Err(io::ErrorKind::FileTooLarge.into()));
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !*self.ended.borrow() {
            kill(self.group);
        }
    }
}

/// Starts a process that outlives a gateway which is killed: its input ends with the gateway, and then it kills the group, after the time
/// that a child has to end by itself. Where there is no shell, a child that ignores the end of its input lives on.
fn heir(group: Option<Pid>) -> Option<tokio::process::Child> {
    let group = group?.as_raw_nonzero().to_string();
    let script = format!(
        "read -r _; sleep {}; kill -s KILL -- \"-$1\"",
        FAREWELL.as_secs()
    );
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", &script, "sh", &group])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true);
    command.spawn().ok()
}

/// Kills every process of a group.
fn kill(group: Option<Pid>) {
    if let Some(group) = group {
        // It fails where nobody of the group is left.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

impl LastWords {
    pub(super) fn read(&self) -> String {
        let own = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        own.clone()
    }
}

/// Reads the standard error of a child, so that the child never blocks on it. What is kept of it has no secret of the child's in it.
async fn listen(errors: ChildStderr, last_words: LastWords, secrets: Vec<Secret>) {
    let mut errors = BufReader::new(errors);
    let mut line = Vec::new();
    let mut is_rest = false;
    loop {
        line.clear();
        let read = (&mut errors)
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)
            .await;
        if !matches!(read, Ok(1..)) {
            return;
        }
        // The rest of a long line may begin within a secret.
        let is_whole = line.ends_with(b"\n");
        let is_skipped = std::mem::replace(&mut is_rest, !is_whole);
        let text = String::from_utf8_lossy(&line);
        let text = text.trim();
        if !text.is_empty() && !is_skipped {
            let text = scrub::text(text, &secrets);
            let text = text.chars().filter(|c| !c.is_control());
            let text = text.take(WORDS_CHARS_MAX).collect();
            *last_words.0.lock().unwrap_or_else(PoisonError::into_inner) = text;
        }
    }
}
