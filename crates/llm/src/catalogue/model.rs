//! Describes one model, as read from a line of the catalogue.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::price::{Price, Tier};
use sepal_core::domain::{MicroUsd, TokenUsage};

/// The assumed window of an unknown model, in tokens: the default of small local servers.
const UNKNOWN_WINDOW: u64 = 32_768;
/// The assumed output limit of an unknown model, in tokens.
const UNKNOWN_OUTPUT: u64 = 4_096;

/// One model.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The model's name in requests.
    pub id: String,
    /// The model's name for people.
    pub name: String,
    /// The most tokens of request and answer together, as the vendor counts them.
    pub context_window: u64,
    /// The most tokens of a request, if that is less than the window.
    pub max_input: Option<u64>,
    /// The most tokens of an answer.
    pub max_output: u64,
    /// The prices, by tier and size of the request; empty = unknown.
    pub prices: Vec<Price>,
    /// The source of the prices.
    pub price_source: PriceSource,
    /// The model's abilities.
    pub abilities: Vec<Ability>,
    /// Tells whether the abilities are known or assumed.
    pub abilities_are: Abilities,
    /// Request options that this model refuses although other models accept them.
    pub refuses: Vec<Unwanted>,
    /// The day on which the vendor switches the model off.
    pub retires_at: Option<Date>,
    /// The replacement that the vendor names.
    pub successor: Option<String>,
    /// True if the model costs more at regional addresses of its vendor.
    pub is_regional: bool,
    /// True if the window is a guess.
    pub is_window_assumed: bool,
    /// True if the output limit is a guess.
    pub is_output_assumed: bool,
}

/// The source of a model's price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriceSource {
    Catalogue,
    /// An operator or an admin set it.
    Said,
}

/// An ability of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ability {
    /// Calls tools.
    Tools,
    /// Reads images.
    Images,
    /// Reads PDF files.
    Pdf,
    /// Reasons before it answers.
    Reasoning,
}

/// Tells whether a model's abilities are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abilities {
    Known,
    /// The model is assumed to call tools, and no content is withheld from it.
    Assumed,
}

/// A request option that a model refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unwanted {
    /// Temperature and other sampling parameters.
    Temperature,
    /// Forcing a tool call.
    ForcedToolChoice,
    /// Turning reasoning off.
    NoThinking,
}

/// One line of a catalogue file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    id: String,
    name: Option<String>,
    context_window: Option<u64>,
    max_input: Option<u64>,
    max_output: Option<u64>,
    /// `null` = unknown; absent = the model has no abilities.
    #[serde(default = "none")]
    abilities: Option<Vec<Ability>>,
    #[serde(default)]
    refuses: Vec<Unwanted>,
    retires: Option<Date>,
    successor: Option<String>,
    #[serde(default)]
    is_regional: bool,
    #[serde(default)]
    prices: Vec<Price>,
}

#[expect(clippy::unnecessary_wraps, reason = "it is the field's own form")]
fn none() -> Option<Vec<Ability>> {
    Some(Vec::new())
}

impl From<Row> for Model {
    fn from(row: Row) -> Self {
        let window = row.context_window.unwrap_or(UNKNOWN_WINDOW);
        Self {
            name: row.name.unwrap_or_else(|| row.id.clone()),
            id: row.id,
            context_window: window,
            max_input: row.max_input,
            max_output: row.max_output.unwrap_or(UNKNOWN_OUTPUT.min(window)),
            prices: row.prices,
            price_source: PriceSource::Catalogue,
            abilities_are: match row.abilities {
                Some(_) => Abilities::Known,
                None => Abilities::Assumed,
            },
            abilities: row.abilities.unwrap_or_else(|| vec![Ability::Tools]),
            refuses: row.refuses,
            retires_at: row.retires,
            successor: row.successor,
            is_regional: row.is_regional,
            is_window_assumed: row.context_window.is_none(),
            is_output_assumed: row.max_output.is_none(),
        }
    }
}

impl Model {
    /// The conservative assumptions about an unknown model.
    pub(super) fn unknown(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            name: id.to_owned(),
            context_window: UNKNOWN_WINDOW,
            max_input: None,
            max_output: UNKNOWN_OUTPUT,
            prices: Vec::new(),
            price_source: PriceSource::Catalogue,
            abilities: vec![Ability::Tools],
            abilities_are: Abilities::Assumed,
            refuses: Vec::new(),
            retires_at: None,
            successor: None,
            is_regional: false,
            is_window_assumed: true,
            is_output_assumed: true,
        }
    }

    /// The same model at another host than its vendor's: the host decides price, end and successor.
    pub(super) fn elsewhere(mut self) -> Self {
        self.prices.clear();
        self.retires_at = None;
        self.successor = None;
        self
    }

    /// Sets a known window, in tokens.
    pub fn set_window(&mut self, tokens: u64) {
        self.context_window = tokens;
        self.max_input = self.max_input.filter(|longest| *longest < tokens);
        self.is_window_assumed = false;
    }

    /// Returns true if the model has the ability.
    pub fn can(&self, ability: Ability) -> bool {
        self.abilities.contains(&ability)
    }

    /// The cost of a request in the vendor's standard tier, rounded up; `None` if the price is unknown, which
    /// does not mean free.
    pub fn price(&self, usage: &TokenUsage) -> Option<MicroUsd> {
        self.price_in(Tier::Standard, usage)
    }

    /// The cost of a request in a given tier.
    pub fn price_in(&self, tier: Tier, usage: &TokenUsage) -> Option<MicroUsd> {
        let prices = self.prices.iter();
        let price = prices
            .filter(|price| price.tier == tier && price.holds_for(usage.input_tokens))
            .max_by_key(|price| price.above)?;
        price.of(usage)
    }
}
