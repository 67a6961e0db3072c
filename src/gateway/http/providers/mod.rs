//! Model providers (`/api/providers`): everybody may list them; admins add, change, test and remove them
//! while the server runs. Keys are write-only.

mod checks;
mod tested;

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use self::checks::{checked_compactor, checked_ttl, fallback_of, key_change, threshold_change};
use self::tested::{ProviderTested, tested};
use super::token_price::{TokenPrice, checked_prices};
use crate::domain::{Caller, Code, Effort, Right, Scope};
use crate::gateway::GatewayState;
use crate::gateway::auth::ProviderAdmin;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, OptionalBody, Query, required};
use crate::gateway::paging::PageQuery;
use crate::gateway::word_list;
use crate::llm::{ProviderKind, Windows, least_threshold};
use crate::providers::{Draft, KeyChange, LocalServer, Offer, Source, ThresholdChange};

/// The model providers that the caller may use.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ProvidersList {
    /// The providers: the default first, then by id.
    items: Vec<ProviderItem>,
    /// The cursor of the next page; `null` if there is none.
    next_cursor: Option<String>,
}

/// A model provider.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ProviderItem {
    /// The provider's name.
    id: String,
    /// The provider's kind.
    #[schema(value_type = word_list::ProviderWire)]
    kind: &'static str,
    /// The provider's address; `null` for the vendor's own.
    base_url: Option<String>,
    /// The interface of OpenAI that is used: `auto`, `responses` or `chat-completions`.
    api: String,
    /// True if the provider has a key. The key itself is never returned.
    has_key: bool,
    /// The number of further keys.
    more_keys: usize,
    /// The fallbacks while the provider is out, as `provider/model`; the first available one answers.
    fallback: Vec<String>,
    /// The models to offer, the first as the provider's default; empty if the models that the provider lists
    /// are offered.
    models: Vec<String>,
    /// The context window in tokens of models that the catalogue does not know; `null` if 32,768 are assumed.
    context_window: Option<u64>,
    /// The context windows in tokens, by model; they override the catalogue.
    context_windows: BTreeMap<String, u64>,
    /// The limits of an answer in tokens, by model; they override the catalogue.
    max_outputs: BTreeMap<String, u64>,
    /// The reasoning efforts, by model, for sessions that choose none.
    #[schema(value_type = BTreeMap<String, String>)]
    efforts: BTreeMap<String, Effort>,
    /// The prices, by model; they override the catalogue.
    prices: BTreeMap<String, TokenPrice>,
    /// The lifetime of entries in the provider's prompt cache, `5m` or `1h`; absent if it cannot be chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(5m|1h)$")]
    cache_ttl: Option<&'static str>,
    /// The party that compacts the contexts of the provider's models, `sepal` or `vendor`; absent if the
    /// vendor cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(sepal|vendor)$")]
    compaction: Option<&'static str>,
    /// The number of input tokens from which on the vendor compacts; absent if Sepal's own limits apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    compaction_threshold: Option<u64>,
    /// The place where the provider is stored; providers from `settings` are read-only.
    #[schema(value_type = word_list::ProviderSource)]
    source: &'static str,
    /// True if the provider answers in new sessions of the caller.
    is_default: bool,
    /// The names of the groups for whose members alone all models of the provider are, to those who manage
    /// providers; absent if it is open to everybody.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
    /// The reason the provider cannot answer: it cannot work, or it failed so often that it is not asked for
    /// a while; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// The model servers that answered.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct LocalServersList {
    /// The servers, by name.
    items: Vec<LocalServerItem>,
}

/// A model server that answered at its usual address.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct LocalServerItem {
    /// The server's name in `agent.llm.local_servers`, for example `ollama`.
    name: String,
    /// The address at which it answered, for a provider of the kind `openai-compatible`.
    base_url: String,
    /// The models that it lists; empty if it has none yet.
    models: Vec<String>,
}

impl From<LocalServer> for LocalServerItem {
    fn from(found: LocalServer) -> Self {
        Self {
            name: found.name,
            base_url: found.base_url,
            models: found.models,
        }
    }
}

