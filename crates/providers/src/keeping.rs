//! Adds, changes and removes providers while the server runs. Keys are sealed before they are stored, and
//! sent to nobody but their own provider.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use reqwest::Url;
use secrecy::{ExposeSecret as _, SecretString};

use super::Providers;
use super::checks::{
    ThresholdChange, check_name, checked_api, checked_compaction, checked_max_outputs,
    checked_models, checked_windows, named,
};
use super::error::Error;
use super::further::{
    Kept, checked_fallback, checked_key, checked_keys, context, kept_key, kept_more_keys, kept_of,
    opened_keys, sealed_keys,
};
use super::offer::{Fallback, Offer, ProviderSettings, Source};
use super::registry::{AddedProvider, AddedProviders};
use sepal_core::domain::{Code, Effort, Scope, Timestamp};
use sepal_core::session::Refusal;
use sepal_llm::catalogue::Price;
use sepal_llm::{self as llm, CacheTtl, CompactedBy, Overrides, ProviderKind, Windows};
use sepal_store as store;
use sepal_store::records::ProviderRow;

/// The most providers that one scope may add.
const MOST: usize = 50;
/// The longest address, key or model name, in bytes.
const MAX_BYTES: usize = 2_048;

/// The new values of a provider.
#[derive(Debug, Clone)]
pub struct Draft {
    pub kind: ProviderKind,
    /// The address; `None` = the vendor's own.
    pub base_url: Option<String>,
    /// OpenAI's interface, by its name; `None` = keep the stored one.
    pub api: Option<String>,
    /// The models to offer, the first as the default.
    pub models: Vec<String>,
    /// The windows of its models.
    pub windows: Windows,
    /// The longest answer in tokens, by model; `None` = keep the stored ones.
    pub max_outputs: Option<BTreeMap<String, u64>>,
    /// The effort, by model; `None` = keep the stored ones.
    pub efforts: Option<BTreeMap<String, Effort>>,
    /// Prices, by model; `None` = keep the stored ones.
    pub prices: Option<BTreeMap<String, Price>>,
    /// The lifetime of its cache; `None` = keep the stored one.
    pub cache_ttl: Option<CacheTtl>,
    /// The party that compacts the contexts of its models; `None` = keep the stored one, as far as possible.
    pub compaction: Option<CompactedBy>,
    /// The input tokens from which on its vendor compacts.
    pub compaction_threshold: ThresholdChange,
    pub key: KeyChange,
    /// Further keys; `None` = keep the stored ones, as long as their destination stays the same.
    pub more_keys: Option<Vec<SecretString>>,
    /// The fallbacks while it is out; `None` = keep the stored ones.
    pub fallback: Option<Vec<Fallback>>,
}

/// A change of a key.
#[derive(Debug, Clone, Default)]
pub enum KeyChange {
    /// Keep the stored one, as long as its destination stays the same.
    #[default]
    Keep,
    /// Remove it.
    Remove,
    /// Set a new one.
    Set(SecretString),
}

impl Providers {
    /// Adds or replaces a provider of a scope, from the next model request on. Returns true if it is new.
    pub async fn put(
        &self,
        scope: &Scope,
        id: &str,
        draft: Draft,
    ) -> Result<(Arc<Offer>, bool), Error> {
        let _order = self.0.changing.lock().await;
        let offer = self.draw(scope, id, draft).await?;
        let is_new = self.stored(scope, id).is_none();
        if is_new {
            self.may_add(scope, id)?;
        }
        let row = self.row_of(scope, &offer)?;
        self.0.records.providers().put(&row).await?;
        let offer = Arc::new(offer);
        let served = Arc::clone(&offer);
        let kept = AddedProvider { offer: served, row };
        self.change(|added| added.insert((scope.clone(), id.to_owned()), kept));
        tracing::info!(llm.provider = id, %scope, is_new, "Provider `{id}` was saved");
        offer.announce(None);
        self.publish();
        Ok((offer, is_new))
    }

