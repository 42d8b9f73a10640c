//! Shutdown of a server: calls that have begun are finished, no new ones begin.

use std::sync::Arc;
use std::time::Duration;

use countersign::contract::RecordKind;
use countersign::ledger::LogQuery;
use countersign::sample::ClearNotes;
use countersign::{CallContext, Catalog, Principal, Tool, ToolCall, ToolError};
use countersign_gateway::server::Stopped;
use countersign_gateway::{Gateway, Server, Settings};
use countersign_testkit::patience::{until, within};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::task::JoinHandle;

use crate::http_client::{Answer, to_the_end};
use crate::world::World;

/// A tool that answers when the test releases it.
struct Gate {
    entered: Arc<Notify>,
    open: Arc<Semaphore>,
}

impl Tool for Gate {
    const NAME: &'static str = "test.gate";
    const DESCRIPTION: &'static str = "Waits.";
    type Args = ();
    type Output = Value;

    async fn call(&self, _: &CallContext, (): ()) -> Result<Value, ToolError> {
        self.entered.notify_one();
        let _ = self.open.acquire().await;
        Ok(json!("done"))
    }
}

struct Running {
    gateway: Gateway,
    stream: TcpStream,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Stopped>,
    open: Arc<Semaphore>,
}

/// A server in the middle of a call.
async fn in_a_call(settings: Settings) -> Running {
    let (entered, open) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let gate = Gate {
        entered: entered.clone(),
        open: open.clone(),
    };
    let catalog = Catalog::builder().tool(gate).build().unwrap();
    let (gateway, _) = World::gateway(catalog, settings);
    let server = Server::bind(gateway.clone(), "127.0.0.1:0".parse().unwrap());
    let server = server.await.unwrap();
    let address = server.address().unwrap();
    let (stop, stopped) = oneshot::channel();
    let ended = tokio::spawn(server.run(async move {
        let _ = stopped.await;
    }));
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request =
        "POST /v1/tools/test.gate HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    within(entered.notified()).await;
    Running {
        gateway,
        stream,
        stop,
        ended,
        open,
    }
}

#[tokio::test]
async fn a_call_that_has_begun_is_answered() {
    let mut running = in_a_call(Settings::default()).await;
    let address = running.stream.peer_addr().unwrap();
    running.stop.send(()).unwrap();
    // No new calls: the socket is closed soon, and until then they are refused.
    until(async || TcpStream::connect(address).await.is_err()).await;
    until(async || running.gateway.health().is_draining()).await;
    running.open.add_permits(1);
    let wire = to_the_end(&mut running.stream).await;
    let answer = Answer::parse(&wire).unwrap();
    assert_eq!(
        (answer.status, &answer.json()["data"]),
        (200, &json!("done"))
    );
    assert_eq!(within(running.ended).await.unwrap(), Stopped::Drained);
}

/// A load balancer learns of the end before the socket is closed: `/readyz` answers 503 while calls are still accepted.
#[tokio::test]
async fn the_end_is_announced_before_it_comes() {
    let settings = Settings {
        drain_notice: Duration::from_hours(1),
        ..Settings::default()
    };
    let running = in_a_call(settings).await;
    let address = running.stream.peer_addr().unwrap();
    let ask = async |head: &str| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!(
            "{head} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let wire = to_the_end(&mut stream).await;
        Answer::parse(&wire).unwrap()
    };
    assert_eq!(ask("GET /readyz").await.status, 200);
    running.stop.send(()).unwrap();
    until(async || running.gateway.health().is_leaving()).await;
    assert_eq!(ask("GET /readyz").await.status, 503);
    running.open.add_permits(2);
    assert_eq!(ask("POST /v1/tools/test.gate").await.status, 200);
    running.ended.abort();
}

/// A call goes on when its client has gone.
#[tokio::test]
async fn a_call_whose_client_has_gone_is_waited_for() {
    let running = in_a_call(Settings::default()).await;
    drop(running.stream);
    running.stop.send(()).unwrap();
    until(async || running.gateway.health().is_draining()).await;
    running.open.add_permits(1);
    assert_eq!(within(running.ended).await.unwrap(), Stopped::Drained);
}

