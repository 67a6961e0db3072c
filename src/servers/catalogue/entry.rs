//! One server of the registry, wherever it was written down.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::domain::{
    AllowedHosts, BUNDLED_SERVER, Digest, InstalledPackage, McpNetwork, McpServerConfig,
    McpTransport, McpWorkspace, RunsIn, RunsInKind, Scope, TenantId, UserId,
};
use crate::mcp::config::{as_image, package_of};
use crate::sandbox::Image;

/// The name of the server that runs in every sandbox.
pub(crate) const BUNDLED: &str = BUNDLED_SERVER;

/// Where an entry is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// It comes with the program.
    Bundled,
    /// The operator's settings; read-only.
    Settings,
    /// `mcp-config.json`.
    Installation,
    /// The records of a tenant.
    Tenant,
    /// The records of a tenant, for one person of it alone.
    Person,
}

impl Source {
    /// Whether operators wrote it; others reach nothing private and get no more than the installation gives.
    pub(crate) fn is_of_operators(self) -> bool {
        match self {
            Self::Bundled | Self::Settings | Self::Installation => true,
            Self::Tenant | Self::Person => false,
        }
    }

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bundled => "bundled",
            Self::Settings => "settings",
            Self::Installation => "installation",
            Self::Tenant => "tenant",
            Self::Person => "person",
        }
    }
}

/// A server of the registry.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerEntry {
    /// Its name, unique for whoever sees it.
    pub name: String,
    /// Where it is written down.
    pub source: Source,
    pub scope: Scope,
    /// The person whose it is alone.
    pub owner: Option<UserId>,
    /// As it is written down, references and all.
    pub config: McpServerConfig,
    /// Counts the changes of its secrets, so that a connection with old ones is not used again.
    pub(crate) epoch: u64,
    /// What is installed of the package that it starts.
    pub(crate) package: Option<Arc<InstalledPackage>>,
    /// Hosts of `network` that it does not reach: its person may not open them.
    pub(crate) withheld: Vec<String>,
    /// Whether somebody only tries it: then it reads no environment and no kept secret.
    pub(crate) is_trial: bool,
}

impl ServerEntry {
    /// The server that runs in every sandbox.
    pub(crate) fn bundled(network: &McpNetwork) -> Self {
        Self {
            name: BUNDLED.to_owned(),
            source: Source::Bundled,
            scope: Scope::Installation,
            owner: None,
            config: McpServerConfig {
                network: (!network.hosts().is_empty()).then(|| network.clone()),
                ..bundled_config()
            },
            epoch: 0,
            package: None,
            withheld: Vec::new(),
            is_trial: false,
        }
    }

    /// The tenant that it belongs to alone.
    pub(crate) fn tenant(&self) -> Option<&TenantId> {
        match &self.scope {
            Scope::Installation => None,
            Scope::Tenant(tenant) => Some(tenant),
        }
    }

    /// How it is reached; `docker run …` counts as an image.
    pub fn transport(&self) -> McpTransport {
        as_image(&self.config).map_or(self.config.transport(), |config| config.transport())
    }

    /// What its place is started from; nothing of ours for one that runs elsewhere.
    pub(crate) fn image(&self) -> Option<Image> {
        if self.is_remote() {
            return None;
        }
        if self.package.is_some() {
            return Some(Image::Packages);
        }
        let config = as_image(&self.config).ok();
        let named = config.and_then(|config| config.container_image);
        Some(named.map_or(Image::Sandbox, Image::Named))
    }

    /// Whether it starts a package that is not installed yet.
    pub(crate) fn is_installing(&self) -> bool {
        self.package.is_none() && package_of(&self.config).is_ok_and(|it| it.is_some())
    }

    /// Whether it runs elsewhere.
    pub fn is_remote(&self) -> bool {
        matches!(
            self.config.transport(),
            McpTransport::Http | McpTransport::Sse
        )
    }

    /// Whether it runs here and sees nothing of the workspace.
    pub(crate) fn is_without_workspace(&self) -> bool {
        let is_ours = self.source == Source::Bundled;
        !is_ours && !self.is_remote() && self.config.workspace == McpWorkspace::None
    }

