//! Plans the thinking parameters of a request, and the parameters that depend on them. Pure.

mod refusal;

use std::collections::BTreeSet;

pub(in crate::anthropic) use self::refusal::{Sent, refused_part};
use crate::Request;
use crate::anthropic::wire::{Message, Role, Thinking};
use crate::request::learned;
use sepal_core::domain::Effort;

/// The vendor requires a limit of the answer; this is the default (D16).
const DEFAULT_MAX_TOKENS: u32 = 8_192;
/// The default limit of an answer that starts with thoughts, which count toward it.
const DEFAULT_WITH_THOUGHTS: u32 = 24_576;
/// The smallest thinking budget that the vendor accepts.
const LEAST_BUDGET: u32 = 1_024;
/// Tokens that a thinking budget leaves for the answer itself, if the limit allows it.
const ANSWER: u32 = 4_096;

/// A request parameter that a model refused or is known to refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::anthropic) enum Part {
    Temperature,
    /// `thinking.type` `adaptive`.
    Adaptive,
    /// `thinking.type` `enabled` with a budget.
    Budget,
    /// Turning thinking off.
    Off,
    Effort,
    /// The effort `max`.
    MaxEffort,
    /// `thinking.display`.
    Display,
    /// The lifetime of cache entries.
    CacheTtl,
    /// The vendor's tool search.
    ToolSearch,
    /// Compaction by the vendor.
    Compaction,
}

impl learned::Part for Part {}

/// The way in which a model is told how much to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// The model does not think.
    Never,
    /// By a token budget, before the first call.
    Budget,
    /// By a token budget, and between calls if a beta header asks for it.
    Interleaved,
    /// By an effort; the model decides when and how long to think.
    Adaptive,
}

/// The way in which a model is told not to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Still {
    /// `disabled`.
    Disabled,
    /// The model thinks between calls only.
    BetweenTools,
    /// The model always thinks.
    Impossible,
}

/// The parameters that a family of models accepts, from a version on.
struct Row {
    /// The model family; empty = every family.
    family: &'static str,
    since: (u32, u32),
    style: Style,
    still: Still,
    takes_temperature: bool,
    /// True if the model thinks when the request does not mention thinking.
    thinks_unasked: bool,
}

const fn row(family: &'static str, since: (u32, u32), style: Style, still: Still) -> Row {
    Row {
        family,
        since,
        style,
        still,
        takes_temperature: true,
        thinks_unasked: false,
    }
}

impl Row {
    const fn without_temperature(mut self) -> Self {
        self.takes_temperature = false;
        self
    }

    const fn unasked(mut self) -> Self {
        self.thinks_unasked = true;
        self
    }
}

/// The known models of the vendor; the last matching row applies.
const MODELS: &[Row] = &[
    row("", (0, 0), Style::Never, Still::Disabled),
    row("", (3, 7), Style::Budget, Still::Disabled),
    row("", (4, 0), Style::Interleaved, Still::Disabled),
    row("", (4, 6), Style::Adaptive, Still::Disabled),
    row("", (4, 7), Style::Adaptive, Still::Disabled).without_temperature(),
    row("", (5, 0), Style::Adaptive, Still::Disabled)
        .without_temperature()
        .unasked(),
    row("haiku", (5, 0), Style::Adaptive, Still::Disabled).unasked(),
    row("sonnet", (5, 5), Style::Adaptive, Still::BetweenTools)
        .without_temperature()
        .unasked(),
    row("opus", (5, 5), Style::Adaptive, Still::Impossible)
        .without_temperature()
        .unasked(),
    row("fable", (0, 0), Style::Adaptive, Still::Impossible)
        .without_temperature()
        .unasked(),
    row("mythos", (0, 0), Style::Adaptive, Still::Impossible)
        .without_temperature()
        .unasked(),
];

/// Another vendor's model that speaks Messages: accepts the parameters that the API had for the longest time.
const FOREIGN: Row = row("", (0, 0), Style::Budget, Still::Disabled);

