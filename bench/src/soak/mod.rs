//! `./run soak`: runs hundreds of sessions with faults for a long time, on one gateway and on two. Nothing
//! may be lost, nothing may run twice, memory must stay flat, and nothing may be left over after all have
//! left.

#![expect(
    clippy::disallowed_methods,
    reason = "the driver stops and starts programs, and nobody else is answered by its threads"
)]
#![expect(
    clippy::indexing_slicing,
    reason = "a field that a JSON value does not have is null; only objects made here are written"
)]

mod check;
mod faults;
mod installation;
mod model;
mod person;
mod phase;
mod script;
mod watch;
mod world;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum as _;
use fastrand::Rng;
use reqwest::Client;
use serde_json::json;
use tokio_util::task::TaskTracker;

use self::check::ledger::Ledger;
use self::installation::{Installation, Store};
use self::model::Model;
use self::phase::Phase;
use self::watch::{Times, WatchedGateway, watch};
use self::world::World;

/// A run of this length has room for a model that becomes silent forever, and for all histories and caches
/// to be full after the warm-up, so that memory can be judged.
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
    /// The time for which people talk; starting, leaving and looking take some minutes more.
    #[arg(long, default_value_t = 60.0)]
    minutes: f64,
    /// Sessions at the same time, over all stores.
    #[arg(long, default_value_t = 200)]
    sessions: usize,
    /// Where chance begins; none = another one in each run.
    #[arg(long)]
    seed: Option<u64>,
    /// Only these stores; `replicas` needs a PostgreSQL in `SEPAL_TEST_POSTGRES`.
    #[arg(long, value_delimiter = ',')]
    store: Vec<Store>,
    /// Fail if fewer sessions than that were decided once more from their journals at the end.
    #[arg(long, default_value_t = 0)]
    replays: u64,
}

/// Runs the soak test; succeeds if everything held.
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
    let phase = Arc::new(Phase::new(whole >= LONG));
    let tasks = TaskTracker::new();
    let model = Model::serve(phase.clone(), ledger.clone(), rng.fork(), &tasks).await?;
    let worlds = worlds(options, model, &phase, &ledger)?;
    for world in &worlds {
        check::archive::look_for_nothing(world).await?;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    let mut watched = Vec::new();
    for world in &worlds {
        for gateway in &world.installation.gateways {
            watched.push(WatchedGateway::new(world, gateway).await?);
        }
    }
    let people = TaskTracker::new();
    for index in 0..options.sessions {
        if let Some(world) = worlds.get(index % worlds.len()) {
            people.spawn(person::live(Arc::clone(world), index, rng.fork()));
        }
    }
    let times = Times {
        began: Instant::now(),
        whole,
    };
    start_weather(&worlds, times, &people, &mut rng);
    tokio::select! {
        () = watch(&mut watched, &phase, &ledger, times) => {}
        () = phase.look_at_the_clock(&ledger) => {}
    }
    phase.calm.cancel();
    phase.finish.cancel();
    check::end::all_leave(&worlds, &people).await;
    let report = check::end::end(&worlds, &mut watched).await;
    check::replay::check_count(&ledger, options.replays);
    write(options, seed, &ledger, &report)?;
    Ok(verdict(options, &ledger))
}

fn worlds(
    options: &Options,
    model: SocketAddr,
    phase: &Arc<Phase>,
    ledger: &Arc<Ledger>,
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
        let installation =
            tokio::task::block_in_place(|| Installation::start(&sepal, *store, model, sessions))?;
        let client = Client::builder().build()?;
        Ok(Arc::new(World::new(phase, ledger, installation, client)))
    };
    stores.iter().map(world).collect()
}

fn start_weather(worlds: &[Arc<World>], times: Times, tasks: &TaskTracker, rng: &mut Rng) {
    // About twenty restarts of Redis and of gateways, with time to work between two of them.
    let pause = (times.whole / 20).clamp(Duration::from_secs(15), Duration::from_secs(150));
    for world in worlds {
        let world = || Arc::clone(world);
        tasks.spawn(faults::crash_tools(world(), rng.fork()));
        tasks.spawn(faults::restart_redis(world(), rng.fork(), pause));
        tasks.spawn(faults::kill_gateways(world(), rng.fork(), times, pause));
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
