//! The operator: the socket, the proof over TCP, and its operations.

use std::sync::{Arc, Mutex};

use countersign_gateway::caller::Proof;
use countersign_gateway::identity::Identity;
use countersign_gateway::operator::proof::{Exchange, Role, authorization, draw_nonce};
use countersign_gateway::operator::{
    Asked, Lines, Operations, Operator, OperatorSocket, Prover, Secret, socket,
};
use countersign_gateway::{Gateway, Server};
use countersign_testkit::patience::within;
use http::HeaderMap;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::identity::{operator, policy};
use crate::parts::{self, Parts};

/// Accepts the operator who knows this secret.
pub(crate) fn proved_by(parts: &Parts, secret: &Secret) -> Operator {
    let prover = Prover::new(secret.clone(), parts.ids.clone());
    Operator::new(operator()).or_proved_by(prover)
}

/// Makes a server prove itself; returns the credential for one request.
pub(crate) async fn credential(parts: &Parts, server: &parts::Server, secret: &Secret) -> String {
    let url = format!("http://{}", server.address);
    server.gateway.identity().prover().unwrap().listens_at(&url);
    let nonce = draw_nonce(&*parts.ids);
    let asked = json!({"nonce": nonce});
    let (status, _, proved) = server
        .send("POST", "/v1/operator/prove", None, Some(asked))
        .await;
    assert_eq!(status, 200, "{proved}");
    let exchange = Exchange {
        url: &url,
        nonce: &nonce,
        ticket: proved["ticket"].as_str().unwrap(),
    };
    let proof = proved["proof"].as_str().unwrap();
    assert!(secret.is_proved(Role::Server, exchange, proof));
    authorization(secret, exchange)
}

/// U8: the operator proves a secret that is never sent; it does not count as a configured credential.
#[tokio::test]
async fn the_operator_is_proved_over_tcp() {
    let parts = Parts::new();
    let secret = Secret::draw(&*parts.ids);
    let identity = Identity::new(parts.clock(), policy("revision = \"none\""))
        .api_keys(parts.api_keys())
        .with_operator(proved_by(&parts, &secret));
    let server = parts.serve(identity).await;
    let identity = server.gateway.identity();
    let credential = credential(&parts, &server, &secret).await;
    let caller = async |text: &str| {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", text.parse().unwrap());
        identity.caller(&headers).await.map(|caller| caller.proof)
    };
    assert!(caller(&credential.to_uppercase()).await.is_err());
    assert!(caller(&format!("Bearer {}", *secret.text())).await.is_err());
    assert_eq!(caller(&credential).await.unwrap(), Proof::Operator);
    assert!(caller(&credential).await.is_err(), "it is good once");
    assert!(identity.caller(&HeaderMap::new()).await.is_ok());
    for wrong in [json!({}), json!({"nonce": "x"}), json!([])] {
        let answer = server.send("POST", "/v1/operator/prove", None, Some(wrong));
        assert_eq!(answer.await.0, 400);
    }
}

/// A server with a socket proves nothing over TCP, and has no operator's paths there.
#[tokio::test]
async fn there_is_nothing_for_operators_over_tcp_beside_a_socket() {
    let parts = Parts::new();
    let identity = Identity::new(parts.clock(), policy("revision = \"none\""))
        .with_operator(Operator::new(operator()));
    let server = parts.serve(identity).await;
    let desk = Arc::new(Waiting::default());
    drop(server.gateway.clone().with_operations(desk));
    for (method, path) in [
        ("GET", "/v1/operator"),
        ("POST", "/v1/operator/wait"),
        ("POST", "/v1/operator/prove"),
    ] {
        let nonce = json!({"nonce": draw_nonce(&*parts.ids)});
        let (status, _, answer) = server.send(method, path, None, Some(nonce)).await;
        assert_eq!(
            (status, &answer["error"]["code"]),
            (404, &json!("NOT_FOUND"))
        );
    }
}

/// An operation that sends one line and then waits until its client has gone.
#[derive(Default)]
struct Waiting {
    given_up: Mutex<Option<oneshot::Sender<()>>>,
}

impl Operations for Waiting {
    fn about(&self) -> Value {
        json!({"pid": 1})
    }

    fn perform(&self, _: &Gateway, asked: &Asked, lines: Lines) {
        let request = String::from_utf8_lossy(&asked.request).into_owned();
        lines.send(&json!([asked.operation, request])).unwrap();
        Handle::current().block_on(lines.given_up());
        if let Some(told) = self.given_up.lock().unwrap().take() {
            told.send(()).unwrap();
        }
    }
}

/// U8: a client of the socket is the operator; an operation is cancelled when the client goes, and when the
/// server stops.
#[tokio::test(flavor = "multi_thread")]
async fn an_operation_is_given_up_with_its_connection() {
    for is_stopped in [false, true] {
        let parts = Parts::new();
        let identity = Identity::new(parts.clock(), policy("revision = \"none\""))
            .with_operator(Operator::new(operator()))
            .operators_only();
        let gateway = parts.serve(identity).await.gateway;
        let (told, is_told) = oneshot::channel();
        let desk = Waiting {
            given_up: Mutex::new(Some(told)),
        };
        drop(gateway.clone().with_operations(Arc::new(desk)));
        let folder = tempfile::tempdir().unwrap();
        let mut socket = OperatorSocket::make(folder.path()).unwrap();
        socket.announce().unwrap();
        let server = Server::without_callers(gateway).with_operators(Some(socket));
        let (stop, is_told_to_stop) = oneshot::channel::<()>();
        let running = tokio::spawn(server.run(async { drop(is_told_to_stop.await) }));

        let path = folder.path().join(socket::NAME);
        let mut about = UnixStream::connect(&path).await.unwrap();
        let request = "GET /v1/operator HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        about.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        within(about.read_to_string(&mut answer)).await.unwrap();
        assert!(answer.ends_with("{\"pid\":1}"), "{answer}");

        let mut stream = UnixStream::connect(&path).await.unwrap();
        let request =
            "POST /v1/operator/wait HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}";
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut heard = Vec::new();
        while !String::from_utf8_lossy(&heard).contains("[\"wait\",\"{}\"]\n") {
            let read = within(stream.read_buf(&mut heard)).await.unwrap();
            assert!(read > 0, "{}", String::from_utf8_lossy(&heard));
        }
        if is_stopped {
            stop.send(()).unwrap();
            within(is_told).await.unwrap();
            drop(stream);
        } else {
            drop(stream);
            within(is_told).await.unwrap();
            stop.send(()).unwrap();
        }
        within(running).await.unwrap();
        assert!(!path.exists());
    }
}