/// The parameters of a request beside its messages.
#[derive(Debug, Default, PartialEq)]
pub(in crate::anthropic) struct Plan {
    pub(in crate::anthropic) max_tokens: u32,
    pub(in crate::anthropic) temperature: Option<f64>,
    pub(in crate::anthropic) thinking: Option<Thinking>,
    pub(in crate::anthropic) effort: Option<&'static str>,
    /// True if the beta header for thinking between calls is needed.
    pub(in crate::anthropic) is_interleaved: bool,
    /// Parameters that were asked for and are not sent, each with a message for people.
    pub(in crate::anthropic) left_out: Vec<(Part, String)>,
}

/// Plans thinking, temperature, effort and the output limit. `longest` is the model's output limit; `refused`
/// are the parameters that it has refused before.
pub(in crate::anthropic) fn plan(
    request: &Request,
    longest: Option<u32>,
    refused: &BTreeSet<Part>,
) -> Plan {
    let row = known(&request.model);
    let wanted = request.max_tokens.filter(|&limit| limit > 0);
    let is_still = request.effort == Some(Effort::Off) && row.still != Still::Impossible;
    let thinks_unasked = row.thinks_unasked && !is_still;
    let usual = if thinks_unasked {
        DEFAULT_WITH_THOUGHTS
    } else {
        DEFAULT_MAX_TOKENS
    };
    let at_most = |tokens: u32| {
        let limits = longest.into_iter().chain(request.affordable);
        limits.fold(tokens, u32::min)
    };
    let mut plan = Plan {
        max_tokens: at_most(wanted.unwrap_or(usual)),
        ..Plan::default()
    };
    match request.effort {
        None => {}
        Some(Effort::Off) => plan.stay_still(row, &request.model, refused),
        Some(effort) => {
            let thinking_limit = at_most(wanted.unwrap_or(DEFAULT_WITH_THOUGHTS));
            match style(row, refused) {
                Style::Never => {
                    let text = format!("`{}` does not think", request.model);
                    plan.leave_out(Part::Budget, text);
                }
                Style::Adaptive => {
                    plan.max_tokens = thinking_limit;
                    plan.adapt(effort, refused);
                }
                style @ (Style::Budget | Style::Interleaved) => {
                    plan.give(effort, thinking_limit, &request.model);
                    plan.is_interleaved = style == Style::Interleaved && plan.is_thinking();
                }
            }
        }
    }
    plan.set_temperature(request, row.takes_temperature, refused);
    plan
}

