//! Checks what must stay flat: memory in quiet moments, and everything else after all have left.

use std::fmt::Write as _;

use serde::Serialize;

use crate::soak::installation::vitals::{DROPPED, TO_RECORDS, Vitals};

/// Memory may grow by this share of its value after the warm-up, and by `GROWTH_KIB`.
const GROWTH_SHARE: f64 = 0.10;
/// See [`GROWTH_SHARE`].
const GROWTH_KIB: f64 = 16.0 * 1024.0;
/// The number of additional threads that are allowed for blocking work, beside one for each connection to
/// the embedded database.
const THREADS_MORE: u64 = 2;

/// The files of the embedded database, which each of its connections keeps open.
const DATABASE: &[&str] = &["sepal.db", "sepal.db-wal"];
/// Two connections that write, and a pool of four that read, which are opened on demand and kept.
const DATABASE_CONNECTIONS: usize = 6;
/// The size of the pool of connections to PostgreSQL, which are opened on demand and kept.
const POOL: usize = 10;

/// Memory in a quiet moment.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Quiet {
    /// Seconds since the beginning of the run.
    pub(crate) at_s: f64,
    /// The minimum of a few samples.
    pub(crate) memory_kib: u64,
}

/// The verdict on the memory of a process.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Memory {
    /// Memory after the warm-up.
    first_kib: f64,
    /// Memory at the end.
    last_kib: f64,
    /// The limit at the end.
    most_kib: f64,
    /// The slope of a regression line through all quiet moments after the warm-up.
    kib_per_hour: f64,
    /// True if memory at the end is within the limit.
    pub(crate) holds: bool,
}

impl Memory {
    /// Judges quiet moments in their order; at least two are needed.
    pub(crate) fn of(quiet: &[Quiet]) -> Option<Self> {
        let (first, last) = (quiet.first()?, quiet.last()?);
        if quiet.len() < 2 {
            return None;
        }
        let (first_kib, last_kib) = (first.memory_kib as f64, last.memory_kib as f64);
        let most_kib = first_kib * (1.0 + GROWTH_SHARE) + GROWTH_KIB;
        Some(Self {
            first_kib,
            last_kib,
            most_kib,
            kib_per_hour: slope(quiet) * 3_600.0,
            holds: last_kib <= most_kib,
        })
    }

    /// Describes the verdict.
    pub(crate) fn text(&self) -> String {
        let mib = |kib: f64| kib / 1024.0;
        format!(
            "{:.1} MiB after the warm-up, {:.1} MiB at the end (at most {:.1}); {:+.1} MiB an hour",
            mib(self.first_kib),
            mib(self.last_kib),
            mib(self.most_kib),
            mib(self.kib_per_hour)
        )
    }
}

/// Returns the least-squares slope, in KiB per second.
fn slope(quiet: &[Quiet]) -> f64 {
    let count = quiet.len() as f64;
    let mean_at = quiet.iter().map(|one| one.at_s).sum::<f64>() / count;
    let mean = quiet.iter().map(|one| one.memory_kib as f64).sum::<f64>() / count;
    let (mut both, mut own) = (0.0, 0.0);
    for one in quiet {
        both += (one.at_s - mean_at) * (one.memory_kib as f64 - mean);
        own += (one.at_s - mean_at).powi(2);
    }
    if own > 0.0 { both / own } else { 0.0 }
}

/// Returns what exists now and did not exist before anybody came.
pub(crate) fn left_over(before: &Vitals, now: &Vitals) -> Vec<String> {
    let mut left = Vec::new();
    for (name, count) in &now.gauges {
        let was = before.gauge(name);
        if *count > was && name != DROPPED {
            left.push(format!("{name} is {count}, was {was}"));
        }
    }
    if now.gauges.is_empty() {
        left.push("its figures cannot be read".to_owned());
    }
    let connections = |vitals: &Vitals| vitals.files.get("sepal.db").copied().unwrap_or(0);
    let opened = connections(now).saturating_sub(connections(before));
    let opened = u64::try_from(opened).unwrap_or(u64::MAX);
    if now.threads > before.threads + opened + THREADS_MORE {
        left.push(format!("{} threads, were {}", now.threads, before.threads));
    }
    for (what, now, before) in [
        ("handles", &now.files, &before.files),
        ("processes", &now.children, &before.children),
    ] {
        for (name, count) in now {
            let was = before.get(name).copied().unwrap_or(0);
            let may_be = if DATABASE.contains(&name.as_str()) {
                was.max(DATABASE_CONNECTIONS)
            } else if name == TO_RECORDS {
                was.max(POOL)
            } else {
                was
            };
            if *count > may_be {
                left.push(format!("{count} {what} `{name}`, were {was}"));
            }
        }
    }
    left
}

/// Returns the names that are new.
pub(crate) fn new_names(before: &[String], now: &[String]) -> Option<String> {
    let mut text = String::new();
    for name in now.iter().filter(|name| !before.contains(name)) {
        let _ = write!(text, " {name}");
    }
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::{Memory, Quiet, left_over};
    use crate::soak::installation::vitals::Vitals;

    fn quiet(mib: &[u64]) -> Vec<Quiet> {
        let moments = (0_u32..).zip(mib);
        moments
            .map(|(at, mib)| Quiet {
                at_s: f64::from(at) * 60.0,
                memory_kib: mib * 1024,
            })
            .collect()
    }

    #[test]
    fn memory_may_grow_by_a_tenth_and_sixteen_mebibytes() {
        let flat = Memory::of(&quiet(&[100, 130, 126])).unwrap();
        assert!(flat.holds, "{}", flat.text());
        let grows = Memory::of(&quiet(&[100, 110, 127])).unwrap();
        assert!(!grows.holds, "{}", grows.text());
        assert!((grows.kib_per_hour / 1024.0 - 810.0).abs() < 1.0);
        assert!(Memory::of(&quiet(&[100])).is_none());
    }

    #[test]
    fn what_is_left_is_named() {
        let before = Vitals {
            memory_kib: 1,
            threads: 4,
            files: [("socket".to_owned(), 3)].into(),
            children: [("bash".to_owned(), 1)].into(),
            gauges: [("sepal_sockets_open".to_owned(), 0)].into(),
        };
        assert!(left_over(&before, &before).is_empty());
        let now = Vitals {
            memory_kib: 9,
            threads: 9,
            files: [("socket".to_owned(), 4)].into(),
            children: [("bash".to_owned(), 1), ("bwrap".to_owned(), 2)].into(),
            gauges: [("sepal_sockets_open".to_owned(), 1)].into(),
        };
        assert_eq!(left_over(&before, &now).len(), 4);
    }
}