    /// Stores the base URL at which a provider answered in place of the configured one. Its keys go where they
    /// went: only the path differs.
    pub async fn readdress(&self, offer: &Arc<Offer>, found: String) -> Result<(), Error> {
        let Source::Added(scope) = &offer.source else {
            return Ok(());
        };
        let _order = self.0.changing.lock().await;
        let stored = self.stored(scope, offer.id());
        if stored.is_none_or(|stored| !Arc::ptr_eq(&stored, offer)) {
            // It was changed or removed while it was tested.
            return Ok(());
        }
        let mut settings = offer.settings.clone();
        settings.reach.base_url = Some(found);
        let offer = Arc::new(self.connect(settings, scope));
        let row = self.row_of(scope, &offer)?;
        self.0.records.providers().put(&row).await?;
        let key = (scope.clone(), offer.id().to_owned());
        tracing::info!(llm.provider = offer.id(), %scope, "The address of provider `{}` was completed", offer.id());
        let kept = AddedProvider { offer, row };
        self.change(|added| added.insert(key, kept));
        self.publish();
        Ok(())
    }

    /// Removes a provider that was added. Sessions that name it can choose another one.
    pub async fn remove(&self, scope: &Scope, id: &str) -> Result<(), Error> {
        let _order = self.0.changing.lock().await;
        let was_there = self.0.records.providers().delete(scope, id).await?;
        self.change(|added| added.remove(&(scope.clone(), id.to_owned())));
        if !was_there {
            return Err(unknown().into());
        }
        tracing::info!(llm.provider = id, %scope, "Provider `{id}` was removed");
        self.publish();
        Ok(())
    }

    /// Reads the records again, because another process may have changed them. Unchanged providers stay as
    /// they are.
    pub async fn reload(&self) -> Result<(), store::Error> {
        let _order = self.0.changing.lock().await;
        let rows = self.0.records.providers().all().await?;
        let mut fresh = AddedProviders::new();
        for row in rows {
            let key = (row.scope.clone(), row.id.clone());
            let same = self
                .added()
                .get(&key)
                .filter(|kept| kept.row == row)
                .cloned();
            if let Some(kept) = same.or_else(|| self.revive(row)) {
                fresh.insert(key, kept);
            }
        }
        self.change(|added| *added = fresh);
        self.reload_defaults().await?;
        self.reload_access().await?;
        self.0.compaction.reload().await
    }

    /// Builds a provider from a draft, without storing it.
    pub async fn draw(&self, scope: &Scope, id: &str, draft: Draft) -> Result<Offer, Error> {
        check_name(id)?;
        let base_url = draft.base_url.as_deref().map(llm::base_address);
        let base_url = match base_url.as_deref() {
            None | Some("") => None,
            Some(address) => Some(self.address(scope, address).await?),
        };
        let stored = self.stored(scope, id);
        let (api_key, more_keys) = keys(
            draft.key,
            draft.more_keys,
            stored.as_deref(),
            draft.kind,
            base_url.as_ref(),
        )?;
        let fallback = match draft.fallback {
            Some(fallback) => checked_fallback(fallback)?,
            None => stored
                .as_deref()
                .map(|it| it.fallback().to_vec())
                .unwrap_or_default(),
        };
        let same = stored.as_deref().filter(|offer| offer.kind() == draft.kind);
        let api = match draft.api.as_deref() {
            Some(api) => checked_api(api, draft.kind)?,
            None => same.map(Offer::api).unwrap_or_default(),
        };
        let cache_ttl = draft.cache_ttl.or(stored.as_deref().map(Offer::cache_ttl));
        let compaction = checked_compaction(
            (draft.compaction, draft.compaction_threshold),
            same.map(Offer::compaction),
            (draft.kind, api, base_url.as_ref().map(Url::as_str)),
        )?;
        let kept = stored
            .as_deref()
            .map_or_else(Overrides::default, |it| it.said().clone());
        let settings = ProviderSettings {
            reach: llm::Settings {
                id: id.to_owned(),
                kind: draft.kind,
                api_key,
                base_url: base_url.map(String::from),
                api,
                cache_ttl: cache_ttl.unwrap_or_default(),
                compaction,
                pace: std::time::Duration::ZERO,
            },
            models: checked_models(&draft.models)?,
            said: Overrides {
                windows: checked_windows(draft.windows)?,
                max_outputs: checked_max_outputs(draft.max_outputs.unwrap_or(kept.max_outputs))?,
                efforts: named("efforts", draft.efforts.unwrap_or(kept.efforts))?,
                prices: named("prices", draft.prices.unwrap_or(kept.prices))?,
            },
            more_keys,
            fallback,
        };
        usable(self.connect(settings, scope))
    }

