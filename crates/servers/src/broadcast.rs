//! Announces changes to the sockets of this gateway and to the registries of the other gateways on the same
//! records, and applies what the other gateways announce.

use std::sync::Arc;

use tokio::sync::broadcast;

use super::catalogue::entry::{BUNDLED, ServerEntry};
use super::connections::opening::Opened;
use super::health::{Seen, Status};
use super::news::{Change, News, NewsKind, ServerUpdate};
use super::offers;
use super::registry::Servers;
use super::try_out::try_out;
use sepal_core::domain::{Holder, Scope, TenantId, Tool, UserId};
use sepal_store::clock::now;
use sepal_store::records::GrantKey;

impl Servers {
    /// Sends news to the sockets of this gateway. If the server was removed, the connections of open sessions
    /// to it end.
    pub fn publish(&self, tenant: Option<&TenantId>, name: &str, kind: NewsKind) {
        if kind == NewsKind::Removed {
            self.disconnect(tenant, name);
        }
        self.0.news.publish(News {
            tenant: tenant.cloned(),
            owner: self.owner_of(tenant, name),
            server: name.to_owned(),
            kind,
        });
    }

    fn owner_of(&self, tenant: Option<&TenantId>, server: &str) -> Option<UserId> {
        tenant.and_then(|tenant| self.0.owners.of(tenant, server))
    }

    fn disconnect(&self, tenant: Option<&TenantId>, name: &str) {
        // An entry of the settings hides one of the file with the same name, and it still exists.
        if self.0.settings.contains_key(name) {
            return;
        }
        let open = self.0.running.take_removed(tenant, name);
        if open.is_empty() {
            return;
        }
        tracing::info!(mcp.server = %name, ended = open.len(), "The connections to a removed server end");
        self.0.opener.tasks.spawn(async move {
            futures::future::join_all(open.iter().map(|opened| opened.remove())).await;
        });
    }

    /// Called when sandboxes have become available: sessions are offered the bundled tools with their next
    /// request, and servers that could not be listed without a sandbox are listed.
    pub fn place_came(&self) {
        self.stale();
        self.0.bell.notify_one();
        self.0.installations.bell.notify_one();
        self.publish(None, BUNDLED, NewsKind::Added);
    }

    /// Called when a server's secrets have changed.
    pub fn secrets_changed(&self, scope: &Scope, name: &str) {
        self.new_epoch(scope, name);
        let tenant = match scope {
            Scope::Installation => None,
            Scope::Tenant(tenant) => Some(tenant),
        };
        self.pass_on(tenant, name, Change::Secrets);
    }

    /// Notifies the tenant's sessions whose calls wait that the rules about tools have changed.
    pub fn rules_changed(&self, tenant: &TenantId) {
        // An error means that there is no receiver: no sessions exist yet.
        let _ = self.0.rule_changes.send(tenant.clone());
    }

    /// Called when rules of a tenant or of its people have changed: this gateway and the others apply the new
    /// rules to waiting calls.
    pub fn policy_changed(&self, tenant: &TenantId) {
        self.stale();
        self.pass_on(Some(tenant), "", Change::Rules);
        self.rules_changed(tenant);
    }

    /// Called when members of groups of a tenant, or what groups name, have changed: this gateway and the others
    /// look up anew which rules hold and which servers are open, also for waiting calls.
    pub fn groups_changed(&self, tenant: &TenantId) {
        self.expire(tenant);
        self.pass_on(Some(tenant), "", Change::Rules);
        self.rules_changed(tenant);
    }

    /// Subscribes to the tenants whose rules change, here or at another gateway.
    pub fn rule_changes(&self) -> broadcast::Receiver<TenantId> {
        self.0.rule_changes.subscribe()
    }

