//! A proxy on the loopback interface that cuts a connection in the middle of the protocol.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Side whose messages are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Messages of the store.
    Store,
    /// Messages of the server.
    Server,
}

/// A proxy in front of a server.
pub(crate) struct Proxy {
    port: u16,
    state: Arc<State>,
    accepting: JoinHandle<()>,
}

/// The next cut.
struct Plan {
    /// Side whose messages count.
    side: Side,
    /// Number of messages that still pass.
    left: u32,
    /// True if the proxy refuses connections afterwards.
    shuts: bool,
}

#[derive(Default)]
struct State {
    plan: Mutex<Option<Plan>>,
    is_shut: AtomicBool,
    connections: Mutex<Vec<JoinHandle<()>>>,
}

impl Proxy {
    /// Starts a proxy in front of the server of this URL.
    pub(crate) async fn start(url: &str) -> Self {
        let (_, rest) = url.split_once('@').expect("a user");
        let (server, _) = rest.split_once('/').expect("a database");
        let server = server.to_owned();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let of_task = Arc::clone(&state);
        let accepting = tokio::spawn(async move {
            while let Ok((store, _)) = listener.accept().await {
                if of_task.is_shut.load(Ordering::SeqCst) {
                    continue;
                }
                let server = TcpStream::connect(&server).await.unwrap();
                connect(&of_task, store, server);
            }
        });
        Self {
            port,
            state,
            accepting,
        }
    }

    /// Returns the URL of the same database through the proxy.
    pub(crate) fn url(&self, url: &str) -> String {
        let (_, database) = url.rsplit_once('/').expect("a database");
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Lets this many more messages of one side pass, on all connections together, and then cuts the connection
    /// of the next one, once.
    pub(crate) fn cut_after(&self, left: u32, side: Side) {
        let shuts = false;
        *self.state.plan.lock().unwrap() = Some(Plan { side, left, shuts });
    }

    /// Same as [`Self::cut_after`], and refuses connections from then on.
    pub(crate) fn shut_after(&self, left: u32, side: Side) {
        let shuts = true;
        *self.state.plan.lock().unwrap() = Some(Plan { side, left, shuts });
    }

    /// Cancels the plan. True if something was cut since it was made.
    pub(crate) fn has_cut(&self) -> bool {
        self.state.plan.lock().unwrap().take().is_none()
    }

    /// Cuts every connection and refuses new ones.
    pub(crate) fn shut(&self) {
        self.state.is_shut.store(true, Ordering::SeqCst);
        for connection in self.state.connections.lock().unwrap().drain(..) {
            connection.abort();
        }
    }

    /// Accepts connections again.
    pub(crate) fn open(&self) {
        self.state.is_shut.store(false, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shut();
        self.accepting.abort();
    }
}

impl State {
    /// True if a message of this side passes.
    fn passes(&self, side: Side) -> bool {
        let mut plan = self.plan.lock().unwrap();
        let Some(cut) = plan.as_mut().filter(|cut| cut.side == side) else {
            return true;
        };
        if cut.left > 0 {
            cut.left -= 1;
            return true;
        }
        self.is_shut.fetch_or(cut.shuts, Ordering::SeqCst);
        *plan = None;
        false
    }
}

fn connect(state: &Arc<State>, store: TcpStream, server: TcpStream) {
    store.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let (from_store, to_store) = store.into_split();
    let (from_server, to_server) = server.into_split();
    let of_task = Arc::clone(state);
    let connection = tokio::spawn(async move {
        // If one side ends, both connections are dropped.
        tokio::select! {
            () = forward(&of_task, Side::Store, from_store, to_server) => {}
            () = forward(&of_task, Side::Server, from_server, to_store) => {}
        }
    });
    state.connections.lock().unwrap().push(connection);
}

/// Forwards message by message, until one does not pass or the connection ends.
async fn forward(state: &State, side: Side, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    // The first message of a store has no letter in front of its length.
    let mut has_letter = side == Side::Server;
    loop {
        let mut message = vec![0; if has_letter { 5 } else { 4 }];
        if from.read_exact(&mut message).await.is_err() {
            return;
        }
        let (_, length) = message.split_at(message.len() - 4);
        let length = u32::from_be_bytes(length.try_into().unwrap()) as usize;
        let start = message.len();
        message.resize(start + length - 4, 0);
        if from.read_exact(&mut message[start..]).await.is_err() {
            return;
        }
        if !state.passes(side) || to.write_all(&message).await.is_err() {
            return;
        }
        has_letter = true;
    }
}
