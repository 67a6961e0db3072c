//! The entry of one server of the registry, from any source.

use std::collections::BTreeMap;
use std::sync::Arc;

use sepal_core::domain::{
    AllowedHosts, BUNDLED_SERVER, Digest, InstalledPackage, McpNetwork, McpServerConfig,
    McpTransport, McpWorkspace, RunsIn, RunsInKind, Scope, TenantId, UserId,
};
use sepal_mcp::config::{as_image, package_of};
use sepal_sandbox::Image;

/// The name of the bundled server, which runs in every sandbox.
pub const BUNDLED: &str = BUNDLED_SERVER;

/// The place where an entry is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The program itself.
    Bundled,
    /// The operator's settings; read-only.
    Settings,
    /// `mcp-config.json`.
    Installation,
    /// The records of a tenant.
    Tenant,
    /// The records of a tenant, for the person who owns the entry.
    Person,
}

impl Source {
    /// Returns true if an operator wrote the entry. Servers of other entries reach no private address and get
    /// no more resources than the installation's limits.
    pub fn is_of_operators(self) -> bool {
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
    /// The server's name, unique for everybody who sees it.
    pub name: String,
    /// The place where the entry is defined.
    pub source: Source,
    pub scope: Scope,
    /// The owner of a personal server.
    pub owner: Option<UserId>,
    /// The configuration as written, with its references.
    pub config: McpServerConfig,
    /// The epoch of its secrets, so that a connection with old secrets is not reused.
    pub epoch: u64,
    /// The installed package that it starts.
    pub package: Option<Arc<InstalledPackage>>,
    /// Hosts of `network` that the server may not reach, because its owner may not open them.
    pub withheld: Vec<String>,
    /// True for a trial, which reads no environment and no stored secret.
    pub is_trial: bool,
}

impl ServerEntry {
    /// The entry of the bundled server.
    pub fn bundled(network: &McpNetwork) -> Self {
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

    /// Returns the tenant that owns the entry; `None` for the installation.
    pub fn tenant(&self) -> Option<&TenantId> {
        match &self.scope {
            Scope::Installation => None,
            Scope::Tenant(tenant) => Some(tenant),
        }
    }

    /// Returns its transport; `docker run …` counts as an image.
    pub fn transport(&self) -> McpTransport {
        as_image(&self.config).map_or(self.config.transport(), |config| config.transport())
    }

    /// Returns the image from which its sandbox starts; `None` for a remote server.
    pub fn image(&self) -> Option<Image> {
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

    /// Returns true if it starts a package that is not installed yet.
    pub fn is_installing(&self) -> bool {
        self.package.is_none() && package_of(&self.config).is_ok_and(|it| it.is_some())
    }

    /// Returns true if the server is remote.
    pub fn is_remote(&self) -> bool {
        matches!(
            self.config.transport(),
            McpTransport::Http | McpTransport::Sse
        )
    }

    /// Returns true if it runs in a sandbox of its own without access to the workspace.
    pub fn is_without_workspace(&self) -> bool {
        let is_ours = self.source == Source::Bundled;
        !is_ours && !self.is_remote() && self.config.workspace == McpWorkspace::None
    }

    /// Returns where its calls run, for people.
    pub fn runs_in(&self) -> RunsIn {
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

    /// Returns the hosts that it may reach from its sandbox: none if the list is invalid, which the check of
    /// the entry reports.
    pub fn allowed_hosts(&self) -> AllowedHosts {
        AllowedHosts::parse(self.reached_hosts()).unwrap_or_default()
    }

    /// Returns the hosts that it names, without the withheld ones.
    fn reached_hosts(&self) -> Vec<String> {
        let hosts = self.config.network.as_ref();
        let hosts = hosts.map_or(&[][..], McpNetwork::hosts).iter();
        let reached = hosts.filter(|host| !self.withheld.contains(host));
        reached.cloned().collect()
    }

    /// Returns the host of a remote server, without the rest of the address, which may contain a key.
    pub fn host(&self) -> Option<String> {
        let url = url::Url::parse(self.config.url.as_deref()?).ok()?;
        url.host_str().map(ToOwned::to_owned)
    }

    /// Returns the key under which its definitions are stored: a digest of everything that decides what it
    /// offers. Entries of two tenants never share a key, even if they are equal.
    pub fn definitions_key(&self, image: &str) -> Digest {
        // A remote server does not depend on the image.
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
            // The package's content covers it.
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
        // The package counts by its content, so another version is another server.
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

    /// Returns true if a connection that was made for this entry is still valid for the other.
    pub fn connects_like(&self, other: &Self) -> bool {
        let is_same =
            (&self.scope, &self.config, self.epoch) == (&other.scope, &other.config, other.epoch);
        is_same && self.package == other.package && self.withheld == other.withheld
    }

    /// A digest that changes when existing connections are no longer valid.
    pub fn fingerprint(&self) -> Digest {
        Digest::of_json(&serde_json::json!({
            "scope": self.scope.as_str(), "config": self.config, "epoch": self.epoch,
            "withheld": self.withheld,
            "package": self.package.as_ref().map(|it| it.content.as_str()),
        }))
    }
}

/// The configuration of the bundled server, without its network.
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
