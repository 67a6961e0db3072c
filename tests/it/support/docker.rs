//! The private Docker engine that `tests/servers/servers` starts.

use std::process::{Command, Output};

use super::DEADLINE;

/// Where it listens.
pub(crate) fn address() -> String {
    variable("SEPAL_TEST_DOCKER")
}

/// Its image of the sandboxes.
pub(crate) fn image() -> String {
    variable("SEPAL_TEST_IMAGE")
}

/// Its image in which packages of servers are installed and run.
pub(crate) fn packages_image() -> String {
    variable("SEPAL_TEST_PACKAGES_IMAGE")
}

fn variable(name: &str) -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "the servers that tests need are told by the environment"
    )]
    let value = std::env::var(name);
    value.unwrap_or_else(|_| {
        panic!(
            "{name} is not set: run `./run test`, or this test below `tests/servers/servers run`. \
             Its private engine needs root, docker.io and debootstrap"
        )
    })
}

/// Asks an engine by the command line, as its operator would.
pub(crate) fn docker(address: &str, arguments: &[&str]) -> Output {
    let output = Command::new("docker")
        .env("DOCKER_HOST", address)
        .args(arguments)
        .output();
    output.expect("the docker command is missing: apt-get install docker.io")
}

/// The lines that the command line said.
pub(crate) fn lines(address: &str, arguments: &[&str]) -> Vec<String> {
    let output = docker(address, arguments);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// The names of everything of one kind that an installation has there.
pub(crate) fn named(kind: &str, label: &str) -> Vec<String> {
    let label = format!("label={label}");
    let arguments: &[&str] = match kind {
        "container" => &["ps", "--all", "--format", "{{.Names}}", "--filter", &label],
        _ => &["volume", "ls", "--format", "{{.Name}}", "--filter", &label],
    };
    lines(&address(), arguments)
}

/// Runs what takes its time on another thread.
pub(crate) async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    #[expect(clippy::disallowed_methods, reason = "a test's own thread")]
    let working = tokio::task::spawn_blocking(work);
    working.await.unwrap()
}

/// Asks again until it is so; the engine tells nobody when it is done. Asking takes its time, on
/// another thread.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool + Clone + Send + 'static) {
    let asking = async {
        loop {
            if beside(is_so.clone()).await {
                return;
            }
        }
    };
    tokio::time::timeout(DEADLINE, asking)
        .await
        .unwrap_or_else(|_| panic!("never: {what}"));
}
