//! Reads metrics of this process from the kernel and the runtime, at each scrape.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use super::help;

/// The metrics of this process. Without `/proc`, those of the kernel are missing.
#[derive(Debug)]
pub(super) struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let figures = [
            ("sepal_tasks", tasks()),
            ("process_resident_memory_bytes", resident_bytes()),
            ("process_open_fds", open_files()),
        ];
        for (name, value) in figures {
            let Some(value) = value else { continue };
            let metric = encoder.encode_descriptor(name, help(name), None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(metric)?;
        }
        Ok(())
    }
}

/// The number of live tasks; `None` outside of a runtime.
fn tasks() -> Option<i64> {
    let runtime = tokio::runtime::Handle::try_current().ok()?;
    i64::try_from(runtime.metrics().num_alive_tasks()).ok()
}

fn resident_bytes() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

fn open_files() -> Option<i64> {
    let count = std::fs::read_dir("/proc/self/fd").ok()?.count();
    // Does not count the folder itself, which is open while it is read.
    i64::try_from(count.saturating_sub(1)).ok()
}
