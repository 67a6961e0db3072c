//! OpenTelemetry traces: finished spans are batched in the background and sent by OTLP over HTTP.
//!
//! A span is reported when it is over, by code that knows its start and end. Nothing is derived from the log,
//! so no text of a library or a log line can get into a trace. Without a collector nothing is built.

mod export;
mod queue;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::trace::{
    Event, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{Array, InstrumentationScope, KeyValue, StringValue};
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanEvents, SpanLinks, SpanProcessor as _,
};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

pub use opentelemetry::Value;

use export::Exporter;
use queue::Queue;
use sepal_config as config;
use sepal_core::domain::Timestamp;
use sepal_jobs::Pool;

/// The most finished spans that wait for the collector; further spans are dropped and counted.
const QUEUE: usize = 2_048;
/// The most spans of one request to the collector.
const BATCH: usize = 512;
/// The time that spans wait to be batched.
const EVERY: Duration = Duration::from_secs(2);
/// The time limit for sending the last spans when the gateway stops.
const FLUSH_LIMIT: Duration = Duration::from_secs(5);
/// The most characters of a user-chosen text.
const LETTERS: usize = 200;

/// The destination of finished spans; the default discards them. Cheap to clone.
#[derive(Clone, Default)]
pub struct Traces(Option<Arc<Pipe>>);

struct Pipe {
    batches: BatchSpanProcessor,
    queue: Arc<Queue>,
    scope: InstrumentationScope,
    /// Tells the exporter to stop retrying.
    closing: CancellationToken,
}

impl Traces {
    /// Sends spans to the collector of the settings, if any, with the given client. Call it within a runtime,
    /// on which the requests run.
    pub fn open(settings: &config::Telemetry, http: &reqwest::Client) -> Self {
        let closing = CancellationToken::new();
        let queue = Arc::new(Queue::new(QUEUE));
        let exporter = Exporter::new(settings, http.clone(), closing.clone(), Arc::clone(&queue));
        Self(exporter.map(|exporter| {
            let limits = BatchConfigBuilder::default()
                .with_max_queue_size(QUEUE)
                .with_max_export_batch_size(BATCH)
                .with_scheduled_delay(EVERY)
                .build();
            let scope = InstrumentationScope::builder(crate::PROGRAM)
                .with_version(env!("CARGO_PKG_VERSION"))
                .build();
            Arc::new(Pipe {
                batches: BatchSpanProcessor::new(exporter, limits),
                queue,
                scope,
                closing,
            })
        }))
    }

    /// Returns true if there is a collector.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Ends a span at the given time and queues it. Never waits: if the queue is full, the span is dropped
    /// and counted.
    pub fn end(&self, span: Span, at: Timestamp) {
        let Some(pipe) = &self.0 else { return };
        if !pipe.queue.enter() {
            return;
        }
        let mut data = span.0;
        // Clocks of two gateways may differ, but a span must not end before it starts.
        data.end_time = time(at).max(data.start_time);
        data.instrumentation_scope = pipe.scope.clone();
        pipe.batches.on_end(data);
    }

    /// Sends the waiting spans, for at most five seconds; later spans are dropped.
    pub async fn close(&self) {
        let Some(pipe) = self.0.clone() else { return };
        pipe.closing.cancel();
        // The shutdown blocks its thread until the last batch is sent.
        let flushing = Pool::new("last traces", 1);
        let flushed = flushing.run(move || pipe.batches.shutdown_with_timeout(FLUSH_LIMIT).is_ok());
        if !flushed.await.unwrap_or_default() {
            tracing::warn!("The last traces were not taken in time");
        }
    }
}

/// A trace and its root span. Both ids are derived from facts, so that gateways that do not communicate
/// report parts of the same trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    id: TraceId,
    root: SpanId,
}

