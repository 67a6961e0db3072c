//! Builds the order that an installer reads, and the launch of its sandbox.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::bundles::Dependencies;
use sepal_core::domain::{AllowedHosts, HostProblem, PackageRegistry, PackageSpec, SandboxId};
use sepal_net::{self as net, Egress, Guard, Reach};
use sepal_sandbox::host::PackageInstalling;
use sepal_sandbox::{Access, Launch, Packages, Program};

/// The installer of npm packages.
const NPM: &str = include_str!("installer/npm.js");
/// The installer of Python packages.
const PYPI: &str = include_str!("installer/pypi.py");
/// The host of the files of the public Python index.
const PYPI_FILES: &str = "files.pythonhosted.org";

/// The order, sent as one line of JSON.
#[derive(Serialize)]
struct Order<'o> {
    /// The package whose program is started; `None` for a bundle, whose entry names the command.
    name: Option<&'o str>,
    version: Option<&'o str>,
    extras: &'o [String],
    with: &'o [String],
    program: Option<&'o str>,
    scripts: bool,
    lock: Option<&'o str>,
    /// `NAME==VERSION` constraints: the version that is used if the package is installed at all.
    constraints: &'o [String],
    /// The size in bytes of the tar archive that follows this line.
    bundle: Option<u64>,
    registry: &'o str,
    authorities: String,
}

impl Order<'_> {
    fn line(&self) -> String {
        // Strings and lists always serialize to JSON.
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}

/// Returns the order to install a package: exactly `version` if it is known, and exactly the packages of
/// `pins` if there are any.
pub(super) fn order(
    spec: &PackageSpec,
    version: Option<&str>,
    pins: Option<&str>,
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

/// Returns the order to install the Python packages that a bundle of that version depends on, and to unpack
/// its own files, a tar archive of `bytes` bytes, beside them.
pub(super) fn of_bundle(
    spec: &PackageSpec,
    version: &str,
    dependencies: &Dependencies,
    bytes: u64,
    pins: Option<&str>,
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

/// Returns the address of the registry of that kind.
pub(super) fn registry(kind: PackageRegistry, settings: &PackageInstalling) -> &str {
    match kind {
        PackageRegistry::Npm => &settings.npm_registry,
        PackageRegistry::Pypi => &settings.pypi_index,
        PackageRegistry::Bundle => "",
    }
}

/// Returns the hosts that an installation may reach: the registry, its file host, and those of the settings.
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

/// Returns the launch of an installation's sandbox: its own workspace to write to, no secrets, and network
/// access to the registry alone.
pub(super) fn launch(
    kind: PackageRegistry,
    whose: (&str, &SandboxId),
    settings: &PackageInstalling,
    guard: &Guard,
) -> Result<Launch, HostProblem> {
    let hosts = hosts(kind, settings);
    let hosts = AllowedHosts::parse(&hosts).map_err(|(_, problem)| problem)?;
    let words = match kind {
        PackageRegistry::Npm => ["node", "-e", NPM],
        PackageRegistry::Pypi => ["python3", "-c", PYPI],
        // A bundle contains everything it needs.
        PackageRegistry::Bundle => return Ok(sealed(whose, Vec::new(), settings)),
    };
    let launch = sealed(whose, words.map(str::to_owned).to_vec(), settings);
    Ok(Launch {
        egress: Some(Egress::new(hosts, Reach::Private, guard.clone())),
        ..launch
    })
}

/// Returns the launch of such a sandbox without network access, for content that needs no download.
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
    use sepal_core::domain::PackageRegistry;
    use sepal_sandbox::Bounds;
    use sepal_sandbox::host::PackageInstalling;

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
