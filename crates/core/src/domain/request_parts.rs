//! Describes the purpose of a model request and splits its input tokens by use.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The purpose of a model request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestPurpose {
    /// Continues a turn.
    #[default]
    Turn,
    /// Summarises the entries that leave the context.
    Compaction,
    /// Generates the session's title.
    Title,
    /// Reviews a call in place of a person.
    Review,
    /// Answers a server that requested a completion during one of its calls.
    Sampling,
    /// Tests that the model answers, outside of any session.
    Probe,
}

impl RequestPurpose {
    /// The name in journals, tables and API responses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Compaction => "compaction",
            Self::Title => "title",
            Self::Review => "review",
            Self::Sampling => "sampling",
            Self::Probe => "probe",
        }
    }

    /// Returns true for the default purpose, which journals omit.
    pub fn is_turn(&self) -> bool {
        *self == Self::Turn
    }
}

/// The input tokens of one model request by use. They are counted locally, then scaled so that their sum
/// equals the provider's report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestParts {
    /// The system prompt.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub system: u64,
    /// Definitions of tools, by server.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, u64>,
    /// Contexts from context providers other than the history, by source.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub context: BTreeMap<String, u64>,
    /// Messages and answers before the newest message.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub history: u64,
    /// Results of tools.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub results: u64,
    /// The messages that the running turn answers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub message: u64,
    /// Pictures and documents.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attachments: u64,
    /// Reasoning that is sent back in its vendor's format.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands out references"
)]
fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

impl RequestParts {
    /// Sum of the tool definitions.
    pub fn all_tools(&self) -> u64 {
        let tools = self.tools.values();
        tools.fold(0, |sum, tokens| sum.saturating_add(*tokens))
    }

    /// Sum of the contexts other than the history.
    pub fn all_context(&self) -> u64 {
        let context = self.context.values();
        context.fold(0, |sum, tokens| sum.saturating_add(*tokens))
    }

    /// Sum of all parts.
    pub fn total(&self) -> u64 {
        let others = [
            self.system,
            self.all_context(),
            self.history,
            self.results,
            self.message,
            self.attachments,
            self.reasoning,
        ];
        let others = others.into_iter();
        others.fold(self.all_tools(), u64::saturating_add)
    }

    /// Scales the parts to another total, exactly: the units that rounding leaves over go to the parts with
    /// the largest remainders. If nothing was counted, all of the total is history.
    #[must_use]
    pub fn scaled_to(mut self, total: u64) -> Self {
        let counted = self.total();
        if counted == 0 {
            self.history = total;
            return self;
        }
        let mut left = total;
        let mut remainders = Vec::new();
        for (place, part) in self.each().enumerate() {
            let scaled = u128::from(*part).saturating_mul(u128::from(total));
            let share = scaled / u128::from(counted);
            *part = u64::try_from(share).unwrap_or(total);
            left = left.saturating_sub(*part);
            remainders.push((scaled % u128::from(counted), place));
        }
        // Largest remainder first; the earlier part wins a tie.
        remainders.sort_by(|(one, first), (other, second)| other.cmp(one).then(first.cmp(second)));
        let rounded_up: Vec<usize> = remainders
            .into_iter()
            .take(usize::try_from(left).unwrap_or(usize::MAX))
            .map(|(_, place)| place)
            .collect();
        for (place, part) in self.each().enumerate() {
            *part += u64::from(rounded_up.contains(&place));
        }
        self
    }

    fn each(&mut self) -> impl Iterator<Item = &mut u64> {
        let others = [
            &mut self.system,
            &mut self.history,
            &mut self.results,
            &mut self.message,
            &mut self.attachments,
            &mut self.reasoning,
        ];
        let named = self.tools.values_mut().chain(self.context.values_mut());
        others.into_iter().chain(named)
    }
}

#[cfg(test)]
mod tests {
    use super::RequestParts;

    fn parts(system: u64, history: u64, tools: &[(&str, u64)]) -> RequestParts {
        let tools = tools.iter().map(|(name, tokens)| ((*name).into(), *tokens));
        RequestParts {
            system,
            history,
            tools: tools.collect(),
            ..RequestParts::default()
        }
    }

    #[test]
    fn scaled_parts_are_the_reported_number_to_the_unit() {
        for (counted, total, expected) in [
            (parts(1, 1, &[("a", 1)]), 3, parts(1, 1, &[("a", 1)])),
            // The leftover unit goes to the largest remainder, then to the first part.
            (parts(1, 1, &[("a", 1)]), 4, parts(2, 1, &[("a", 1)])),
            (parts(1, 1, &[("a", 1)]), 5, parts(2, 2, &[("a", 1)])),
            (
                parts(10, 0, &[("a", 5), ("b", 3)]),
                9,
                parts(5, 0, &[("a", 3), ("b", 1)]),
            ),
            (parts(10, 5, &[]), 0, parts(0, 0, &[])),
            (parts(0, 0, &[]), 7, parts(0, 7, &[])),
            (
                parts(u64::MAX / 2, 1, &[]),
                u64::MAX,
                parts(u64::MAX - 2, 2, &[]),
            ),
        ] {
            let scaled = counted.clone().scaled_to(total);
            assert_eq!(scaled.total(), total, "{counted:?}");
            assert_eq!(scaled, expected, "{counted:?} to {total}");
        }
    }
}