    async fn address(&self, scope: &Scope, address: &str) -> Result<Url, Refusal> {
        let wrong = |text: &str| Refusal::of_field(Code::InvalidArguments, "baseUrl", text);
        let url = Url::parse(address).ok();
        let url = url.filter(|url| {
            matches!(url.scheme(), "http" | "https") && url.has_host() && address.len() <= MAX_BYTES
        });
        let url = url.ok_or_else(|| wrong("`baseUrl` is no http or https address"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong(
                "a password in `baseUrl` would be shown: use `apiKey`",
            ));
        }
        if *scope != Scope::Installation {
            let checked = self.0.ways.guard.check(&url).await;
            checked.map_err(|blocked| wrong(&blocked.to_string()))?;
        }
        Ok(url)
    }

    fn may_add(&self, scope: &Scope, id: &str) -> Result<(), Refusal> {
        if self
            .0
            .settings
            .get(id)
            .is_some_and(|offer| offer.is_usable())
        {
            return Err(read_only(id));
        }
        if self.added().keys().filter(|(of, _)| of == scope).count() >= MOST {
            let text = format!("there are {MOST} providers already; remove one first");
            return Err(Refusal::new(Code::TooLarge, text));
        }
        Ok(())
    }

    fn stored(&self, scope: &Scope, id: &str) -> Option<Arc<Offer>> {
        let added = self.added();
        let kept = added.get(&(scope.clone(), id.to_owned()))?;
        Some(Arc::clone(&kept.offer))
    }

    fn client(&self, scope: &Scope) -> reqwest::Client {
        match scope {
            Scope::Installation => self.0.ways.operator.clone(),
            Scope::Tenant(_) => self.0.ways.tenant.clone(),
        }
    }

    fn connect(&self, settings: ProviderSettings, scope: &Scope) -> Offer {
        let (source, client) = (Source::Added(scope.clone()), self.client(scope));
        Offer::connect(settings, source, &client, self.0.ways.breaker)
    }

