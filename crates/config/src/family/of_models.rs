//! Checks settings for single models in a provider's entry: texts such as `qwen3:8b=40960`.

use serde_json::Value;

use super::{Members, path};
use crate::Problem;
use crate::settings::{model_effort, model_max_output, model_price, model_window};
use crate::table::PROVIDERS;

/// A field with settings for single models.
struct OfModels {
    field: &'static str,
    is_right: fn(&str) -> bool,
    what: &'static str,
    accepted: &'static str,
}

const OF_MODELS: &[OfModels] = &[
    OfModels {
        field: "context_windows",
        is_right: |text| model_window(text).is_some(),
        what: "window",
        accepted: "`model=tokens`, for example `qwen3:8b=40960`",
    },
    OfModels {
        field: "max_outputs",
        is_right: |text| model_max_output(text).is_some(),
        what: "longest answer",
        accepted: "`model=tokens`, for example `qwen3:8b=8192`",
    },
    OfModels {
        field: "efforts",
        is_right: |text| model_effort(text).is_some(),
        what: "effort",
        accepted: "`model=effort`, for example `qwen3:8b=low`; an effort is `off`, `minimal`, `low`, \
                   `medium`, `high`, `max` or a number of tokens",
    },
    OfModels {
        field: "prices",
        is_right: |text| model_price(text).is_some(),
        what: "price",
        accepted: "`model=input/output[/cached[/cache write]]` in US dollars per million tokens, \
                   for example `qwen3:8b=0.1/0.4`",
    },
];

/// Refuses texts that are not valid settings for a model.
pub(super) fn check(entries: &Members, problems: &mut Vec<Problem>) {
    for (name, fields) in entries {
        for OfModels {
            field,
            is_right,
            what,
            accepted,
        } in OF_MODELS
        {
            let Some(given) = fields.get(field) else {
                continue;
            };
            let texts = given.value.as_array().into_iter().flatten();
            let wrong = texts.filter_map(Value::as_str).find(|text| !is_right(text));
            if let Some(wrong) = wrong {
                problems.push(Problem {
                    path: path(&PROVIDERS, name, field),
                    source: Some(given.source.clone()),
                    what: format!("`{wrong}` is no {what} of a model"),
                    accepted: (*accepted).to_owned(),
                });
            }
        }
    }
}
