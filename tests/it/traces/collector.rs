//! A stand-in for a collector: takes traces by OTLP over HTTP, and refuses what a strict one
//! refuses. Dropping it fails the test if anything was refused.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span as Sent;
use prost::Message as _;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::support::DEADLINE;

/// The key that it wants in `x-collector-key`.
pub(super) const KEY: &str = "the collector's own, hush";

/// A span as it was taken.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub(super) trace: String,
    pub(super) id: String,
    /// Empty for the first of a trace.
    pub(super) parent: String,
    pub(super) name: String,
    /// 1 internal, 3 client.
    pub(super) kind: i32,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) facts: Map<String, Value>,
    pub(super) events: Vec<(String, Map<String, Value>)>,
    pub(super) is_error: bool,
}

#[derive(Default)]
struct Taken {
    spans: Vec<Span>,
    /// All that came, for searches.
    bytes: Vec<u8>,
    resources: Vec<Map<String, Value>>,
    refusals: Vec<String>,
    /// What is answered instead of taking.
    failures: Vec<u16>,
}

/// The stand-in.
pub(super) struct Collector {
    address: SocketAddr,
    taken: Arc<Mutex<Taken>>,
    requests: watch::Sender<usize>,
    _server: AbortOnDropHandle<()>,
}

impl Collector {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let taken = Arc::<Mutex<Taken>>::default();
        let requests = watch::Sender::new(0);
        let state = (Arc::clone(&taken), requests.clone());
        let router = Router::new().fallback(take).with_state(state);
        let server = TaskTracker::new().spawn(async move {
            axum::serve(listener, router).await.unwrap();
        });
        Self {
            address,
            taken,
            requests,
            _server: AbortOnDropHandle::new(server),
        }
    }

    /// What an environment says that leads here.
    pub(super) fn env(&self) -> Vec<(String, String)> {
        let env = [
            (
                "OTEL_EXPORTER_OTLP_ENDPOINT",
                format!("http://{}/otlp", self.address),
            ),
            (
                "OTEL_EXPORTER_OTLP_HEADERS",
                format!("x-team=a%20b,x-collector-key={KEY}").replace(", hush", "%2C%20hush"),
            ),
            ("OTEL_SERVICE_NAME", "gateway".to_owned()),
            (
                "OTEL_RESOURCE_ATTRIBUTES",
                "deployment.environment.name=test".to_owned(),
            ),
        ];
        env.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }

    /// The next requests are answered with these.
    pub(super) fn will_fail(&self, statuses: &[u16]) {
        self.taken().failures.extend(statuses);
    }

    /// Waits until those letters came.
    pub(super) async fn arrived(&self, piece: &str) {
        let mut requests = self.requests.subscribe();
        let arriving = requests.wait_for(|_| self.has_seen(piece));
        tokio::time::timeout(DEADLINE, arriving)
            .await
            .unwrap()
            .unwrap();
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap()
    }

    /// Whether those letters came, in whatever place.
    pub(super) fn has_seen(&self, piece: &str) -> bool {
        let taken = self.taken();
        let (bytes, piece) = (&taken.bytes, piece.as_bytes());
        bytes.windows(piece.len()).any(|window| window == piece)
    }

    /// Everything that came, by trace, once all spans of all turns must be there: each trace has one
    /// first span, every parent exists, and a part lies within the whole.
    pub(super) fn traces(&self) -> Vec<Vec<Span>> {
        let taken = self.taken();
        for resource in &taken.resources {
            assert_eq!(resource["service.name"], "gateway");
            assert_eq!(resource["service.version"], env!("CARGO_PKG_VERSION"));
            assert_eq!(resource["deployment.environment.name"], "test");
            assert!(resource["service.instance.id"].is_string());
        }
        let mut traces = BTreeMap::<&str, Vec<Span>>::new();
        for span in &taken.spans {
            traces.entry(&span.trace).or_default().push(span.clone());
        }
        let mut traces: Vec<Vec<Span>> = traces.into_values().collect();
        for trace in &mut traces {
            trace.sort_by_key(|span| (span.start, !span.parent.is_empty(), span.end));
            let ids: BTreeSet<&str> = trace.iter().map(|span| span.id.as_str()).collect();
            assert_eq!(ids.len(), trace.len(), "an id stands twice: {trace:#?}");
            let roots = trace.iter().filter(|span| span.parent.is_empty());
            assert_eq!(roots.count(), 1, "{trace:#?}");
            let root = &trace[0];
            for span in &trace[1..] {
                assert_eq!(span.parent, root.id, "{trace:#?}");
                assert!(span.start >= root.start, "{trace:#?}");
                assert!(span.end <= root.end, "{trace:#?}");
            }
        }
        traces.sort_by_key(|trace| trace[0].start);
        traces
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let refusals = &self.taken().refusals;
            assert!(refusals.is_empty(), "the collector refused: {refusals:#?}");
        }
    }
}

