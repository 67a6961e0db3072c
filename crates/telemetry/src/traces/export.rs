//! Sends batches of spans to the collector. Spans that the collector does not accept are lost; they are
//! counted, and logged at most once a minute.
//!
//! The sender of `opentelemetry-otlp` is not used: it reads environment variables regardless of the settings,
//! and its clients are not built by `net`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use prost::Message as _;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::runtime::Handle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

use super::queue::Queue;
use crate::instruments;
use sepal_config as config;

/// The time limit of one request.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
/// The pauses before further attempts. Meanwhile spans wait in the queue.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];
/// The shortest time between log entries about lost spans.
const COMPLAIN_EVERY: Duration = Duration::from_mins(1);
/// The most bytes of a response that are read.
const ANSWER_BYTES: usize = 64 * 1024;

/// The reason why a collector did not accept spans.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("it is not reached")]
    Away(#[source] reqwest::Error),
    #[error("it answers with the status {0}")]
    Refused(StatusCode),
    #[error("it has not taken {0} of the spans")]
    Partly(i64),
}

impl Error {
    /// Returns true if the same spans may be accepted later (OTLP: "retryable response codes").
    fn is_passing(&self) -> bool {
        match self {
            Self::Away(_) => true,
            Self::Refused(status) => matches!(status.as_u16(), 429 | 502 | 503 | 504),
            Self::Partly(_) => false,
        }
    }
}

/// The exporter. The library calls it from a thread of its own, which blocks until the export is done.
#[derive(Debug)]
pub(super) struct Exporter {
    collector: Collector,
    resource: ResourceAttributesWithSchema,
    runtime: Handle,
    requests: TaskTracker,
    /// The queue in which spans wait for export.
    queue: Arc<Queue>,
    /// The time of the last log entry about lost spans, and the number of spans in lost batches since then.
    /// Never locked across an await.
    lost: Mutex<(Option<Instant>, usize)>,
}

#[derive(Debug, Clone)]
struct Collector {
    http: Client,
    url: Url,
    headers: HeaderMap,
    closing: CancellationToken,
}

impl Exporter {
    /// Creates the exporter; `None` if the settings name no collector.
    pub(super) fn new(
        settings: &config::Telemetry,
        http: Client,
        closing: CancellationToken,
        queue: Arc<Queue>,
    ) -> Option<Self> {
        let url = traces_url(settings.otlp_endpoint.as_ref()?);
        let headers = settings.otlp_headers.iter();
        let collector = Collector {
            http,
            url,
            headers: headers
                .filter_map(|(name, value)| header(name, value))
                .collect(),
            closing,
        };
        tracing::info!("Traces go to {}", shown(&collector.url));
        Some(Self {
            collector,
            resource: (&resource(settings)).into(),
            runtime: Handle::current(),
            requests: TaskTracker::new(),
            queue,
            lost: Mutex::default(),
        })
    }

    fn complain(&self, error: &Error, spans: usize) {
        let lost = match error {
            Error::Partly(rejected) => u64::try_from(*rejected).unwrap_or_default(),
            Error::Away(_) | Error::Refused(_) => u64::try_from(spans).unwrap_or_default(),
        };
        instruments().spans_lost("collector", lost);
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.1 += spans;
        let is_due = lost.0.is_none_or(|said| said.elapsed() >= COMPLAIN_EVERY);
        if is_due {
            let url = shown(&self.collector.url);
            tracing::warn!(
                spans = lost.1,
                ?error,
                "Traces are lost: the collector at {url} does not take them"
            );
            *lost = (Some(Instant::now()), 0);
        }
    }
}

impl SpanExporter for Exporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        self.queue.leave(spans);
        let request = ExportTraceServiceRequest {
            resource_spans: group_spans_by_resource_and_scope(batch, &self.resource),
        };
        let collector = self.collector.clone();
        let sending = async move { collector.deliver(request.encode_to_vec()).await };
        match self.requests.spawn_on(sending, &self.runtime).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                self.complain(&error, spans);
                Err(OTelSdkError::InternalFailure(error.to_string()))
            }
            // The runtime is gone, because the process is ending.
            Err(_) => Err(OTelSdkError::AlreadyShutdown),
        }
    }
}

