//! Parses settings for single models: texts such as `qwen3:8b=40960`.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use sepal_core::domain::Effort;

/// The prices of a model, in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelPrice {
    /// Input that is not cached.
    pub input: f64,
    pub output: f64,
    /// Input read from the cache; `None` = the price of other input.
    pub cached: Option<f64>,
    /// Input written to the cache; `None` = the price of other input.
    pub cache_write: Option<f64>,
    /// Input written to the cache for the longer lifetime; `None` = the price of other cache writes.
    pub cache_write_long: Option<f64>,
}

/// The smallest window that can be set, in tokens.
const MIN_WINDOW: u64 = 1_024;

/// The highest price that can be set, in US dollars per million tokens.
const MAX_PRICE: f64 = 1e6;

/// Splits `model=…` at the last `=`; the model's name may contain a `=` itself.
fn of_model(text: &str) -> Option<(String, &str)> {
    let (model, said) = text.rsplit_once('=')?;
    let model = model.trim();
    (!model.is_empty()).then(|| (model.to_owned(), said.trim()))
}

/// Parses a context window: `model=tokens`.
pub(crate) fn model_window(text: &str) -> Option<(String, u64)> {
    let (model, tokens) = of_model(text)?;
    let tokens = tokens.parse().ok()?;
    (MIN_WINDOW..=u64::from(u32::MAX))
        .contains(&tokens)
        .then_some((model, tokens))
}

/// Parses an output limit: `model=tokens`.
pub(crate) fn model_max_output(text: &str) -> Option<(String, u64)> {
    let (model, tokens) = of_model(text)?;
    let tokens = tokens.parse().ok()?;
    (1..=u64::from(u32::MAX))
        .contains(&tokens)
        .then_some((model, tokens))
}

/// Parses an effort: `model=effort`.
pub(crate) fn model_effort(text: &str) -> Option<(String, Effort)> {
    let (model, effort) = of_model(text)?;
    Some((model, effort.parse().ok()?))
}

/// Parses a price: `model=input/output`, optionally with `/cached`, `/cache write` and `/long cache write`.
pub(crate) fn model_price(text: &str) -> Option<(String, ModelPrice)> {
    let (model, said) = of_model(text)?;
    let said = said.split('/').map(|usd| usd.trim().parse().ok());
    let said: Vec<f64> = said.collect::<Option<_>>()?;
    let fits = said.iter().all(|usd| (0.0..=MAX_PRICE).contains(usd));
    let [input, output, ref rest @ ..] = *said.as_slice() else {
        return None;
    };
    let price = ModelPrice {
        input,
        output,
        cached: rest.first().copied(),
        cache_write: rest.get(1).copied(),
        cache_write_long: rest.get(2).copied(),
    };
    let fits = fits && rest.len() <= 3;
    fits.then_some((model, price))
}

pub(super) fn windows<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, u64>, D::Error> {
    by_model(from, model_window)
}

pub(super) fn max_outputs<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, u64>, D::Error> {
    by_model(from, model_max_output)
}

pub(super) fn efforts<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, Effort>, D::Error> {
    by_model(from, model_effort)
}

/// Parses an effort; an empty text counts as `None`.
pub(super) fn effort<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Effort>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    let text = text.filter(|text| !text.trim().is_empty());
    text.map(|text| text.parse().map_err(D::Error::custom))
        .transpose()
}

pub(super) fn prices<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, ModelPrice>, D::Error> {
    by_model(from, model_price)
}

/// Invalid texts were refused before.
fn by_model<'de, D: Deserializer<'de>, T>(
    from: D,
    read: fn(&str) -> Option<(String, T)>,
) -> Result<BTreeMap<String, T>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    Ok(texts.iter().filter_map(|text| read(text)).collect())
}
