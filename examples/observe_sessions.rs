//! A program that embeds the gateway and prints what happens in its sessions, one JSON object a line.
//!
//! `cargo run --example observe_sessions` reads the settings from the environment, as `sepal serve` does.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "it prints what happens, and its settings are the environment"
)]

use std::sync::Arc;

use sepal::agent::{ServiceEvent, ServiceObserver};
use sepal::app::{self, App, Extensions, Purpose};
use sepal::config::{self, Sources};
use sepal::domain::SessionKey;
use tokio_util::sync::CancellationToken;

struct Printer;

impl ServiceObserver for Printer {
    // A real one hands the event to a task of its own, because sessions wait here.
    fn observe(&self, session: &SessionKey, event: &ServiceEvent) {
        if let Ok(line) = serde_json::to_string(event) {
            println!("{} {line}", session.session);
        }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let sources = Sources {
        env: std::env::vars().collect(),
        ..Sources::default()
    };
    let settings = config::load(&sources)?.settings;
    let own = Extensions {
        observer: Some(Arc::new(Printer)),
        ..Extensions::default()
    };
    let listener = app::bind(&settings).await?;
    let app = App::build_with(&settings, listener, Purpose::Gateway, &own).await?;
    println!("http://{}", app.address);
    if let Some(link) = &app.setup {
        use secrecy::ExposeSecret as _;
        println!("{}", link.address.expose_secret());
    }
    let stop = CancellationToken::new();
    let serving = app.serve(stop.clone());
    tokio::pin!(serving);
    tokio::select! {
        () = &mut serving => return Ok(()),
        _ = tokio::signal::ctrl_c() => stop.cancel(),
    }
    serving.await;
    Ok(())
}
