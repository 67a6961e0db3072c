//! The registry: holds all server entries, builds the tool offering of each tenant, and counts secret epochs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, broadcast};
use tokio_util::task::TaskTracker;

use super::authorization::{ClientGrants, Grants};
use super::catalogue::definitions::{Accepted, Definitions};
use super::catalogue::entry::{BUNDLED, ServerEntry, Source};
use super::catalogue::installations::Installations;
use super::catalogue::owners::Owners;
use super::catalogue::tool_offering::{
    Ingredient, Ingredients, KnownOffering, OfferingKey, ToolOffering, ToolOfferings,
};
use super::connections::logs::Logs;
use super::connections::opening::launch::Outside;
use super::connections::opening::{Clients, Opener};
use super::connections::running::RunningServers;
use super::health::HealthRecords;
use super::health::probe_limits::ProbeLimits;
use super::mcp_registry::McpRegistry;
use super::news::{News, NewsSender};
use super::permission::{may_administer, withheld_hosts};

use sepal_core::domain::{
    AddingRoles, AllowedHosts, Caller, McpServerConfig, Right, Scope, Shared, TenantId, Tool,
    UserId,
};
use sepal_core::session::Rules;
use sepal_jobs::Pool;
use sepal_llm::RetryConfig;
use sepal_mcp::config::{ConfigFile, FileState, package_of};
use sepal_net::Guard;
use sepal_sandbox::host::SandboxHost;
use sepal_store::clock::now;
use sepal_store::records::McpServerRow;
use sepal_store::{self as store, Records, Sealer};

/// The most offerings that are built at the same time: building one compiles the schemas of all its tools.
static VIEWS: LazyLock<Pool> = LazyLock::new(|| Pool::new("lists of tools", 4));

/// The time for which a cached offering is used before the records are read again, because other gateways may
/// have changed them.
const VIEW_AGE: Duration = Duration::from_secs(5);

/// The capacity of the channel of rule changes; a receiver that falls further behind reviews the sessions of
/// all tenants.
const RULE_CHANGES: usize = 64;

/// The dependencies of the registry.
pub struct ServersParts {
    /// The operator's entries (D18).
    pub settings: BTreeMap<String, McpServerConfig>,
    /// The tools of the bundled server, which runs in every sandbox.
    pub bundled: Arc<[Tool]>,
    /// `mcp-config.json`.
    pub file: ConfigFile,
    /// The store with the entries, tool settings and definitions of tenants.
    pub records: Records,
    pub sealer: Sealer,
    /// The host that runs sandboxed servers.
    pub place: Arc<SandboxHost>,
    /// The HTTP clients for remote servers.
    pub clients: Clients,
    /// Decides which addresses tenants' entries may name.
    pub guard: Guard,
    /// The values of `${VAR}` references in `mcp-config.json`.
    pub environment: BTreeMap<String, String>,
    /// The rules that apply to all tenants.
    pub rules: Arc<Rules>,
    /// The backoff between attempts to connect.
    pub retry: RetryConfig,
    /// Looks up published servers.
    pub published: McpRegistry,
    /// The roles that may add servers.
    pub roles: AddingRoles,
}

/// The registry. Cheap to clone.
#[derive(Clone)]
pub struct Servers(pub(crate) Shared<Inner>);

pub(crate) struct Inner {
    pub settings: BTreeMap<String, McpServerConfig>,
    pub bundled: Arc<[Tool]>,
    pub file: ConfigFile,
    pub records: Records,
    pub sealer: Sealer,
    pub place: Arc<SandboxHost>,
    pub rules: Arc<Rules>,
    pub definitions: Definitions,
    /// The state of the installations of servers' packages.
    pub installations: Arc<Installations>,
    pub health: HealthRecords,
    pub logs: Arc<Logs>,
    pub opener: Opener,
    pub running: RunningServers,
    retry: RetryConfig,
    published: McpRegistry,
    pub roles: AddingRoles,
    pub news: Arc<NewsSender>,
    /// Sends the tenants whose rules about tools have changed.
    pub rule_changes: broadcast::Sender<TenantId>,
    /// Never held across an await.
    offerings: Mutex<ToolOfferings>,
    /// The owners of servers that belong to one person.
    pub owners: Owners,
    /// The epoch of each server's secrets, by scope and server: it rises with each change.
    epochs: Mutex<HashMap<(Scope, String), u64>>,
    /// Limits the trials and restarts that run at the same time, so that they do not overload the machine.
    pub probe_limits: ProbeLimits,
    /// Serializes changes to the registry, so that what a change was checked against still holds when it is
    /// stored.
    pub changing: tokio::sync::Mutex<()>,
    /// Wakes the monitor when there may be servers to list.
    pub bell: Notify,
}

