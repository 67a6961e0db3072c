//! Faults that come from outside: servers of tools are killed, Redis is stopped and killed.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use rustix::process::Signal;

use super::house::{House, Redis};
use super::ledger::{Ledger, Place};
use super::sky::Sky;
use super::vitals::kill_below;

/// The name of the server inside a sandbox, as the kernel has it.
const TOOL_SERVER: &str = "mcp-server";

/// Kills the server of some sandbox now and then, until faults stop.
pub(crate) async fn crash_tools(
    house: Arc<House>,
    (sky, ledger): (Arc<Sky>, Arc<Ledger>),
    mut rng: Rng,
) {
    loop {
        let pause = Duration::from_millis(rng.u64(2_000..8_000));
        let rested = sky.calm.run_until_cancelled(tokio::time::sleep(pause));
        if rested.await.is_none() {
            return;
        }
        let Some(gateway) = house.gateway.pid() else {
            continue;
        };
        let choice = rng.usize(..);
        if tokio::task::block_in_place(|| kill_below(gateway, TOOL_SERVER, |_| choice)) {
            ledger.count("fault: tool server killed");
        }
    }
}

/// Stops or kills Redis and starts it again a little later, until faults stop. `pause` is the mean
/// time between two ends.
pub(crate) async fn restart_redis(
    house: Arc<House>,
    (sky, ledger): (Arc<Sky>, Arc<Ledger>),
    mut rng: Rng,
    pause: Duration,
) {
    let Some(redis) = &house.redis else {
        return;
    };
    loop {
        let pause = pause.mul_f64(0.5 + rng.f64());
        let rested = sky.calm.run_until_cancelled(tokio::time::sleep(pause));
        if rested.await.is_none() {
            return;
        }
        let (signal, name) = if rng.bool() {
            (Signal::TERM, "fault: redis stopped")
        } else {
            (Signal::KILL, "fault: redis killed")
        };
        ledger.count(name);
        let away = Duration::from_millis(rng.u64(100..5_000));
        if let Err(error) = end_for(redis, signal, away).await {
            let place = Place {
                house: house.name,
                session: "",
                seq: 0,
            };
            ledger.fail(place, format!("Redis did not come back: {error:#}"));
            return;
        }
    }
}

async fn end_for(redis: &Redis, signal: Signal, away: Duration) -> anyhow::Result<()> {
    tokio::task::block_in_place(|| redis.end_by(signal))?;
    tokio::time::sleep(away).await;
    tokio::task::block_in_place(|| redis.launch())
}