impl Trace {
    /// The trace that the facts identify.
    pub fn of(facts: &[&str]) -> Self {
        let mut hash = Sha256::new();
        for fact in facts {
            // Length prefixes keep different lists of facts from having the same hash.
            hash.update((fact.len() as u64).to_be_bytes());
            hash.update(fact.as_bytes());
        }
        let hash: [u8; 32] = hash.finalize().into();
        let (mut id, mut root) = ([0; 16], [0; 8]);
        for (to, from) in id.iter_mut().chain(&mut root).zip(hash) {
            *to = from;
        }
        Self {
            id: TraceId::from_bytes(id),
            root: SpanId::from_bytes(root),
        }
    }
}

/// A span that is not over yet. Dropping it reports nothing.
#[derive(Debug)]
pub struct Span(SpanData);

impl Span {
    /// The root span of the trace.
    pub fn root(of: Trace, name: &str, start: Timestamp) -> Self {
        Self::new(of.id, of.root, SpanId::INVALID, name, start)
    }

    /// A child of the root span.
    pub fn child(of: Trace, name: &str, start: Timestamp) -> Self {
        let id = SpanId::from_bytes(rand::random());
        Self::new(of.id, id, of.root, name, start)
    }

    fn new(trace: TraceId, id: SpanId, above: SpanId, name: &str, start: Timestamp) -> Self {
        let (flags, state) = (TraceFlags::SAMPLED, TraceState::default());
        let start = time(start);
        Self(SpanData {
            span_context: SpanContext::new(trace, id, flags, false, state),
            parent_span_id: above,
            parent_span_is_remote: false,
            span_kind: SpanKind::Internal,
            name: short(name).to_owned().into(),
            start_time: start,
            end_time: start,
            attributes: Vec::new(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: InstrumentationScope::default(),
        })
    }

    /// Marks the span as a request to another service.
    #[must_use]
    pub fn as_client(mut self) -> Self {
        self.0.span_kind = SpanKind::Client;
        self
    }

    /// Sets an attribute to a value of our own.
    pub fn set(&mut self, name: &'static str, value: impl Into<Value>) {
        self.0.attributes.push(KeyValue::new(name, value));
    }

    /// Sets an attribute to a user-chosen name, truncated to 200 characters.
    pub fn name(&mut self, name: &'static str, value: &str) {
        self.set(name, short(value).to_owned());
    }

    /// Sets an attribute to a list of one name, for conventions that require a list.
    pub fn list(&mut self, name: &'static str, value: &str) {
        let value = StringValue::from(short(value).to_owned());
        self.set(name, Value::Array(Array::String(vec![value])));
    }

    /// Adds an event within the span.
    pub fn happened(
        &mut self,
        what: &'static str,
        at: Timestamp,
        facts: Vec<(&'static str, Value)>,
    ) {
        let facts = facts
            .into_iter()
            .map(|(name, value)| KeyValue::new(name, value));
        let event = Event::new(what, time(at), facts.collect(), 0);
        self.0.events.events.push(event);
    }

    /// Marks the span as failed, with the stable name of the reason.
    pub fn fail(&mut self, code: &'static str) {
        self.set("error.type", code);
        self.0.status = Status::error(code);
    }
}

fn time(at: Timestamp) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(at.0).unwrap_or_default())
}

fn short(text: &str) -> &str {
    let end = text.char_indices().nth(LETTERS);
    end.and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::{Span, Trace, Traces, short};
    use sepal_core::domain::Timestamp;

    #[test]
    fn a_trace_follows_from_its_facts_and_from_nothing_else() {
        let trace = Trace::of(&["acme", "ses_1", "1"]);
        assert_eq!(trace, Trace::of(&["acme", "ses_1", "1"]));
        for other in [
            ["acme", "ses_1", "2"],
            ["acm", "eses_1", "1"],
            ["", "ses_1", "1"],
        ] {
            assert_ne!(trace, Trace::of(&other), "{other:?}");
        }
    }

    #[test]
    fn names_of_others_are_cut_and_without_a_collector_nothing_is_kept() {
        assert_eq!(short(&"ä".repeat(300)), "ä".repeat(200));
        assert_eq!(short("short"), "short");
        let traces = Traces::default();
        assert!(!traces.is_on());
        traces.end(Span::root(Trace::of(&[]), "", Timestamp(1)), Timestamp(0));
    }
}