/// The new values of a provider.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct PutProviderRequest {
    /// The provider's kind; required, except in a test of a stored provider.
    #[schema(pattern = "^(openai|anthropic|gemini|openai-compatible|scripted)$")]
    kind: Option<String>,
    /// The provider's `http` or `https` address; if absent or empty, the vendor's own.
    #[schema(max_length = 2048)]
    base_url: Option<String>,
    /// The key. If absent, the stored key stays; `null` removes it.
    #[serde(default, deserialize_with = "key_change")]
    #[schema(value_type = Option<String>, write_only, max_length = 4096)]
    api_key: KeyChange,
    /// Further keys, used in their order while the keys before them are out. If absent or `null`, the stored
    /// ones stay; an empty list removes them.
    #[schema(value_type = Option<Vec<String>>, write_only, max_items = 8)]
    api_keys: Option<Vec<SecretString>>,
    /// The fallbacks while the provider is out, as `provider/model`. If absent or `null`, the stored ones
    /// stay.
    #[schema(max_items = 8)]
    fallback: Option<Vec<String>>,
    /// The interface of OpenAI to use: `auto` (Responses at OpenAI's own address, Chat Completions at any
    /// other), `responses` or `chat-completions`; `chat` is an older name of the last. If absent, the stored
    /// value stays.
    #[schema(pattern = "^(auto|responses|chat-completions|chat)$")]
    api: Option<String>,
    /// The models to offer, the first as the provider's default, each with at most 256 bytes; if absent or
    /// empty, the models that the provider lists.
    #[schema(max_items = 500)]
    models: Option<Vec<String>>,
    /// The context window in tokens of models that the catalogue does not know; if absent or `null`, 32,768
    /// are assumed.
    #[schema(minimum = 1024, maximum = 4_294_967_295_u64)]
    context_window: Option<u64>,
    /// The context windows in tokens, by model; they override the catalogue. If absent or `null`, the stored
    /// ones are removed.
    context_windows: Option<BTreeMap<String, u64>>,
    /// The limits of an answer in tokens, by model; they override the catalogue. If absent or `null`, the
    /// stored ones stay.
    max_outputs: Option<BTreeMap<String, u64>>,
    /// The reasoning efforts, by model, for sessions that choose none: `off`, `minimal`, `low`, `medium`,
    /// `high`, `max`, or a number of tokens. If absent or `null`, the stored ones stay.
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    efforts: Option<BTreeMap<String, Effort>>,
    /// The prices, by model; they override the catalogue. If absent or `null`, the stored ones stay.
    prices: Option<BTreeMap<String, TokenPrice>>,
    /// The lifetime of entries in the provider's prompt cache, if it can be chosen; writing for `1h` costs
    /// more. If absent or `null`, the stored value stays.
    #[schema(pattern = "^(5m|1h)$")]
    cache_ttl: Option<String>,
    /// The party that compacts the contexts of the provider's models: `sepal`, or `vendor` at Anthropic and
    /// in OpenAI's Responses. If absent or `null`, the stored value stays.
    #[schema(pattern = "^(sepal|vendor)$")]
    compaction: Option<String>,
    /// The number of input tokens from which on the vendor compacts, at Anthropic 50,000 or more. With
    /// `null`, Sepal's own limits apply; if absent, the stored value stays.
    #[serde(default, deserialize_with = "threshold_change")]
    #[schema(value_type = Option<u64>, minimum = 1000, maximum = 4_294_967_295_u64)]
    compaction_threshold: ThresholdChange,
    /// `tenant`, or `installation` for everybody; if absent, the scope of the provider with this name that is
    /// in use, else the tenant.
    #[schema(pattern = "^(tenant|installation)$")]
    scope: Option<String>,
    /// In a test: the model to ask.
    model: Option<String>,
}

/// The scope of the provider, because both scopes may have one of the same name.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::gateway::http) struct ScopeQuery {
    /// `tenant` or `installation`; if absent, the scope of the provider that is in use.
    #[param(pattern = "^(tenant|installation)$")]
    scope: Option<String>,
}

/// Lists the model providers that the caller may use; all of the tenant to those who manage them.
#[utoipa::path(get, path = "/api/providers", tag = "providers", params(PageQuery), responses(
    (status = 200, body = ProvidersList), (status = 401, body = Problem),
))]
pub(in crate::gateway::http) async fn list_providers(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Json<ProvidersList>, ApiError> {
    let (tenant, user) = (&caller.tenant.id, &caller.user.id);
    state.providers.refresh_access(tenant).await;
    let offers = if caller.may(Right::ManageProviders) {
        state.providers.all(tenant, user)
    } else {
        state.providers.visible(tenant, user)
    };
    let items = offers.iter().map(|offer| item(&state, &caller, offer));
    let page = query.page(items.collect(), |provider: &ProviderItem| {
        provider.id.clone()
    })?;
    Ok(Json(ProvidersList {
        items: page.items,
        next_cursor: page.next_cursor,
    }))
}

/// Looks for model servers at the addresses of `agent.llm.local_servers`, with a request for their model list
/// each, and stores nothing. Only for admins.
///
/// Addresses that the caller may not give to a provider are not asked: for an admin of a tenant that is every
/// private one that the installation does not allow.
#[utoipa::path(get, path = "/api/local-model-servers", tag = "providers", responses(
    (status = 200, body = LocalServersList), (status = 403, body = Problem),
))]
pub(in crate::gateway::http) async fn find_local_model_servers(
    State(state): State<GatewayState>,
    admin: ProviderAdmin,
) -> Result<Json<LocalServersList>, ApiError> {
    let scope = admin.scope(true).or_else(|_| admin.scope(false))?;
    let found = state.providers.find_local(&scope).await;
    Ok(Json(LocalServersList {
        items: found.into_iter().map(LocalServerItem::from).collect(),
    }))
}

