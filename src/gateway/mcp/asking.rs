//! Asks the questions of clients, and builds their tool results.

use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::json;

use super::question::{Door, Ending, Question, QuestionText};
use super::{Exposure, Life};
use crate::agent::{Sessions, limit_reached};
use crate::domain::{Caller, Resource, Share, Shares};
use crate::session::Refusal;

/// The limit on concurrent questions to the agent.
const QUESTIONS: Resource = Resource {
    name: "questions",
    plural: "questions that are being answered",
    remedy: "wait for an answer",
    total: "runtime.limits.questions",
    setting: "runtime.limits.questions",
};

/// The state that the questions of all clients share.
#[derive(Clone)]
pub(super) struct Asking {
    pub(super) sessions: Sessions,
    pub(super) exposure: Arc<Exposure>,
    pub(super) life: Life,
    /// The counters of running questions.
    pub(super) questions: Arc<Shares>,
}

impl Asking {
    /// Asks on a separate task, so that the turn is still stopped in order if the client leaves.
    pub(super) async fn answer(
        &self,
        caller: Caller,
        asked: QuestionText,
        door: impl Door + 'static,
    ) -> CallToolResult {
        let share = match self.share(&caller) {
            Ok(share) => share,
            Err(refusal) => return result(Err(refusal)),
        };
        let stop = self.life.stop.child_token();
        let _stops = stop.clone().drop_guard();
        let (sessions, exposure) = (self.sessions.clone(), Arc::clone(&self.exposure));
        let asking = self.life.tasks.spawn(async move {
            let question = Question {
                sessions: &sessions,
                caller: &caller,
                ways: &exposure.approval,
                has_page: exposure.has_page,
                limit: exposure.turn_limit,
                stop,
            };
            let asked = question.ask(asked, &door).await;
            // The question counts until the turn has stopped, even if its client left earlier.
            drop(share);
            asked
        });
        match asking.await {
            Ok(asked) => result(asked.map(|(_, ending)| ending)),
            Err(error) => {
                tracing::error!(%error, "A question broke off");
                CallToolResult::error(vec![ContentBlock::text("internal error")])
            }
        }
    }

    /// Counts one more question of the caller.
    pub(super) fn share(&self, caller: &Caller) -> Result<Share, Refusal> {
        let share = self.questions.take(caller.holder(), 1);
        share.map_err(|reached| limit_reached(&QUESTIONS, reached))
    }
}

/// Builds the tool's result: the answer as text, or the error.
pub(super) fn result(asked: Result<Ending, Refusal>) -> CallToolResult {
    let failed = |code: &str, text: &str| {
        let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
        result.structured_content = Some(json!({ "code": code, "error": text }));
        result
    };
    match asked {
        Ok(Ending::Answered(text)) => CallToolResult::success(vec![ContentBlock::text(text)]),
        Ok(Ending::Failed(code, text)) => {
            // S3.30: the text that the client shows instead of an answer.
            let mut result = failed(code.as_str(), &text);
            result.content = vec![ContentBlock::text(format!(
                "Error processing request: {text}"
            ))];
            result
        }
        Ok(Ending::Cancelled) => failed("cancelled", "the question was stopped"),
        Err(refusal) => failed(refusal.code.as_str(), &refusal.message),
    }
}