    /// Sends a change to the other gateways. Not for what each gateway sees for itself: its own file, and the
    /// health of servers that it probes too.
    pub fn pass_on(&self, tenant: Option<&TenantId>, server: &str, change: Change) {
        self.0.news.publish_to_gateways(ServerUpdate {
            tenant: tenant.cloned(),
            owner: self.owner_of(tenant, server),
            server: server.to_owned(),
            change,
        });
    }

    /// Subscribes to the updates that have to be sent to the other gateways.
    pub fn updates(&self) -> broadcast::Receiver<ServerUpdate> {
        self.0.news.listen_for_gateways()
    }

    /// Applies an update from another gateway: the registry is invalidated before the sockets receive the
    /// news.
    pub fn hear(&self, update: ServerUpdate) {
        let ServerUpdate {
            tenant,
            owner,
            server,
            change,
        } = update;
        if let Some(tenant) = tenant.as_ref().filter(|_| !server.is_empty()) {
            let scope = Scope::Tenant(tenant.clone());
            // An update about a server of the whole tenant says nothing about a personal server of the same
            // name.
            if owner.is_some() || change == Change::Added {
                self.0.owners.note(&scope, &server, owner.as_ref());
            }
        }
        let tenant = tenant.as_ref();
        match change {
            Change::Added => {
                self.stale();
                self.publish(tenant, &server, NewsKind::Added);
            }
            Change::Removed => {
                self.stale();
                self.0.health.forget(tenant, &server);
                self.publish(tenant, &server, NewsKind::Removed);
            }
            Change::Edited => self.stale(),
            Change::Rules => {
                self.stale();
                if let Some(tenant) = tenant {
                    self.rules_changed(tenant);
                }
            }
            Change::Secrets => {
                let scope = tenant.cloned().map_or(Scope::Installation, Scope::Tenant);
                self.new_epoch(&scope, &server);
                self.stale();
            }
            Change::Restarted => {
                if let Some(tenant) = tenant {
                    self.restart_here(tenant, &server);
                }
            }
            Change::Installation(state) => {
                self.stale();
                self.publish(tenant, &server, NewsKind::Installation(state));
            }
            Change::Connection(user) => {
                self.publish(tenant, &server, NewsKind::Connection(user));
            }
            Change::Health(status, error) => {
                let health = &self.0.health;
                if health.adopt(tenant, &server, status, error.clone(), now()) {
                    self.publish(tenant, &server, NewsKind::Health(status, error));
                }
            }
        }
    }

    /// Called when updates from other gateways may have been lost.
    pub fn refresh(&self) {
        self.stale();
    }

    /// Called after a change to the registry: sessions see it with their next request, and the monitor looks
    /// at it.
    pub fn changed(&self, scope: &Scope, name: &str, news: Option<NewsKind>) {
        self.stale();
        self.0.bell.notify_one();
        self.0.installations.bell.notify_one();
        match scope {
            Scope::Tenant(tenant) => {
                self.pass_on(Some(tenant), name, Change::of(news.as_ref()));
                if let Some(kind) = news {
                    self.publish(Some(tenant), name, kind);
                }
            }
            // Changes of the file are announced by its watcher, edits by hand included; each gateway has its
            // own file.
            Scope::Installation => {}
        }
    }

    /// Ends the connections of this gateway to a server that another gateway was asked to restart.
    pub fn restart_here(&self, tenant: &TenantId, name: &str) {
        let open = self.0.running.take(tenant, name);
        self.0.opener.tasks.spawn(async move {
            futures::future::join_all(open.iter().map(|opened| opened.restart())).await;
        });
    }

    /// Returns true if sessions connect to their servers before the first call.
    pub fn connects_ahead(&self) -> bool {
        self.0.file.state().connects_ahead
    }

