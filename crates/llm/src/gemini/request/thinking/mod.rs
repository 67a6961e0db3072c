//! Plans the thinking parameters of a Gemini request, and the parameters beside them. Pure.

use std::collections::BTreeSet;

use crate::Request;
use crate::gemini::wire::{GenerationConfig, ThinkingConfig};
use crate::request::learned;
use sepal_core::domain::Effort;

/// A request parameter that a model refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::gemini) enum Part {
    Temperature,
    /// `thinkingLevel` `minimal`.
    Minimal,
    /// `thinkingLevel` `medium`.
    Medium,
    /// `thinkingLevel` with any value.
    Level,
    /// A `thinkingBudget` of 0.
    NoBudget,
    /// `thinkingBudget` with any value.
    Budget,
}

impl learned::Part for Part {}

/// The way in which a model is told how much to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// The model does not think.
    Never,
    /// By a token budget.
    Budget {
        least: u32,
        most: u32,
        can_be_off: bool,
    },
    /// By a level; `has_minimal` tells whether `minimal` is one of the levels.
    Level { has_minimal: bool },
}

/// A budget range that every model with a thinking budget accepts.
const ANY_BUDGET: Style = Style::Budget {
    least: 512,
    most: 24_576,
    can_be_off: true,
};

/// The parameters of a request beside its contents.
#[derive(Debug, Default, PartialEq)]
pub(in crate::gemini) struct Plan {
    pub(in crate::gemini) temperature: Option<f64>,
    pub(in crate::gemini) max_output_tokens: Option<u32>,
    pub(in crate::gemini) thinking: Option<ThinkingConfig>,
    /// Parameters that were asked for and are not sent, each with a message for people.
    pub(in crate::gemini) left_out: Vec<(Part, String)>,
}

/// Plans temperature, thinking and the output limit; `refused` are the parameters that the model has refused
/// before.
pub(in crate::gemini) fn plan(request: &Request, refused: &BTreeSet<Part>) -> Plan {
    let model = &request.model;
    let mut plan = Plan {
        temperature: request.temperature,
        max_output_tokens: request.longest_answer(),
        ..Plan::default()
    };
    if plan.temperature.is_some() && refused.contains(&Part::Temperature) {
        plan.temperature = None;
        let text = format!("`{model}` takes no temperature");
        plan.left_out.push((Part::Temperature, text));
    }
    let Some(effort) = request.effort else {
        return plan;
    };
    match style(model, refused) {
        Style::Never if effort == Effort::Off => {}
        Style::Never => {
            let text = format!("`{model}` does not think");
            plan.left_out.push((Part::Budget, text));
        }
        Style::Level { has_minimal } => plan.set_level(effort, has_minimal, (model, refused)),
        Style::Budget {
            least,
            most,
            can_be_off,
        } => {
            let budget = match effort {
                Effort::Off if can_be_off => 0,
                Effort::Off => least,
                Effort::Minimal
                | Effort::Low
                | Effort::Medium
                | Effort::High
                | Effort::Max
                | Effort::Budget(_) => plan.room(effort, most).clamp(least, most),
            };
            plan.thinking = Some(ThinkingConfig {
                include_thoughts: effort != Effort::Off,
                thinking_budget: Some(budget),
                thinking_level: None,
            });
            if effort == Effort::Off && !can_be_off {
                plan.say_always(model);
            }
        }
    }
    plan
}

impl Plan {
    /// The `generationConfig` of the body; `None` if nothing is set.
    pub(in crate::gemini) fn config(&self) -> Option<GenerationConfig> {
        let is_set = self.temperature.is_some()
            || self.max_output_tokens.is_some()
            || self.thinking.is_some();
        is_set.then_some(GenerationConfig {
            temperature: self.temperature,
            max_output_tokens: self.max_output_tokens,
            thinking_config: self.thinking,
        })
    }

    /// The thinking budget for an effort, which leaves at least a quarter of the output limit for the answer.
    fn room(&self, effort: Effort, most: u32) -> u32 {
        let limit = self.max_output_tokens.map(|limit| limit / 4 * 3);
        effort.tokens(limit.map_or(most, |limit| limit.min(most)))
    }

