//! One run of an installer in its sandbox.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use super::following::{Halt, Record};
use super::order;
use super::progress::{self, Done, Told};
use super::reason;
use super::resolving::Refused;
use crate::domain::{InstallProblem, PackageSpec, SandboxId};
use crate::sandbox::{Ended, Running};
use crate::servers::registry::Servers;
use crate::store::records::PackageVolume;

/// The most that an installer may tell: the names and hashes of some thousand packages.
const MAX_TOLD: u64 = 32 << 20;
/// How long it may take until it is known how the sandbox ended.
const END_GRACE: Duration = Duration::from_secs(10);

/// What is installed, for whom.
pub(super) struct Order<'o> {
    pub(super) servers: &'o Servers,
    pub(super) spec: &'o PackageSpec,
    /// Exactly that one, where it is known.
    pub(super) version: Option<&'o str>,
    /// Exactly these, where it is known.
    pub(super) pins: Option<&'o str>,
    /// What is made, with its row.
    pub(super) volume: PackageVolume,
}

/// How a run went.
pub(super) type Outcome = Result<Done, Refused>;

/// Installs. `record` hears of each phase and line, where somebody looks on.
pub(super) async fn install(
    order: &Order<'_>,
    record: Option<&mut Record>,
) -> Result<Outcome, Halt> {
    let place = &order.servers.0.place;
    order
        .servers
        .0
        .records
        .packages()
        .add_volume(&order.volume)
        .await?;
    let launch = order::launch(
        order.spec,
        (&order.volume.server, &order.volume.sandbox),
        (&place.packages, &order.servers.0.opener.outside.guard),
    );
    let outcome = match launch {
        Err(problem) => Err(Refused {
            problem: InstallProblem::Unreachable,
            text: format!("a host of the settings `sandbox.packages` cannot be used: {problem}"),
        }),
        Ok(launch) => match place.runtime.start(launch).await {
            Ok(running) => follow(order, running, record).await?,
            Err(error) => Err(Refused {
                problem: InstallProblem::Other,
                text: format!(
                    "the sandbox of the installation does not start: {error}; {}",
                    error.remedy()
                ),
            }),
        },
    };
    if outcome.is_err() {
        remove(order.servers, &order.volume.sandbox).await?;
    }
    Ok(outcome)
}

/// Removes what is of no use, with its row. What cannot be removed now keeps its row, and is tried
/// again.
pub(super) async fn remove(servers: &Servers, sandbox: &SandboxId) -> Result<(), Halt> {
    match servers.0.place.runtime.remove_workspace(sandbox).await {
        Ok(()) => {
            servers.0.records.packages().forget_volume(sandbox).await?;
            servers.0.installations.refresh().await?;
        }
        Err(error) => tracing::debug!(?error, "What was installed cannot be removed now"),
    }
    Ok(())
}

async fn follow(
    order: &Order<'_>,
    running: Running,
    mut record: Option<&mut Record>,
) -> Result<Outcome, Halt> {
    let Running {
        mut stdin,
        stdout,
        mut stderr,
        life,
        ..
    } = running;
    let line = order::order(
        order.spec,
        (order.version, order.pins),
        &order.servers.0.place.packages,
    );
    // On its own, because the installer may say something before it has read all of it; and held until
    // the end, because a sandbox may end with its stdin.
    let giving = async move {
        let _ = stdin.write_all(line.as_bytes()).await;
        let _ = stdin.flush().await;
        stdin
    };
    let hearing = async {
        let mut lines = BufReader::new(stdout.take(MAX_TOLD)).lines();
        let (mut told, mut said) = (None, Vec::new());
        let mut hears = true;
        loop {
            tokio::select! {
                step = lines.next_line() => match step.ok().flatten().map(|line| progress::read(&line)) {
                    Some(Some(Told::Phase(state))) => if let Some(record) = &mut record {
                        record.phase(state).await?;
                    },
                    Some(Some(step)) => told = Some(step),
                    Some(None) => {}
                    None => break,
                },
                line = stderr.recv(), if hears => match line {
                    Some(line) => hear(&mut record, &mut said, line).await?,
                    None => hears = false,
                },
            }
        }
        while let Ok(line) = stderr.try_recv() {
            hear(&mut record, &mut said, line).await?;
        }
        Ok::<_, Halt>((told, said, record))
    };
    let (stdin, heard) = tokio::join!(giving, hearing);
    let (told, said, record) = heard?;
    let ended = tokio::time::timeout(END_GRACE, life.ended()).await.ok();
    drop(stdin);
    life.kill().await;
    if let Some(record) = record {
        record.flush().await?;
    }
    Ok(outcome(told, &said, ended))
}

async fn hear(
    record: &mut Option<&mut Record>,
    said: &mut Vec<String>,
    line: String,
) -> Result<(), Halt> {
    const MOST: usize = 1_000;
    if let Some(record) = record {
        record.line(&line).await?;
    }
    // The reason stands mostly at the end, and sometimes before a long list.
    if said.len() < MOST {
        said.push(line);
    }
    Ok(())
}

fn outcome(told: Option<Told>, said: &[String], ended: Option<Ended>) -> Outcome {
    match (told, ended) {
        (Some(Told::Done(done)), Some(Ended::Exited(0) | Ended::Killed) | None) => Ok(done),
        (Some(Told::Failed { problem, text }), ended) => Err(Refused {
            problem: reason::likely(problem, said, ended),
            text,
        }),
        (Some(Told::Done(_) | Told::Phase(_)) | None, ended) => {
            let problem = reason::likely(None, said, ended);
            let text = match (problem, ended) {
                (InstallProblem::NoTools, _) => {
                    "the sandboxes lack the programs that install this kind of package".to_owned()
                }
                (_, Some(ended)) => format!("the installer did not finish: {ended}"),
                (_, None) => "the installer did not finish".to_owned(),
            };
            Err(Refused { problem, text })
        }
    }
}