    fn change<T>(&self, change: impl FnOnce(&mut AddedProviders) -> T) {
        let mut added = self.0.added.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut added);
    }

    fn row_of(&self, scope: &Scope, offer: &Offer) -> Result<ProviderRow, store::Error> {
        let key = offer.settings.reach.api_key.as_ref();
        let sealed_key = key.map(|key| {
            let context = context(scope, offer.id());
            self.0.sealer.seal(&context, key.expose_secret().as_bytes())
        });
        let kept = Kept {
            said: offer.said().clone(),
            cache_ttl: offer.cache_ttl(),
            compaction: offer.compaction(),
            fallback: offer.fallback().iter().map(ToString::to_string).collect(),
            sealed_keys: sealed_keys(&self.0.sealer, scope, offer)?,
        };
        Ok(ProviderRow {
            scope: scope.clone(),
            id: offer.id().to_owned(),
            kind: offer.kind().as_str().to_owned(),
            base_url: offer.base_url().map(ToOwned::to_owned),
            api: Some(offer.api().to_string()),
            models: offer.models().to_vec(),
            windows: (kept != Kept::default())
                .then(|| serde_json::to_string(&kept).unwrap_or_default()),
            sealed_key: sealed_key.transpose()?,
            updated_at: Timestamp(jiff::Timestamp::now().as_millisecond()),
        })
    }

    /// Builds the provider of a row; `None` if a newer release wrote it.
    fn revive(&self, row: ProviderRow) -> Option<AddedProvider> {
        let Some(kind) = ProviderKind::parse(&row.kind) else {
            tracing::warn!(llm.provider = %row.id, "Provider `{}` is of a kind that this version does not know", row.id);
            return None;
        };
        let sealed = row.sealed_key.as_deref();
        let opened = sealed
            .map(|sealed| self.open_key(&row.scope, &row.id, sealed))
            .transpose();
        let (api_key, is_lost) = match opened {
            Ok(key) => (key, false),
            Err(error) => {
                tracing::error!(llm.provider = %row.id, scope = %row.scope, %error, "The key of provider `{}` cannot be opened", row.id);
                (None, true)
            }
        };
        let kept = kept_of(&row);
        let settings = ProviderSettings {
            reach: llm::Settings {
                id: row.id.clone(),
                kind,
                api_key,
                base_url: row.base_url.clone(),
                // A name from a newer release is unknown here, so the default is used.
                api: row
                    .api
                    .as_deref()
                    .and_then(|api| api.parse().ok())
                    .unwrap_or_default(),
                cache_ttl: kept.cache_ttl,
                compaction: kept.compaction,
                pace: std::time::Duration::ZERO,
            },
            models: row.models.clone(),
            more_keys: opened_keys(&self.0.sealer, &row, &kept.sealed_keys),
            fallback: kept
                .fallback
                .iter()
                .filter_map(|text| Fallback::parse(text))
                .collect(),
            said: kept.said,
        };
        let mut offer = self.connect(settings, &row.scope);
        if is_lost {
            let text = format!(
                "the key of provider `{}` cannot be opened (another secret key sealed it): add it \
                 again at /admin/providers",
                row.id
            );
            offer.problem = Some(Refusal::new(Code::MissingApiKey, text));
        }
        offer.announce(None);
        let offer = Arc::new(offer);
        Some(AddedProvider { offer, row })
    }

    fn open_key(
        &self,
        scope: &Scope,
        id: &str,
        sealed: &str,
    ) -> Result<SecretString, store::Error> {
        let key = self.0.sealer.open(&context(scope, id), sealed)?;
        Ok(String::from_utf8_lossy(&key).into_owned().into())
    }
}

/// Returns the offer if it can work, now or once it has its key.
fn usable(offer: Offer) -> Result<Offer, Error> {
    match &offer.problem {
        Some(problem) if problem.code != Code::MissingApiKey => {
            let text = problem.message.clone();
            Err(Refusal::of_field(Code::InvalidArguments, "baseUrl", text).into())
        }
        Some(_) | None => Ok(offer),
    }
}

/// Returns the key and the further keys, new or stored.
fn keys(
    key: KeyChange,
    more: Option<Vec<SecretString>>,
    stored: Option<&Offer>,
    kind: ProviderKind,
    base_url: Option<&Url>,
) -> Result<(Option<SecretString>, Vec<SecretString>), Refusal> {
    let key = match key {
        KeyChange::Remove => None,
        KeyChange::Set(key) => checked_key(&key)?,
        KeyChange::Keep => kept_key(stored, kind, base_url)?,
    };
    let more = match more {
        Some(keys) => checked_keys(&keys)?,
        None => kept_more_keys(stored, kind, base_url)?,
    };
    Ok((key, more))
}

pub(crate) fn unknown() -> Refusal {
    Refusal::new(Code::NotFound, "there is no such provider")
}

/// Providers from the operator's settings can only be changed there.
pub(crate) fn read_only(id: &str) -> Refusal {
    let text =
        format!("provider `{id}` comes from the settings: change it there, or use another id");
    Refusal::new(Code::ReadOnly, text)
}
