//! The table of all metrics: name, kind, labels and meaning. Registration, documentation and dashboards
//! follow it, which tests check.

/// The kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only increases.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Durations in seconds, in buckets.
    Histogram,
}

impl Kind {
    /// The name of the kind in the text format of Prometheus.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// One metric.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// The name in queries; a counter's name ends in `_total`.
    pub name: &'static str,
    pub kind: Kind,
    /// The label names. Label values come from fixed lists, never from tenants or sessions.
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

const fn figure(
    name: &'static str,
    kind: Kind,
    labels: &'static [&'static str],
    help: &'static str,
) -> Figure {
    Figure {
        name,
        kind,
        labels,
        help,
    }
}

/// All metrics, in the order of the documentation.
pub const FIGURES: &[Figure] = &[
    figure(
        "sepal_build_info",
        Kind::Gauge,
        &["version"],
        "Always 1; the label says which Sepal this is",
    ),
    figure(
        "sepal_sessions_live",
        Kind::Gauge,
        &[],
        "Sessions in the memory of this gateway",
    ),
    figure(
        "sepal_sockets_open",
        Kind::Gauge,
        &[],
        "Connected browsers and other clients",
    ),
    figure(
        "sepal_turns_total",
        Kind::Counter,
        &["outcome"],
        "Turns that ended, as answered, failed or cancelled",
    ),
    figure(
        "sepal_turn_duration_seconds",
        Kind::Histogram,
        &["provider"],
        "From a message to its final answer, with the time that calls waited for people",
    ),
    figure(
        "sepal_first_token_seconds",
        Kind::Histogram,
        &["provider"],
        "From a model request to the first piece of its answer, with repetitions",
    ),
    figure(
        "sepal_model_request_seconds",
        Kind::Histogram,
        &["provider", "outcome"],
        "Model requests that ended, as answered or failed, with repetitions",
    ),
    figure(
        "sepal_model_retries_total",
        Kind::Counter,
        &["provider"],
        "Attempts of model requests that failed and were repeated",
    ),
    figure(
        "sepal_model_providers_out",
        Kind::Gauge,
        &["provider"],
        "Providers with a key each that failed so often that they are not asked for a while",
    ),
    figure(
        "sepal_calls_total",
        Kind::Counter,
        &["state"],
        "Tool calls that came into a state",
    ),
    figure(
        "sepal_approval_wait_seconds",
        Kind::Histogram,
        &["verdict"],
        "How long calls waited for a person's decision",
    ),
    figure(
        "sepal_sandbox_ready",
        Kind::Gauge,
        &[],
        "1 where tools that need a sandbox can run; 0 where they are off, or while an engine is looked for",
    ),
    figure(
        "sepal_disk_free_bytes",
        Kind::Gauge,
        &[],
        "Bytes left on the fullest of the disks that data and workspaces are on",
    ),
    figure(
        "sepal_disk_pressure",
        Kind::Gauge,
        &[],
        "1 while sandboxes stand still because a disk has less left than `sandbox.min_free_mb`",
    ),
    figure(
        "sepal_sandbox_start_seconds",
        Kind::Histogram,
        &["driver", "way", "outcome"],
        "Starts of sandboxes: warm ones waited already, cold ones were made",
    ),
    figure(
        "sepal_egress_connections_total",
        Kind::Counter,
        &["outcome"],
        "Connections of sandboxed servers to hosts: reached, refused, or failed",
    ),
    figure(
        "sepal_egress_bytes_total",
        Kind::Counter,
        &["direction"],
        "Bytes that sandboxed servers sent to hosts, and received from them",
    ),
    figure(
        "sepal_store_append_seconds",
        Kind::Histogram,
        &["store"],
        "Appends of commits to journals, until they were durable or given up",
    ),
    figure(
        "sepal_signals_dropped_total",
        Kind::Counter,
        &[],
        "Signals that a slow client did not take in time; events are then read from the journal",
    ),
    figure(
        "sepal_events_replayed_total",
        Kind::Counter,
        &[],
        "Events that were read from the journal for clients that came back or fell behind",
    ),
    figure(
        "sepal_spans_lost_total",
        Kind::Counter,
        &["at"],
        "Spans of traces that were lost: the queue was full, or the collector did not take them",
    ),
    figure(
        "sepal_limits_reached_total",
        Kind::Counter,
        &["limit", "whose"],
        "Refusals because a user, a tenant, a socket, an address or all together had as much as they may",
    ),
    figure(
        "sepal_audit_deliveries_failed_total",
        Kind::Counter,
        &["to"],
        "Attempts to give signatures of the audit to an anchor, or records to a receiver, that failed",
    ),
    figure(
        "sepal_audit_anchor_lag_seconds",
        Kind::Gauge,
        &["to"],
        "Age of the oldest signature of the audit that an anchor has not got; 0 if it has all",
    ),
    figure(
        "sepal_tasks",
        Kind::Gauge,
        &[],
        "Tasks that have not ended, of sessions, sockets, calls and everything else",
    ),
    figure(
        "process_resident_memory_bytes",
        Kind::Gauge,
        &[],
        "Memory of this process (Linux)",
    ),
    figure(
        "process_open_fds",
        Kind::Gauge,
        &[],
        "Open files and connections of this process (Linux)",
    ),
];
