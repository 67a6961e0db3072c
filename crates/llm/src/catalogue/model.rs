//! One model, as the catalogue's line says it.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::price::{Price, Tier};
use sepal_core::domain::{MicroUsd, TokenUsage};

/// The window of a model that nobody described: what small local servers start with.
const UNKNOWN_WINDOW: u64 = 32_768;
/// Its longest answer.
const UNKNOWN_OUTPUT: u64 = 4_096;

/// One model.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Its name in requests.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Tokens of request and answer together, as the vendor counts them.
    pub context_window: u64,
    /// Tokens of the longest request, where that is less than the window.
    pub max_input: Option<u64>,
    /// Tokens of the longest answer.
    pub max_output: u64,
    /// What it costs, by tier and size of the request; empty = unknown.
    pub prices: Vec<Price>,
    /// Who says what it costs.
    pub price_source: PriceSource,
    /// What it can do.
    pub abilities: Vec<Ability>,
    /// Whether somebody said what it can do.
    pub abilities_are: Abilities,
    /// What it refuses although others take it.
    pub refuses: Vec<Unwanted>,
    /// The day on which its vendor switches it off.
    pub retires_at: Option<Date>,
    /// What the vendor names instead of it.
    pub successor: Option<String>,
    /// Whether the same model costs more at regional addresses of its vendor.
    pub is_regional: bool,
    /// Whether nobody said how large the window is.
    pub is_window_assumed: bool,
    /// Whether nobody said how long an answer may be.
    pub is_output_assumed: bool,
}

/// Who says what a model costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriceSource {
    Catalogue,
    /// An operator, or an admin.
    Said,
}

/// What a model can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ability {
    /// Asks for tools.
    Tools,
    /// Reads images.
    Images,
    /// Reads PDF files.
    Pdf,
    /// Thinks before it answers.
    Reasoning,
}

/// Whether somebody said what a model can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abilities {
    Known,
    /// It is taken to ask for tools, and nothing is refused to it.
    Assumed,
}

/// What a model refuses in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unwanted {
    /// Temperature and its relatives.
    Temperature,
    /// That a call of a tool is forced.
    ForcedToolChoice,
    /// That thinking is switched off.
    NoThinking,
}

/// A line of the file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    id: String,
    name: Option<String>,
    context_window: Option<u64>,
    max_input: Option<u64>,
    max_output: Option<u64>,
    /// `null` = nobody knows; absent = none.
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
    /// What is taken for granted of a model that nobody described.
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

    /// The same model at somebody who is not its vendor: price and end are theirs to say.
    pub(super) fn elsewhere(mut self) -> Self {
        self.prices.clear();
        self.retires_at = None;
        self.successor = None;
        self
    }

    /// Takes a window that somebody said.
    pub fn set_window(&mut self, tokens: u64) {
        self.context_window = tokens;
        self.max_input = self.max_input.filter(|longest| *longest < tokens);
        self.is_window_assumed = false;
    }

    /// Whether it can do that.
    pub fn can(&self, ability: Ability) -> bool {
        self.abilities.contains(&ability)
    }

    /// What a request cost in the vendor's usual tier, rounded up; none = the price is unknown,
    /// which is not free.
    pub fn price(&self, usage: &TokenUsage) -> Option<MicroUsd> {
        self.price_in(Tier::Standard, usage)
    }

    /// The same in another tier.
    pub fn price_in(&self, tier: Tier, usage: &TokenUsage) -> Option<MicroUsd> {
        let prices = self.prices.iter();
        let price = prices
            .filter(|price| price.tier == tier && price.holds_for(usage.input_tokens))
            .max_by_key(|price| price.above)?;
        price.of(usage)
    }
}