impl Collector {
    async fn deliver(&self, body: Vec<u8>) -> Result<(), Error> {
        let body = bytes::Bytes::from(body);
        let mut pauses = PAUSES.into_iter();
        loop {
            let error = match self.send(body.clone()).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let Some(pause) = pauses.next().filter(|_| error.is_passing()) else {
                return Err(error);
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.closing.cancelled() => return Err(error),
            }
        }
    }

    async fn send(&self, body: bytes::Bytes) -> Result<(), Error> {
        let request = self
            .http
            .post(self.url.clone())
            .headers(self.headers.clone());
        let request = request
            .header(CONTENT_TYPE, "application/x-protobuf")
            .timeout(REQUEST_LIMIT)
            .body(body);
        // The URL may hold a key.
        let away = |error: reqwest::Error| Error::Away(error.without_url());
        let mut answer = request.send().await.map_err(away)?;
        if !answer.status().is_success() {
            return Err(Error::Refused(answer.status()));
        }
        let mut said = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(away)? {
            said.extend_from_slice(&piece);
            if said.len() > ANSWER_BYTES {
                break;
            }
        }
        // Some collectors send another body; by the status, they accepted all spans.
        let said = ExportTraceServiceResponse::decode(said.as_slice()).unwrap_or_default();
        match said
            .partial_success
            .map_or(0, |partly| partly.rejected_spans)
        {
            0 => Ok(()),
            rejected => Err(Error::Partly(rejected)),
        }
    }
}

/// The URL of the traces below the collector's base URL (OTLP/HTTP).
fn traces_url(endpoint: &Url) -> Url {
    let mut url = endpoint.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(["v1", "traces"]);
    }
    url
}

/// A validated header, marked as sensitive so that it is never printed.
fn header(name: &str, value: &SecretString) -> Option<(HeaderName, HeaderValue)> {
    let name = HeaderName::try_from(name).ok()?;
    let mut value = HeaderValue::try_from(value.expose_secret()).ok()?;
    value.set_sensitive(true);
    Some((name, value))
}

/// The attributes of this gateway; the operator's override ours.
fn resource(settings: &config::Telemetry) -> Resource {
    let ours = [
        ("service.name", crate::PROGRAM.to_owned()),
        ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
        (
            "service.instance.id",
            hex::encode(rand::random::<[u8; 8]>()),
        ),
        ("telemetry.sdk.name", "opentelemetry".to_owned()),
        ("telemetry.sdk.language", "rust".to_owned()),
    ];
    let ours = ours.map(|(name, value)| KeyValue::new(name, value));
    let theirs = settings.resource_attributes.iter();
    let theirs = theirs.map(|(name, value)| KeyValue::new(name.clone(), value.clone()));
    let name = settings.service_name.clone();
    let name = name.map(|name| KeyValue::new("service.name", name));
    Resource::builder_empty()
        .with_attributes(ours)
        .with_attributes(theirs)
        .with_attributes(name)
        .build()
}

/// The URL without the parts that may hold a key.
fn shown(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

#[cfg(test)]
mod tests {
    use super::{shown, traces_url};

    #[test]
    fn the_path_of_traces_is_added_and_a_query_is_not_shown() {
        for (endpoint, expected) in [
            ("http://localhost:4318", "http://localhost:4318/v1/traces"),
            ("http://localhost:4318/", "http://localhost:4318/v1/traces"),
            (
                "https://a.example/otlp?key=hush",
                "https://a.example/otlp/v1/traces",
            ),
        ] {
            assert_eq!(shown(&traces_url(&endpoint.parse().unwrap())), expected);
        }
    }
}
