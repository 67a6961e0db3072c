//! What a model request was for, and its tokens.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Why a model was asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestPurpose {
    /// To go on with a turn.
    #[default]
    Turn,
    /// To summarise what leaves the context.
    Compaction,
    /// To give the session a title.
    Title,
    /// To review a call in the place of a person.
    Review,
    /// To answer a server that samples a model while a call of it runs.
    Sampling,
    /// To see whether the model answers, in no session.
    Probe,
}

impl RequestPurpose {
    /// Its name in journals, tables and answers.
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

    /// Whether it is the usual one, which journals leave out.
    pub fn is_turn(&self) -> bool {
        *self == Self::Turn
    }
}

/// The input tokens of one model request by what they were for. Counted by us, then scaled to what the
/// provider reported, so that the parts are its number exactly.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestParts {
    /// The system prompt.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub system: u64,
    /// Definitions of tools, by server.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, u64>,
    /// What context providers gave beside the history, by source.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub context: BTreeMap<String, u64>,
    /// What people and the model said before the newest message.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub history: u64,
    /// Results of tools.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub results: u64,
    /// What the running turn was asked.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub message: u64,
    /// Pictures and documents.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attachments: u64,
    /// Reasoning that was sent back, as its vendor keeps it.
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
    /// Tokens of all definitions of tools.
    pub fn all_tools(&self) -> u64 {
        let tools = self.tools.values();
        tools.fold(0, |sum, tokens| sum.saturating_add(*tokens))
    }

    /// Tokens of all that context providers gave beside the history.
    pub fn all_context(&self) -> u64 {
        let context = self.context.values();
        context.fold(0, |sum, tokens| sum.saturating_add(*tokens))
    }

    /// All of them together.
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

    /// The same shares of another total, to the unit: what rounding leaves goes to the parts that lost
    /// most by it. Where nothing was counted, all of it is history.
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
        // The largest remainder first, and of equal ones the earlier part.
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
            // The remainder goes to who lost most, then to the first.
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