    fn set_level(&mut self, effort: Effort, has_minimal: bool, of: (&str, &BTreeSet<Part>)) {
        let (model, refused) = of;
        let level = match effort.level() {
            Effort::Off | Effort::Minimal if has_minimal => "minimal",
            Effort::Off | Effort::Minimal | Effort::Low => "low",
            Effort::Medium if !refused.contains(&Part::Medium) => "medium",
            Effort::Medium | Effort::High | Effort::Max | Effort::Budget(_) => "high",
        };
        self.thinking = Some(ThinkingConfig {
            include_thoughts: effort != Effort::Off,
            thinking_budget: None,
            thinking_level: Some(level),
        });
        if effort == Effort::Off {
            self.say_always(model);
        }
    }

    fn say_always(&mut self, model: &str) {
        let text = format!("`{model}` always thinks; it is asked to think as little as it can");
        self.left_out.push((Part::NoBudget, text));
    }
}

/// The sent parameter that an error message names; `None` if the error is about something else.
pub(in crate::gemini) fn refused_part(words: &str, plan: &Plan) -> Option<Part> {
    let words = words.to_ascii_lowercase();
    let names = |part: &str| words.contains(part);
    if plan.temperature.is_some() && names("temperature") {
        return Some(Part::Temperature);
    }
    let thinking = plan.thinking?;
    if !names("thinking") && !names("budget") || names("signature") {
        return None;
    }
    Some(match (thinking.thinking_level, thinking.thinking_budget) {
        (Some("minimal"), _) if names("minimal") => Part::Minimal,
        (Some("medium"), _) if names("medium") => Part::Medium,
        (Some(_), _) => Part::Level,
        (None, Some(0)) => Part::NoBudget,
        (None, _) => Part::Budget,
    })
}

/// Returns true if the model requires the signatures of its calls: models from the third generation on, and
/// models whose name gives no generation.
pub(in crate::gemini) fn wants_signatures(model: &str) -> bool {
    generation(model).is_none_or(|generation| generation >= (3, 0))
}

fn style(model: &str, refused: &BTreeSet<Part>) -> Style {
    let can_be_off = !refused.contains(&Part::NoBudget);
    let known = match known(model) {
        Style::Level { .. } if refused.contains(&Part::Level) => ANY_BUDGET,
        Style::Level { has_minimal } => Style::Level {
            has_minimal: has_minimal && !refused.contains(&Part::Minimal),
        },
        style @ (Style::Never | Style::Budget { .. }) => style,
    };
    match known {
        Style::Budget { .. } if refused.contains(&Part::Budget) => Style::Never,
        Style::Budget {
            least,
            most,
            can_be_off: off,
        } => Style::Budget {
            least,
            most,
            can_be_off: off && can_be_off,
        },
        style @ (Style::Never | Style::Level { .. }) => style,
    }
}

/// The thinking style of a model, by its name.
fn known(model: &str) -> Style {
    let model = model.strip_prefix("models/").unwrap_or(model);
    let is_lite = model.contains("flash-lite");
    match generation(model) {
        Some(generation) if generation < (2, 5) => Style::Never,
        Some((2, _)) if model.contains("pro") => Style::Budget {
            least: 128,
            most: 32_768,
            can_be_off: false,
        },
        Some((2, _)) if is_lite => ANY_BUDGET,
        Some((2, _)) => Style::Budget {
            least: 1,
            most: 24_576,
            can_be_off: true,
        },
        // Some of the other models accept `minimal` and some refuse it; refusals are learned.
        Some(_) | None => Style::Level {
            has_minimal: is_lite || model.starts_with("gemini-3-flash"),
        },
    }
}

/// The generation in a model's name: `gemini-2.5-pro` has (2, 5), `gemini-4-argon` has (4, 0),
/// `gemini-flash-latest` has none.
fn generation(model: &str) -> Option<(u32, u32)> {
    let model = model.strip_prefix("models/").unwrap_or(model);
    let version = model.strip_prefix("gemini-")?.split('-').next()?;
    let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests;
