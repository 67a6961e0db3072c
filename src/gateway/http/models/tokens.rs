//! Counts the tokens of a text for a model, and reports how exact the count is.

use std::sync::LazyLock;

use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::{Caller, Code};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, required};
use crate::gateway::wire::thousandths;
use crate::gateway::word_list;
use crate::jobs::Pool;
use crate::providers::WantedModel;

/// The longest text that is counted, in bytes.
const MAX_TEXT_BYTES: usize = 512 * 1024;

/// Limits the counts that run at the same time.
static COUNTERS: LazyLock<Pool> = LazyLock::new(|| Pool::new("token counts", 2));

/// A text whose tokens are counted.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct CountTokensRequest {
    /// The text, at most 512 KiB.
    #[schema(required, nullable = false, max_length = 524_288)]
    text: Option<String>,
    /// The name of the model's provider; if absent, the provider that would serve the model.
    provider: Option<String>,
}

/// The number of tokens of a text.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CountedTokens {
    /// The number of tokens.
    tokens: u64,
    /// The method of the count: `exact` by the model's own vocabulary, `calibrated` by four characters per
    /// token and the counts that the provider reported before, `estimated` by four characters per token
    /// alone.
    #[schema(value_type = word_list::TokenMethod)]
    method: &'static str,
    /// The median error of such counts, as a share of the count that the provider reported; absent if nothing
    /// was compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<f64>,
}

/// Counts the tokens of a text for a model. No provider is asked.
#[utoipa::path(post, path = "/api/models/{id}/tokens", tag = "models",
    params(("id" = String, Path, description = "The model's name in requests.")),
    request_body = CountTokensRequest,
    responses((status = 200, body = CountedTokens), (status = 400, body = Problem),
        (status = 401, body = Problem)),
)]
pub(super) async fn count_tokens(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(model): Path<String>,
    Body(body): Body<CountTokensRequest>,
) -> Result<Json<CountedTokens>, ApiError> {
    let text = required("text", body.text)?;
    if text.len() > MAX_TEXT_BYTES {
        let words = format!("a text that is counted has at most {MAX_TEXT_BYTES} bytes");
        return Err(ApiError::of_field(Code::InvalidArguments, "text", words));
    }
    let wanted = WantedModel::new(body.provider, Some(model));
    let (tenant, user) = (&caller.tenant.id, &caller.user.id);
    let choice = state.providers.choose((tenant, user), &wanted, None)?;
    let offer = state.providers.find(tenant, &choice.provider);
    let counter = offer.map_or_else(Default::default, |offer| offer.counter(&choice.model));
    // Run in a pool: a large text takes as long as a slow request, and the first count builds a table.
    let found = COUNTERS.run(move || counter.of_text(&text)).await;
    let tokens = found.map_err(|_| ApiError::new(Code::Internal, "the text was not counted"))?;
    Ok(Json(CountedTokens {
        tokens,
        method: counter.method().as_str(),
        error: counter.error().map(thousandths),
    }))
}