impl Servers {
    pub(crate) fn new(parts: ServersParts, tasks: TaskTracker) -> Self {
        let logs = Arc::<Logs>::default();
        let (records, place) = (parts.records.clone(), Arc::clone(&parts.place));
        let installations = Arc::new(Installations::new(records, place));
        let news = Arc::<NewsSender>::default();
        let grants = Grants {
            records: parts.records.clone(),
            sealer: parts.sealer.clone(),
            news: Arc::clone(&news),
            tasks: tasks.clone(),
        };
        let opener = Opener {
            installations: Arc::clone(&installations),
            place: Arc::clone(&parts.place),
            clients: parts.clients.clone(),
            environment: Arc::new(parts.environment),
            records: parts.records.clone(),
            sealer: parts.sealer.clone(),
            logs: Arc::clone(&logs),
            outside: Outside::new(parts.guard),
            tasks,
            grants,
            client_grants: ClientGrants::default(),
        };
        Self(Shared::new(Inner {
            settings: parts.settings,
            bundled: parts.bundled,
            file: parts.file,
            installations,
            definitions: Definitions::new(parts.records.clone()),
            records: parts.records,
            sealer: parts.sealer,
            place: parts.place,
            rules: parts.rules,
            health: HealthRecords::default(),
            logs,
            opener,
            running: RunningServers::default(),
            retry: parts.retry,
            published: parts.published,
            roles: parts.roles,
            news,
            rule_changes: broadcast::channel(RULE_CHANGES).0,
            offerings: Mutex::default(),
            owners: Owners::default(),
            epochs: Mutex::default(),
            probe_limits: ProbeLimits::default(),
            changing: tokio::sync::Mutex::default(),
            bell: Notify::new(),
        }))
    }

    /// Subscribes to the news about servers, for the sockets.
    pub fn news(&self) -> broadcast::Receiver<News> {
        self.0.news.listen()
    }

    /// The registries of published MCP servers.
    pub fn published(&self) -> &McpRegistry {
        &self.0.published
    }

    /// The problems of `mcp-config.json`, for operators.
    pub fn file_problems(&self) -> Vec<String> {
        self.0.file.state().problems.clone()
    }

    /// Returns the offering that a person's sessions are offered now.
    pub async fn offering(
        &self,
        (tenant, person): (&TenantId, &UserId),
    ) -> Result<Arc<ToolOffering>, store::Error> {
        let offering = self.offering_for(tenant, None).await?;
        let closed = closed_to(&offering, person);
        // Most people own no server, and all servers are open to them, so they share the tenant's offering.
        let owns = offering.ingredients.owners.contains(person);
        if !owns && closed.is_empty() {
            return Ok(offering);
        }
        self.known_offering((tenant.clone(), owns.then(|| person.clone()), closed))
            .await
    }

    /// Returns the offering with which somebody manages servers: for those who manage the servers of the
    /// tenant also those that are only open to members of groups.
    pub(crate) async fn offering_to_manage(
        &self,
        caller: &Caller,
    ) -> Result<Arc<ToolOffering>, store::Error> {
        let (tenant, person) = caller.whose();
        if !may_administer(caller) {
            return self.offering((tenant, person)).await;
        }
        let offering = self.offering_for(tenant, None).await?;
        if !offering.ingredients.owners.contains(person) {
            return Ok(offering);
        }
        self.offering_for(tenant, Some(person)).await
    }

    /// Returns the offering with all servers of a tenant; with `person`, the view that also includes that
    /// person's own servers.
    pub async fn offering_for(
        &self,
        tenant: &TenantId,
        person: Option<&UserId>,
    ) -> Result<Arc<ToolOffering>, store::Error> {
        self.known_offering((tenant.clone(), person.cloned(), BTreeSet::new()))
            .await
    }

    async fn known_offering(&self, whose: OfferingKey) -> Result<Arc<ToolOffering>, store::Error> {
        let (known, age) = {
            let offerings = self.offerings();
            (offerings.known.get(&whose).cloned(), offerings.age)
        };
        if let Some(known) = &known
            && known.read_at.is_some_and(|at| at.elapsed() < VIEW_AGE)
        {
            return Ok(Arc::clone(&known.offering));
        }
        // Boxed: this is called before each request and decision, but reads the database only now and then.
        Box::pin(self.read_offering(whose, known, age)).await
    }

