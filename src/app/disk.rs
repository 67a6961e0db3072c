//! Tells people when the disk is nearly full and their tools are paused for that.

use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::doctor;
use crate::gateway::System;
use crate::sandbox::DiskMonitor;

/// The interval at which the free space that administrators see is updated.
const RENEWED_EVERY: Duration = Duration::from_secs(10);

/// Shows the state at all doors whenever it changes, until `stop`.
pub(super) async fn show(disk: DiskMonitor, system: System, stop: CancellationToken) {
    let mut pressure = disk.pressure();
    loop {
        pressure.borrow_and_update();
        let (pressed, check) = doctor::disk(&disk);
        system.put_disk(pressed, check);
        let changed = tokio::select! {
            () = stop.cancelled() => return,
            () = sleep(RENEWED_EVERY) => Ok(()),
            changed = pressure.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
    }
}