/// Returns true if the running turn starts with an answer that has calls and no thoughts, such as another
/// model's. A model that thinks by a budget refuses to think in such a turn.
pub(in crate::anthropic) fn began_without_thoughts(messages: &[Message<'_>]) -> bool {
    let Some((last, before)) = messages.split_last() else {
        return false;
    };
    if !last.has_results() {
        return false;
    }
    let of_turn = before.iter().rev();
    let of_turn =
        of_turn.take_while(|message| message.role == Role::Assistant || message.has_results());
    let first = of_turn
        .filter(|message| message.role == Role::Assistant)
        .last();
    first.is_some_and(|first| !first.begins_with_thought())
}

impl Plan {
    /// Returns true if thinking is enabled with a budget.
    pub(in crate::anthropic) fn has_budget(&self) -> bool {
        matches!(self.thinking, Some(Thinking::Enabled { .. }))
    }

    fn is_thinking(&self) -> bool {
        matches!(
            self.thinking,
            Some(Thinking::Enabled { .. } | Thinking::Adaptive { .. })
        )
    }

    fn leave_out(&mut self, part: Part, text: String) {
        self.left_out.push((part, text));
    }

    fn adapt(&mut self, effort: Effort, refused: &BTreeSet<Part>) {
        let display = (!refused.contains(&Part::Display)).then_some("summarized");
        self.thinking = Some(Thinking::Adaptive { display });
        if !refused.contains(&Part::Effort) {
            let level = match effort.level() {
                Effort::Off | Effort::Minimal | Effort::Low => "low",
                Effort::Medium => "medium",
                Effort::Max if !refused.contains(&Part::MaxEffort) => "max",
                Effort::High | Effort::Max | Effort::Budget(_) => "high",
            };
            self.effort = Some(level);
        }
    }

    /// Sets a thinking budget below the output limit, which covers both thoughts and answer.
    fn give(&mut self, effort: Effort, limit: u32, model: &str) {
        let room = limit.saturating_sub(ANSWER.min(limit / 4));
        if room < LEAST_BUDGET {
            let text =
                format!("an answer of at most {limit} tokens leaves `{model}` no room to think");
            self.leave_out(Part::Budget, text);
            return;
        }
        self.max_tokens = limit;
        let budget_tokens = effort.tokens(room).clamp(LEAST_BUDGET, room);
        self.thinking = Some(Thinking::Enabled { budget_tokens });
    }

    fn stay_still(&mut self, row: &Row, model: &str, refused: &BTreeSet<Part>) {
        let still = if refused.contains(&Part::Off) {
            Still::Impossible
        } else {
            row.still
        };
        match (still, row.style) {
            (_, Style::Never) => {}
            (Still::Disabled, _) => self.thinking = Some(Thinking::Disabled),
            (Still::BetweenTools, _) => self.thinking = Some(Thinking::BetweenTools),
            (Still::Impossible, style) => {
                let takes_effort = style == Style::Adaptive && !refused.contains(&Part::Effort);
                self.effort = takes_effort.then_some("low");
                let text =
                    format!("`{model}` always thinks; it is asked to think as little as it can");
                self.leave_out(Part::Off, text);
            }
        }
    }

    fn set_temperature(&mut self, request: &Request, is_taken: bool, refused: &BTreeSet<Part>) {
        let Some(temperature) = request.temperature else {
            return;
        };
        let model = &request.model;
        if !is_taken || refused.contains(&Part::Temperature) {
            self.leave_out(Part::Temperature, format!("`{model}` takes no temperature"));
        } else if self.is_thinking() {
            let text = format!("`{model}` takes no temperature while it thinks");
            self.leave_out(Part::Temperature, text);
        } else {
            self.temperature = Some(temperature);
        }
    }
}

/// The style to use after refusals: the adaptive and budget styles replace each other.
fn style(row: &Row, refused: &BTreeSet<Part>) -> Style {
    let (adaptive, budget) = (
        !refused.contains(&Part::Adaptive),
        !refused.contains(&Part::Budget),
    );
    match row.style {
        Style::Adaptive if adaptive => Style::Adaptive,
        style @ (Style::Budget | Style::Interleaved) if budget => style,
        Style::Adaptive if budget => Style::Budget,
        Style::Budget | Style::Interleaved if adaptive => Style::Adaptive,
        Style::Never | Style::Budget | Style::Interleaved | Style::Adaptive => Style::Never,
    }
}

/// The row of a model, found by family and version in names such as `claude-opus-4-1-20250805`,
/// `claude-3-5-haiku-latest` and `anthropic.claude-opus-5-5`.
fn known(model: &str) -> &'static Row {
    let Some((family, version)) = family_and_version(model) else {
        return &FOREIGN;
    };
    let rows = MODELS.iter().rev();
    let mut rows = rows.filter(|row| row.family.is_empty() || row.family == family);
    rows.find(|row| row.since <= version).unwrap_or(&FOREIGN)
}

/// Returns true if the model supports the vendor's tool search (Anthropic, tool search, 2026-10).
pub(in crate::anthropic) fn has_tool_search(model: &str) -> bool {
    let known = family_and_version(model);
    known.is_some_and(|(family, version)| version >= (4, 5) || matches!(family, "fable" | "mythos"))
}

fn family_and_version(model: &str) -> Option<(&str, (u32, u32))> {
    let (_, name) = model.split_once("claude-")?;
    let (mut family, mut version) = ("", Vec::new());
    for word in name.split(|c: char| !c.is_ascii_alphanumeric()) {
        match word.parse::<u32>() {
            // A longer number is a date.
            Ok(number) if word.len() <= 2 && version.len() < 2 => version.push(number),
            Ok(_) => break,
            Err(_) if family.is_empty() => family = word,
            Err(_) => {}
        }
    }
    let version = (
        version.first().copied().unwrap_or_default(),
        version.get(1).copied().unwrap_or_default(),
    );
    Some((family, version))
}

#[cfg(test)]
mod tests;
