//! One run of an installer in its sandbox.

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
use crate::domain::{HostProblem, InstallProblem, PackageRegistry, PackageSpec, SandboxId};
use crate::sandbox::{self, Access, Ended, Launch, Running};
use crate::servers::bundles::BundleFacts;
use crate::servers::bundles::unpacking::{self, Unpacking};
use crate::servers::registry::Servers;
use crate::store::records::PackageVolume;

/// The most that an installer may tell: the names and hashes of some thousand packages.
const MAX_TOLD: u64 = 32 << 20;
/// How long it may take until it is known how the sandbox ended.
const END_GRACE: Duration = Duration::from_secs(10);

/// Hashes a volume as an archive in which only names, contents and rights to execute differ.
const HASH: &str = r"{ tar --create --file=- --directory=/workspace --sort=name --mtime=@0 --owner=0 --group=0 \
  --numeric-owner --mode=a=rX,u+w --hard-dereference . || touch /tmp/failed; } | sha256sum
[ ! -e /tmp/failed ]";
/// Bytes that are read of its output: the hash and the name of its input.
const MAX_HASH: u64 = 128;
/// The time after which hashing is given up.
const HASH_LIMIT: Duration = Duration::from_mins(5);

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

/// The result of an installation.
pub(super) type Outcome = Result<Installed, Refused>;

/// Installs in three sandboxes: one finds out which packages are wanted and goes with all that it made, one
/// installs exactly those, and one hashes the files. `record` hears of each phase and line, where somebody
/// looks on.
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

/// Finds out which packages are wanted; `None` for a bundle that brings everything along. Finding that out may
/// run code of packages where an administrator allows scripts.
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

/// Installs into the volume of the order, and hashes what came into it.
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
    let launch = order::launch(order.spec.registry, whose, (settings, guard));
    Ok(launch.map_err(no_host).map(|launch| Prepared {
        launch,
        input: Input {
            line: order::order(order.spec, (order.version, pins), settings),
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
            let about = (facts.version.as_str(), dependencies);
            (
                order::launch(PackageRegistry::Pypi, whose, (settings, guard)),
                order::of_bundle(order.spec, about, (bytes, pins), settings),
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

/// Runs what is prepared to its end.
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

/// Everything that an installer told until its sandbox ended.
struct Heard {
    bundle: Option<BundleFacts>,
    told: Option<Told>,
    runtime: Option<String>,
    said: Vec<String>,
    ended: Option<Ended>,
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
            Some(Ended::Exited(0)) => Ok(Done::of_bundle(&facts.version, &spec.name)),
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

fn finished(told: Option<Told>, said: &[String], ended: Option<Ended>) -> Result<Done, Refused> {
    match told {
        Some(Told::Done(done)) if has_ended_well(ended) => Ok(done),
        told => Err(refusal(told, said, ended)),
    }
}

/// True for the ends that a sandbox has after its installer has told its last step.
fn has_ended_well(ended: Option<Ended>) -> bool {
    matches!(ended, Some(Ended::Exited(0) | Ended::Killed) | None)
}

fn refusal(told: Option<Told>, said: &[String], ended: Option<Ended>) -> Refused {
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

/// Hashes all files of a volume: their names, kinds, contents, links, and whether they may be executed. Nothing
/// that was installed runs in the sandbox of this, which cannot write to the volume.
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
    let is_whole = matches!(hashed, Ok((true, Ended::Exited(0))));
    let hash = told.get(..64).filter(|_| is_whole);
    hash.map(str::to_owned).ok_or_else(|| {
        "the installed files cannot be read again to hash them; try the installation again"
            .to_owned()
    })
}
