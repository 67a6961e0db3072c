//! Injects faults from outside: tool servers are killed, Redis is stopped and killed, and one of several
//! gateways is killed.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use rustix::process::Signal;

use super::installation::Redis;
use super::installation::gateway::Gateway;
use super::installation::vitals::kill_below;
use super::watch::Times;
use super::world::World;

/// The process name of the server inside a sandbox.
const TOOL_SERVER: &str = "mcp-server";

/// Kills the tool server of a random sandbox from time to time, until faults stop.
pub(crate) async fn crash_tools(world: Arc<World>, mut rng: Rng) {
    while let Some(()) = pass(&world, Duration::from_millis(rng.u64(2_000..8_000))).await {
        let gateway = world.installation.gateway(world.installation.any(&mut rng));
        let Some(gateway) = gateway.and_then(Gateway::pid) else {
            continue;
        };
        let choice = rng.usize(..);
        if tokio::task::block_in_place(|| kill_below(gateway, TOOL_SERVER, |_| choice)) {
            world.ledger.count("fault: tool server killed");
        }
    }
}

/// Stops or kills Redis and restarts it a little later, until faults stop. `pause` is the mean time between
/// two restarts.
pub(crate) async fn restart_redis(world: Arc<World>, mut rng: Rng, pause: Duration) {
    let Some(redis) = &world.installation.redis else {
        return;
    };
    while let Some(()) = pass(&world, pause.mul_f64(0.5 + rng.f64())).await {
        let (signal, name) = if rng.bool() {
            (Signal::TERM, "fault: redis stopped")
        } else {
            (Signal::KILL, "fault: redis killed")
        };
        world.ledger.count(name);
        let away = Duration::from_millis(rng.u64(100..5_000));
        if let Err(error) = end_for(redis, signal, away).await {
            let what = format!("Redis did not come back: {error:#}");
            return world.fail(world.installation.name, what);
        }
    }
}

async fn end_for(redis: &Redis, signal: Signal, away: Duration) -> anyhow::Result<()> {
    tokio::task::block_in_place(|| redis.end_by(signal))?;
    tokio::time::sleep(away).await;
    tokio::task::block_in_place(|| redis.launch())
}

/// Kills one of several gateways from time to time and restarts it a little later, until faults stop; never
/// two at once. `pause` is the mean time between two kills. Each gateway is killed only in its own part of
/// the run, so that each also has one long life, whose memory can be judged.
pub(crate) async fn kill_gateways(world: Arc<World>, mut rng: Rng, times: Times, pause: Duration) {
    let count = world.installation.gateways.len();
    if count < 2 {
        return;
    }
    let first = world.installation.any(&mut rng);
    while let Some(()) = pass(&world, pause.mul_f64(0.5 + rng.f64())).await {
        let Some(victim) = world.installation.gateway(first + times.part(count)) else {
            return;
        };
        world.ledger.count("fault: gateway killed");
        eprintln!("{} is killed", victim.name);
        // Either so soon that nobody has missed it, or so late that others have taken over.
        let away = Duration::from_millis(rng.u64(100..10_000));
        if let Err(error) = kill_for(victim, away).await {
            let what = format!("it did not come back after it was killed: {error:#}");
            return world.fail(&victim.name, what);
        }
    }
}

async fn kill_for(gateway: &Gateway, away: Duration) -> anyhow::Result<()> {
    tokio::task::block_in_place(|| gateway.kill())?;
    tokio::time::sleep(away).await;
    tokio::task::block_in_place(|| gateway.revive())
}

/// Waits; returns `None` if faults stop meanwhile.
async fn pass(world: &World, time: Duration) -> Option<()> {
    let calm = &world.phase.calm;
    calm.run_until_cancelled(tokio::time::sleep(time)).await
}