/// Returns a model provider that the caller may use.
#[utoipa::path(get, path = "/api/providers/{id}", tag = "providers", params(("id" = String, Path)),
    responses((status = 200, body = ProviderItem), (status = 404, body = Problem)),
)]
pub(in crate::gateway::http) async fn read_provider(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<ProviderItem>, ApiError> {
    let tenant = &caller.tenant.id;
    state.providers.refresh_access(tenant).await;
    let offer = state.providers.find(tenant, &id).ok_or_else(unknown)?;
    if !caller.may(Right::ManageProviders) {
        let visible = state.providers.visible(tenant, &caller.user.id);
        let mut visible = visible.iter();
        visible.find(|it| it.id() == id).ok_or_else(unknown)?;
    }
    Ok(Json(item(&state, &caller, &offer)))
}

/// Adds or changes a provider, which serves from the next model request on. Only for admins.
#[utoipa::path(put, path = "/api/providers/{id}", tag = "providers", params(("id" = String, Path)),
    request_body = PutProviderRequest,
    responses((status = 200, body = ProviderItem), (status = 201, body = ProviderItem),
        (status = 400, body = Problem), (status = 403, body = Problem),
        (status = 409, body = Problem)),
)]
pub(in crate::gateway::http) async fn put_provider(
    State(state): State<GatewayState>,
    admin: ProviderAdmin,
    Path(id): Path<String>,
    Body(body): Body<PutProviderRequest>,
) -> Result<(StatusCode, Json<ProviderItem>), ApiError> {
    let scope = scope_of(&state, &admin, &id, body.scope.as_deref())?;
    let (offer, is_new) = state.providers.put(&scope, &id, draft(body)?).await?;
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, Json(item(&state, &admin.0, &offer))))
}

/// Removes a provider that was added. Its sessions can choose another one. Only for admins.
#[utoipa::path(delete, path = "/api/providers/{id}", tag = "providers",
    params(("id" = String, Path), ScopeQuery),
    responses((status = 204), (status = 403, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem)),
)]
pub(in crate::gateway::http) async fn delete_provider(
    State(state): State<GatewayState>,
    admin: ProviderAdmin,
    Path(id): Path<String>,
    Query(query): Query<ScopeQuery>,
) -> Result<StatusCode, ApiError> {
    let found = state.providers.find(&admin.0.tenant.id, &id);
    let found = found.ok_or_else(unknown)?;
    if found.source == Source::Settings {
        let text = format!("provider `{id}` comes from the settings: remove it there");
        return Err(ApiError::new(Code::ReadOnly, text));
    }
    let scope = scope_of(&state, &admin, &id, query.scope.as_deref())?;
    state.providers.remove(&scope, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Tests a provider with one small real request. Only for admins.
///
/// A body with a `kind` describes a provider that is not stored; otherwise the stored provider is tested.
#[utoipa::path(post, path = "/api/providers/{id}/test", tag = "providers",
    params(("id" = String, Path)), request_body = Option<PutProviderRequest>,
    responses((status = 200, body = ProviderTested), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem)),
)]
pub(in crate::gateway::http) async fn test_provider(
    State(state): State<GatewayState>,
    admin: ProviderAdmin,
    Path(id): Path<String>,
    OptionalBody(body): OptionalBody<PutProviderRequest>,
) -> Result<Json<ProviderTested>, ApiError> {
    let model = body.as_ref().and_then(|body| body.model.clone());
    let model = model.filter(|model| !model.trim().is_empty());
    let answer = if let Some(body) = body.filter(|body| body.kind.is_some()) {
        let scope = scope_of(&state, &admin, &id, body.scope.as_deref())?;
        let offer = state.providers.draw(&scope, &id, draft(body)?).await?;
        tested(offer.test(model.as_deref()).await, false)
    } else {
        let offer = state.providers.find(&admin.0.tenant.id, &id);
        let offer = offer.ok_or_else(unknown)?;
        let trial = offer.test(model.as_deref()).await;
        if let (None, Some(model)) = (&trial.problem, &trial.model) {
            state.providers.adopt(&admin.0, &offer, model).await?;
        }
        let is_shared = offer.source == Source::Added(Scope::Installation);
        if let Some(found) = &trial.found_address
            && admin.scope(is_shared).is_ok()
        {
            state.providers.readdress(&offer, found.clone()).await?;
        }
        let is_default = item(&state, &admin.0, &offer).is_default;
        tested(trial, is_default)
    };
    Ok(Json(answer))
}