    /// Stores the tools that a server offers now; if they have changed, invalidates the offerings here and at the
    /// other gateways.
    pub async fn offers(&self, entry: &ServerEntry, tools: &[Tool]) {
        let key = entry.definitions_key(&self.0.place.image());
        match self.0.definitions.put(&key, tools).await {
            Ok(true) => {
                tracing::info!(mcp.server = %entry.name, tools = tools.len(), "The server's tools are others than before");
                self.stale();
                self.pass_on(entry.tenant(), &entry.name, Change::Edited);
            }
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(mcp.server = %entry.name, ?error, "What a server offers was not kept");
            }
        }
    }

    /// Records a server's health, and sends news if the status or the error has changed.
    pub fn saw(&self, entry: &ServerEntry, tenant: Option<&TenantId>, seen: Seen) {
        let changed = self.0.health.note(tenant, &entry.name, seen, now());
        if let Some((status, error)) = changed {
            if tenant.is_some() {
                let health = Change::Health(status, error.clone());
                self.pass_on(tenant, &entry.name, health);
            }
            self.publish(tenant, &entry.name, NewsKind::Health(status, error));
        }
    }

    /// Records that a server disconnected during a call.
    pub fn lost(&self, entry: &ServerEntry, tenant: &TenantId, why: &str) {
        let seen = Seen::Badly(Status::Disconnected, why.to_owned());
        self.saw(entry, Some(tenant), seen);
    }

    /// Records that a server is being reconnected to.
    pub fn reconnecting(&self, entry: &ServerEntry, tenant: &TenantId) {
        let why = self.0.health.of(tenant, entry).error.unwrap_or_default();
        self.saw(entry, Some(tenant), Seen::Badly(Status::Reconnecting, why));
    }

    /// Records that a server answers but requires people to connect. A refusal of one person says nothing
    /// about others, so a server that is healthy for the tenant stays healthy.
    pub fn wants_people(&self, entry: &ServerEntry, tenant: Option<&TenantId>, why: &str) {
        let of = |tenant: &TenantId| self.0.health.of(tenant, entry).status;
        if tenant.map(of) != Some(Status::Healthy) {
            let seen = Seen::Badly(Status::Unauthorized, why.to_owned());
            self.saw(entry, tenant, seen);
        }
    }

    /// Lists a server in the background with the tokens of a person who has just connected to it.
    pub fn list_for(&self, name: &str, person: Holder) {
        let (servers, name) = (self.clone(), name.to_owned());
        self.0.opener.tasks.spawn(async move {
            let Ok(offering) = servers.offering((&person.tenant, &person.user)).await else {
                return;
            };
            if let Some(server) = offering.server(&name) {
                let mut phases = Vec::new();
                // The health records hold the error.
                let entry = Arc::clone(&server.entry);
                let _ = try_out(&servers, &entry, Some(&person), &mut phases).await;
            }
        });
    }

    /// Waits until a person has connected to a server that requires it; returns false if they do not.
    pub async fn person_connects(&self, entry: &ServerEntry, person: &Holder) -> bool {
        let key = GrantKey {
            scope: entry.scope.clone(),
            server: entry.name.clone(),
            tenant: person.tenant.clone(),
            user: person.user.clone(),
        };
        self.0.opener.grants.wait(&key).await
    }

    /// Lists a server again whenever it announces that its tools have changed. Ends with the connection.
    pub fn follow(&self, entry: &ServerEntry, opened: &Arc<Opened>) {
        let mut changes = opened.connection.tool_changes();
        let (servers, entry, opened) = (self.clone(), entry.clone(), Arc::downgrade(opened));
        self.0.opener.tasks.spawn(async move {
            while changes.changed().await.is_ok() {
                let Some(opened) = opened.upgrade() else {
                    return;
                };
                match opened.connection.tools().await {
                    Ok(tools) => {
                        servers.offers(&entry, &tools).await;
                        // What was left out of the list is kept with the offer.
                        offers::note(&servers, &entry, &opened).await;
                    }
                    Err(error) => {
                        tracing::debug!(mcp.server = %entry.name, %error, "The changed list was not read");
                    }
                }
            }
        });
    }
}
