//! Holds the known facts about models: windows, limits, prices, abilities, retirement dates. Pure.
//!
//! `models.jsonl` is made by `generate.py` (`./run catalogue`) from a published price list, one model per
//! line. `openrouter.jsonl` is made by `generate_openrouter.py` from another list, because the first has no
//! models of `openrouter.ai`. `by_hand.jsonl` holds models that both lack. A line is parsed only when its
//! model is looked up.

mod model;
mod price;
mod retirement;
mod succession;
mod vendor;

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::ListedModel;
use sepal_core::domain::Effort;

use self::model::Row;
pub use self::model::{Abilities, Ability, Model, PriceSource, Unwanted};
pub use self::price::{Price, Tier};
pub use self::retirement::Retirement;
pub use self::succession::{family, successor};
pub use self::vendor::Vendor;

/// The list that `generate.py` writes.
const GENERATED: &str = include_str!("models.jsonl");
/// The list that `generate_openrouter.py` writes.
const OPENROUTER: &str = include_str!("openrouter.jsonl");
/// Entries that the generated files lack.
const BY_HAND: &str = include_str!("by_hand.jsonl");
/// Vendors whose models are recognized by name at any address; their prices are not.
const EVERYWHERE: [&str; 3] = ["openai", "anthropic", "gemini"];

/// The JSON line of a model, by vendor and name.
type Index = HashMap<(&'static str, &'static str), &'static str>;

static INDEX: LazyLock<Index> = LazyLock::new(|| index(&[GENERATED, OPENROUTER, BY_HAND]));

/// Context windows of one provider's models, in tokens, as an operator or an admin set them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Windows {
    /// The window of models that the catalogue does not know.
    #[serde(default)]
    pub usual: Option<u64>,
    /// The windows of single models; they override the catalogue.
    #[serde(default)]
    pub of_models: BTreeMap<String, u64>,
}

/// Facts about one provider's models that an operator or an admin set (S3.11).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overrides {
    #[serde(flatten)]
    pub windows: Windows,
    /// Output limits in tokens, by model; they override the catalogue.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub max_outputs: BTreeMap<String, u64>,
    /// The default effort of single models, if the session sets none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub efforts: BTreeMap<String, Effort>,
    /// Prices by model; they override the catalogue.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: BTreeMap<String, Price>,
}

/// The newest date and the hash of `models.jsonl` and `by_hand.jsonl`, as the version of their prices.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let files = [GENERATED, BY_HAND];
    let day = |file: &'static str| {
        let header: serde_json::Value = serde_json::from_str(file.lines().next()?).ok()?;
        Some(header.get("date")?.as_str()?.to_owned())
    };
    let newest = files.into_iter().filter_map(day).max().unwrap_or_default();
    let mut hash = Sha256::new();
    for file in files {
        hash.update(file);
    }
    let hash = hash.finalize();
    let hash = hash
        .iter()
        .take(4)
        .fold(0_u32, |bits, byte| (bits << 8) | u32::from(*byte));
    format!("{newest}-{hash:08x}")
});

/// The price version of prices that an operator or an admin set.
const SAID: &str = "said";

impl Model {
    /// The version of the price: the catalogue's version, or `said` if an operator or an admin set the price;
    /// `None` if the price is unknown.
    pub fn price_version(&self) -> Option<&'static str> {
        let version = match self.price_source {
            PriceSource::Catalogue => VERSION.as_str(),
            PriceSource::Said => SAID,
        };
        (!self.prices.is_empty()).then_some(version)
    }
}

/// Finds a vendor's model, also by a dated version of its name.
pub fn find(vendor: Vendor, model: &str) -> Option<Model> {
    let Some(name) = vendor.name() else {
        let found = EVERYWHERE.iter().find_map(|name| entry(name, model));
        return found.map(Model::elsewhere);
    };
    let mut found = entry(name, model)?;
    if vendor.is_regional() && found.is_regional {
        found.prices.clear();
    }
    Some(found)
}

