//! `./run bench` measures Sepal beside a raw relay of the same bytes and the upstream itself, alternating in
//! one run. Processor time is compared as ratios, because absolute figures vary with the machine. `./run
//! soak` is in [`soak`], `./run bench growth` in [`growth`].

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program of the command line: figures are its output"
)]
#![expect(
    clippy::cast_precision_loss,
    reason = "counts and nanoseconds here are far below what a float holds"
)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::{Parser, Subcommand, ValueEnum};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

use crate::process::Program;
use crate::report::Report;
use crate::subject::{Kind, Subject};

mod completions;
mod growth;
#[cfg(target_arch = "x86_64")]
mod layout;
mod line;
mod measure;
mod plan;
mod process;
mod relay;
mod report;
mod soak;
mod subject;
mod upstream;

#[derive(Parser)]
#[command(about = "Measures Sepal against a raw relay of the same bytes")]
struct Cli {
    #[command(subcommand)]
    part: Part,
}

#[derive(Subcommand)]
enum Part {
    /// Measures.
    Compare(Compare),
    /// Lives with faults.
    Soak(soak::Options),
    /// Measures what more of everything costs.
    Growth(growth::Options),
    /// Learns which functions of the gateway run, for the linker.
    #[cfg(target_arch = "x86_64")]
    Learn(layout::Options),
    /// Runs a program, and notes which of its functions run.
    #[cfg(target_arch = "x86_64")]
    Trace(layout::trace::Options),
    /// Is the program that is traced.
    #[cfg(target_arch = "x86_64")]
    Traced(layout::trace::Traced),
    /// Is a server of so many tools, on a free port.
    Tools { count: usize },
    /// Is the model vendor, on a free port.
    Upstream,
    /// Is the raw relay, on a free port.
    Relay {
        /// The address that is asked.
        upstream: String,
    },
}

#[derive(clap::Args)]
struct Compare {
    /// The gateway's program.
    #[arg(long)]
    sepal: PathBuf,
    /// Where all figures are kept.
    #[arg(long)]
    out: PathBuf,
    /// The interval at which everything is measured.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only these measurements.
    #[arg(long, value_delimiter = ',')]
    only: Vec<What>,
    /// Only these subjects.
    #[arg(long, value_delimiter = ',')]
    subjects: Vec<Name>,
}

/// The measurements.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    Start,
    Tokens,
    Turns,
    Rounds,
    Idle,
}

/// The subjects, as they are named on the command line.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Name {
    Upstream,
    Relay,
    Sqlite,
    Redis,
}

impl From<Name> for Kind {
    fn from(name: Name) -> Self {
        match name {
            Name::Upstream => Self::Upstream,
            Name::Relay => Self::Relay,
            Name::Sqlite => Self::Sqlite,
            Name::Redis => Self::Redis,
        }
    }
}

fn main() -> Result<ExitCode> {
    match Cli::parse().part {
        Part::Upstream => block_on(upstream::serve())?,
        Part::Relay { upstream } => block_on(relay::serve(&upstream))?,
        Part::Compare(compare) => return block_on(run(&compare)),
        Part::Tools { count } => block_on(growth::serve_tools(count))?,
        #[cfg(target_arch = "x86_64")]
        Part::Learn(options) => {
            install_tls();
            block_on(layout::learn(&options))?;
        }
        // Without other threads: the one that starts the program is the one that may trace it.
        #[cfg(target_arch = "x86_64")]
        Part::Trace(options) => layout::trace::trace(&options)?,
        #[cfg(target_arch = "x86_64")]
        Part::Traced(traced) => layout::trace::become_traced(&traced)?,
        Part::Growth(options) => {
            install_tls();
            return block_on(until_told(growth::run(&options)));
        }
        Part::Soak(options) => {
            install_tls();
            allow_many_files();
            return block_on(until_told(soak::run(&options)));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Runtime::new()?.block_on(work)
}

/// Ends early on SIGTERM or an interrupt, so that no program that it started is left running.
async fn until_told(work: impl Future<Output = Result<ExitCode>>) -> Result<ExitCode> {
    let mut told = signal(SignalKind::terminate())?;
    tokio::select! {
        done = work => done,
        _ = told.recv() => bail!("it was told to end"),
        told = tokio::signal::ctrl_c() => {
            told?;
            bail!("it was interrupted")
        }
    }
}

/// Installs ring as the TLS provider: rustls requires one choice when several providers are compiled in.
pub(crate) fn install_tls() {
    // An error means that a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

async fn run(compare: &Compare) -> Result<ExitCode> {
    install_tls();
    allow_many_files();
    let sepal = compare.sepal.canonicalize();
    let sepal = sepal.with_context(|| format!("{} is not there", compare.sepal.display()))?;
    let mut report = Report::default();
    for round in 1..=compare.rounds {
        for part in What::value_variants() {
            if !compare.only.is_empty() && !compare.only.contains(part) {
                continue;
            }
            for kind in Kind::ALL {
                let is_wanted = |name: &Name| Kind::from(*name) == kind;
                if !compare.subjects.is_empty() && !compare.subjects.iter().any(is_wanted) {
                    continue;
                }
                let upstream = Program::part(&["upstream"])?;
                let subject = Subject::start(kind, upstream.address, &sepal)?;
                let figures = measure(*part, &subject).await;
                let figures = figures.with_context(|| format!("measuring {}", kind.name()))?;
                for (name, value) in &figures {
                    eprintln!(
                        "round {round}/{}: {}: {name}: {value:.3}",
                        compare.rounds,
                        kind.name()
                    );
                }
                report.take(kind, figures);
            }
        }
        report.write(&compare.out, round)?;
    }
    println!("{}", report.text());
    println!("All figures: {}", compare.out.display());
    Ok(if report.holds() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

async fn measure(part: What, subject: &Subject) -> Result<Vec<measure::Figure>> {
    // The upstream has no persistent connections, and only Sepal has tools.
    let is_upstream = subject.kind == Kind::Upstream;
    match part {
        What::Start => Ok(measure::start(subject)),
        What::Tokens => measure::tokens(subject).await,
        What::Turns => measure::turns(subject).await,
        What::Rounds if subject.kind.is_sepal() => measure::rounds(subject).await,
        What::Idle if !is_upstream => measure::idle(subject).await,
        What::Rounds | What::Idle => Ok(Vec::new()),
    }
}

/// Raises the file limit to the maximum that the machine allows; started programs inherit it.
fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    // A failure would show later as a connection that fails.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    );
}
