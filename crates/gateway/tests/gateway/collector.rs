//! A trace collector: takes OTLP over HTTP and keeps the requests.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::{Map, Value, json};

#[derive(Clone, Default)]
pub(crate) struct Collector {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Bytes>>>,
}

impl Collector {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let collector = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            requests: Arc::default(),
        };
        let router = Router::new()
            .route("/v1/traces", post(keep))
            .with_state(collector.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        collector
    }

    /// Returns all requests, byte for byte.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.requests.lock().unwrap().concat()
    }

    pub(crate) fn requests(&self) -> Vec<ExportTraceServiceRequest> {
        let requests = self.requests.lock().unwrap();
        let decode = |bytes: &Bytes| ExportTraceServiceRequest::decode(bytes.clone()).unwrap();
        requests.iter().map(decode).collect()
    }

    /// Returns all spans, each with the schema that its scope names.
    pub(crate) fn spans(&self) -> Vec<(Span, String)> {
        let requests = self.requests();
        let resources = requests.into_iter().flat_map(|one| one.resource_spans);
        let scopes = resources.flat_map(|one| one.scope_spans);
        scopes
            .flat_map(|scope| {
                let url = scope.schema_url;
                scope.spans.into_iter().map(move |span| (span, url.clone()))
            })
            .collect()
    }
}

async fn keep(State(collector): State<Collector>, body: Bytes) {
    collector.requests.lock().unwrap().push(body);
}

pub(crate) fn attributes(all: &[KeyValue]) -> Map<String, Value> {
    let plain = |value: &AnyValue| match value.value.clone() {
        Some(Any::StringValue(text)) => json!(text),
        Some(Any::BoolValue(is)) => json!(is),
        Some(Any::IntValue(number)) => json!(number),
        Some(Any::ArrayValue(list)) => {
            let texts = list.values.iter().map(|one| match &one.value {
                Some(Any::StringValue(text)) => text.clone(),
                other => format!("{other:?}"),
            });
            json!(texts.collect::<Vec<_>>().join(" "))
        }
        other => json!(format!("{other:?}")),
    };
    let pair = |one: &KeyValue| {
        (
            one.key.clone(),
            one.value.as_ref().map_or(Value::Null, plain),
        )
    };
    all.iter().map(pair).collect()
}
