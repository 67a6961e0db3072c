//! The command line of the proxy.

use std::{
    io::{IsTerminal as _, Write as _},
    process::ExitCode,
};

use clap::{Parser, ValueEnum};
use sepal_docker_proxy::{Address, Label, Listener, Most, Settings, health, serve};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::level_filters::LevelFilter;

/// Lets Sepal use a Docker engine for its sandboxes and for nothing else.
#[derive(Parser)]
#[command(name = "sepal-docker-proxy", version)]
struct Options {
    /// Where Sepal asks: `unix:///path` or `tcp://host:port` (loopback or a private network)
    #[arg(long, env = "SEPAL_DOCKER_PROXY_LISTEN")]
    listen: Address,
    /// Ask a running proxy at `--listen` whether it and its engine are well, and leave
    #[arg(long)]
    check: bool,
    /// Where the engine is
    #[arg(
        long,
        env = "SEPAL_DOCKER_PROXY_ENGINE",
        default_value = "unix:///var/run/docker.sock"
    )]
    engine: Address,
    /// The label of everything that is made here; nothing without it is touched
    #[arg(
        long,
        env = "SEPAL_DOCKER_PROXY_LABEL",
        default_value = "sepal.proxy=sepal"
    )]
    label: Label,
    /// The image of the sandboxes
    #[arg(long, env = "SEPAL_DOCKER_PROXY_IMAGE", default_value = concat!("sepal/sandbox:", env!("CARGO_PKG_VERSION")))]
    image: String,
    /// Another image that may run; without any, all that the engine has may
    #[arg(
        long = "allow-image",
        env = "SEPAL_DOCKER_PROXY_ALLOW_IMAGES",
        value_delimiter = ','
    )]
    allow_images: Vec<String>,
    /// The OCI runtime of every container, for example `runsc`
    #[arg(long, env = "SEPAL_DOCKER_PROXY_RUNTIME")]
    runtime: Option<String>,
    /// An internal network that containers may ask for besides `none`
    #[arg(long, env = "SEPAL_DOCKER_PROXY_NETWORK")]
    network: Option<String>,
    #[command(flatten)]
    most: MostOptions,
    /// Containers that exist at the same time, running or not; a sandbox has one for itself, one for
    /// each further server, and now and then one that counts its workspace
    #[arg(long, env = "SEPAL_DOCKER_PROXY_MAX_CONTAINERS", default_value_t = 512)]
    max_containers: u16,
    /// Volumes that exist at the same time; each session that has run a tool has one until it is
    /// deleted
    #[arg(long, env = "SEPAL_DOCKER_PROXY_MAX_VOLUMES", default_value_t = 20_000)]
    max_volumes: u16,
    /// Connections at the same time; a running sandbox has two
    #[arg(
        long,
        env = "SEPAL_DOCKER_PROXY_MAX_CONNECTIONS",
        default_value_t = 2048
    )]
    max_connections: u16,
    /// Permissions of the socket, octal
    #[arg(long, env = "SEPAL_DOCKER_PROXY_SOCKET_MODE", default_value = "660", value_parser = octal)]
    socket_mode: u32,
    /// Number of the group that the socket belongs to
    #[arg(long, env = "SEPAL_DOCKER_PROXY_SOCKET_GROUP")]
    socket_group: Option<u32>,
    /// `error`, `warn`, `info` or `debug`
    #[arg(long, env = "SEPAL_DOCKER_PROXY_LOG_LEVEL", default_value = "info")]
    log_level: LevelFilter,
    /// How the log is written
    #[arg(long, env = "SEPAL_DOCKER_PROXY_LOG_FORMAT", default_value = "text")]
    log_format: LogFormat,
}

/// The most that one container may ask for.
#[derive(clap::Args)]
struct MostOptions {
    /// The most memory of one container in MiB
    #[arg(
        long = "max-memory-mb",
        env = "SEPAL_DOCKER_PROXY_MAX_MEMORY_MB",
        default_value_t = 2048
    )]
    memory_mb: u32,
    /// The most of a processor of one container in thousandths
    #[arg(
        long = "max-cpu-millis",
        env = "SEPAL_DOCKER_PROXY_MAX_CPU_MILLIS",
        default_value_t = 2000
    )]
    cpu_millis: u32,
    /// The most processes of one container
    #[arg(
        long = "max-pids",
        env = "SEPAL_DOCKER_PROXY_MAX_PIDS",
        default_value_t = 512
    )]
    pids: u32,
    /// The most of one workspace in MiB
    #[arg(
        long = "max-workspace-mb",
        env = "SEPAL_DOCKER_PROXY_MAX_WORKSPACE_MB",
        default_value_t = 8192
    )]
    workspace_mb: u32,
}

#[derive(Clone, Copy, ValueEnum)]
enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl From<&MostOptions> for Most {
    fn from(options: &MostOptions) -> Self {
        Self {
            memory_bytes: i64::from(options.memory_mb) << 20,
            nano_cpus: i64::from(options.cpu_millis) * 1_000_000,
            processes: i64::from(options.pids),
            file_bytes: i64::from(options.workspace_mb) << 20,
        }
    }
}

impl Options {
    fn settings(&self) -> Settings {
        let given = |text: &Option<String>| text.clone().filter(|it| !it.is_empty());
        let images = self.allow_images.iter().filter(|it| !it.is_empty());
        Settings {
            engine: self.engine.clone(),
            label: self.label.clone(),
            image: self.image.clone(),
            other_images: images.cloned().collect(),
            runtime: given(&self.runtime),
            network: given(&self.network),
            most: Most::from(&self.most),
            max_containers: usize::from(self.max_containers),
            max_volumes: usize::from(self.max_volumes),
            max_connections: usize::from(self.max_connections),
        }
    }
}

fn octal(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|it| *it <= 0o777);
    mode.ok_or_else(|| "write three octal digits, for example `660`".to_owned())
}

fn log(options: &Options) {
    let log = tracing_subscriber::fmt()
        .with_max_level(options.log_level)
        .with_writer(std::io::stderr)
        .with_target(false);
    match options.log_format {
        LogFormat::Text => log.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let ran = if options.check {
        health(&options.listen).await
    } else {
        log(&options);
        run(&options).await
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            let _ = writeln!(std::io::stderr(), "sepal-docker-proxy: {text}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &Options) -> Result<(), String> {
    let settings = options.settings();
    settings.check().map_err(|error| error.to_string())?;
    let place = Listener::bind(&options.listen, options.socket_mode, options.socket_group);
    let listener = place
        .await
        .map_err(|error| format!("cannot listen at `{}`: {error}", options.listen))?;
    let shutdown = CancellationToken::new();
    let ending = |kind| signal(kind).map_err(|error| error.to_string());
    let mut terminated = ending(SignalKind::terminate())?;
    let mut interrupted = ending(SignalKind::interrupt())?;
    let serving = serve(settings, listener, shutdown.clone());
    let told = async {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
        shutdown.cancel();
    };
    tokio::join!(serving, told);
    Ok(())
}
