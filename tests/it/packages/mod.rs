//! Packages of MCP servers: installed once, then run without a network. One file for each story, with the
//! packages that people really use, and with a registry of ours for what goes wrong.

mod bundles;
mod doors;
mod failures;
mod newer;
mod real;
mod registry;
mod walls;

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::servers::Api;
use crate::support::{DEADLINE, TestApp, TestSocket, docker};

/// An app whose packages come from a registry of ours.
async fn app_at(address: &str) -> TestApp {
    TestApp::start_with(&[
        ("SPL_SANDBOX", "bubblewrap"),
        ("SPL_NPM_REGISTRY", address),
        ("SPL_PYPI_INDEX", &format!("{address}/simple")),
        ("SPL_PACKAGES_TIMEOUT", "60"),
    ])
    .await
}

/// The same in containers of the private engine.
async fn docker_at(address: &str) -> TestApp {
    with_docker(&[
        ("SPL_NPM_REGISTRY", address),
        ("SPL_PYPI_INDEX", &format!("{address}/simple")),
    ])
    .await
}

/// Docker with the image in which packages are installed.
async fn with_docker(more: &[(&str, &str)]) -> TestApp {
    let (host, image) = (docker::address(), docker::image());
    let packages = docker::packages_image();
    let own = [
        ("SPL_SANDBOX", "docker"),
        ("SPL_SANDBOX_DOCKER_HOST", host.as_str()),
        ("SPL_SANDBOX_IMAGE", image.as_str()),
        ("SPL_PACKAGES_IMAGE", packages.as_str()),
    ];
    TestApp::start_with(&[&own, more].concat()).await
}

/// The state in which an installation ends, heard by a socket of its tenant.
async fn wait_for_end(socket: &mut TestSocket, server: &str) -> String {
    loop {
        let said = socket
            .wait_where(|said| said.name == "mcp:installation" && said.args[0]["server"] == server)
            .await;
        let state = said.args[0]["state"].as_str().unwrap().to_owned();
        if matches!(state.as_str(), "ready" | "failed") {
            return state;
        }
    }
}

/// Looks until it is so.
async fn until(fits: impl Fn() -> bool) {
    let looking = async {
        let mut looks = tokio::time::interval(Duration::from_millis(50));
        while !fits() {
            looks.tick().await;
        }
    };
    tokio::time::timeout(DEADLINE, looking).await.unwrap();
}

fn command(line: &str) -> Value {
    let mut words = line.split(' ');
    json!({ "command": words.next(), "args": words.collect::<Vec<_>>() })
}

/// What is told of the installation of a server.
async fn installation(api: &Api<'_>, server: &str) -> Value {
    api.get(&format!("/api/mcp/{server}/installation")).await
}

/// Adds a server, and waits until its package is installed or cannot be.
async fn add(api: &Api<'_>, socket: &mut TestSocket, name: &str, config: Value) -> Value {
    api.add(name, config).await;
    wait_for_end(socket, name).await;
    installation(api, name).await
}

async fn post(api: &Api<'_>, path: &str) -> (u16, Value) {
    api.ask(Method::POST, path, &Value::Null).await
}
