//! Ends a run in which a test hangs, and names the test: nothing else would end it before CI's limit.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::{Mutex, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than any test keeps one server, on a slow machine too.
const LIMIT: Duration = Duration::from_mins(10);
/// Between two looks.
const PAUSE: Duration = Duration::from_secs(5);

/// The tests that have a server now, by number: since when, and their names.
static RUNNING: Mutex<BTreeMap<u64, (Instant, String)>> = Mutex::new(BTreeMap::new());
static WATCH: Once = Once::new();

/// A server of the test on this thread; the run ends if it is not dropped in time.
pub(super) struct Watched(u64);

impl Watched {
    pub(super) fn begin() -> Self {
        WATCH.call_once(|| drop(thread::spawn(watch)));
        let name = thread::current().name().unwrap_or("?").to_owned();
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let number = running.last_key_value().map_or(0, |(last, _)| last + 1);
        running.insert(number, (Instant::now(), name));
        Self(number)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        running.remove(&self.0);
    }
}

fn watch() {
    loop {
        thread::park_timeout(PAUSE);
        let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let late = running
            .values()
            .filter(|(since, _)| since.elapsed() > LIMIT);
        let names: Vec<&str> = late.map(|(_, name)| name.as_str()).collect();
        if !names.is_empty() {
            let names = names.join(", ");
            let _ = writeln!(
                std::io::stderr(),
                "after {LIMIT:?} these tests hang: {names}"
            );
            std::process::exit(101);
        }
    }
}
