//! Runs `sepal serve` and `sepal agent --daemon`.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::process::ExitCode;

use crate::app::{self, App, Purpose};
use crate::config::{AuthMode, LoadedSettings, Settings};
use anyhow::bail;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use secrecy::ExposeSecret as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::say;

/// The files that are open beside the connections of clients: databases, sandboxes, servers, models.
const OTHER_FILES: u64 = 1_000;

pub(super) async fn serve(loaded: &LoadedSettings, purpose: Purpose) -> anyhow::Result<ExitCode> {
    for notice in &loaded.notices {
        tracing::warn!("{notice}");
    }
    let settings = &loaded.settings;
    allow_open_files(settings.runtime.limits.connections);
    if purpose == Purpose::Gateway && !settings.runtime.transports.http.enabled {
        bail!(
            "`runtime.transports.http.enabled` is off in these settings; `sepal agent` is what they \
             describe"
        );
    }
    let listener = app::bind(settings).await?;
    let app = Box::pin(App::build_for(settings, listener, purpose)).await?;
    let url = app::base_url(settings, app.address);
    say(&format!(
        "Sepal {} listens on http://{}{}",
        env!("CARGO_PKG_VERSION"),
        app.address,
        where_to_open(settings, app.address, &url)
    ));
    for check in &app.report.checks {
        let remedy = check.remedy.as_ref().map(|remedy| format!(" ({remedy})"));
        say(&format!(
            "  {}: {}{}",
            check.name,
            check.detail,
            remedy.unwrap_or_default()
        ));
    }
    match (&app.setup, settings.auth.mode) {
        (Some(link), _) => say(&format!(
            "Open this link once to set up, within 30 minutes:\n  {}",
            link.address.expose_secret()
        )),
        (None, AuthMode::Password) => say("Sign in there, or get a fresh link: sepal link"),
        (None, AuthMode::None) => say("Nobody signs in: everybody on this machine is the owner"),
    }
    if purpose == Purpose::Daemon {
        say(&format!(
            "MCP clients: {url}/mcp, or {url}/sse for old ones"
        ));
    }
    let stop = CancellationToken::new();
    let serving = async {
        app.serve(stop.clone()).await;
        Ok(())
    };
    until_signal(serving, stop.clone()).await?;
    Ok(ExitCode::SUCCESS)
}

/// Raises the limit of open files as far as the system allows: a shell allows 1,024, for programs that wait by
/// `select`. Warns if the connections that clients may open could use up all of them, because databases need
/// files, too.
fn allow_open_files(connections: Option<NonZeroU32>) {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    let files = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(error) => {
            tracing::warn!(%error, "The limit of open files stays as it is");
            limit.current
        }
    };
    let needed = connections.map_or(0, |most| u64::from(most.get()) + OTHER_FILES);
    if files.is_some_and(|files| files < needed) {
        tracing::warn!(
            files,
            needed,
            "Fewer files may be open than `runtime.limits.connections` lets clients open: raise the hard \
             limit (`ulimit -Hn`, LimitNOFILE), or lower that setting"
        );
    }
}

/// Returns the address to open, if it differs from the bound address.
fn where_to_open(settings: &Settings, bound: SocketAddr, url: &str) -> String {
    if settings.runtime.http.public_url.is_some() {
        return format!(" (open {url})");
    }
    if bound.ip().is_unspecified() {
        // In a container the port may be published under another number: only the container's own address is
        // known.
        return format!(" (every address; from this machine {url})");
    }
    String::new()
}

/// Runs until the work ends; a signal requests a graceful stop.
pub(super) async fn until_signal<T>(
    work: impl Future<Output = anyhow::Result<T>>,
    stop: CancellationToken,
) -> anyhow::Result<T> {
    let (mut terminate, mut interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    tokio::pin!(work);
    tokio::select! {
        done = &mut work => return done,
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    stop.cancel();
    work.await
}
