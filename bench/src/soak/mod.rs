//! `./run soak`: hundreds of sessions live with faults for a long time. Nothing may be lost, nothing
//! may run twice, memory must be flat, and nothing may be left when all have gone.

#![expect(
    clippy::indexing_slicing,
    reason = "a field that a JSON value does not have is null; only objects made here are written"
)]

mod audit;
mod books;
mod flat;
mod house;
mod ledger;
mod model;
mod mood;
mod person;
mod script;
mod sky;
mod talk;
mod vitals;
mod watch;
mod weather;
mod witness;

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum as _;
use fastrand::Rng;
use futures::future::join_all;
use reqwest::Client;
use serde_json::json;
use tokio_util::task::TaskTracker;

use self::flat::{Memory, left_over, new_names};
use self::house::{House, Store};
use self::ledger::{Ledger, Place};
use self::model::Model;
use self::sky::Sky;
use self::talk::World;
use self::vitals::{DROPPED, Vitals, groups_of, of_sandboxes};
use self::watch::{Course, Times, vitals, watch};

/// How long sessions may take to end their turns when it is over.
const LEAVING: Duration = Duration::from_mins(4);
/// How long the gateway may take to let go of what nobody uses: sandboxes lie idle for a minute,
/// sessions another one, connections to the model for a minute and a half.
const SETTLING: Duration = Duration::from_mins(4);
/// One answer of so many may be held back while Redis is away.
const MAY_BE_HELD_BACK: u64 = 20;
/// How long an orderly end may take.
const ENDING: Duration = Duration::from_secs(10);
/// A run of this length has room for a model that falls silent for good, and for all histories and
/// caches to be full after the warm-up, so that memory can be judged.
const LONG: Duration = Duration::from_mins(20);

/// How it runs.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The gateway's program.
    #[arg(long)]
    sepal: PathBuf,
    /// Where all figures are kept.
    #[arg(long)]
    out: PathBuf,
    /// How long people talk; starting, leaving and looking take some minutes more.
    #[arg(long, default_value_t = 60.0)]
    minutes: f64,
    /// Sessions at the same time, over all stores.
    #[arg(long, default_value_t = 200)]
    sessions: usize,
    /// Where chance begins; none = another one in each run.
    #[arg(long)]
    seed: Option<u64>,
    /// Only these stores.
    #[arg(long, value_delimiter = ',')]
    store: Vec<Store>,
}

/// A gateway as it was before anybody came.
struct Baseline {
    vitals: Vitals,
    files: Vec<String>,
}

