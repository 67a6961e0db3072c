//! The wire form of `GET /v1/models`. Compatible servers may omit most fields.

use serde::Deserialize;

use crate::ListedModel;
use crate::catalogue::Ability;

/// One page of the list.
#[derive(Deserialize)]
pub(super) struct ModelList {
    pub(super) data: Vec<ListedForm>,
    #[serde(default)]
    pub(super) has_more: bool,
    #[serde(default)]
    pub(super) last_id: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct ListedForm {
    id: String,
    #[serde(default)]
    display_name: Option<String>,
    #[serde(default)]
    max_input_tokens: Option<u64>,
    #[serde(default)]
    max_tokens: Option<u64>,
    #[serde(default)]
    lifecycle: Option<String>,
    #[serde(default)]
    retires_at: Option<String>,
    #[serde(default)]
    capabilities: Option<Capabilities>,
}

#[derive(Deserialize)]
struct Capabilities {
    #[serde(default)]
    image_input: Support,
    #[serde(default)]
    pdf_input: Support,
    #[serde(default)]
    thinking: Support,
}

#[derive(Default, Deserialize)]
struct Support {
    #[serde(default)]
    supported: bool,
}

impl ListedForm {
    /// Returns true if the model is listed for the record only: requests that name it fail.
    pub(super) fn is_retired(&self) -> bool {
        self.lifecycle.as_deref() == Some("retired")
    }

    /// Converts the entry to a [`ListedModel`].
    pub(super) fn model(self) -> ListedModel {
        let retires_at = self.retires_at.as_deref();
        let retires_at = retires_at.and_then(|at| at.parse::<jiff::Timestamp>().ok());
        ListedModel {
            id: self.id,
            name: self.display_name,
            context_window: self.max_input_tokens,
            max_output: self.max_tokens,
            abilities: self.capabilities.as_ref().map(Capabilities::abilities),
            retires_at: retires_at.map(|at| jiff::tz::TimeZone::UTC.to_datetime(at).date()),
        }
    }
}

impl Capabilities {
    /// The model's abilities; all of the vendor's models can call tools.
    fn abilities(&self) -> Vec<Ability> {
        let said = [
            (true, Ability::Tools),
            (self.image_input.supported, Ability::Images),
            (self.pdf_input.supported, Ability::Pdf),
            (self.thinking.supported, Ability::Reasoning),
        ];
        let can = said.into_iter().filter(|(can, _)| *can);
        can.map(|(_, ability)| ability).collect()
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use serde_json::json;

    use super::ModelList;
    use crate::ListedModel;
    use crate::catalogue::Ability;

    #[test]
    fn limits_abilities_and_the_end_are_read_where_they_are_said() {
        let page = json!({"has_more": false, "data": [
            {
                "id": "claude-new", "type": "model", "display_name": "Claude New",
                "created_at": "2026-11-01T00:00:00Z", "lifecycle": "deprecated",
                "retires_at": "2027-03-01T08:00:00Z", "max_input_tokens": 1_000_000, "max_tokens": 128_000,
                "capabilities": {
                    "image_input": {"supported": true}, "pdf_input": {"supported": false},
                    "thinking": {"supported": true, "types": {"adaptive": {"supported": true}}},
                },
            },
            {"id": "claude-old", "lifecycle": "retired", "retires_at": "2026-01-05T00:00:00Z"},
            {"id": "resembling", "retires_at": "some day"},
        ]});
        let page: ModelList = serde_json::from_value(page).unwrap();
        let living = page.data.into_iter().filter(|model| !model.is_retired());
        let living: Vec<ListedModel> = living.map(super::ListedForm::model).collect();
        let new = ListedModel {
            id: "claude-new".to_owned(),
            name: Some("Claude New".to_owned()),
            context_window: Some(1_000_000),
            max_output: Some(128_000),
            abilities: Some(vec![Ability::Tools, Ability::Images, Ability::Reasoning]),
            retires_at: Some(date(2027, 3, 1)),
        };
        let resembling = ListedModel {
            id: "resembling".to_owned(),
            ..ListedModel::default()
        };
        assert_eq!(living, [new, resembling]);
    }
}
