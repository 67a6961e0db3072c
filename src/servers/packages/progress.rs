//! What an installer tells on stdout: one line of JSON for each step.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::domain::{Digest, InstallProblem, InstallState, InstalledPackage, PackageSpec};

/// One step.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Told {
    /// The next phase begins.
    Phase(InstallState),
    /// What is there to run it with, as that says its own version.
    Runtime(String),
    /// Which packages are wanted, each with its version and hash. Nothing is installed yet.
    Resolved(String),
    /// It is done.
    Done(Done),
    /// It failed, and this is why, as far as the installer itself knows.
    Failed {
        problem: Option<InstallProblem>,
        text: String,
    },
}

/// What was installed.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Done {
    version: String,
    /// By this the same is installed again.
    pub(super) lock: String,
    /// Each package with its version and hash.
    pins: Vec<Value>,
    program: Vec<String>,
    environment: BTreeMap<String, String>,
    skipped_scripts: Vec<String>,
}

/// Reads a line; `None` for what is no step.
pub(super) fn read(line: &str) -> Option<Told> {
    serde_json::from_str(line).ok()
}

impl Done {
    /// A bundle that was unpacked. Its entry says what is started.
    pub(super) fn of_bundle(version: &str, sha256: &str) -> Self {
        Self {
            version: version.to_owned(),
            lock: sha256.to_owned(),
            pins: vec![json!(sha256)],
            program: Vec::new(),
            environment: BTreeMap::new(),
            skipped_scripts: Vec::new(),
        }
    }

    /// The same with the bundle for which it was installed, whose entry says what is started.
    pub(super) fn beside_bundle(mut self, sha256: &str) -> Self {
        self.pins.insert(0, json!(sha256));
        self
    }
}

/// A finished installation: the installer's report, and the hash of the files.
#[derive(Debug)]
pub(super) struct Installed {
    pub(super) done: Done,
    /// SHA-256 over every file, which another sandbox took: the installer may have run code of packages.
    pub(super) files: String,
}

impl Installed {
    /// The installation as everybody sees it.
    pub(super) fn package(&self, spec: &PackageSpec) -> InstalledPackage {
        let Self { done, files } = self;
        let content = Digest::of_json(&json!({
            "registry": spec.registry, "pins": done.pins, "scripts": spec.allow_scripts,
            "program": done.program, "environment": done.environment, "files": files,
        }));
        InstalledPackage {
            version: done.version.clone(),
            content,
            packages: u32::try_from(done.pins.len()).unwrap_or(u32::MAX),
            program: done.program.clone(),
            environment: done.environment.clone(),
            skipped_scripts: done.skipped_scripts.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Told, read};
    use crate::domain::{InstallProblem, InstallState};

    #[test]
    fn steps_are_read_and_anything_else_is_not() {
        let phase = read(r#"{"phase":"downloading"}"#);
        assert!(matches!(
            phase,
            Some(Told::Phase(InstallState::Downloading))
        ));
        let failed = read(r#"{"failed":{"problem":"no_program","text":"none"}}"#);
        let Some(Told::Failed { problem, text }) = failed else {
            panic!("a failure");
        };
        assert_eq!(problem, Some(InstallProblem::NoProgram));
        assert_eq!(text, "none");
        for line in ["", "npm notice", "{}", r#"{"phase":"flying"}"#] {
            assert!(read(line).is_none(), "{line}");
        }
    }
}
