//! A Docker engine of one test's own, for tests that stop it.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::docker;

/// Longer than an engine takes to start on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// A private engine with the image of the sandboxes.
pub(crate) struct PrivateEngine {
    folder: TempDir,
    process: Option<Child>,
}

impl PrivateEngine {
    pub(crate) fn start() -> Self {
        let mut engine = Self {
            folder: tempfile::tempdir().unwrap(),
            process: None,
        };
        engine.go_on();
        let copy = format!(
            "docker -H {} save {image} | docker -H {} load",
            docker::address(),
            engine.address(),
            image = docker::image(),
        );
        let copied = Command::new("bash").args(["-c", &copy]).output().unwrap();
        assert!(copied.status.success(), "{copied:?}");
        engine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn address(&self) -> String {
        format!("unix://{}", self.path("docker.sock").display())
    }

    /// Starts it, again if it was stopped; its containers and volumes are kept.
    pub(crate) fn go_on(&mut self) {
        let config = self.path("daemon.json");
        std::fs::write(&config, "{}").unwrap();
        let log = std::fs::File::create(self.path("log")).unwrap();
        let process = Command::new("setpriv")
            .args(["--pdeathsig", "TERM", "dockerd", "--bridge=none"])
            .args(["--iptables=false", "--ip6tables=false", "--config-file"])
            .arg(config)
            .args(["--host", &self.address(), "--data-root"])
            .arg(self.path("data"))
            .arg("--exec-root")
            .arg(self.path("exec"))
            .arg("--pidfile")
            .arg(self.path("pid"))
            .stdin(Stdio::null())
            .stderr(log.try_clone().unwrap())
            .stdout(log)
            .spawn()
            .unwrap();
        self.process = Some(process);
        let began = Instant::now();
        while !docker::docker(&self.address(), &["version"])
            .status
            .success()
        {
            let log = std::fs::read_to_string(self.path("log")).unwrap();
            assert!(
                began.elapsed() < PATIENCE,
                "the engine did not start: {log}"
            );
        }
    }

    /// Stops it in order, which ends its containers.
    pub(crate) fn stop(&mut self) {
        let Some(mut process) = self.process.take() else {
            return;
        };
        let id = process.id().to_string();
        let told = Command::new("kill").args(["-TERM", &id]).status();
        assert!(told.unwrap().success());
        process.wait().unwrap();
    }
}

impl Drop for PrivateEngine {
    fn drop(&mut self) {
        if self.process.is_some() {
            let all = docker::docker(&self.address(), &["ps", "--all", "--quiet"]);
            let all = String::from_utf8_lossy(&all.stdout).into_owned();
            for container in all.split_whitespace() {
                docker::docker(&self.address(), &["rm", "--force", container]);
            }
        }
        self.stop();
    }
}