    /// Where its calls run, as people are told it.
    pub(crate) fn runs_in(&self) -> RunsIn {
        let hosts = self.reached_hosts();
        match (self.source, self.is_remote()) {
            (Source::Bundled, _) => RunsIn {
                kind: RunsInKind::Sandbox,
                hosts,
            },
            (_, true) => RunsIn {
                kind: RunsInKind::Remote,
                hosts: self.host().into_iter().collect(),
            },
            (_, false) => RunsIn {
                kind: RunsInKind::Container,
                hosts,
            },
        }
    }

    /// The hosts that it may reach from where it runs here. An entry that cannot be read, which its
    /// check has said, allows nothing.
    pub(crate) fn allowed_hosts(&self) -> AllowedHosts {
        AllowedHosts::parse(self.reached_hosts()).unwrap_or_default()
    }

    /// The hosts that it names, but for those that its person may not open.
    fn reached_hosts(&self) -> Vec<String> {
        let hosts = self.config.network.as_ref();
        let hosts = hosts.map_or(&[][..], McpNetwork::hosts).iter();
        let reached = hosts.filter(|host| !self.withheld.contains(host));
        reached.cloned().collect()
    }

    /// The host of a remote server; its name only, as an address may hold a key.
    pub fn host(&self) -> Option<String> {
        let url = url::Url::parse(self.config.url.as_deref()?).ok()?;
        url.host_str().map(ToOwned::to_owned)
    }

    /// What its definitions are kept under: everything that decides what it offers. Entries of two
    /// tenants never share one, even when they read the same.
    pub(crate) fn definitions_key(&self, image: &str) -> Digest {
        // What runs elsewhere is the same whatever seals tools in here.
        let image = (!self.is_remote()).then_some(image);
        let McpServerConfig {
            transport: _,
            enabled: _,
            description: _,
            tool_prefix: _,
            include_tools: _,
            exclude_tools: _,
            timeout: _,
            trusted: _,
            sampling,
            command,
            args,
            allow_scripts: _,
            // The package stands for it.
            bundle: _,
            env,
            cwd,
            container_image,
            container_env,
            container_memory: _,
            container_cpu: _,
            network,
            secret_hosts: _,
            workspace,
            url,
            headers,
            oauth: _,
        } = &self.config;
        // The package by its content: another version is another server.
        let package = self.package.as_ref().map(|it| it.content.as_str());
        let mut key = serde_json::json!({
            "scope": self.scope.as_str(), "name": self.name, "image": image,
            "transport": self.config.transport(), "command": command, "args": args, "env": env,
            "cwd": cwd, "containerImage": container_image, "containerEnv": container_env,
            "network": network, "workspace": workspace, "url": url, "headers": headers,
        });
        if let (Some(package), Some(key)) = (package, key.as_object_mut()) {
            key.insert("package".to_owned(), package.into());
        }
        // Servers list tools that need a model only to clients that have one.
        if let (true, Some(key)) = (*sampling, key.as_object_mut()) {
            key.insert("sampling".to_owned(), true.into());
        }
        Digest::of_json(&key)
    }

    /// Whether a connection that was made for this one is right for the other.
    pub(crate) fn connects_like(&self, other: &Self) -> bool {
        let is_same =
            (&self.scope, &self.config, self.epoch) == (&other.scope, &other.config, other.epoch);
        is_same && self.package == other.package && self.withheld == other.withheld
    }

    /// Changes whenever a running connection is not the right one any more.
    pub(crate) fn fingerprint(&self) -> Digest {
        Digest::of_json(&serde_json::json!({
            "scope": self.scope.as_str(), "config": self.config, "epoch": self.epoch,
            "withheld": self.withheld,
            "package": self.package.as_ref().map(|it| it.content.as_str()),
        }))
    }
}

/// An entry in which nothing is set.
fn bundled_config() -> McpServerConfig {
    McpServerConfig {
        transport: None,
        enabled: true,
        description: Some("Files and commands in the session's sandbox.".to_owned()),
        tool_prefix: None,
        include_tools: None,
        exclude_tools: None,
        timeout: None,
        trusted: true,
        sampling: false,
        command: None,
        args: Vec::new(),
        allow_scripts: false,
        bundle: None,
        env: BTreeMap::new(),
        cwd: None,
        container_image: None,
        container_env: BTreeMap::new(),
        container_memory: None,
        container_cpu: None,
        network: None,
        secret_hosts: BTreeMap::new(),
        workspace: McpWorkspace::Rw,
        url: None,
        headers: BTreeMap::new(),
        oauth: None,
    }
}
