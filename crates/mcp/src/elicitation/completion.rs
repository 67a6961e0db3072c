//! Converts the answer to a sampling request into the protocol's form.

#![expect(
    deprecated,
    reason = "SEP-2577 ends sampling in a later revision; today's servers use it"
)]

use rmcp::ErrorData;
use rmcp::model::{CreateMessageResult, ErrorCode};
use serde_json::Value;

use super::question::FormAnswer;

/// The protocol's error code for a request that a person refused.
const REJECTED: ErrorCode = ErrorCode(-1);

/// Returns the completion or the error that the server receives.
pub(super) fn result(answer: FormAnswer) -> Result<CreateMessageResult, ErrorData> {
    let rejected = |text: &'static str| ErrorData::new(REJECTED, text, None);
    match answer {
        FormAnswer::Accept(Some(content)) => serde_json::from_value(content)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None)),
        FormAnswer::Failed(code) => Err(ErrorData::internal_error(
            format!("no model answered (`{code}`)"),
            Some(Value::from(code)),
        )),
        FormAnswer::Accept(None) | FormAnswer::Decline => {
            Err(rejected("User rejected sampling request"))
        }
        FormAnswer::Cancel => Err(rejected("the sampling request was cancelled")),
    }
}

/// Returns the error for a server that samples while none of its calls runs.
pub(super) fn without_call() -> ErrorData {
    let text = "a model is asked only while a call of the server runs";
    ErrorData::invalid_request(text, None)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_server_hears_no_as_the_protocol_says_it_and_nothing_of_a_failure_but_its_code() {
        assert_eq!(result(FormAnswer::Decline).unwrap_err().code, ErrorCode(-1));
        assert_eq!(result(FormAnswer::Cancel).unwrap_err().code, ErrorCode(-1));
        let failed = result(FormAnswer::Failed("budget_exhausted")).unwrap_err();
        assert_eq!(failed.code, ErrorCode::INTERNAL_ERROR);
        assert!(failed.message.contains("budget_exhausted"));
        let content = json!({
            "role": "assistant", "content": { "type": "text", "text": "4" }, "model": "m",
            "stopReason": "endTurn",
        });
        let answer = result(FormAnswer::Accept(Some(content))).unwrap();
        assert_eq!(
            (answer.model.as_str(), answer.stop_reason.as_deref()),
            ("m", Some("endTurn"))
        );
    }
}
