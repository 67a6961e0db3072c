//! Commands of the `sepal` program. Their output is for people and separate from the log.

mod admin;
mod agent;
mod audit;
mod backup;
mod health;
mod named;
mod replay;
mod roles;
mod scim_tokens;
mod serve;
mod tenant_archive;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use self::backup::Workspaces;
use crate::app::{self, Purpose};
use crate::config::{self, Flag, LoadedSettings, Log, LogOutput, Preset, Sources};
use crate::gateway::Check;
use crate::store::audit::acting::{self, Door};
use crate::store::backup::Existing;
use crate::store::{Access, Store};
use crate::telemetry::{Telemetry, redact};
use crate::tenancy::{Clock, Tenancy};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, Parser, Subcommand};
use secrecy::ExposeSecret as _;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The time after which an idle thread for blocking work ends. The runtime wakes the longest idle thread
/// first, and each thread keeps one to three MiB of the allocator: with the runtime's default of ten
/// seconds, the checks of workspaces alone, some every second, kept all threads of a burst alive forever.
const IDLE_THREAD: Duration = Duration::from_millis(100);

/// A self-hosted agent gateway in which every tool call waits for a yes.
#[derive(Parser)]
#[command(name = "sepal", version, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    options: Options,
    /// The same as `sepal agent --daemon`.
    #[arg(long)]
    daemon: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

impl Cli {
    /// Moves `--daemon` into the `agent` command (S0.22, S0.49).
    fn with_daemon_in_place(mut self) -> Result<Self, clap::Error> {
        if self.daemon {
            let place = self
                .command
                .get_or_insert_with(|| Command::Agent(agent::AgentArgs::default()));
            let becomes = if let Command::Agent(args) = place {
                args.become_daemon()
            } else {
                false
            };
            if !becomes {
                let text =
                    "`--daemon` is for `sepal agent` without `--call`, and for `sepal` alone";
                return Err(Self::command().error(ErrorKind::ArgumentConflict, text));
            }
        }
        Ok(self)
    }
}

#[derive(Args, Clone)]
struct Options {
    /// Settings file (YAML or JSON, by its extension).
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address or name to listen on.
    #[arg(long, global = true)]
    host: Option<String>,
    /// Port to listen on.
    #[arg(long, global = true)]
    port: Option<String>,
    /// Folder that holds what outlives the process.
    #[arg(long, global = true, value_name = "FOLDER")]
    data_dir: Option<String>,
    /// Least serious log entries: trace (or silly), debug, info, warn, error, fatal, panic.
    #[arg(long, global = true, value_name = "LEVEL")]
    log_level: Option<String>,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the gateway (the default).
    Serve,
    /// Be an MCP server with one tool: the agent. On standard input and output unless told otherwise.
    Agent(agent::AgentArgs),
    /// Print a fresh sign-in link; it opens once and lasts 30 minutes.
    Link {
        /// For this person instead of the first owner.
        #[arg(long)]
        user: Option<String>,
        /// Of this tenant instead of `default`.
        #[arg(long)]
        tenant: Option<String>,
    },
    /// Say what this machine offers and lacks, and what to do about it.
    Doctor,
    /// Ask the server of these settings whether it is ready; the exit code says it too.
    Health,
    /// Look at the settings.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Keep a copy of everything that outlives the process, in one file; the server may run.
    Backup {
        /// The file to write, for example `sepal.tar.gz`. It holds secrets and their key.
        file: PathBuf,
        /// Also keep the files of sessions, which takes a sandbox for each.
        #[arg(long)]
        workspaces: bool,
    },
    /// Put a backup into the data folder; no server may run there.
    Restore {
        /// The file that `sepal backup` wrote.
        file: PathBuf,
        /// Move what is in the data folder aside, if there is something.
        #[arg(long)]
        force: bool,
        /// Leave out the files of sessions, if the backup has them.
        #[arg(long)]
        without_workspaces: bool,
    },
    /// Decide a session once more from what its journal recorded, and compare; the server may run.
    Replay(replay::ReplayArgs),
    /// Manage tenants, people and keys; works beside a running server.
    #[command(subcommand)]
    Admin(admin::AdminCommand),
    /// Sign, check and export the audit; works beside a running server.
    #[command(subcommand)]
    Audit(audit::AuditCommand),
}