/// Returns the scope of a change: the one that it names, else that of the provider in use, else the tenant.
fn scope_of(
    state: &GatewayState,
    admin: &ProviderAdmin,
    id: &str,
    said: Option<&str>,
) -> Result<Scope, ApiError> {
    match said {
        Some("installation") => admin.scope(true),
        Some("tenant") => admin.scope(false),
        Some(_) => {
            let text = "`scope` is `tenant` or `installation`";
            Err(ApiError::of_field(Code::InvalidArguments, "scope", text))
        }
        None => {
            let found = state.providers.find(&admin.0.tenant.id, id);
            let shared = Source::Added(Scope::Installation);
            admin.scope(found.is_some_and(|offer| offer.source == shared))
        }
    }
}

fn draft(body: PutProviderRequest) -> Result<Draft, ApiError> {
    let kind = required("kind", body.kind)?;
    let kind = ProviderKind::parse(&kind).ok_or_else(|| {
        let text = "`kind` is `openai`, `anthropic`, `gemini`, `openai-compatible` or `scripted`";
        ApiError::of_field(Code::InvalidArguments, "kind", text)
    })?;
    Ok(Draft {
        kind,
        base_url: body.base_url,
        api: body.api,
        models: body.models.unwrap_or_default(),
        windows: Windows {
            usual: body.context_window,
            of_models: body.context_windows.unwrap_or_default(),
        },
        max_outputs: body.max_outputs,
        efforts: body.efforts,
        prices: body.prices.map(checked_prices).transpose()?,
        cache_ttl: body.cache_ttl.as_deref().map(checked_ttl).transpose()?,
        compaction: body
            .compaction
            .as_deref()
            .map(checked_compactor)
            .transpose()?,
        compaction_threshold: body.compaction_threshold,
        key: body.api_key,
        more_keys: body.api_keys,
        fallback: body.fallback.as_deref().map(fallback_of).transpose()?,
    })
}

fn item(state: &GatewayState, caller: &Caller, offer: &Offer) -> ProviderItem {
    let whose = (&caller.tenant.id, &caller.user.id);
    let said = offer.said();
    let compaction = offer.compaction();
    let can_compact = least_threshold(offer.kind(), offer.api(), offer.base_url()).is_some();
    ProviderItem {
        id: offer.id().to_owned(),
        kind: offer.kind().as_str(),
        base_url: offer.base_url().map(ToOwned::to_owned),
        api: offer.api().to_string(),
        has_key: offer.has_key(),
        more_keys: offer.more_keys(),
        fallback: offer.fallback().iter().map(ToString::to_string).collect(),
        models: offer.models().to_vec(),
        context_window: said.windows.usual,
        context_windows: said.windows.of_models.clone(),
        max_outputs: said.max_outputs.clone(),
        efforts: said.efforts.clone(),
        prices: said
            .prices
            .iter()
            .map(|(model, price)| (model.clone(), TokenPrice::of(price)))
            .collect(),
        cache_ttl: (offer.kind() == ProviderKind::Anthropic).then(|| offer.cache_ttl().as_str()),
        compaction: can_compact.then(|| compaction.by.as_str()),
        compaction_threshold: compaction.threshold.filter(|_| can_compact),
        source: match &offer.source {
            Source::Settings => "settings",
            Source::Added(Scope::Installation) => "installation",
            Source::Added(Scope::Tenant(_)) => "tenant",
        },
        is_default: state.providers.default_choice(whose).provider == offer.id(),
        groups: groups(state, caller, offer.id()),
        problem: offer.told_problem(),
    }
}

/// The names of the groups that name a provider, for those who manage providers.
fn groups(state: &GatewayState, caller: &Caller, id: &str) -> Vec<String> {
    if !caller.may(Right::ManageProviders) {
        return Vec::new();
    }
    let groups = state.providers.groups_of(&caller.tenant.id, id).into_iter();
    groups.map(|(_, name)| name).collect()
}

fn unknown() -> ApiError {
    ApiError::new(Code::NotFound, "there is no such provider")
}
