//! Learns which functions of a program run, and in which order they first run, so that the linker can lay them
//! out side by side: a program then needs fewer pages of memory, and misses its caches less.
//!
//! Only for x86-64, where rustc brings a linker that takes such an order.

use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures::future::try_join_all;

use crate::plan::Plan;
use crate::process::Program;
use crate::subject::{Kind, Subject};

pub(crate) mod trace;

/// The number of conversations at the same time.
const TALKS: usize = 8;
/// The number of turns of each conversation.
const TURNS: usize = 6;
/// The number of tokens of a turn that arrive one by one, and the time between two of them.
const PACED: (usize, Duration) = (50, Duration::from_millis(10));
/// The number of calls of a round.
const CALLS: usize = 5;

/// The arguments of `learn`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The gateway's program, with its symbols.
    #[arg(long)]
    sepal: PathBuf,
    /// The file for the names of its functions, in the order of their first run.
    #[arg(long)]
    out: PathBuf,
}

/// Lets the gateway do what it does most on each store that this machine has, and writes the names of the
/// functions that ran. A machine without Redis learns from SQLite alone, and one without sandboxes from turns
/// without calls.
pub(crate) async fn learn(options: &Options) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let sepal = options.sepal.canonicalize()?;
    let mut names = Vec::new();
    for kind in [Kind::Sqlite, Kind::Redis] {
        let ran = folder.path().join(kind.name().replace(' ', "-"));
        let traced = folder.path().join("traced");
        write_wrapper(&traced, &sepal, &ran)?;
        match work(kind, &traced).await {
            Err(error) if names.is_empty() => return Err(error),
            Err(error) => eprintln!("nothing is learned from {}: {error:#}", kind.name()),
            Ok(()) => names.push(fs::read_to_string(&ran)?),
        }
    }
    let mut seen = std::collections::HashSet::new();
    let mut out = File::create(&options.out)?;
    for name in names.iter().flat_map(|names| names.lines()) {
        if seen.insert(name) {
            writeln!(out, "{name}")?;
        }
    }
    if seen.is_empty() {
        bail!("no function of {} ran", options.sepal.display());
    }
    println!("{} functions ran", seen.len());
    Ok(())
}

/// Writes a script that traces the gateway where it serves, and runs it as it is for the command line beside it.
fn write_wrapper(path: &Path, sepal: &Path, ran: &Path) -> Result<()> {
    let this = std::env::current_exe()?;
    let text = format!(
        "#!/bin/sh\n\
        if [ $# -gt 0 ]; then exec '{sepal}' \"$@\"; fi\n\
        command -v bwrap >/dev/null || export SPL_SANDBOX=none\n\
        exec '{this}' trace --out '{ran}' '{sepal}'\n",
        sepal = sepal.display(),
        this = this.display(),
        ran = ran.display(),
    );
    fs::write(path, text)?;
    fs::set_permissions(path, Permissions::from_mode(0o755))?;
    Ok(())
}

async fn work(kind: Kind, sepal: &Path) -> Result<()> {
    let upstream = Program::part(&["upstream"])?;
    let subject = Subject::start(kind, upstream.address, sepal)?;
    let mut talks = try_join_all((0..TALKS).map(|_| subject.connect())).await?;
    let (tokens, gap) = PACED;
    for plan in [Plan::burst(20), Plan::paced(tokens, gap, 0, 1)] {
        for _ in 0..TURNS {
            try_join_all(talks.iter_mut().map(|talk| talk.turn(plan))).await?;
        }
    }
    for _ in 0..TURNS {
        let plan = Plan::calls(CALLS);
        if let Err(error) = try_join_all(talks.iter_mut().map(|talk| talk.turn(plan))).await {
            eprintln!("nothing is learned from calls: {error:#}");
            break;
        }
    }
    drop(talks);
    subject
        .program
        .settle()
        .await
        .context("after the last turn")
}
