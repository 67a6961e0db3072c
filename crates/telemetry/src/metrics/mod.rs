//! Prometheus metrics of this process.
//!
//! Labels are `&'static str` from fixed lists, so a tenant, a session or a user-chosen name can never become
//! a label. Nothing is counted per token.

mod process;
mod table;

use std::sync::LazyLock;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

pub use table::{FIGURES, Figure, Kind};

/// The media type of [`exposition`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Labels<const N: usize> = [(&'static str, &'static str); N];
type Counters<const N: usize> = Family<Labels<N>, Counter>;
type Histograms<const N: usize> = Family<Labels<N>, Histogram, fn() -> Histogram>;

static INSTRUMENTS: LazyLock<Instruments> = LazyLock::new(Instruments::new);

/// The instruments of the process. Their methods can be called from anywhere and never wait.
#[derive(Debug)]
pub struct Instruments {
    registry: Registry,
    sessions: Gauge,
    sockets: Gauge,
    sandboxed: Gauge,
    turns: Counters<1>,
    turn_seconds: Histograms<1>,
    first_token: Histograms<1>,
    requests: Histograms<2>,
    retries: Counters<1>,
    providers_out: Family<Labels<1>, Gauge>,
    calls: Counters<1>,
    approvals: Histograms<1>,
    sandboxes: Histograms<3>,
    appends: Histograms<1>,
    dropped: Counter,
    replayed: Counter,
    spans: Counters<1>,
    limits: Counters<2>,
    disk_free: Gauge,
    disk_pressure: Gauge,
    egress: Counters<1>,
    egress_bytes: Counters<1>,
    undelivered: Counters<1>,
    anchor_lag: Family<Labels<1>, Gauge<f64, AtomicU64>>,
}

/// The instruments of this process.
pub fn instruments() -> &'static Instruments {
    &INSTRUMENTS
}

/// All metrics in the text format of Prometheus.
pub fn exposition() -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = encode(&mut text, &INSTRUMENTS.registry);
    text
}

/// Counts one thing in a gauge until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct Present(Gauge);

