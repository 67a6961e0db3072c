//! What an installation is told, and the sandbox that it runs in.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::domain::{AllowedHosts, HostProblem, PackageRegistry, PackageSpec, SandboxId};
use crate::net::{self, Egress, Guard, Reach};
use crate::sandbox::host::PackageInstalling;
use crate::sandbox::{Access, Launch, Packages, Program};
use crate::servers::bundles::Dependencies;

/// Installs packages of npm.
const NPM: &str = include_str!("installer/npm.js");
/// Installs packages of Python.
const PYPI: &str = include_str!("installer/pypi.py");
/// Where the public index keeps its files.
const PYPI_FILES: &str = "files.pythonhosted.org";

/// One line of JSON.
#[derive(Serialize)]
struct Order<'o> {
    /// The package whose program is started; `None` for a bundle, whose entry says what is.
    name: Option<&'o str>,
    version: Option<&'o str>,
    extras: &'o [String],
    with: &'o [String],
    program: Option<&'o str>,
    scripts: bool,
    lock: Option<&'o str>,
    /// `NAME==VERSION` of what is taken in that version, if it is taken at all.
    constraints: &'o [String],
    /// Bytes of the tar archive that follows this line.
    bundle: Option<u64>,
    registry: &'o str,
    authorities: String,
}

impl Order<'_> {
    fn line(&self) -> String {
        // Texts and lists always have a JSON form.
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}

/// The order to install what is asked for: exactly `version` where it is known, and exactly what
/// `pins` say where there are some.
pub(super) fn order(
    spec: &PackageSpec,
    (version, pins): (Option<&str>, Option<&str>),
    settings: &PackageInstalling,
) -> String {
    let order = Order {
        name: Some(&spec.name),
        version: version.or(spec.version.as_deref()),
        extras: &spec.extras,
        with: &spec.with,
        program: spec.program.as_deref(),
        scripts: spec.allow_scripts,
        lock: pins,
        constraints: &[],
        bundle: None,
        registry: registry(spec.registry, settings),
        authorities: net::authorities_pem(),
    };
    order.line()
}

/// The order to install what a bundle of that version asks the Python index for, and to unpack its own files,
/// so many bytes, beside it.
pub(super) fn of_bundle(
    spec: &PackageSpec,
    (version, dependencies): (&str, &Dependencies),
    (bytes, pins): (u64, Option<&str>),
    settings: &PackageInstalling,
) -> String {
    let order = Order {
        name: None,
        version: Some(version),
        extras: &[],
        with: &dependencies.wanted,
        program: None,
        scripts: spec.allow_scripts,
        lock: pins,
        constraints: &dependencies.locked,
        bundle: Some(bytes),
        registry: registry(PackageRegistry::Pypi, settings),
        authorities: net::authorities_pem(),
    };
    order.line()
}

/// Where packages of that kind come from.
pub(super) fn registry(kind: PackageRegistry, settings: &PackageInstalling) -> &str {
    match kind {
        PackageRegistry::Npm => &settings.npm_registry,
        PackageRegistry::Pypi => &settings.pypi_index,
        PackageRegistry::Bundle => "",
    }
}

/// What an installation may reach: the registry's host, and where that keeps its files.
pub(super) fn hosts(kind: PackageRegistry, settings: &PackageInstalling) -> Vec<String> {
    let address = url::Url::parse(registry(kind, settings)).ok();
    let host = address.as_ref().and_then(|address| {
        let host = address.host_str()?;
        let port = address.port().map(|port| format!(":{port}"));
        Some(format!("{host}{}", port.unwrap_or_default()))
    });
    let is_public = host.as_deref() == Some("pypi.org");
    let files = is_public.then(|| PYPI_FILES.to_owned());
    let more = settings.more_hosts.iter().cloned();
    host.into_iter().chain(files).chain(more).collect()
}

/// The sandbox of an installation: its own workspace to write to, no secret, and of the network
/// nothing but the registry.
pub(super) fn launch(
    kind: PackageRegistry,
    whose: (&str, &SandboxId),
    (settings, guard): (&PackageInstalling, &Guard),
) -> Result<Launch, HostProblem> {
    let hosts = hosts(kind, settings);
    let hosts = AllowedHosts::parse(&hosts).map_err(|(_, problem)| problem)?;
    let words = match kind {
        PackageRegistry::Npm => ["node", "-e", NPM],
        PackageRegistry::Pypi => ["python3", "-c", PYPI],
        // A bundle brings everything along.
        PackageRegistry::Bundle => return Ok(sealed(whose, Vec::new(), settings)),
    };
    let launch = sealed(whose, words.map(str::to_owned).to_vec(), settings);
    Ok(Launch {
        egress: Some(Egress::new(hosts, Reach::Private, guard.clone())),
        ..launch
    })
}

/// The same without a way out, for what is here already.
pub(super) fn sealed(
    (server, sandbox): (&str, &SandboxId),
    command: Vec<String>,
    settings: &PackageInstalling,
) -> Launch {
    Launch {
        sandbox: sandbox.clone(),
        packages: Packages::Installing,
        holder: None,
        server: server.to_owned(),
        program: Program::Command(command),
        environment: BTreeMap::new(),
        workspace: Access::ReadWrite,
        egress: None,
        bounds: settings.bounds,
    }
}

#[cfg(test)]
mod tests {
    use super::hosts;
    use crate::domain::PackageRegistry;
    use crate::sandbox::Bounds;
    use crate::sandbox::host::PackageInstalling;

    #[test]
    fn only_the_registry_and_where_it_keeps_its_files_is_reached() {
        let settings = |npm: &str, pypi: &str, more: &[&str]| PackageInstalling {
            is_on: true,
            npm_registry: npm.to_owned(),
            pypi_index: pypi.to_owned(),
            bundle_bytes: 1 << 20,
            more_hosts: more.iter().copied().map(str::to_owned).collect(),
            bounds: Bounds::default(),
        };
        let public = settings("https://registry.npmjs.org", "https://pypi.org/simple", &[]);
        assert_eq!(hosts(PackageRegistry::Npm, &public), ["registry.npmjs.org"]);
        let both = ["pypi.org", "files.pythonhosted.org"];
        assert_eq!(hosts(PackageRegistry::Pypi, &public), both);
        let own = settings(
            "http://npm.test:4873",
            "https://pip.test/simple",
            &["files.test"],
        );
        assert_eq!(
            hosts(PackageRegistry::Npm, &own),
            ["npm.test:4873", "files.test"]
        );
        assert_eq!(
            hosts(PackageRegistry::Pypi, &own),
            ["pip.test", "files.test"]
        );
    }
}
