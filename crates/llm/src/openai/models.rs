//! The wire form of `GET /models`.

use serde::Deserialize;

use crate::ListedModel;

/// The list, which by the specification is inside an object.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum ModelList {
    Object { data: Vec<ListedForm> },
    Bare(Vec<ListedForm>),
}

#[derive(Deserialize)]
pub(super) struct ListedForm {
    id: String,
    name: Option<String>,
    /// Each server has another name for the window.
    #[serde(
        alias = "max_model_len",
        alias = "context_window",
        alias = "max_context_length"
    )]
    context_length: Option<u64>,
}

impl ModelList {
    pub(super) fn into_listed(self) -> Vec<ListedModel> {
        let (Self::Object { data } | Self::Bare(data)) = self;
        let listed = data.into_iter().map(|model| ListedModel {
            id: model.id,
            name: model.name,
            context_window: model.context_length,
            ..ListedModel::default()
        });
        listed.collect()
    }
}