    /// Reads an offering, and keeps it unless something changed since `age`.
    async fn read_offering(
        &self,
        whose: OfferingKey,
        known: Option<KnownOffering>,
        age: u64,
    ) -> Result<Arc<ToolOffering>, store::Error> {
        let (tenant, person) = (&whose.0, whose.1.as_ref());
        let begun = Instant::now();
        let ingredients = self.ingredients(tenant, person, &whose.2).await?;
        let offering = match known {
            Some(known) if known.offering.ingredients == ingredients => known.offering,
            Some(_) | None => {
                let (base, tenant) = (Arc::clone(&self.0.rules), tenant.clone());
                // Building an offering compiles each tool's schema, and servers may have very many tools.
                let made = VIEWS.run(move || {
                    let offering = ToolOffering::new(ingredients, &base);
                    offering.warn_of_cost(&tenant);
                    Arc::new(offering)
                });
                made.await.map_err(|_| store::Error::NoAnswer)?
            }
        };
        let mut offerings = self.offerings();
        if offerings.age == age {
            let known = KnownOffering {
                read_at: Some(begun),
                offering: Arc::clone(&offering),
            };
            offerings.known.insert(whose, known);
        }
        Ok(offering)
    }

    /// Returns the offering of a session whose tenant's offering was not read yet: the bundled tools alone.
    pub fn bare_offering(&self) -> Arc<ToolOffering> {
        let ingredients = Ingredients {
            naming: self.0.file.state().naming,
            servers: self.bundled().into_iter().collect(),
            rules: Vec::new(),
            owners: BTreeSet::new(),
            access: Arc::default(),
            closed: BTreeSet::new(),
        };
        self.offerings().bare(ingredients, &self.0.rules)
    }

    /// Drops all cached offerings, so that the next request reads everything again.
    pub fn stale(&self) {
        let mut offerings = self.offerings();
        offerings.known.clear();
        offerings.age += 1;
    }

    /// Makes the next request read the servers of a tenant again. What has not changed stays as it is.
    pub fn expire(&self, tenant: &TenantId) {
        let mut offerings = self.offerings();
        for ((of, ..), known) in &mut offerings.known {
            if of == tenant {
                known.read_at = None;
            }
        }
        offerings.age += 1;
    }

    fn offerings(&self) -> MutexGuard<'_, ToolOfferings> {
        self.0
            .offerings
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    async fn ingredients(
        &self,
        tenant: &TenantId,
        person: Option<&UserId>,
        closed: &BTreeSet<String>,
    ) -> Result<Ingredients, store::Error> {
        let settings = self.0.records.tool_settings().list(tenant).await?;
        self.0.installations.refresh().await?;
        let mut servers: Vec<Ingredient> = self.bundled().into_iter().collect();
        let (entries, owners) = self.entries(tenant, person).await?;
        for entry in entries {
            if is_of_groups(&entry) && closed.contains(&entry.name) {
                continue;
            }
            let key = entry.definitions_key(&self.0.place.image());
            let listed = self.0.definitions.get(&key).await?;
            let Accepted { tools, since } = match &listed {
                Some(listed) => {
                    let offered = (&**listed, now());
                    self.0
                        .definitions
                        .accepted(tenant, entry.name.as_str(), offered)
                        .await?
                }
                None => Accepted::default(),
            };
            servers.push(Ingredient {
                entry: Arc::new(entry),
                listed,
                accepted: tools,
                since,
                settings: Vec::new(),
            });
        }
        for server in &mut servers {
            let own = settings
                .iter()
                .filter(|it| it.tool.server == server.entry.name);
            server.settings = own.cloned().collect();
        }
        Ok(Ingredients {
            naming: self.0.file.state().naming,
            servers,
            rules: self.0.records.rules().list(tenant).await?,
            owners,
            access: Arc::new(self.0.records.group_access().of_tenant(tenant).await?),
            closed: closed.clone(),
        })
    }

    /// The hosts that people may allow the commands of their own sessions to reach.
    pub fn hosts_on_request(&self) -> &AllowedHosts {
        &self.0.place.network_on_request
    }

    /// Returns the bundled server; `None` without sandboxes.
    fn bundled(&self) -> Option<Ingredient> {
        self.0.place.is_on().then(|| Ingredient {
            entry: Arc::new(ServerEntry::bundled(&self.0.place.network)),
            listed: Some(Arc::clone(&self.0.bundled)),
            accepted: Arc::clone(&self.0.bundled),
            since: None,
            settings: Vec::new(),
        })
    }

    /// Returns the entries that everybody in a tenant sees, and those of `person`, without the bundled
    /// server: first the operator's, then the tenant's. Also returns the users who own a server. An entry of
    /// the installation hides a tenant's entry of the same name.
    async fn entries(
        &self,
        tenant: &TenantId,
        person: Option<&UserId>,
    ) -> Result<(Vec<ServerEntry>, BTreeSet<UserId>), store::Error> {
        let mut entries = self.installation_entries(&self.0.file.state());
        let mut owners = BTreeSet::new();
        for row in self.0.records.mcp_servers().list(tenant).await? {
            owners.extend(row.owner.clone());
            if row.owner.is_some() && row.owner.as_ref() != person {
                continue;
            }
            if row.name == BUNDLED || entries.iter().any(|entry| entry.name == row.name) {
                tracing::debug!(mcp.server = %row.name, tenant.id = %tenant,
                    "A tenant's server is hidden by one of the installation");
                continue;
            }
            entries.push(self.kept_entry(row).await?);
        }
        Ok((entries, owners))
    }

