//! `sepal serve`.

use std::process::ExitCode;

use secrecy::ExposeSecret as _;
use sepal::app::{self, App};
use sepal::config::{AuthMode, Loaded};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::say;

pub(super) async fn serve(loaded: &Loaded) -> anyhow::Result<ExitCode> {
    for notice in &loaded.notices {
        tracing::warn!("{notice}");
    }
    let settings = &loaded.settings;
    let listener = app::bind(settings).await?;
    let app = Box::pin(App::build(settings, listener)).await?;
    let url = app::base_url(settings, app.address);
    say(&format!(
        "Sepal {} listens on {url}",
        env!("CARGO_PKG_VERSION")
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
    let stop = CancellationToken::new();
    let (mut terminate, mut interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    let serving = app.serve(stop.clone());
    tokio::pin!(serving);
    tokio::select! {
        served = &mut serving => served?,
        _ = terminate.recv() => {
            stop.cancel();
            serving.await?;
        }
        _ = interrupt.recv() => {
            stop.cancel();
            serving.await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
