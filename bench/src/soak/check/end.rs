//! The end of a run: all people leave, nothing may be left over, and the remaining sessions must be
//! unchanged.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::{Value, json};
use tokio_util::task::TaskTracker;

use super::archive;
use super::flat::{left_over, new_names};
use super::replay;
use crate::soak::installation::gateway::Gateway;
use crate::soak::installation::vitals::{DROPPED, Vitals, groups_of, of_sandboxes};
use crate::soak::watch::{Life, WatchedGateway};
use crate::soak::world::World;

/// The time that sessions may take to end their turns at the end of the run.
const LEAVING: Duration = Duration::from_mins(4);
/// The time that a gateway may take to release unused resources: sandboxes are idle for a minute, sessions
/// for another one, and connections to the model for a minute and a half.
const SETTLING: Duration = Duration::from_mins(4);
/// One of this many answers may have missing deltas because Redis was away.
const MAY_BE_HELD_BACK: u64 = 20;
/// The time limit of an orderly shutdown.
const ENDING: Duration = Duration::from_secs(10);

/// Waits until every session has ended its turn and was audited.
pub(crate) async fn all_leave(worlds: &[Arc<World>], people: &TaskTracker) {
    eprintln!("All end their turns and leave");
    people.close();
    let left = tokio::time::timeout(LEAVING, people.wait()).await;
    for world in worlds {
        if left.is_err() {
            let what = format!("{} people still wait for something", people.len());
            world.fail(world.installation.name, what);
        }
        world.abandoned.close();
        world.abandoned.wait().await;
    }
}

/// Checks what is left after everybody left, restarts the gateways, and reads all sessions again. Returns
/// the report of each installation.
pub(crate) async fn end(worlds: &[Arc<World>], watched: &mut [WatchedGateway]) -> Value {
    let settled = join_all(watched.iter().map(settle)).await;
    for (one, settled) in watched.iter_mut().zip(&settled) {
        if let (Some(life), Some(settled)) = (one.course.lives.last_mut(), settled) {
            life.dropped = settled.gauge(DROPPED);
        }
    }
    let watched = &*watched;
    let ends = worlds.iter().map(async |world| {
        let theirs = watched.iter().zip(&settled);
        let theirs = theirs.filter(|(one, _)| Arc::ptr_eq(&one.world, world));
        let theirs: Vec<_> = theirs.collect();
        look_at_answers(world, theirs.iter().map(|(one, _)| *one));
        for (one, _) in &theirs {
            look_at_memory(one);
        }
        start_again(world).await;
        let gateways = theirs
            .into_iter()
            .map(|(one, settled)| report(one, settled.as_ref()));
        json!({ "store": world.installation.name, "gateways": gateways.collect::<Value>() })
    });
    join_all(ends).await.into()
}

/// Restarts the gateways, and checks that all remaining sessions are unchanged and replay to the same state.
async fn start_again(world: &World) {
    let (name, gateways) = (world.installation.name, &world.installation.gateways);
    for gateway in gateways {
        stop(world, gateway);
    }
    eprintln!("{name}: starts again, and all sessions are read");
    let mut is_there = true;
    for gateway in gateways {
        if let Err(error) = tokio::task::block_in_place(|| gateway.start()) {
            is_there = false;
            world.fail(&gateway.name, format!("it does not start again: {error:#}"));
        }
    }
    if is_there {
        archive::read_again(world).await;
    }
    for gateway in gateways {
        stop(world, gateway);
    }
    tokio::task::block_in_place(|| replay::replay(world));
}

fn report(one: &WatchedGateway, settled: Option<&Vitals>) -> Value {
    let log = one.gateway.log();
    for line in log.lines().filter(|line| line.contains("panicked")) {
        one.fail(format!("its log says: {line}"));
    }
    let lines = |sign: &str| log.lines().filter(|line| line.contains(sign)).count();
    let memory: Value = one
        .course
        .lives
        .iter()
        .map(|life| json!(life.memory()))
        .collect();
    json!({
        "name": one.gateway.name, "memory": memory, "before": one.before, "after": settled,
        "course": one.course,
        "log": { "errors": lines(" ERROR "), "warnings": lines(" WARN ") },
    })
}

/// Judges the memory of each process that lived long enough; each gateway must have at least one.
fn look_at_memory(one: &WatchedGateway) {
    let (name, lives) = (&one.gateway.name, &one.course.lives);
    let is_long = one.world.phase.is_long;
    let judged = lives.iter().filter_map(Life::memory);
    let judged: Vec<_> = judged.collect();
    for memory in &judged {
        eprintln!("{name}: memory: {}", memory.text());
        if is_long && !memory.holds {
            one.fail(format!("memory is not flat: {}", memory.text()));
        }
    }
    // In a short run, a gateway that was killed may have no process that lived long enough.
    if judged.is_empty() && (is_long || lives.len() < 2) {
        one.fail("memory was not measured");
    }
}

/// Checks the number of answers with missing deltas. There are two valid reasons: a client was too slow,
/// which the gateways count, or Redis was away and deltas were held back meanwhile. The complete answer
/// always arrives.
fn look_at_answers<'w>(world: &World, gateways: impl Iterator<Item = &'w WatchedGateway>) {
    let [compared, incomplete] = world.answers();
    let lives = gateways.flat_map(|one| &one.course.lives);
    let dropped = lives.map(|life| life.dropped.unsigned_abs()).sum::<u64>();
    eprintln!(
        "{}: {compared} answers were seen from their beginning, {incomplete} of them came with \
         pieces missing; {dropped} signals were dropped",
        world.installation.name
    );
    let may_be = if world.installation.redis.is_some() {
        dropped + compared / MAY_BE_HELD_BACK
    } else {
        dropped
    };
    if incomplete > may_be {
        let what = format!("{incomplete} answers came with pieces missing, at most {may_be}");
        world.fail(world.installation.name, what);
    }
}

/// Waits until everything is as it was before anybody came; remaining differences are failures.
async fn settle(one: &WatchedGateway) -> Option<Vitals> {
    let name = &one.gateway.name;
    eprintln!("{name}: all have left; what nobody uses has to go");
    let began = Instant::now();
    loop {
        let now = one.vitals().await;
        let mut left = match &now {
            Ok(now) => left_over(&one.before, now),
            Err(error) => vec![format!("it cannot be looked at: {error:#}")],
        };
        let names = new_names(&one.files, &one.gateway.files());
        left.extend(names.map(|names| format!("new files:{names}")));
        if left.is_empty() {
            let took = began.elapsed().as_secs();
            eprintln!("{name}: everything is as it was after {took} s");
            return now.ok();
        }
        if began.elapsed() > SETTLING {
            for left in left {
                one.fail(format!("left over: {left}"));
            }
            return now.ok();
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Shuts down a gateway; no process or control group of it may be left.
fn stop(world: &World, gateway: &Gateway) {
    let fail = |what: String| world.fail(&gateway.name, what);
    let sandboxes: BTreeSet<String> = gateway.sandboxes();
    match tokio::task::block_in_place(|| gateway.stop()) {
        Ok((status, took)) if status.success() && took <= ENDING => {}
        Ok((status, took)) => fail(format!(
            "it ended with {status} after {} ms",
            took.as_millis()
        )),
        Err(error) => fail(format!("it does not end: {error:#}")),
    }
    for process in of_sandboxes(&sandboxes) {
        fail(format!("a process is left: {process}"));
    }
    for group in groups_of(&sandboxes) {
        fail(format!("a control group is left: {group}"));
    }
}
