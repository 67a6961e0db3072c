//! Opens the registry of MCP servers.

use std::num::NonZeroU32;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::{self, Settings, Titles};
use crate::mcp::bundled_tools_with;
use crate::mcp::config::ConfigFile;
use crate::net::{self, Guard};
use crate::sandbox::host::SandboxHost;
use crate::servers::{self, Clients, McpRegistry, RegistrySettings, Servers, ServersParts};
use crate::session::{self, Policy, Rules};
use crate::store::{Sealer, Store};

/// Opens the registry; its background work ends with `agents`.
pub(super) fn open(
    settings: &Settings,
    store: &Store,
    sealer: Sealer,
    place: Arc<SandboxHost>,
    guard: Guard,
    agents: &(TaskTracker, CancellationToken),
) -> anyhow::Result<Servers> {
    let outside = net::Settings::default();
    let registry = settings.mcp_registry.clone();
    let published = if registry.enabled {
        RegistrySettings {
            url: registry.url,
            file: registry.file,
        }
    } else {
        RegistrySettings::default()
    };
    let parts = ServersParts {
        roles: settings.mcp_roles,
        settings: settings.mcp_servers.clone(),
        bundled: bundled_tools_with(place.network.hosts(), &place.network_on_request)?.into(),
        file: ConfigFile::open(store.dir().path()),
        records: store.records(),
        sealer,
        place,
        clients: Clients {
            open: net::client(&outside)?,
            guarded: net::guarded_client(&outside, &guard)?,
        },
        guard,
        environment: config::environment(),
        rules: Arc::new(Rules {
            max_iterations: settings.chat.max_llm_iterations.get(),
            max_same_calls: settings.chat.max_same_calls.map(NonZeroU32::get),
            approval_expiry_ms: settings
                .chat
                .approval_expiry
                .map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
            edits_by_others: match settings.chat.edits_by_others {
                config::EditsByOthers::AskOwner => session::EditsByOthers::NeedOwner,
                config::EditsByOthers::Refuse => session::EditsByOthers::Refused,
            },
            // The rules were checked when they were read.
            policy: Policy::InForce(sepal_policy::Rules::compile_safely(settings.rules.clone())),
            has_reviewer: settings.reviewer.model.is_some(),
            has_titles_made: settings.chat.titles == Titles::Model,
            ..Rules::default()
        }),
        retry: super::model::retry(&settings.llm),
        published: McpRegistry::new(published, net::client(&outside)?, settings.mcp_roles),
    };
    Ok(servers::start(parts, agents.clone()))
}
