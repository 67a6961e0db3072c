//! One run of an installer in its sandbox.

use std::time::Duration;

use bytes::Bytes;
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::sync::mpsc;

use super::following::{Halt, Record};
use super::order;
use super::progress::{self, Done, Told};
use super::reason;
use super::resolving::Refused;
use crate::domain::{HostProblem, InstallProblem, PackageRegistry, PackageSpec, SandboxId};
use crate::sandbox::host::PackageInstalling;
use crate::sandbox::{Ended, Launch, Running};
use crate::servers::bundles::BundleFacts;
use crate::servers::bundles::unpacking::{self, Unpacking};
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
    let outcome = match prepare(order).await? {
        Err(refused) => Err(refused),
        Ok(Prepared {
            launch,
            input,
            bundle,
        }) => match place.runtime.start(launch).await {
            Ok(running) => follow(order, (running, input), bundle.as_ref(), record).await?,
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

/// What runs, what it reads, and what is known of the bundle if it is one.
struct Prepared {
    launch: Launch,
    input: Input,
    bundle: Option<BundleFacts>,
}

/// What an installer reads.
struct Input {
    /// The order; empty for one that its command holds.
    line: String,
    /// The files of a bundle, behind it.
    archive: Option<mpsc::Receiver<Bytes>>,
}

async fn prepare(order: &Order<'_>) -> Result<Result<Prepared, Refused>, Halt> {
    let settings = &order.servers.0.place.packages;
    let whose = (order.volume.server.as_str(), &order.volume.sandbox);
    if order.spec.registry == PackageRegistry::Bundle {
        return unpack(order, settings).await;
    }
    let guard = &order.servers.0.opener.outside.guard;
    let launch = order::launch(order.spec.registry, whose, (settings, guard));
    Ok(launch.map_err(no_host).map(|launch| Prepared {
        launch,
        input: Input {
            line: order::order(order.spec, (order.version, order.pins), settings),
            archive: None,
        },
        bundle: None,
    }))
}

fn no_host(problem: HostProblem) -> Refused {
    Refused {
        problem: InstallProblem::Unreachable,
        text: format!("a host of the settings `sandbox.packages` cannot be used: {problem}"),
    }
}

/// A bundle is here already, and has to be unpacked, beside the packages that it asks for if it does.
async fn unpack(
    order: &Order<'_>,
    settings: &PackageInstalling,
) -> Result<Result<Prepared, Refused>, Halt> {
    let refused = |text: String| {
        Ok(Err(Refused {
            problem: InstallProblem::NoSuchPackage,
            text,
        }))
    };
    let records = &order.servers.0.records;
    let kept = unpacking::kept(records, &order.volume.scope, &order.spec.name).await?;
    let Some(kept) = kept else {
        return refused("its bundle is not kept any more: upload the file again".to_owned());
    };
    let facts = kept.facts.clone();
    let Unpacking { bytes, archive } = match kept.unpack(settings.bounds.workspace_bytes).await {
        Ok(unpacking) => unpacking,
        Err(text) => return refused(text),
    };
    let whose = (order.volume.server.as_str(), &order.volume.sandbox);
    let (launch, line) = match &facts.dependencies {
        None => {
            let command = unpacking::command(&facts, bytes);
            (Ok(order::sealed(whose, command, settings)), String::new())
        }
        Some(dependencies) => {
            let guard = &order.servers.0.opener.outside.guard;
            let about = (facts.version.as_str(), dependencies);
            (
                order::launch(PackageRegistry::Pypi, whose, (settings, guard)),
                order::of_bundle(order.spec, about, (bytes, order.pins), settings),
            )
        }
    };
    Ok(launch.map_err(no_host).map(|launch| Prepared {
        launch,
        input: Input {
            line,
            archive: Some(archive),
        },
        bundle: Some(facts),
    }))
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
    (running, input): (Running, Input),
    bundle: Option<&BundleFacts>,
    mut record: Option<&mut Record>,
) -> Result<Outcome, Halt> {
    let Running {
        mut stdin,
        stdout,
        mut stderr,
        life,
        ..
    } = running;
    // On its own, because the installer may say something before it has read all of it; and held until
    // the end, because a sandbox may end with its stdin.
    let giving = async move {
        give(&mut stdin, input).await;
        stdin
    };
    let hearing = async {
        let mut lines = BufReader::new(stdout.take(MAX_TOLD)).lines();
        let (mut told, mut runtime, mut said) = (None, None, Vec::new());
        let mut hears = true;
        loop {
            tokio::select! {
                step = lines.next_line() => match step.ok().flatten().map(|line| progress::read(&line)) {
                    Some(Some(Told::Phase(state))) => if let Some(record) = &mut record {
                        record.phase(state).await?;
                    },
                    Some(Some(Told::Runtime(version))) => runtime = Some(version),
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
        Ok::<_, Halt>((told, runtime, said, record))
    };
    let (stdin, heard) = tokio::join!(giving, hearing);
    let (told, runtime, said, record) = heard?;
    let ended = tokio::time::timeout(END_GRACE, life.ended()).await.ok();
    drop(stdin);
    life.kill().await;
    if let Some(record) = record {
        record.flush().await?;
    }
    Ok(match bundle {
        Some(facts) => unpacked(
            (order.spec, facts),
            (told, runtime.as_deref()),
            &said,
            ended,
        ),
        None => outcome(told, &said, ended),
    })
}

/// Gives an installer what it reads, for as long as it reads.
async fn give(stdin: &mut (dyn AsyncWrite + Send + Unpin), input: Input) {
    let Input { line, archive } = input;
    if stdin.write_all(line.as_bytes()).await.is_err() {
        return;
    }
    if let Some(mut pieces) = archive {
        // Whoever waits for the line does not wait for the archive.
        let _ = stdin.flush().await;
        while let Some(piece) = pieces.recv().await {
            if stdin.write_all(&piece).await.is_err() {
                return;
            }
        }
    }
    let _ = stdin.flush().await;
}

/// How the unpacking of a bundle went.
fn unpacked(
    (spec, facts): (&PackageSpec, &BundleFacts),
    (told, runtime): (Option<Told>, Option<&str>),
    said: &[String],
    ended: Option<Ended>,
) -> Outcome {
    if let Some((problem, text)) = unpacking::runtime_problem(facts, runtime) {
        return Err(Refused { problem, text });
    }
    if facts.dependencies.is_some() {
        return outcome(told, said, ended).map(|done| done.beside_bundle(&spec.name));
    }
    match ended {
        Some(Ended::Exited(0)) => Ok(Done::of_bundle(&facts.version, &spec.name)),
        ended => outcome(None, said, ended),
    }
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
        (Some(Told::Done(_) | Told::Phase(_) | Told::Runtime(_)) | None, ended) => {
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