/// The entry of a model, or conservative guesses for an unknown one, with the overrides applied.
pub fn describe(vendor: Vendor, model: &str, said: &Overrides) -> Model {
    tracing::trace!("Reading the catalogue of models");
    let windows = &said.windows;
    let mut described = find(vendor, model).unwrap_or_else(|| Model::unknown(model));
    if let Some(usual) = windows.usual.filter(|_| described.is_window_assumed) {
        described.set_window(usual);
    }
    if let Some(window) = windows.of_models.get(model) {
        described.set_window(*window);
    }
    if let Some(longest) = said.max_outputs.get(model) {
        described.max_output = *longest;
        described.is_output_assumed = false;
    }
    if let Some(price) = said.prices.get(model) {
        described.prices = vec![price.filled()];
        described.price_source = PriceSource::Said;
    }
    described
}

/// Like [`describe`], with the facts that the provider lists: they override the catalogue, but not
/// the overrides.
pub fn describe_listed(
    vendor: Vendor,
    (model, listed): (&str, Option<&ListedModel>),
    said: &Overrides,
) -> Model {
    let mut described = describe(vendor, model, said);
    let Some(listed) = listed else {
        return described;
    };
    if let Some(name) = &listed.name {
        described.name.clone_from(name);
    }
    if let Some(window) = listed.context_window
        && !said.windows.of_models.contains_key(model)
    {
        described.set_window(window);
    }
    if let Some(longest) = listed.max_output
        && !said.max_outputs.contains_key(model)
    {
        described.max_output = longest;
        described.is_output_assumed = false;
    }
    if let Some(abilities) = &listed.abilities {
        described.abilities.clone_from(abilities);
        described.abilities_are = Abilities::Known;
    }
    described.retires_at = listed.retires_at.or(described.retires_at);
    described
}

/// All entries, for tests.
#[cfg(test)]
fn all() -> impl Iterator<Item = (&'static str, Model)> {
    INDEX
        .iter()
        .filter_map(|((vendor, _), line)| Some((*vendor, read(line)?)))
}

fn entry(vendor: &'static str, model: &str) -> Option<Model> {
    let id = model.strip_prefix("models/").unwrap_or(model);
    // Vertex puts the maker before the name; for OpenRouter the maker is part of the name.
    let id = match vendor {
        "openrouter" => id,
        _ => id.strip_prefix("google/").unwrap_or(id),
    };
    let exact = INDEX.get(&(vendor, id));
    let line = exact.or_else(|| {
        let mut bases = without_version(id);
        bases.find_map(|base| INDEX.get(&(vendor, base)))
    })?;
    read(line)
}

fn read(line: &str) -> Option<Model> {
    // A test checks that every line can be parsed.
    serde_json::from_str::<Row>(line).ok().map(Model::from)
}

/// Builds the index. Earlier files take precedence; headers have no vendor and id and are skipped.
fn index(files: &[&'static str]) -> Index {
    #[derive(Deserialize)]
    struct Key {
        vendor: &'static str,
        id: &'static str,
    }
    let lines = files.iter().rev().flat_map(|file| file.lines());
    lines
        .filter_map(|line| {
            let key: Key = serde_json::from_str(line).ok()?;
            Some(((key.vendor, key.id), line))
        })
        .collect()
}

/// The base names of versions such as `gpt-4o-2024-08-06`, `claude-…-20250929`, `gemini-…-001` and
/// `…-latest`.
fn without_version(id: &str) -> impl Iterator<Item = &str> {
    let is_version = |ending: &str| {
        ending == "latest"
            || ending.len() >= 3 && ending.chars().all(|c| c.is_ascii_digit() || c == '-')
    };
    // The longest base comes first: `claude-opus-4-5-20251101` is not a version of `claude-opus-4`.
    id.rmatch_indices('-')
        .filter(move |&(at, dash)| is_version(id.get(at + dash.len()..).unwrap_or_default()))
        .filter_map(|(at, _)| id.get(..at))
}

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;