    /// Returns the entries of the installation and of every tenant.
    pub async fn all_entries(&self) -> Result<Vec<ServerEntry>, store::Error> {
        self.0.installations.refresh().await?;
        let mut entries = self.installation_entries(&self.0.file.state());
        for row in self.0.records.mcp_servers().all().await? {
            entries.push(self.kept_entry(row).await?);
        }
        Ok(entries)
    }

    /// Makes an entry of a record.
    pub(crate) async fn kept_entry(&self, row: McpServerRow) -> Result<ServerEntry, store::Error> {
        let config = row.open(&self.0.sealer);
        let withheld = self.withheld(&row, &config).await?;
        let scope = Scope::Tenant(row.tenant);
        let source = match row.owner {
            Some(_) => Source::Person,
            None => Source::Tenant,
        };
        let entry = self.entry(row.name, source, scope, config);
        self.0
            .owners
            .note(&entry.scope, &entry.name, row.owner.as_ref());
        Ok(ServerEntry {
            owner: row.owner,
            withheld,
            ..entry
        })
    }

    /// Returns the hosts that a person's own server names but may not reach now: the owner's role or the
    /// settings have changed since the owner named the hosts, or the hosts were not checked then.
    async fn withheld(
        &self,
        row: &McpServerRow,
        config: &McpServerConfig,
    ) -> Result<Vec<String>, store::Error> {
        let Some(owner) = &row.owner else {
            return Ok(Vec::new());
        };
        let withheld = withheld_hosts(config, self.hosts_on_request());
        if withheld.is_empty() {
            return Ok(withheld);
        }
        let person = self.0.records.users().find(&row.tenant, owner).await?;
        let custom = self.0.records.custom_roles();
        let custom = custom.rights_of(&row.tenant, owner).await?;
        let opens_any = person.is_some_and(|person| {
            let rights = person.user.built_in_rights().and(custom);
            !person.is_disabled && rights.has(Right::OpenAnyHost)
        });
        Ok(if opens_any { Vec::new() } else { withheld })
    }

    pub(crate) fn installation_entries(&self, file: &FileState) -> Vec<ServerEntry> {
        let settings = self.0.settings.iter();
        let settings = settings.map(|(name, config)| (name, config, Source::Settings));
        let own = file.servers.iter();
        let own = own.map(|(name, config)| (name, config, Source::Installation));
        let own = own.filter(|(name, ..)| !self.0.settings.contains_key(*name));
        let all = settings.chain(own).filter(|(name, ..)| *name != BUNDLED);
        let entry = |(name, config, source): (&String, &McpServerConfig, Source)| {
            self.entry(name.clone(), source, Scope::Installation, config.clone())
        };
        all.map(entry).collect()
    }

    pub(crate) fn entry(
        &self,
        name: String,
        source: Source,
        scope: Scope,
        config: McpServerConfig,
    ) -> ServerEntry {
        let epochs = self.0.epochs.lock().unwrap_or_else(PoisonError::into_inner);
        let epoch = epochs.get(&(scope.clone(), name.clone()));
        let command = package_of(&config).ok().flatten();
        let installed = &self.0.installations;
        let package = command.and_then(|it| installed.package(&scope, &name, &it.spec));
        ServerEntry {
            package,
            epoch: epoch.copied().unwrap_or_default(),
            name,
            source,
            scope,
            owner: None,
            config,
            withheld: Vec::new(),
            is_trial: false,
        }
    }

    /// Begins a new epoch of a server's secrets: connections that were made with the old secrets are not
    /// reused.
    pub fn new_epoch(&self, scope: &Scope, name: &str) {
        let mut epochs = self.0.epochs.lock().unwrap_or_else(PoisonError::into_inner);
        *epochs.entry((scope.clone(), name.to_owned())).or_default() += 1;
    }

    pub(crate) fn retry(&self) -> RetryConfig {
        self.0.retry
    }
}

/// Returns true if groups can keep the server for their members: it is neither in every sandbox nor of one
/// person.
pub(crate) fn is_of_groups(entry: &ServerEntry) -> bool {
    entry.owner.is_none() && entry.source != Source::Bundled
}

/// The servers of an offering that are not open to a person.
fn closed_to(offering: &ToolOffering, person: &UserId) -> BTreeSet<String> {
    let mut closed = offering.ingredients.access.closed_servers(person);
    if !closed.is_empty() {
        closed.retain(|name| {
            let server = offering.server(name);
            server.is_some_and(|server| is_of_groups(&server.entry))
        });
    }
    closed
}