#[derive(Subcommand)]
enum ConfigCommand {
    /// Say everything that is wrong with the settings.
    Check,
    /// Print every setting with its value and where it comes from.
    Show,
}

/// Runs the command line; the exit code is 0, 1 (failure) or 2 (invalid settings).
pub fn run() -> ExitCode {
    let cli = match Cli::parse().with_daemon_in_place() {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    let telemetry = match Telemetry::start() {
        Ok(telemetry) => telemetry,
        Err(error) => return fail(&anyhow::Error::new(error)),
    };
    let settings_file = cli.options.config.clone();
    let (command, loaded) = match choose(cli) {
        Ok(chosen) => chosen,
        Err(problems) => {
            complain(&problems.to_string());
            return ExitCode::from(2);
        }
    };
    let log = log_settings(&command, &loaded);
    if let Err(error) = telemetry.configure(&log) {
        return fail(&anyhow::Error::new(error));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_keep_alive(IDLE_THREAD)
        .build();
    let done = runtime.map_err(anyhow::Error::new).and_then(|runtime| {
        let done = runtime.block_on(execute(command, &loaded, settings_file.as_deref()));
        runtime.shutdown_background();
        done
    });
    match done {
        Ok(code) => code,
        Err(error) => {
            // If the log does not go to standard error, it should also contain the reason the process ended.
            if log.output != LogOutput::Stderr {
                tracing::error!(fatal = true, "{}", redact(&format!("{error:#}")));
            }
            fail(&error)
        }
    }
}

/// Returns the command with its settings. Without a command, settings that enable standard input and output
/// but no listener select the agent (docs/agent-mode.md).
fn choose(cli: Cli) -> Result<(Command, LoadedSettings), config::Problems> {
    let preset = match &cli.command {
        Some(Command::Agent(args)) => args.preset(),
        Some(_) | None => Preset::Gateway,
    };
    let loaded = load(&cli.options, preset)?;
    let transports = &loaded.settings.runtime.transports;
    match cli.command {
        Some(command) => Ok((command, loaded)),
        None if transports.stdio.enabled && !transports.http.enabled => {
            let args = agent::AgentArgs::default();
            let loaded = load(&cli.options, args.preset())?;
            Ok((Command::Agent(args), loaded))
        }
        None => Ok((Command::Serve, loaded)),
    }
}

/// Returns the settings of the log. If an MCP client or a script reads standard output, the log goes to
/// standard error instead (S0.57).
fn log_settings(command: &Command, loaded: &LoadedSettings) -> Log {
    let mut log = loaded.settings.runtime.log.clone();
    let needs_stdout = matches!(command, Command::Agent(args) if args.needs_stdout());
    if needs_stdout && log.output == LogOutput::Stdout {
        log.output = LogOutput::Stderr;
    }
    log
}

fn load(options: &Options, preset: Preset) -> Result<LoadedSettings, config::Problems> {
    let flags = [
        ("--host", "runtime.transports.http.host", &options.host),
        ("--port", "runtime.transports.http.port", &options.port),
        ("--data-dir", "store.data_dir", &options.data_dir),
        ("--log-level", "runtime.log.level", &options.log_level),
    ];
    let given = |(name, key, value): (&'static str, &'static str, &Option<String>)| {
        value.clone().map(|value| Flag { name, key, value })
    };
    let flags = flags.into_iter().filter_map(given).collect();
    let sources = Sources::of_process(options.config.as_deref(), flags)?;
    config::load(&Sources { preset, ..sources })
}

async fn execute(
    command: Command,
    loaded: &LoadedSettings,
    settings_file: Option<&Path>,
) -> anyhow::Result<ExitCode> {
    // What a server does by itself is its own; every other command is somebody at this machine.
    let door = match command {
        Command::Serve | Command::Agent(_) => Door::Gateway,
        Command::Link { .. }
        | Command::Doctor
        | Command::Health
        | Command::Config(_)
        | Command::Backup { .. }
        | Command::Restore { .. }
        | Command::Replay(_)
        | Command::Admin(_)
        | Command::Audit(_) => Door::CommandLine,
    };
    let done = run_command(command, loaded, settings_file);
    Box::pin(acting::through(door, None, done)).await
}

async fn run_command(
    command: Command,
    loaded: &LoadedSettings,
    settings_file: Option<&Path>,
) -> anyhow::Result<ExitCode> {
    match command {
        Command::Serve => serve::serve(loaded, Purpose::Gateway).await,
        Command::Agent(args) => Box::pin(agent::run(args, loaded)).await,
        Command::Link { user, tenant } => link(loaded, tenant, user).await,
        Command::Doctor => Ok(doctor(loaded).await),
        Command::Health => health::ask(loaded).await,
        Command::Config(ConfigCommand::Check) => {
            for notice in &loaded.notices {
                say(notice);
            }
            say("The settings are valid.");
            Ok(ExitCode::SUCCESS)
        }
        Command::Config(ConfigCommand::Show) => {
            say(loaded.shown.trim_end());
            Ok(ExitCode::SUCCESS)
        }
        Command::Backup { file, workspaces } => {
            let workspaces = if workspaces {
                Workspaces::Included
            } else {
                Workspaces::LeftOut
            };
            Box::pin(backup::back_up(loaded, settings_file, &file, workspaces)).await
        }
        Command::Restore {
            file,
            force,
            without_workspaces,
        } => {
            let existing = if force {
                Existing::MoveAside
            } else {
                Existing::Refuse
            };
            let workspaces = if without_workspaces {
                Workspaces::LeftOut
            } else {
                Workspaces::Included
            };
            Box::pin(backup::restore(loaded, &file, existing, workspaces)).await
        }
        Command::Replay(args) => replay::run(args, loaded).await,
        Command::Admin(command) => admin::run(command, loaded).await,
        Command::Audit(command) => Box::pin(audit::run(command, loaded)).await,
    }
}

async fn doctor(loaded: &LoadedSettings) -> ExitCode {
    let checks = app::examine(&loaded.settings).await;
    for check in &checks {
        say(&line(check));
    }
    if checks.iter().all(|check| check.ok) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn line(check: &Check) -> String {
    let mark = if check.ok { "ok  " } else { "LACK" };
    let remedy = check
        .remedy
        .as_ref()
        .map(|remedy| format!("\n     → {remedy}"));
    format!(
        "{mark} {}: {}{}",
        check.name,
        check.detail,
        remedy.unwrap_or_default()
    )
}

async fn link(
    loaded: &LoadedSettings,
    tenant: Option<String>,
    user: Option<String>,
) -> anyhow::Result<ExitCode> {
    let beside = Beside::open(loaded).await?;
    let url = beside.url(loaded);
    let link = beside
        .tenancy
        .setup()
        .link(&url, tenant.as_deref(), user.as_deref())
        .await;
    beside.close().await;
    say(link?.address.expose_secret());
    Ok(ExitCode::SUCCESS)
}

/// The store, opened beside a server that may be running.
struct Beside {
    store: Store,
    tenancy: Tenancy,
    writer: (TaskTracker, CancellationToken),
}

impl Beside {
    async fn open(loaded: &LoadedSettings) -> anyhow::Result<Self> {
        let settings = app::store_settings(&loaded.settings.store);
        let writer = (TaskTracker::new(), CancellationToken::new());
        let store = Store::open(&settings, Access::Beside, &writer.0, writer.1.clone()).await?;
        let tenancy = Tenancy::new(&store, Clock::system());
        Ok(Self {
            store,
            tenancy,
            writer,
        })
    }

    /// Returns the address of the running server, or the address it would have if none is running.
    fn url(&self, loaded: &LoadedSettings) -> String {
        let running = self.store.dir().holder().and_then(|holder| holder.address);
        let port = loaded.settings.runtime.transports.http.port;
        running.unwrap_or_else(|| app::base_url(&loaded.settings, ([127, 0, 0, 1], port).into()))
    }

    async fn close(self) {
        self.writer.1.cancel();
        self.writer.0.close();
        self.writer.0.wait().await;
        self.store.close().await;
    }
}

/// Prints a line for people on standard output. A closed pipe is ignored.
fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn fail(error: &anyhow::Error) -> ExitCode {
    complain(&format!("sepal: {error:#}"));
    ExitCode::FAILURE
}