/// Runs; success if everything held.
pub(crate) async fn run(options: &Options) -> Result<ExitCode> {
    ensure!(
        options.minutes > 0.0 && options.minutes < 10_000.0,
        "the minutes are a number above 0"
    );
    let seed = options.seed.unwrap_or_else(|| fastrand::u64(..));
    let whole = Duration::from_secs_f64(options.minutes * 60.0);
    eprintln!(
        "{} sessions for {} minutes, seed {seed}",
        options.sessions, options.minutes
    );
    let mut rng = Rng::with_seed(seed);
    let ledger = Arc::new(Ledger::new(seed));
    let sky = Arc::new(Sky::new(whole >= LONG));
    let tasks = TaskTracker::new();
    let model = Model::serve((sky.clone(), ledger.clone()), rng.fork(), &tasks).await?;
    let worlds = worlds(options, model, (&sky, &ledger))?;
    let mut baselines = Vec::new();
    for world in &worlds {
        books::look_for_nothing(world).await?;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    for world in &worlds {
        baselines.push(Baseline {
            vitals: vitals(world).await?,
            files: world.house.gateway.files(),
        });
    }
    let people = TaskTracker::new();
    for index in 0..options.sessions {
        if let Some(world) = worlds.get(index % worlds.len()) {
            people.spawn(person::live(Arc::clone(world), index, rng.fork()));
        }
    }
    start_weather(&worlds, whole, (&people, &mut rng));
    let times = Times {
        began: Instant::now(),
        whole,
    };
    let courses = tokio::select! {
        courses = watch(&worlds, times) => courses,
        () = sky.look_at_the_clock(&ledger) => Vec::new(),
    };
    sky.calm.cancel();
    sky.finish.cancel();
    all_leave(&worlds, &people).await;
    let ends = worlds.iter().zip(&baselines).zip(&courses);
    let ends = ends.map(|((world, baseline), course)| end(world, baseline, course));
    let report = join_all(ends).await;
    write(options, seed, &ledger, &json!(report))?;
    Ok(verdict(options, &ledger))
}

fn worlds(
    options: &Options,
    model: SocketAddr,
    (sky, ledger): (&Arc<Sky>, &Arc<Ledger>),
) -> Result<Vec<Arc<World>>> {
    let sepal = options.sepal.canonicalize();
    let sepal = sepal.with_context(|| format!("{} is not there", options.sepal.display()))?;
    let stores = if options.store.is_empty() {
        Store::value_variants()
    } else {
        &options.store
    };
    let sessions = options.sessions / stores.len();
    let world = |store: &Store| -> Result<Arc<World>> {
        let house = tokio::task::block_in_place(|| House::start(&sepal, *store, model, sessions))?;
        let client = Client::builder().build()?;
        Ok(Arc::new(World::new((sky, ledger), house, client)))
    };
    stores.iter().map(world).collect()
}

fn start_weather(worlds: &[Arc<World>], whole: Duration, (tasks, rng): (&TaskTracker, &mut Rng)) {
    // Some twenty ends of Redis, but time to work between two.
    let pause = (whole / 20).clamp(Duration::from_secs(15), Duration::from_secs(150));
    for world in worlds {
        let house = || Arc::clone(&world.house);
        let books = || (Arc::clone(&world.sky), Arc::clone(&world.ledger));
        tasks.spawn(weather::crash_tools(house(), books(), rng.fork()));
        tasks.spawn(weather::restart_redis(house(), books(), rng.fork(), pause));
    }
}

fn place(world: &World) -> Place<'_> {
    Place {
        house: world.house.name,
        session: "",
        seq: 0,
    }
}

/// Waits until every session has ended its turn and was audited.
async fn all_leave(worlds: &[Arc<World>], people: &TaskTracker) {
    eprintln!("All end their turns and leave");
    people.close();
    let left = tokio::time::timeout(LEAVING, people.wait()).await;
    for world in worlds {
        if left.is_err() {
            world.ledger.fail(
                place(world),
                format!("{} people still wait for something", people.len()),
            );
        }
        world.abandoned.close();
        world.abandoned.wait().await;
    }
}

/// Nobody is there any more: looks at what is left, ends the gateway, starts it again, reads all.
async fn end(world: &World, baseline: &Baseline, course: &Course) -> serde_json::Value {
    let settled = settle(world, baseline).await;
    if let Some(settled) = &settled {
        look_at_answers(world, settled.gauge(DROPPED));
    }
    let memory = Memory::of(&course.quiet);
    match &memory {
        Some(memory) => {
            eprintln!("{}: memory: {}", world.house.name, memory.text());
            if world.sky.is_long && !memory.holds {
                let grew = format!("memory is not flat: {}", memory.text());
                world.ledger.fail(place(world), grew);
            }
        }
        None => world.ledger.fail(place(world), "memory was not measured"),
    }
    stop(world);
    eprintln!(
        "{}: starts again, and all sessions are read",
        world.house.name
    );
    let started = tokio::task::block_in_place(|| world.house.gateway.start());
    match started {
        Ok(()) => books::read_again(world).await,
        Err(error) => world
            .ledger
            .fail(place(world), format!("it does not start again: {error:#}")),
    }
    stop(world);
    let log = world.house.gateway.log();
    for line in log.lines().filter(|line| line.contains("panicked")) {
        world
            .ledger
            .fail(place(world), format!("its log says: {line}"));
    }
    let lines = |sign: &str| log.lines().filter(|line| line.contains(sign)).count();
    json!({
        "store": world.house.name, "memory": memory, "before": baseline.vitals, "after": settled,
        "course": course,
        "log": { "errors": lines(" ERROR "), "warnings": lines(" WARN ") },
    })
}

