//! A collector that is too slow: what its queue has no room for is counted and said once.

use std::io;
use std::sync::{Arc, Mutex};

use sepal::config::{self, Sources};
use sepal::domain::Timestamp;
use sepal::telemetry::metrics::exposition;
use sepal::telemetry::traces::{Span, Trace, Traces};
use tokio::net::TcpListener;

use crate::support::{DEADLINE, TestApp};

/// What the queue holds, and what one request takes out of it.
const QUEUE: u64 = 2_048;
const BATCH: u64 = 512;

/// The log of one thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Spans that did not fit so far. Other tests of this process lose none there.
fn lost() -> u64 {
    let text = exposition();
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix("sepal_spans_lost_total{at=\"queue\"} "));
    line.map_or(0, |count| count.parse().unwrap())
}

fn end(traces: &Traces, spans: u64) {
    let trace = Trace::of(&["full"]);
    for number in 0..spans {
        let name = format!("span {number}");
        traces.end(Span::child(trace, &name, Timestamp(1)), Timestamp(2));
    }
}

#[tokio::test]
async fn what_the_queue_has_no_room_for_is_counted_and_said_once() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    let env = [("OTEL_EXPORTER_OTLP_ENDPOINT".to_owned(), endpoint)];
    let loaded = config::load(&Sources {
        env: env.into(),
        ..Sources::default()
    });
    let settings = loaded
        .unwrap_or_else(|problems| panic!("{problems}"))
        .settings;
    let traces = Traces::open(&settings.telemetry, &TestApp::http());
    let before = lost();
    end(&traces, BATCH);
    // From now on the exporter waits for an answer that never comes.
    let asked = tokio::time::timeout(DEADLINE, silent.accept()).await;
    let _held = asked.unwrap().unwrap();

    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, || end(&traces, QUEUE + 1_000));
    // The first batch may have gone in two parts, and then some of it still waits.
    let count = lost() - before;
    assert!((1_000..=1_000 + BATCH).contains(&count), "{count}");
    let said = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert_eq!(
        said.matches("Traces are lost: 2048 spans").count(),
        1,
        "{said}"
    );
    traces.close().await;
}
