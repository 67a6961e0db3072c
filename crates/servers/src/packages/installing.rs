//! Runs an installer in its sandbox.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::sync::mpsc;

use super::following::{Halt, Record};
use super::order;
use super::progress::{self, Done, Installed, Told};
use super::reason;
use super::resolving::Refused;
use crate::bundles::BundleFacts;
use crate::bundles::unpacking::{self, Unpacking};
use crate::registry::Servers;
use sepal_core::domain::{HostProblem, InstallProblem, PackageRegistry, PackageSpec, SandboxId};
use sepal_sandbox::{self as sandbox, Access, Launch, ProgramEnd, Running};
use sepal_store::records::PackageVolume;

/// The most bytes that are read of an installer's stdout: the names and hashes of some thousand packages.
const MAX_TOLD: u64 = 32 << 20;
/// The most lines of an installer's stderr that are kept for the guess of the reason: the last ones, because
/// an installer says at its end why it failed.
const MAX_SAID: usize = 1_000;
/// The time to wait for the end of the sandbox after the installer's stdout has closed.
const END_GRACE: Duration = Duration::from_secs(10);

/// Hashes a volume as an archive in which only names, contents and permissions to execute differ.
const HASH: &str = r"{ tar --create --file=- --directory=/workspace --sort=name --mtime=@0 --owner=0 --group=0 \
  --numeric-owner --mode=a=rX,u+w --hard-dereference . || touch /tmp/failed; } | sha256sum
[ ! -e /tmp/failed ]";
/// The bytes that are read of the output: the hash and the name of its input.
const MAX_HASH: u64 = 128;
/// The time limit of hashing.
const HASH_LIMIT: Duration = Duration::from_mins(5);

/// The package to install, and the server it is for.
pub(super) struct Order<'o> {
    pub(super) servers: &'o Servers,
    pub(super) spec: &'o PackageSpec,
    /// The exact version, if known.
    pub(super) version: Option<&'o str>,
    /// The exact packages, if known.
    pub(super) pins: Option<&'o str>,
    /// The volume to fill, with its row.
    pub(super) volume: PackageVolume,
}

/// The result of an installation.
pub(super) type Outcome = Result<Installed, Refused>;

/// Installs in three sandboxes: the first finds out which packages are wanted and is then discarded, the
/// second installs exactly those, and the third hashes the files. `record`, if any, receives each phase and
/// line.
pub(super) async fn install(
    order: &Order<'_>,
    mut record: Option<&mut Record>,
) -> Result<Outcome, Halt> {
    let resolved = match order.pins {
        Some(pins) => Some(pins.to_owned()),
        None => match find_pins(order, record.as_deref_mut()).await? {
            Ok(resolved) => resolved,
            Err(refused) => return Ok(Err(refused)),
        },
    };
    let sandbox = &order.volume.sandbox;
    add_volume(order, sandbox).await?;
    let outcome = fill(order, resolved.as_deref(), record).await;
    if !matches!(outcome, Ok(Ok(_))) {
        remove(order.servers, sandbox).await?;
    }
    outcome
}

/// Finds out which packages are wanted; `None` for a bundle without dependencies. This may run code of
/// packages if an administrator allows scripts.
async fn find_pins(
    order: &Order<'_>,
    record: Option<&mut Record>,
) -> Result<Result<Option<String>, Refused>, Halt> {
    if order.spec.registry == PackageRegistry::Bundle {
        let (records, scope) = (&order.servers.0.records, &order.volume.scope);
        let facts = unpacking::kept_facts(records, scope, &order.spec.name).await?;
        if facts.is_some_and(|facts| facts.dependencies.is_none()) {
            return Ok(Ok(None));
        }
    }
    let sandbox = SandboxId::from_bits(rand::random());
    let prepared = match prepare(order, &sandbox, None).await? {
        Ok(prepared) => prepared,
        Err(refused) => return Ok(Err(refused)),
    };
    add_volume(order, &sandbox).await?;
    let heard = run(order, prepared, record).await;
    remove(order.servers, &sandbox).await?;
    Ok(heard?.and_then(Heard::resolved).map(Some))
}

/// Installs into the order's volume, and hashes the result.
async fn fill(
    order: &Order<'_>,
    pins: Option<&str>,
    record: Option<&mut Record>,
) -> Result<Outcome, Halt> {
    let prepared = match prepare(order, &order.volume.sandbox, pins).await? {
        Ok(prepared) => prepared,
        Err(refused) => return Ok(Err(refused)),
    };
    let heard = run(order, prepared, record).await?;
    let done = match heard.and_then(|heard| heard.done(order.spec)) {
        Ok(done) => done,
        Err(refused) => return Ok(Err(refused)),
    };
    let files = hash_files(order).await;
    Ok(files
        .map(|files| Installed { done, files })
        .map_err(|text| Refused {
            problem: InstallProblem::Other,
            text,
        }))
}