/// Pieces of an answer may be missing for two reasons: a client was too slow, which the gateway
/// counts, or Redis was away and what was said meanwhile was held back. The whole always comes.
fn look_at_answers(world: &World, dropped: i64) {
    let [compared, incomplete] = world.answers();
    eprintln!(
        "{}: {compared} answers were seen from their beginning, {incomplete} of them came with \
         pieces missing; {dropped} signals were dropped",
        world.house.name
    );
    let dropped = dropped.unsigned_abs();
    let may_be = if world.house.redis.is_some() {
        dropped + compared / MAY_BE_HELD_BACK
    } else {
        dropped
    };
    if incomplete > may_be {
        let what = format!("{incomplete} answers came with pieces missing, at most {may_be}");
        world.ledger.fail(place(world), what);
    }
}

/// Waits until everything is as it was before anybody came; what is not is a failure.
async fn settle(world: &World, baseline: &Baseline) -> Option<Vitals> {
    eprintln!(
        "{}: all have left; what nobody uses has to go",
        world.house.name
    );
    let began = Instant::now();
    loop {
        let now = vitals(world).await;
        let mut left = match &now {
            Ok(now) => left_over(&baseline.vitals, now),
            Err(error) => vec![format!("it cannot be looked at: {error:#}")],
        };
        let names = new_names(&baseline.files, &world.house.gateway.files());
        left.extend(names.map(|names| format!("new files:{names}")));
        if left.is_empty() {
            let took = began.elapsed().as_secs();
            eprintln!(
                "{}: everything is as it was after {took} s",
                world.house.name
            );
            return now.ok();
        }
        if began.elapsed() > SETTLING {
            for left in left {
                world
                    .ledger
                    .fail(place(world), format!("left over: {left}"));
            }
            return now.ok();
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Ends the gateway in order; nothing of it may be left on the machine.
fn stop(world: &World) {
    let gateway = &world.house.gateway;
    let sandboxes: BTreeSet<String> = gateway
        .workspaces()
        .iter()
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .collect();
    match tokio::task::block_in_place(|| gateway.stop()) {
        Ok((status, took)) if status.success() && took <= ENDING => {}
        Ok((status, took)) => world.ledger.fail(
            place(world),
            format!("it ended with {status} after {} ms", took.as_millis()),
        ),
        Err(error) => world
            .ledger
            .fail(place(world), format!("it does not end: {error:#}")),
    }
    for process in of_sandboxes(&sandboxes) {
        world
            .ledger
            .fail(place(world), format!("a process is left: {process}"));
    }
    for group in groups_of(&sandboxes) {
        world
            .ledger
            .fail(place(world), format!("a control group is left: {group}"));
    }
}

fn write(options: &Options, seed: u64, ledger: &Ledger, houses: &serde_json::Value) -> Result<()> {
    let whole = json!({
        "version": env!("CARGO_PKG_VERSION"), "seed": seed, "minutes": options.minutes,
        "sessions": options.sessions, "counts": ledger.counts(), "failures": ledger.failures(),
        "houses": houses,
    });
    keep(
        &options.out,
        &(serde_json::to_string_pretty(&whole)? + "\n"),
    )
}

fn keep(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)?;
    Ok(())
}

fn verdict(options: &Options, ledger: &Ledger) -> ExitCode {
    for (what, count) in ledger.counts() {
        println!("{count:>9} {what}");
    }
    println!("All figures: {}", options.out.display());
    let failures = ledger.counted("failures");
    if failures > 0 {
        println!("{failures} FAILURES");
        return ExitCode::FAILURE;
    }
    println!("Everything held.");
    ExitCode::SUCCESS
}