async fn take(
    State((taken, requests)): State<(Arc<Mutex<Taken>>, watch::Sender<usize>)>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut taken = taken.lock().unwrap();
    if !taken.failures.is_empty() {
        let status = taken.failures.remove(0);
        return StatusCode::from_u16(status).unwrap().into_response();
    }
    match read(&uri, &headers, &body) {
        Ok((resources, spans)) => {
            taken.bytes.extend_from_slice(&body);
            for (name, value) in &headers {
                if name != "x-collector-key" {
                    taken.bytes.extend_from_slice(value.as_bytes());
                }
            }
            taken.resources.extend(resources);
            taken.spans.extend(spans);
            drop(taken);
            requests.send_modify(|requests| *requests += 1);
            let answer = ExportTraceServiceResponse::default().encode_to_vec();
            ([(header::CONTENT_TYPE, "application/x-protobuf")], answer).into_response()
        }
        Err(problem) => {
            taken.refusals.push(problem.clone());
            (StatusCode::BAD_REQUEST, problem).into_response()
        }
    }
}

type Read = (Vec<Map<String, Value>>, Vec<Span>);

fn read(uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Result<Read, String> {
    let is = |name: &str, value: &str| headers.get(name).is_some_and(|found| found == value);
    if uri != "/otlp/v1/traces" {
        return Err(format!("the address {uri}"));
    }
    if !is("content-type", "application/x-protobuf") || headers.contains_key("content-encoding") {
        return Err(format!("the form {headers:?}"));
    }
    if !is("x-team", "a b") || !is("x-collector-key", KEY) || headers.contains_key("traceparent") {
        return Err(format!("the headers {headers:?}"));
    }
    let request = ExportTraceServiceRequest::decode(body).map_err(|error| error.to_string())?;
    let (mut resources, mut spans) = (Vec::new(), Vec::new());
    for of_resource in request.resource_spans {
        let resource = of_resource.resource.ok_or("a resource is missing")?;
        resources.push(facts(&resource.attributes)?);
        for of_scope in of_resource.scope_spans {
            let scope = of_scope.scope.ok_or("a scope is missing")?;
            if scope.name != "sepal" || scope.version != env!("CARGO_PKG_VERSION") {
                return Err(format!("the scope {scope:?}"));
            }
            for span in of_scope.spans {
                spans.push(check(&span).map_err(|problem| format!("{problem}: {span:?}"))?);
            }
        }
    }
    if spans.is_empty() {
        return Err("nothing in it".to_owned());
    }
    Ok((resources, spans))
}

fn check(span: &Sent) -> Result<Span, String> {
    let is_id = |id: &[u8], length| id.len() == length && id.iter().any(|byte| *byte != 0);
    if !is_id(&span.trace_id, 16) || !is_id(&span.span_id, 8) {
        return Err("an id has the wrong length or is empty".to_owned());
    }
    if !span.parent_span_id.is_empty() && !is_id(&span.parent_span_id, 8) {
        return Err("the parent's id has the wrong length or is empty".to_owned());
    }
    let year_2020 = 1_577_836_800_000_000_000;
    if span.start_time_unix_nano < year_2020 || span.end_time_unix_nano < span.start_time_unix_nano
    {
        return Err("the times are out of order".to_owned());
    }
    if span.name.is_empty() || !matches!(span.kind, 1 | 3) {
        return Err("a name or kind is missing".to_owned());
    }
    let facts_of = facts(&span.attributes)?;
    let is_error = span.status.as_ref().is_some_and(|status| status.code == 2);
    if is_error != facts_of.contains_key("error.type") {
        return Err("status and error.type disagree".to_owned());
    }
    let mut events = Vec::new();
    for event in &span.events {
        let (from, to) = (span.start_time_unix_nano, span.end_time_unix_nano);
        if event.name.is_empty() || event.time_unix_nano < from || event.time_unix_nano > to {
            return Err("an event has no name, or lies outside".to_owned());
        }
        events.push((event.name.clone(), facts(&event.attributes)?));
    }
    Ok(Span {
        trace: hex::encode(&span.trace_id),
        id: hex::encode(&span.span_id),
        parent: hex::encode(&span.parent_span_id),
        name: span.name.clone(),
        kind: span.kind,
        start: span.start_time_unix_nano,
        end: span.end_time_unix_nano,
        facts: facts_of,
        events,
        is_error,
    })
}

fn facts(attributes: &[KeyValue]) -> Result<Map<String, Value>, String> {
    let mut found = Map::new();
    for attribute in attributes {
        let value = plain(attribute.value.as_ref())
            .ok_or_else(|| format!("`{}` has no value", attribute.key))?;
        if found.insert(attribute.key.clone(), value).is_some() {
            return Err(format!("`{}` stands twice", attribute.key));
        }
    }
    Ok(found)
}

fn plain(value: Option<&AnyValue>) -> Option<Value> {
    match value?.value.as_ref()? {
        Any::StringValue(text) => Some(json!(text)),
        Any::BoolValue(flag) => Some(json!(flag)),
        Any::IntValue(number) => Some(json!(number)),
        Any::DoubleValue(number) => Some(json!(number)),
        Any::ArrayValue(list) => list.values.iter().map(|value| plain(Some(value))).collect(),
        Any::KvlistValue(_) | Any::BytesValue(_) | Any::StringValueStrindex(_) => None,
    }
}