async fn add_volume(order: &Order<'_>, sandbox: &SandboxId) -> Result<(), Halt> {
    let volume = PackageVolume {
        sandbox: sandbox.clone(),
        ..order.volume.clone()
    };
    let packages = order.servers.0.records.packages();
    Ok(packages.add_volume(&volume).await?)
}

/// The prepared run of an installer: its launch, its input, and the facts of the bundle if it installs one.
struct Prepared {
    launch: Launch,
    input: Input,
    bundle: Option<BundleFacts>,
}

/// The input of an installer.
struct Input {
    /// The order; empty if the command contains it.
    line: String,
    /// The files of a bundle, sent after the order.
    archive: Option<mpsc::Receiver<Bytes>>,
}

async fn prepare(
    order: &Order<'_>,
    sandbox: &SandboxId,
    pins: Option<&str>,
) -> Result<Result<Prepared, Refused>, Halt> {
    let settings = &order.servers.0.place.packages;
    let whose = (order.volume.server.as_str(), sandbox);
    if order.spec.registry == PackageRegistry::Bundle {
        return unpack(order, whose, pins).await;
    }
    let guard = &order.servers.0.opener.outside.guard;
    let launch = order::launch(order.spec.registry, whose, settings, guard);
    Ok(launch.map_err(no_host).map(|launch| Prepared {
        launch,
        input: Input {
            line: order::order(order.spec, order.version, pins, settings),
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

/// Prepares a bundle: its files are unpacked, beside the Python packages that it depends on, if any.
async fn unpack(
    order: &Order<'_>,
    whose: (&str, &SandboxId),
    pins: Option<&str>,
) -> Result<Result<Prepared, Refused>, Halt> {
    let settings = &order.servers.0.place.packages;
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
    let (launch, line) = match &facts.dependencies {
        None => {
            let command = unpacking::command(&facts, bytes);
            (Ok(order::sealed(whose, command, settings)), String::new())
        }
        Some(dependencies) => {
            let guard = &order.servers.0.opener.outside.guard;

            (
                order::launch(PackageRegistry::Pypi, whose, settings, guard),
                order::of_bundle(
                    order.spec,
                    facts.version.as_str(),
                    dependencies,
                    bytes,
                    pins,
                    settings,
                ),
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

/// Removes an unused volume and its row. A volume that cannot be removed now keeps its row, so that removal
/// is retried.
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

/// Runs a prepared installer to its end.
async fn run(
    order: &Order<'_>,
    prepared: Prepared,
    mut record: Option<&mut Record>,
) -> Result<Result<Heard, Refused>, Halt> {
    let Prepared {
        launch,
        input,
        bundle,
        ..
    } = prepared;
    let running = match order.servers.0.place.runtime.start(launch).await {
        Ok(running) => running,
        Err(error) => {
            return Ok(Err(Refused {
                problem: InstallProblem::Other,
                text: does_not_start(&error),
            }));
        }
    };
    let Running {
        mut stdin,
        stdout,
        mut stderr,
        life,
        ..
    } = running;
    // Concurrent with reading, because the installer may write before it has read all input. `stdin` is held
    // until the end, because a sandbox may end with its stdin.
    let giving = async move {
        give(&mut stdin, input).await;
        stdin
    };
    let hearing = async {
        let mut lines = BufReader::new(stdout.take(MAX_TOLD)).lines();
        let (mut told, mut runtime, mut said) = (None, None, VecDeque::new());
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
        Ok::<_, Halt>((told, runtime, Vec::from(said), record))
    };
    let (stdin, heard) = tokio::join!(giving, hearing);
    let (told, runtime, said, record) = heard?;
    let ended = tokio::time::timeout(END_GRACE, life.ended()).await.ok();
    drop(stdin);
    life.kill().await;
    if let Some(record) = record {
        record.flush().await?;
    }
    Ok(Ok(Heard {
        bundle,
        told,
        runtime,
        said,
        ended,
    }))
}

fn does_not_start(error: &sandbox::Error) -> String {
    format!(
        "the sandbox of the installation does not start: {error}; {}",
        error.remedy()
    )
}

/// The output of an installer until its sandbox ended.
struct Heard {
    bundle: Option<BundleFacts>,
    told: Option<Told>,
    runtime: Option<String>,
    said: Vec<String>,
    ended: Option<ProgramEnd>,
}

impl Heard {
    /// Reads the packages that are wanted, as pins.
    fn resolved(self) -> Result<String, Refused> {
        self.check_runtime()?;
        match self.told {
            Some(Told::Resolved(pins)) if has_ended_well(self.ended) => Ok(pins),
            told => Err(refusal(told, &self.said, self.ended)),
        }
    }

    /// Reads the installer's report about a finished installation.
    fn done(self, spec: &PackageSpec) -> Result<Done, Refused> {
        self.check_runtime()?;
        let Some(facts) = &self.bundle else {
            return finished(self.told, &self.said, self.ended);
        };
        if facts.dependencies.is_some() {
            let done = finished(self.told, &self.said, self.ended)?;
            return Ok(done.beside_bundle(&spec.name));
        }
        match self.ended {
            Some(ProgramEnd::Exited(0)) => Ok(Done::of_bundle(&facts.version, &spec.name)),
            ended => Err(refusal(None, &self.said, ended)),
        }
    }

    /// Refuses a bundle whose runtime (Node or Python) the sandboxes lack or have in another version.
    fn check_runtime(&self) -> Result<(), Refused> {
        let facts = self.bundle.as_ref();
        let problem =
            facts.and_then(|facts| unpacking::runtime_problem(facts, self.runtime.as_deref()));
        match problem {
            Some((problem, text)) => Err(Refused { problem, text }),
            None => Ok(()),
        }
    }
}

/// Writes the input to an installer for as long as it reads.
async fn give(stdin: &mut (dyn AsyncWrite + Send + Unpin), input: Input) {
    let Input { line, archive } = input;
    if stdin.write_all(line.as_bytes()).await.is_err() {
        return;
    }
    if let Some(mut pieces) = archive {
        // The installer may act on the line before the archive comes.
        let _ = stdin.flush().await;
        while let Some(piece) = pieces.recv().await {
            if stdin.write_all(&piece).await.is_err() {
                return;
            }
        }
    }
    let _ = stdin.flush().await;
}

async fn hear(
    record: &mut Option<&mut Record>,
    said: &mut VecDeque<String>,
    line: String,
) -> Result<(), Halt> {
    if let Some(record) = record {
        record.line(&line).await?;
    }
    keep(said, line);
    Ok(())
}

/// Keeps the last lines, up to the limit.
fn keep(said: &mut VecDeque<String>, line: String) {
    if said.len() >= MAX_SAID {
        said.pop_front();
    }
    said.push_back(line);
}

fn finished(
    told: Option<Told>,
    said: &[String],
    ended: Option<ProgramEnd>,
) -> Result<Done, Refused> {
    match told {
        Some(Told::Done(done)) if has_ended_well(ended) => Ok(done),
        told => Err(refusal(told, said, ended)),
    }
}

/// Returns true for the ends that a sandbox has after its installer has reported its last step.
fn has_ended_well(ended: Option<ProgramEnd>) -> bool {
    matches!(
        ended,
        Some(ProgramEnd::Exited(0) | ProgramEnd::Killed) | None
    )
}

fn refusal(told: Option<Told>, said: &[String], ended: Option<ProgramEnd>) -> Refused {
    if let Some(Told::Failed { problem, text }) = told {
        return Refused {
            problem: reason::likely(problem, said, ended),
            text,
        };
    }
    let problem = reason::likely(None, said, ended);
    let text = match (problem, ended) {
        (InstallProblem::NoTools, _) => {
            "the sandboxes lack the programs that install this kind of package".to_owned()
        }
        (_, Some(ended)) => format!("the installer did not finish: {ended}"),
        (_, None) => "the installer did not finish".to_owned(),
    };
    Refused { problem, text }
}

/// Hashes all files of a volume: their names, kinds, contents, links, and permissions to execute. The sandbox
/// that hashes runs nothing that was installed, and cannot write to the volume.
async fn hash_files(order: &Order<'_>) -> Result<String, String> {
    let place = &order.servers.0.place;
    let whose = (order.volume.server.as_str(), &order.volume.sandbox);
    let command = ["/bin/sh", "-c", HASH].map(str::to_owned).to_vec();
    let launch = Launch {
        workspace: Access::ReadOnly,
        ..order::sealed(whose, command, &place.packages)
    };
    let running = place.runtime.start(launch).await;
    let Running {
        stdin,
        stdout,
        life,
        ..
    } = running.map_err(|error| does_not_start(&error))?;
    let mut told = String::new();
    let hashed = tokio::time::timeout(HASH_LIMIT, async {
        let read = stdout.take(MAX_HASH).read_to_string(&mut told).await;
        (read.is_ok(), life.ended().await)
    });
    let hashed = hashed.await;
    // A sandbox may end with its stdin.
    drop(stdin);
    life.kill().await;
    let is_whole = matches!(hashed, Ok((true, ProgramEnd::Exited(0))));
    let hash = told.get(..64).filter(|_| is_whole);
    hash.map(str::to_owned).ok_or_else(|| {
        "the installed files cannot be read again to hash them; try the installation again"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::{MAX_SAID, keep, refusal};
    use sepal_core::domain::InstallProblem;
    use sepal_sandbox::ProgramEnd;

    #[test]
    fn the_reason_of_a_failure_is_found_behind_any_number_of_lines() {
        let mut said = VecDeque::new();
        for number in 0..3 * MAX_SAID {
            keep(&mut said, format!("downloading part {number}"));
        }
        keep(&mut said, "npm error code E404".to_owned());
        let said = Vec::from(said);
        assert_eq!(said.len(), MAX_SAID);
        let refused = refusal(None, &said, Some(ProgramEnd::Exited(1)));
        assert_eq!(refused.problem, InstallProblem::NoSuchPackage);
    }
}
