//! Reads the progress that an installer reports on stdout: one line of JSON for each step.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use sepal_core::domain::{Digest, InstallProblem, InstallState, InstalledPackage, PackageSpec};

/// A step of an installer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Told {
    /// The next phase begins.
    Phase(InstallState),
    /// The runtime's version, in its own words.
    Runtime(String),
    /// The lock text of the wanted packages, each with its version and hash. Nothing is installed yet.
    Resolved(String),
    /// The installation is finished.
    Done(Done),
    /// The installation failed; the reason as far as the installer knows it.
    Failed {
        problem: Option<InstallProblem>,
        text: String,
    },
}

/// The installer's final report.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Done {
    version: String,
    /// The lock text with which the same packages are installed again.
    pub(super) lock: String,
    /// Each package with its version and hash.
    pins: Vec<Value>,
    program: Vec<String>,
    environment: BTreeMap<String, String>,
    skipped_scripts: Vec<String>,
}

/// Reads a line; `None` if it is not a step.
pub(super) fn read(line: &str) -> Option<Told> {
    serde_json::from_str(line).ok()
}

impl Done {
    /// The report of an unpacked bundle, whose entry names the command.
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

    /// Adds the bundle to the report of the packages that were installed for it. The bundle's entry names the
    /// command.
    pub(super) fn beside_bundle(mut self, sha256: &str) -> Self {
        self.pins.insert(0, json!(sha256));
        self
    }
}

/// A finished installation: the installer's report, and the hash of the files.
#[derive(Debug)]
pub(super) struct Installed {
    pub(super) done: Done,
    /// The SHA-256 over all files, computed in another sandbox, because the installer may have run code of
    /// packages.
    pub(super) files: String,
}

impl Installed {
    /// Returns the installed package as it is stored and shown.
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
    use sepal_core::domain::{InstallProblem, InstallState};

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
