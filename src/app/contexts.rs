//! Makes the context sources from the settings.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::agent::{ContextSources, ServiceObserver};
use crate::config::{self, ContextKind, ContextPosition, ContextProviderEntry, ContextRole};
use crate::context::sources::{ApiProvider, DatabaseProvider, FileProvider, FileRole, OfTenants};
use crate::context::{
    ContextFilter, ContextProvider, FilteredProvider, Relevance, SystemPromptProvider,
};
use crate::domain::TenantId;
use crate::history::{CompactionStrategy, Input};
use crate::net::{self, Guard};

/// The time for which a source on the network may be silent.
const SILENCE: Duration = Duration::from_secs(8);
/// The most records of a source, unless the settings say otherwise.
const USUAL_RECORDS: usize = 20;

/// The parts that a program that embeds the gateway adds to it.
#[derive(Clone, Default)]
pub struct Extensions {
    /// Providers whose context is shown before the conversation, because it seldom changes.
    pub before: Vec<Arc<dyn ContextProvider>>,
    /// Providers whose context is shown right before the newest question, because it changes from turn to
    /// turn.
    pub after: Vec<Arc<dyn ContextProvider>>,
    /// Strategies that make room before those of the settings, except in sessions that drop nothing.
    pub strategies: Vec<Arc<dyn CompactionStrategy>>,
    /// The observer of what happens in sessions.
    pub observer: Option<Arc<dyn ServiceObserver>>,
}

/// Makes the system prompt and all providers, those of the settings first; refuses settings that can never
/// work.
pub(super) fn open(
    settings: &config::Settings,
    (reads, own): (Input<'_>, &Extensions),
    guard: &Guard,
) -> anyhow::Result<ContextSources> {
    let said = &settings.context;
    let template = &settings.llm.prompt_template;
    let mut sources = ContextSources {
        system_prompt: SystemPromptProvider::new(template, reads)?,
        workspace_instructions: said
            .workspace_instructions
            .then(|| u64::from(said.workspace_instructions_kb) * 1024),
        ..ContextSources::default()
    };
    for (name, entry) in &said.providers {
        let provider = provider(name, entry, guard)
            .with_context(|| format!("`agent.context.providers.{name}` cannot be used"))?;
        match entry.position() {
            ContextPosition::Before => sources.before.push(provider),
            ContextPosition::After => sources.after.push(provider),
        }
    }
    sources.before.extend(own.before.iter().cloned());
    sources.after.extend(own.after.iter().cloned());
    Ok(sources)
}

fn provider(
    name: &str,
    entry: &ContextProviderEntry,
    guard: &Guard,
) -> anyhow::Result<Arc<dyn ContextProvider>> {
    let most = entry.limit.map_or(USUAL_RECORDS, |most| most as usize);
    let mut provider: Arc<dyn ContextProvider> = match entry.kind {
        ContextKind::File => {
            let role = match entry.role {
                ContextRole::System => FileRole::System,
                ContextRole::Material => FileRole::Material,
            };
            let path = entry.path.as_deref().unwrap_or_default();
            Arc::new(FileProvider::new(name, path, role))
        }
        ContextKind::Database => {
            let url = entry.database_url.clone().unwrap_or_default();
            let query = entry.query.as_deref().unwrap_or_default();
            Arc::new(DatabaseProvider::new(name, &url, query, most)?)
        }
        ContextKind::Rest => {
            let http = net::guarded_client(
                &net::Settings {
                    read_timeout: Some(SILENCE),
                    ..net::Settings::default()
                },
                guard,
            )?;
            let url = entry.url.clone().context("`url` is missing")?;
            let rest = ApiProvider::new(name, http, url)
                .headers(headers(entry)?)
                .input_parameter(entry.input_parameter.clone())
                .pointer(entry.pointer.clone())
                .most(most);
            Arc::new(rest)
        }
    };
    let mut filter = None;
    if let Some(seconds) = entry.max_age_s {
        let age = Duration::from_secs(seconds.into());
        filter = Some(ContextFilter::default().newer_than(age));
    }
    if let Some(most) = entry.relevant {
        let relevance = Relevance {
            most: most as usize,
        };
        filter = Some(filter.unwrap_or_default().relevance(relevance));
    }
    if let Some(filter) = filter {
        provider = Arc::new(FilteredProvider::new(provider, filter));
    }
    if entry.tenants.is_empty() {
        return Ok(provider);
    }
    let tenants = entry.tenants.iter().map(|tenant| {
        TenantId::parse(tenant).with_context(|| format!("`{tenant}` is no id of a tenant"))
    });
    let tenants: BTreeSet<TenantId> = tenants.collect::<anyhow::Result<_>>()?;
    Ok(Arc::new(OfTenants::new(provider, tenants)))
}

/// Makes the headers of each request; values are secret, so errors never contain them.
fn headers(entry: &ContextProviderEntry) -> anyhow::Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    for (name, value) in &entry.headers {
        let key: HeaderName = name.parse().with_context(|| format!("header `{name}`"))?;
        let mut value: HeaderValue = value
            .parse()
            .with_context(|| format!("the value of header `{name}`"))?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    Ok(headers)
}