impl Present {
    fn of(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Measures the time until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct Timing {
    into: Histogram,
    since: Instant,
}

impl Drop for Timing {
    fn drop(&mut self) {
        self.into.observe(self.since.elapsed().as_secs_f64());
    }
}

impl Instruments {
    fn new() -> Self {
        let mut registry = Registry::default();
        let to = &mut registry;
        let build: Family<Labels<1>, Gauge> = register(to, "sepal_build_info", Family::default());
        build
            .get_or_create(&[("version", env!("CARGO_PKG_VERSION"))])
            .set(1);
        let instruments = Self {
            sessions: register(to, "sepal_sessions_live", Gauge::default()),
            sockets: register(to, "sepal_sockets_open", Gauge::default()),
            sandboxed: register(to, "sepal_sandbox_ready", Gauge::default()),
            turns: register(to, "sepal_turns_total", Family::default()),
            turn_seconds: register(to, "sepal_turn_duration_seconds", family(long)),
            first_token: register(to, "sepal_first_token_seconds", family(long)),
            requests: register(to, "sepal_model_request_seconds", family(long)),
            retries: register(to, "sepal_model_retries_total", Family::default()),
            providers_out: register(to, "sepal_model_providers_out", Family::default()),
            calls: register(to, "sepal_calls_total", Family::default()),
            approvals: register(to, "sepal_approval_wait_seconds", family(patient)),
            sandboxes: register(to, "sepal_sandbox_start_seconds", family(medium)),
            appends: register(to, "sepal_store_append_seconds", family(short)),
            dropped: register(to, "sepal_signals_dropped_total", Counter::default()),
            replayed: register(to, "sepal_events_replayed_total", Counter::default()),
            spans: register(to, "sepal_spans_lost_total", Family::default()),
            limits: register(to, "sepal_limits_reached_total", Family::default()),
            disk_free: register(to, "sepal_disk_free_bytes", Gauge::default()),
            disk_pressure: register(to, "sepal_disk_pressure", Gauge::default()),
            egress: register(to, "sepal_egress_connections_total", Family::default()),
            egress_bytes: register(to, "sepal_egress_bytes_total", Family::default()),
            undelivered: register(to, "sepal_audit_deliveries_failed_total", Family::default()),
            anchor_lag: register(to, "sepal_audit_anchor_lag_seconds", Family::default()),
            registry: Registry::default(),
        };
        registry.register_collector(Box::new(process::Process));
        Self {
            registry,
            ..instruments
        }
    }

    /// Counts a session as in memory until the guard is dropped.
    pub fn session_opened(&'static self) -> Present {
        Present::of(&self.sessions)
    }

    /// Counts a client as connected until the guard is dropped.
    pub fn socket_opened(&'static self) -> Present {
        Present::of(&self.sockets)
    }

    /// Reports that sandboxed tools can run, until the guard is dropped.
    pub fn sandbox_ready(&'static self) -> Present {
        Present::of(&self.sandboxed)
    }

    /// Counts a turn that ended as `answered`, `failed` or `cancelled`.
    pub fn turn_ended(&self, outcome: &'static str) {
        self.turns.get_or_create(&[("outcome", outcome)]).inc();
    }

    /// Records the duration of a turn that ended with a final answer.
    pub fn turn_took(&self, provider: &'static str, time: Duration) {
        let turns = self.turn_seconds.get_or_create(&[("provider", provider)]);
        turns.observe(time.as_secs_f64());
    }

    /// Records the time to the first piece of an answer.
    pub fn first_token(&self, provider: &'static str, time: Duration) {
        let pieces = self.first_token.get_or_create(&[("provider", provider)]);
        pieces.observe(time.as_secs_f64());
    }

    /// Records a model request that ended as `answered` or `failed`.
    pub fn model_asked(&self, provider: &'static str, outcome: &'static str, time: Duration) {
        let labels = [("provider", provider), ("outcome", outcome)];
        let requests = self.requests.get_or_create(&labels);
        requests.observe(time.as_secs_f64());
    }

    /// Counts a failed attempt of a model request that is retried.
    pub fn model_retried(&self, provider: &'static str) {
        self.retries.get_or_create(&[("provider", provider)]).inc();
    }

    /// Counts a provider of that kind as out until the guard is dropped.
    pub fn provider_out(&self, provider: &'static str) -> Present {
        Present::of(&self.providers_out.get_or_create(&[("provider", provider)]))
    }

    /// Counts a call that entered the state.
    pub fn call_became(&self, state: &'static str) {
        self.calls.get_or_create(&[("state", state)]).inc();
    }

    /// Records how long a call waited for a person's decision.
    pub fn approval_took(&self, verdict: &'static str, time: Duration) {
        let approvals = self.approvals.get_or_create(&[("verdict", verdict)]);
        approvals.observe(time.as_secs_f64());
    }

    /// Records a sandbox start by that driver, `warm` or `cold`, that ended as `ok` or `failed`.
    pub fn sandbox_started(
        &self,
        driver: &'static str,
        way: &'static str,
        outcome: &'static str,
        time: Duration,
    ) {
        let labels = [("driver", driver), ("way", way), ("outcome", outcome)];
        let starts = self.sandboxes.get_or_create(&labels);
        starts.observe(time.as_secs_f64());
    }

    /// Counts a connection of a sandboxed server: `refused`, `failed`, or `reached` and now closed, with the
    /// bytes that were sent and received.
    pub fn egress_ended(&self, outcome: &'static str, sent: u64, received: u64) {
        self.egress.get_or_create(&[("outcome", outcome)]).inc();
        for (direction, bytes) in [("sent", sent), ("received", received)] {
            let labels = [("direction", direction)];
            self.egress_bytes.get_or_create(&labels).inc_by(bytes);
        }
    }

    /// Measures the append of a commit to that store until the guard is dropped.
    pub fn append(&self, store: &'static str) -> Timing {
        Timing {
            into: self.appends.get_or_create_owned(&[("store", store)]),
            since: Instant::now(),
        }
    }

    /// Counts signals that a client did not take in time.
    pub fn signals_dropped(&self, count: u64) {
        self.dropped.inc_by(count);
    }

    /// Counts lost spans of traces: the `queue` was full, or the `collector` did not accept them.
    pub fn spans_lost(&self, place: &'static str, count: u64) {
        self.spans.get_or_create(&[("at", place)]).inc_by(count);
    }

    /// Counts a refusal because a limit of `runtime.limits` or `sandbox.max` was reached; `whose` tells whose
    /// limit it was: the `user`'s, the `tenant`'s, another one's, or that of `all`.
    pub fn limit_reached(&self, limit: &'static str, whose: &'static str) {
        let labels = [("limit", limit), ("whose", whose)];
        self.limits.get_or_create(&labels).inc();
    }

    /// Sets the free bytes on the fullest disk that holds sandboxes or data.
    pub fn disk_free(&self, bytes: u64) {
        self.disk_free.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// Sets whether sandboxes are paused because a disk is nearly full.
    pub fn disk_pressure(&self, is_pressed: bool) {
        self.disk_pressure.set(i64::from(is_pressed));
    }

    /// Counts a failed attempt to give something of the audit to an anchor or a receiver.
    pub fn audit_undelivered(&self, to: &'static str) {
        self.undelivered.get_or_create(&[("to", to)]).inc();
    }

    /// Sets the age of the oldest signature that an anchor of the audit has not got.
    pub fn audit_anchor_lag(&self, to: &'static str, age: Duration) {
        let lag = self.anchor_lag.get_or_create(&[("to", to)]);
        lag.set(age.as_secs_f64());
    }

    /// Counts events that were read from a journal for a client.
    pub fn events_replayed(&self, count: usize) {
        self.replayed.inc_by(u64::try_from(count).unwrap_or(0));
    }
}

/// Registers a metric under a name of the table; the library itself adds `_total` to counters.
fn register<M: Metric + Clone>(registry: &mut Registry, name: &'static str, metric: M) -> M {
    let short = name.strip_suffix("_total").unwrap_or(name);
    registry.register(short, help(name), metric.clone());
    metric
}

/// The help text of a name in the table.
fn help(name: &str) -> &'static str {
    let figure = FIGURES.iter().find(|figure| figure.name == name);
    figure.map_or("", |figure| figure.help)
}

fn family<const N: usize>(buckets: fn() -> Histogram) -> Histograms<N> {
    Family::new_with_constructor(buckets)
}

/// From half a millisecond to 5 s: a disk or a nearby server.
fn short() -> Histogram {
    Histogram::new([
        0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0,
    ])
}

/// From 10 ms to half a minute: a process or a container.
fn medium() -> Histogram {
    Histogram::new([0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0])
}

/// From 100 ms to 15 minutes: a model.
fn long() -> Histogram {
    Histogram::new([
        0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0, 300.0, 900.0,
    ])
}

/// From a second to a day: a person.
fn patient() -> Histogram {
    Histogram::new([
        1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0,
    ])
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::time::Duration;

    use super::{FIGURES, exposition, instruments};

    /// Uses every instrument once.
    fn touch() {
        let all = instruments();
        let second = Duration::from_secs(1);
        drop((all.session_opened(), all.socket_opened(), all.append("x")));
        drop(all.sandbox_ready());
        all.turn_ended("x");
        all.turn_took("x", second);
        all.first_token("x", second);
        all.model_asked("x", "x", second);
        all.model_retried("x");
        drop(all.provider_out("x"));
        all.call_became("x");
        all.approval_took("x", second);
        all.sandbox_started("x", "x", "x", second);
        all.signals_dropped(2);
        all.events_replayed(3);
        all.spans_lost("x", 1);
        all.disk_free(1);
        all.disk_pressure(false);
        all.limit_reached("x", "x");
        all.egress_ended("x", 1, 1);
        all.audit_undelivered("x");
        all.audit_anchor_lag("x", second);
    }

    #[tokio::test]
    async fn every_figure_of_the_table_is_given_with_its_kind_and_labels_and_no_other() {
        touch();
        let text = exposition();
        let mut kinds = BTreeMap::new();
        let mut labels: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for line in text.lines() {
            if let Some(said) = line.strip_prefix("# TYPE ") {
                let (name, kind) = said.split_once(' ').unwrap();
                kinds.insert(name.to_owned(), kind.to_owned());
            } else if !line.starts_with('#') {
                let (sample, _) = line.rsplit_once(' ').unwrap();
                let (name, inside) = sample.split_once('{').unwrap_or((sample, "}"));
                let inside = inside.trim_end_matches('}').split(',');
                let names = inside.filter_map(|pair| pair.split_once('='));
                let names = names.map(|(label, _)| label.to_owned());
                let known = labels.entry(name.to_owned()).or_default();
                known.extend(names.filter(|label| label != "le"));
            }
        }
        for figure in FIGURES {
            let short = figure.name.trim_end_matches("_total");
            let kind = kinds.remove(short);
            assert_eq!(kind.as_deref(), Some(figure.kind.as_str()), "{text}");
            let sample = match figure.kind {
                super::Kind::Histogram => format!("{}_bucket", figure.name),
                super::Kind::Counter | super::Kind::Gauge => figure.name.to_owned(),
            };
            let expected = figure.labels.iter().map(|label| (*label).to_owned());
            assert_eq!(labels[&sample], expected.collect(), "{sample}");
        }
        assert!(kinds.is_empty(), "{kinds:?} are not in the table");
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn what_is_there_is_counted_until_it_is_gone() {
        let there = || {
            let text = exposition();
            let line = text
                .lines()
                .find(|line| line.starts_with("sepal_sockets_open "));
            line.unwrap()
                .rsplit(' ')
                .next()
                .unwrap()
                .parse::<i64>()
                .unwrap()
        };
        let before = there();
        let socket = instruments().socket_opened();
        // Other tests change the gauge at the same time.
        assert!(there() > before - 1);
        drop(socket);
        assert!(there() <= before + 1);
    }
}
