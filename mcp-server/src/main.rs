//! The MCP server inside every Sepal sandbox: files and commands below one workspace folder.
//!
//! It speaks JSON-RPC on stdin and stdout, ends with the end of stdin, and takes every process that
//! it started with it.

mod command;
mod custom;
mod failure;
mod files;
mod init;
mod server;
mod settings;
mod stops;
mod streams;
mod tools;
mod tunnel;
mod until_eof;

use std::{io::Write, process::ExitCode, time::Duration};

use rmcp::{ServiceExt, transport::async_rw::AsyncRwTransport};
use rustix::process::{DumpableBehavior, Pid, getpid, set_dumpable_behavior};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::{
    command::Groups,
    files::Workspace,
    server::Server,
    settings::Settings,
    stops::{Stoppable, Stops},
    until_eof::UntilEof,
};

/// As far as a thread that waits for work can tell.
const FOR_EVER: Duration = Duration::from_hours(100 * 365 * 24);

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "sepal-mcp-server: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Outcome<ExitCode> {
    let mut words = std::env::args_os().skip(1).peekable();
    let task = if words.next_if(|word| word == "tunnel").is_some() {
        Task::Tunnel(tunnel::Arguments::parse(words)?)
    } else {
        Task::Serve(Settings::parse(words)?)
    };
    if matches!(&task, Task::Serve(settings) if settings.describe) {
        std::io::stdout().write_all(tools::describe()?.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    // Commands run as the same user. Without this one could take our stdout, by `/proc` or by
    // `pidfd_getfd`, and give answers in our name.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_keep_alive(FOR_EVER)
        .build()?;
    if getpid() == Pid::INIT {
        return Ok(runtime.block_on(init::supervise())?);
    }
    let groups = Groups::default();
    groups.adopt_orphans()?;
    // The thread for files is there before the first command, which may leave no place for one.
    #[expect(clippy::disallowed_methods, reason = "the thread is only made")]
    let first = runtime.spawn_blocking(|| ());
    runtime.block_on(first)?;
    let done = runtime.block_on(async {
        match task {
            Task::Serve(settings) => {
                let served = serve(settings, groups.clone()).await;
                served.map(|()| ExitCode::SUCCESS)
            }
            Task::Tunnel(arguments) => tunnel::run(arguments, &groups).await,
        }
    });
    groups.kill_all();
    // A file may still be read in its thread; nothing waits for it.
    runtime.shutdown_background();
    done
}

/// What this program is started for.
enum Task {
    /// To be the server for files and commands.
    Serve(Settings),
    /// To be the way out of another program.
    Tunnel(tunnel::Arguments),
}

/// Answers requests until stdin ends or SIGTERM comes.
async fn serve(settings: Settings, groups: Groups) -> Outcome<()> {
    let workspace = Workspace::open(&settings.workspace)?;
    let ended = CancellationToken::new();
    let (stdin, stdout) = streams::stdio();
    let stops = Stops::default();
    let transport = Stoppable {
        inner: AsyncRwTransport::new_server(UntilEof::new(stdin, ended.clone()), stdout),
        stops: stops.clone(),
    };
    let burials = groups.clone();
    let server = Server::new(workspace, settings, groups, stops, ended.clone())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let mut died = signal(SignalKind::child())?;
    let burying = async {
        loop {
            died.recv().await;
            burials.bury();
        }
    };
    let answering = async {
        match server.serve(transport).await {
            Ok(service) => service.waiting().await.map(drop).map_err(Into::into),
            // A client that leaves before it said hello is no fault.
            Err(_) if ended.is_cancelled() => Ok(()),
            Err(error) => Err(error.into()),
        }
    };
    tokio::select! {
        answered = answering => answered,
        _ = terminated.recv() => Ok(()),
        () = burying => Ok(()),
    }
}
