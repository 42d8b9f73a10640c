//! No caller and no address gets all of a server (U15): real sockets, some of them slow.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use countersign::contract::tool::Behaviour;
use countersign::contract::{Effect, RequestEnvelope};
use countersign::{CallContext, Catalog, Principal, Tool, ToolCall, ToolError};
use countersign_gateway::{Gateway, Settings};
use countersign_testkit::patience::{until, within};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Notify, Semaphore};

use crate::http_client::{Answer, post, to_the_end};
use crate::world::World;

const PATH: &str = "/v1/tools/notes.list";

/// Connects from another address of this machine.
async fn connect_from(last: u8, world: &World) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    let address = IpAddr::V4(Ipv4Addr::new(127, 0, 0, last));
    socket.bind((address, 0).into()).unwrap();
    socket.connect(world.address).await.unwrap()
}

/// Connects and sends only the first byte of a body.
async fn slow(last: u8, world: &World) -> TcpStream {
    let mut stream = connect_from(last, world).await;
    let head = format!("POST {PATH} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n{{");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

async fn ask(mut stream: TcpStream, request: &str) -> Option<Answer> {
    let request = format!("{request}\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    Answer::parse(&to_the_end(&mut stream).await)
}

/// U15: one address sends slow bodies on as many connections as it likes; others are answered at once.
#[tokio::test]
async fn one_address_cannot_hold_all_connections() {
    let settings = Settings {
        connections_max: 4,
        read_timeout: Duration::from_hours(1),
        body_grace: Duration::from_hours(1),
        ..Settings::default()
    };
    let world = World::with(settings).await;
    let mut held = Vec::new();
    for _ in 0..12 {
        held.push(slow(1, &world).await);
    }
    for _ in 0..3 {
        let other = connect_from(2, &world).await;
        let answer = ask(other, "GET /healthz HTTP/1.1").await.unwrap();
        assert_eq!(answer.status, 200);
    }
    // A waiting connection gets its turn when another one of its address ends.
    let last = held.pop().unwrap();
    drop(held);
    let mut last = last;
    last.write_all(b"        }").await.unwrap();
    let mut wire = vec![0; 12];
    within(tokio::io::AsyncReadExt::read_exact(&mut last, &mut wire))
        .await
        .unwrap();
    assert_eq!(wire, b"HTTP/1.1 200");
}

/// U15: one caller with slow bodies gets its share of open requests; the reply to the next one says when to come back.
#[tokio::test]
async fn one_caller_cannot_hold_all_requests() {
    let settings = Settings {
        requests_per_caller_max: 2,
        read_timeout: Duration::from_hours(1),
        body_grace: Duration::from_hours(1),
        ..Settings::default()
    };
    let world = World::with(settings).await;
    let held = [slow(1, &world).await, slow(2, &world).await];
    let refused = async || {
        let answer = post(&world, PATH, "{}").await;
        (answer.status != 200).then_some(answer)
    };
    until(async || refused().await.is_some()).await;
    let answer = refused().await.unwrap();
    assert_eq!(answer.header("retry-after"), Some("1"));
    insta::assert_snapshot!(answer.told(), @"429 RATE_LIMITED : this caller has reached its limit of requests at the same time; wait for retry_after_ms, then send the same request again");
    // Requests that need no caller are still answered.
    let probe = ask(connect_from(1, &world).await, "GET /readyz HTTP/1.1").await;
    assert_eq!(probe.unwrap().status, 200);
    drop(held);
    until(async || refused().await.is_none()).await;
}

/// U15: a body has a minimum speed besides its deadline.
#[tokio::test]
async fn a_body_that_trickles_is_cut_off_long_before_its_deadline() {
    let settings = Settings {
        read_timeout: Duration::from_hours(1),
        body_grace: Duration::from_millis(50),
        body_bytes_per_second_min: 1 << 20,
        ..Settings::default()
    };
    let world = World::with(settings).await;
    let mut stream = slow(1, &world).await;
    let wire = to_the_end(&mut stream).await;
    let answer = Answer::parse(&wire).unwrap();
    insta::assert_snapshot!(answer.told(), @"408 TIMEOUT : the body arrives at less than 1048576 bytes a second after its first 0 seconds; send the same request again, faster; nothing was run");
}

/// A tool that changes something, and answers when the test releases it.
struct Gate {
    entered: Arc<Notify>,
    open: Arc<Semaphore>,
}

impl Tool for Gate {
    const NAME: &'static str = "test.gate";
    const DESCRIPTION: &'static str = "Waits.";
    type Args = ();
    type Output = Value;

    fn behaviour() -> Behaviour {
        let mut behaviour = Behaviour {
            effect: Effect::Write,
            ..Behaviour::default()
        };
        behaviour.idempotency.join_ms = 60_000;
        behaviour
    }

    async fn call(&self, _: &CallContext, (): ()) -> Result<Value, ToolError> {
        self.entered.notify_one();
        let _ = self.open.acquire().await;
        Ok(json!("done"))
    }
}

fn call(user: &str, key: &str) -> ToolCall {
    let envelope = RequestEnvelope {
        idempotency_key: Some(key.to_owned()),
        ..RequestEnvelope::default()
    };
    ToolCall::new("test.gate", "{}", Principal::user(user)).envelope(envelope)
}

struct Gated {
    gateway: Gateway,
    entered: Arc<Notify>,
    open: Arc<Semaphore>,
}

fn gated(settings: Settings) -> Gated {
    let (entered, open) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let gate = Gate {
        entered: entered.clone(),
        open: open.clone(),
    };
    let catalog = Catalog::builder().tool(gate).build().unwrap();
    let (gateway, _) = World::gateway(catalog, settings);
    Gated {
        gateway,
        entered,
        open,
    }
}

/// U15: calls that wait for a running key leave their seats to others, and get the answer of the first.
#[tokio::test]
async fn who_waits_for_a_key_holds_no_seat() {
    let settings = Settings {
        calls_max: 2,
        ..Settings::default()
    };
    let Gated {
        gateway,
        entered,
        open,
    } = gated(settings);
    let spawn = |call: ToolCall| {
        let gateway = gateway.clone();
        tokio::spawn(async move { gateway.call(call).await })
    };
    let mut replies = vec![spawn(call("u_1", "k"))];
    within(entered.notified()).await;
    for waiting in 1..=5 {
        replies.push(spawn(call("u_1", "k")));
        until(async || gateway.calls_waiting() == waiting).await;
    }
    assert_eq!(gateway.calls_running(), 1);
    // There is a seat for another caller.
    replies.push(spawn(call("u_2", "k")));
    within(entered.notified()).await;
    assert_eq!((gateway.calls_running(), gateway.calls_waiting()), (2, 5));
    open.add_permits(2);
    let mut replayed = 0;
    for reply in replies {
        let reply = within(reply).await.unwrap();
        assert!(reply.ok, "{reply:?}");
        replayed += usize::from(reply.replayed);
    }
    assert_eq!(replayed, 5);
    assert!(within(gateway.drained()).await);
    assert_eq!((gateway.calls_running(), gateway.calls_waiting()), (0, 0));
}

/// U15: no more calls wait than allowed; the reply to the next one says that its key is running, and its seat is free.
#[tokio::test]
async fn no_more_calls_of_a_caller_wait_than_may() {
    let settings = Settings {
        waiting_calls_per_caller_max: 1,
        ..Settings::default()
    };
    let Gated {
        gateway,
        entered,
        open,
    } = gated(settings);
    let spawn = |call: ToolCall| {
        let gateway = gateway.clone();
        tokio::spawn(async move { gateway.call(call).await })
    };
    let first = spawn(call("u_1", "k"));
    within(entered.notified()).await;
    let second = spawn(call("u_1", "k"));
    until(async || gateway.calls_waiting() == 1).await;
    let third = gateway.call(call("u_1", "k")).await;
    let error = third.error.unwrap();
    assert_eq!(error.code.as_str(), "CONFLICT");
    assert_eq!(error.details.reason.unwrap().as_str(), "in_flight");
    assert!(error.details.retry_after_ms.is_some());
    open.add_permits(2);
    // A call that need not wait is not refused.
    assert!(within(gateway.call(call("u_1", "other"))).await.ok);
    assert!(within(first).await.unwrap().ok);
    assert!(within(second).await.unwrap().replayed);
    assert_eq!((gateway.calls_running(), gateway.calls_waiting()), (0, 0));
}

/// U15: one caller's calls leave seats to the calls of others.
#[tokio::test]
async fn one_caller_cannot_hold_all_seats() {
    let settings = Settings {
        calls_max: 3,
        calls_per_caller_max: 2,
        ..Settings::default()
    };
    let Gated {
        gateway,
        entered,
        open,
    } = gated(settings);
    let mut running = Vec::new();
    for key in ["a", "b"] {
        let (gateway, call) = (gateway.clone(), call("u_1", key));
        running.push(tokio::spawn(async move { gateway.call(call).await }));
        within(entered.notified()).await;
    }
    let refused = gateway.call(call("u_1", "c")).await;
    assert_eq!(refused.error.unwrap().code.as_str(), "RATE_LIMITED");
    open.add_permits(3);
    assert!(within(gateway.call(call("u_2", "c"))).await.ok);
    for reply in running {
        assert!(within(reply).await.unwrap().ok);
    }
}
