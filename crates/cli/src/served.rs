//! The server's side of operations: what commands ask for at the socket is carried out on the place that the server has.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use countersign_gateway::operator::{
    Asked, Lines, Operations, Operator, OperatorSocket, Prover, Secret,
};
use countersign_gateway::{Gateway, Server};
use serde_json::Value;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::operations;
use crate::place::Place;
use crate::running::wire::{Line, Received};
use crate::running::{About, Running, make_socket};
use crate::terminal::Terminal;

/// Parts of the server that an operation can use when a server carries it out.
pub(crate) struct Served {
    pub(crate) gateway: Gateway,
    /// Connection that the answer is written to.
    pub(crate) lines: Lines,
    /// Lock for changes of the master key.
    pub(crate) rotation: Arc<Mutex<()>>,
}

/// The operations of a server. It owns the place but no gateway, because the gateway owns it.
pub(crate) struct Desk {
    place: Place,
    about: About,
    rotation: Arc<Mutex<()>>,
}

impl Desk {
    /// Makes the operations of a server on this place.
    pub(crate) fn new(place: &Place, about: About) -> Arc<Self> {
        Arc::new(Self {
            place: place.shared(),
            about,
            rotation: Arc::default(),
        })
    }

    fn carry_out(&self, gateway: &Gateway, asked: &Asked, lines: &Lines) -> Result<Exit, Failure> {
        let received: Received<'_> = serde_json::from_slice(&asked.request).map_err(|error| {
            let context = "the server does not understand the request";
            Failure::from(anyhow::Error::new(error).context(context)).hint(self.same_version())
        })?;
        let perform = operations::find(&asked.operation).ok_or_else(|| {
            let message = format!("the server has no operation {:?}", asked.operation);
            Failure::new(message).hint(self.same_version())
        })?;
        let served = Served {
            gateway: gateway.clone(),
            lines: lines.clone(),
            rotation: self.rotation.clone(),
        };
        let place = self.place.serving(&received.operator, served);
        let mut terminal = Terminal::far(received.look, lines);
        let exit = perform(received.operation, &place, &mut terminal)?;
        terminal.flush()?;
        Ok(exit)
    }

    fn same_version(&self) -> String {
        let version = &self.about.version;
        format!("use the command of version {version}, or restart the server")
    }
}

impl Operations for Desk {
    fn about(&self) -> Value {
        serde_json::to_value(&self.about).unwrap_or_default()
    }

    fn perform(&self, gateway: &Gateway, asked: &Asked, lines: Lines) {
        let last = match self.carry_out(gateway, asked, &lines) {
            Ok(exit) => Line::Done(exit),
            Err(failure) => Line::Failed(failure.into()),
        };
        // Nobody is left to be told where this fails; what was done is recorded.
        let _ = lines.send(&last);
    }
}

/// The way in for the operator: the socket of the folder or, where it can have none, a proof over TCP.
pub(crate) struct Door {
    socket: Option<OperatorSocket>,
    secret: Option<Secret>,
    /// Process of another server that answers the commands of this folder already.
    first: Option<u32>,
}

impl Door {
    /// Makes the door before anything listens; it is not visible yet.
    pub(crate) fn make(place: &Place) -> Result<Self, Failure> {
        // A listener that is not the server of this folder is replaced, as what a killed one left is.
        let first = Running::find(&place.folder).ok().flatten();
        let first = first.map(|first| first.about.pid);
        let _inside = place.runtime.enter();
        let socket = make_socket(&place.folder)?;
        let secret = match &socket {
            Some(_) => None,
            None => Some(Secret::draw(&*place.ids)),
        };
        Ok(Self {
            socket,
            secret,
            first,
        })
    }

    /// Returns the operator who may come in here, with the proof over TCP if there is no socket.
    pub(crate) fn operator(&self, place: &Place) -> Operator {
        let operator = Operator::new(place.by.clone());
        match &self.secret {
            Some(secret) => operator.or_proved_by(Prover::new(secret.clone(), place.ids.clone())),
            None => operator,
        }
    }

    /// Opens it beside a server that listens for callers, and tells the commands of this machine.
    pub(crate) fn open(
        mut self,
        place: &Place,
        gateway: &Gateway,
        server: Server,
        about: &About,
    ) -> Result<Server, Failure> {
        let desk = Desk::new(place, about.clone());
        drop(gateway.clone().with_operations(desk));
        if let (Some(prover), Some(url)) = (gateway.identity().prover(), &about.url) {
            prover.listens_at(url);
        }
        if let Some(first) = self.first {
            if let Some(socket) = &mut self.socket {
                socket.announce_beside()?;
            }
            tracing::warn!(
                first,
                own = about.pid,
                "commands go to the server that was started first on this data folder; start this server with another folder: --data DIR"
            );
        } else {
            about.announce(&place.folder, self.secret.as_ref())?;
            if let Some(socket) = &mut self.socket {
                socket.announce()?;
            }
        }
        Ok(server.with_operators(self.socket))
    }

    /// Opens the door without a server for callers. `None` if it cannot listen: a client may give its programs no network at all, and they
    /// work without it.
    pub(crate) fn open_alone(
        self,
        place: &Place,
        gateway: &Gateway,
        about: &mut About,
        terminal: &mut Terminal,
    ) -> Result<Option<Server>, Failure> {
        if self.socket.is_some() {
            let server = Server::without_callers(gateway.clone());
            return self.open(place, gateway, server, about).map(Some);
        }
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let bound = place
            .runtime
            .block_on(Server::bind(gateway.clone(), any_port));
        match bound {
            Ok(server) => {
                about.url = Some(format!("http://{}", server.address()?));
                self.open(place, gateway, server, about).map(Some)
            }
            Err(error) => {
                terminal.say(format_args!(
                    "note: cannot listen on 127.0.0.1 ({error}): other commands cannot work until this ends"
                ))?;
                Ok(None)
            }
        }
    }
}
