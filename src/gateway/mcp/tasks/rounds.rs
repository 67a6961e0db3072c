//! A call in rounds (SEP-2322), for clients of revision 2026-07-28, which cannot be asked in the middle
//! of a call: it ends with what the person there is asked (`input_required`), and the client calls again
//! with the answers and the session's id as `requestState`.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{CallToolResponse, InputRequiredResult, InputResponses};

use super::{TaskClient, Tasks, Watched, asked, inputs, refused, take};
use crate::domain::SessionKey;
use crate::gateway::mcp::asking::{Asking, result};
use crate::gateway::mcp::notices::Notices;

/// One call of the tool.
pub(in crate::gateway::mcp) struct Round {
    /// The question.
    pub(in crate::gateway::mcp) text: String,
    /// What the round before gave; none = the question is asked anew.
    pub(in crate::gateway::mcp) state: Option<String>,
    /// Answers to what the round before asked.
    pub(in crate::gateway::mcp) answers: InputResponses,
    pub(in crate::gateway::mcp) notices: Notices,
}

impl Tasks {
    /// Begins a question, or goes on with one, until it ends or the person at the client is asked. When
    /// this is dropped before, the turn is stopped.
    pub(in crate::gateway::mcp) async fn round(
        &self,
        asking: &Asking,
        client: TaskClient,
        round: Round,
    ) -> Result<CallToolResponse, ErrorData> {
        let notices = Some(Arc::new(round.notices));
        let (key, watched) = match round.state {
            None => match self.begin(asking, &client, (round.text, notices)).await {
                Ok(begun) => begun,
                Err(refusal) => return Ok(result(Err(refusal)).into()),
            },
            Some(id) => {
                let (key, joined) = self.find(asking, &client.caller, &id).await?;
                let queue = joined.view.queue.clone();
                let watched = self.watch(asking, &client, (&key, joined))?;
                watched.notify(notices);
                take(asking, &client, (&key, &watched, &queue), round.answers).await?;
                (key, watched)
            }
        };
        // The client leaves in the middle of a round.
        let stops = watched.stop().clone().drop_guard();
        let answer = next(asking, &client, (&key, &watched)).await;
        stops.disarm();
        watched.notify(None);
        answer
    }
}

/// The ending, or the next that the person at the client is asked.
async fn next(
    asking: &Asking,
    client: &TaskClient,
    (key, watched): (&SessionKey, &Watched),
) -> Result<CallToolResponse, ErrorData> {
    let mut changes = watched.changes();
    loop {
        if let Some(ended) = changes.borrow_and_update().ending.clone() {
            return Ok(result(ended).into());
        }
        let joined = asking.sessions.join(key, &client.caller).await;
        let queue = joined.map_err(|refusal| refused(&refusal))?.view.queue;
        let asked = asked(asking, client, (watched, &queue));
        if !asked.is_empty() {
            let requests = inputs::requests(asked);
            let state = key.session.to_string();
            return Ok(InputRequiredResult::new(Some(requests), Some(state)).into());
        }
        // The sender lives as long as what is watched.
        let _ = changes.changed().await;
    }
}
