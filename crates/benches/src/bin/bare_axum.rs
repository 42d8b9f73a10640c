//! The floor of an HTTP server in Rust: a bare handler that parses the same request and answers the same
//! JSON as a plain read, and does nothing else. Takes the address to listen on and the answer.

use axum::body::Bytes;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::post;
use axum::serve::ListenerExt as _;
use serde_json::Value;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let address = words.next().ok_or("the address is missing")?;
    let answer: Value = serde_json::from_str(&words.next().ok_or("the answer is missing")?)?;
    let handler = move |body: Bytes| {
        let answer = answer.clone();
        async move {
            match serde_json::from_slice::<Value>(&body) {
                Ok(_) => {
                    let head = [(header::CONTENT_TYPE, "application/json")];
                    (head, answer.to_string()).into_response()
                }
                Err(_) => StatusCode::BAD_REQUEST.into_response(),
            }
        }
    };
    let listener = tokio::net::TcpListener::bind(address).await?;
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    let router = axum::Router::new().route("/v1/tools/{name}", post(handler));
    Ok(axum::serve(listener, router).await?)
}