#[tokio::test]
async fn a_call_that_does_not_end_is_cut_off() {
    let settings = Settings {
        drain: Duration::from_millis(50),
        ..Settings::default()
    };
    let running = in_a_call(settings).await;
    running.stop.send(()).unwrap();
    assert_eq!(within(running.ended).await.unwrap(), Stopped::CutOff);
}

/// A call beyond the limit is refused with a retry interval, and the others are not disturbed.
#[tokio::test]
async fn one_call_too_many_is_refused() {
    let settings = Settings {
        calls_max: 1,
        ..Settings::default()
    };
    let mut running = in_a_call(settings).await;
    let mut second = TcpStream::connect(running.stream.peer_addr().unwrap())
        .await
        .unwrap();
    let request = "POST /v1/tools/test.gate HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    second.write_all(request.as_bytes()).await.unwrap();
    let wire = to_the_end(&mut second).await;
    let refused = Answer::parse(&wire).unwrap();
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (429, "RATE_LIMITED")
    );
    assert_eq!(refused.header("retry-after"), Some("1"));
    running.open.add_permits(1);
    running.stop.send(()).unwrap();
    let wire = to_the_end(&mut running.stream).await;
    assert_eq!(Answer::parse(&wire).unwrap().status, 200);
}

/// A server in the middle of a call that waits for a person.
async fn in_a_wait() -> (Gateway, TcpStream, oneshot::Sender<()>, JoinHandle<Stopped>) {
    let catalog = Catalog::builder().tool(ClearNotes).build().unwrap();
    let (gateway, _) = World::gateway(catalog, Settings::default());
    let server = Server::bind(gateway.clone(), "127.0.0.1:0".parse().unwrap());
    let server = server.await.unwrap();
    let address = server.address().unwrap();
    let (stop, stopped) = oneshot::channel();
    let ended = tokio::spawn(server.run(async move {
        let _ = stopped.await;
    }));
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = "POST /v1/tools/notes.clear HTTP/1.1\r\nhost: localhost\r\nprefer: wait=300\r\ncontent-length: 0\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let approvals = gateway.executor().approvals();
    until(async || approvals.pending().await.unwrap() > 0).await;
    (gateway, stream, stop, ended)
}

/// A call that waits for a person ends with its client, and frees its slot.
#[tokio::test]
async fn nobody_waits_for_a_person_in_the_place_of_a_client_that_has_gone() {
    let (gateway, stream, _stop, _ended) = in_a_wait().await;
    until(async || gateway.calls_waiting() == 1).await;
    assert_eq!(gateway.calls_running(), 0);
    drop(stream);
    assert!(within(gateway.drained()).await);
}

/// A caller that waits for a person when the server stops gets a reply that says when to come back.
#[tokio::test]
async fn a_wait_for_a_person_ends_with_the_server() {
    let (_gateway, mut stream, stop, ended) = in_a_wait().await;
    stop.send(()).unwrap();
    let wire = to_the_end(&mut stream).await;
    let answer = Answer::parse(&wire).unwrap();
    assert_eq!(
        (answer.status, &*answer.code()),
        (428, "NEEDS_USER_CONFIRMATION")
    );
    assert_eq!(within(ended).await.unwrap(), Stopped::Drained);
}

/// U9: counts of refused calls are recorded when the server stops, also when it is cut off.
#[tokio::test]
async fn counted_refusals_are_written_at_the_end() {
    for drain in [Duration::from_secs(30), Duration::from_millis(50)] {
        let settings = Settings {
            drain,
            ..Settings::default()
        };
        let running = in_a_call(settings).await;
        for _ in 0..5 {
            let unknown = ToolCall::new("no.such", "{}", Principal::user("u_1"));
            assert!(!running.gateway.call(unknown).await.ok);
        }
        let is_counted = async || {
            let query = LogQuery {
                kind: Some(RecordKind::Denial),
                limit: 10,
                ..LogQuery::default()
            };
            running.gateway.archive().list(&query).await.unwrap().len()
        };
        assert_eq!(is_counted().await, 1);
        running.stop.send(()).unwrap();
        if drain > Duration::from_secs(1) {
            running.open.add_permits(1);
        }
        within(running.ended).await.unwrap();
        assert_eq!(is_counted().await, 2);
    }
}
