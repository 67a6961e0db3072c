//! The real program in a process of its own, to be killed and frozen.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::Person;
use crate::model_stub::ModelStub;

/// The program in a process of its own.
pub(crate) struct Server {
    process: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    pub(crate) fn start(data: &Path, model: &ModelStub) -> Self {
        Self::start_with(data, model, &[])
    }

    pub(crate) fn start_with(data: &Path, model: &ModelStub, env: &[(&str, &str)]) -> Self {
        Self::start_by(sepal(data), model, env)
    }

    /// With a soft and a hard limit of open files, as a shell may set them.
    pub(crate) fn start_with_files(
        data: &Path,
        model: &ModelStub,
        (soft, hard): (u32, u32),
    ) -> Self {
        let mut limited = Command::new("prlimit");
        limited.arg(format!("--nofile={soft}:{hard}"));
        limited.arg(env!("CARGO_BIN_EXE_sepal"));
        Self::start_by(with_data(limited, data), model, &[])
    }

    fn start_by(mut command: Command, model: &ModelStub, env: &[(&str, &str)]) -> Self {
        let process = command
            .env("SPL_HTTP_PORT", "0")
            .env("LLM_PROVIDER", "openai-compatible")
            .env("OPENAI_BASE_URL", model.base_url())
            .env("SPL_LLM_MODEL", "stub")
            .envs(env.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // From here on the process ends with the value, also if it says no address.
        let mut server = Self {
            process,
            address: ([127, 0, 0, 1], 0).into(),
        };
        let mut lines = BufReader::new(server.process.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let address = first
            .rsplit("http://")
            .next()
            .unwrap()
            .replace("localhost", "127.0.0.1");
        server.address = address.parse().unwrap();
        server
    }

    /// Of its process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// `kill -9`: no farewell of any kind.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Asks it to end in order, and waits until it has.
    pub(crate) fn stop(mut self) {
        kill_process(Pid::from_child(&self.process), Signal::TERM).unwrap();
        self.process.wait().unwrap();
    }

    /// Stops its clock: connections stand, nothing is answered.
    pub(crate) fn freeze(&self) {
        kill_process(Pid::from_child(&self.process), Signal::STOP).unwrap();
    }

    /// Lets it go on.
    pub(crate) fn thaw(&self) {
        kill_process(Pid::from_child(&self.process), Signal::CONT).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Already dead after `kill`.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The program with an empty environment but for its data.
pub(crate) fn sepal(data: &Path) -> Command {
    with_data(Command::new(env!("CARGO_BIN_EXE_sepal")), data)
}

fn with_data(mut command: Command, data: &Path) -> Command {
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command
        .env("SPL_DATA_DIR", data)
        .env("SPL_HTTP_HOST", "127.0.0.1");
    command.current_dir(data.parent().unwrap());
    command
}

/// A member with a key, made by the command line beside the server.
pub(crate) fn person(data: &Path, env: &[(&str, &str)]) -> Person {
    admin(data, env, &["tenant", "add", "acme"]);
    colleague(data, env, "ana")
}

fn admin(data: &Path, env: &[(&str, &str)], args: &[&str]) -> String {
    let mut command = sepal(data);
    command.envs(env.iter().copied());
    let output = command.arg("admin").args(args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Another person of the tenant that [`person`] made.
pub(crate) fn colleague(data: &Path, env: &[(&str, &str)], name: &str) -> Person {
    colleague_with(data, env, name, "member")
}

/// The same with a role.
pub(crate) fn colleague_with(data: &Path, env: &[(&str, &str)], name: &str, role: &str) -> Person {
    let admin = |args: &[&str]| admin(data, env, args);
    admin(&["user", "add", name, "--tenant", "acme", "--role", role]);
    let key = admin(&["key", "add", "test", "--user", name, "--tenant", "acme"]);
    Person {
        tenant: sepal::domain::TenantId::from_bits(0),
        key: key.lines().last().unwrap().to_owned(),
    }
}
