//! Runs a call in rounds (SEP-2322), for clients of revision 2026-07-28, which cannot be asked during a
//! call: the call ends with the requests for input (`input_required`), and the client calls again with the
//! responses and the session's id as `requestState`.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{CallToolResponse, InputRequiredResult, InputResponses};
use tokio_util::sync::CancellationToken;

use super::{TaskClient, Tasks, WatchedTask, asked, inputs, refused, take};
use crate::domain::SessionKey;
use crate::gateway::mcp::asking::{Asking, result};
use crate::gateway::mcp::notices::Notices;
use crate::gateway::mcp::question::QuestionText;

/// One round: a call of the tool.
pub(in crate::gateway::mcp) struct Round {
    /// The question.
    pub(in crate::gateway::mcp) asked: QuestionText,
    /// The state from the previous round; `None` begins a new question.
    pub(in crate::gateway::mcp) state: Option<String>,
    /// The responses to the requests of the previous round.
    pub(in crate::gateway::mcp) answers: InputResponses,
    pub(in crate::gateway::mcp) notices: Notices,
}

/// Stops the turn if it is dropped, because the client left during the round. Connections also end with the
/// gateway: then the turn goes on at another gateway or later.
struct ClientPresence<'a> {
    turn: Option<&'a CancellationToken>,
    gateway: &'a CancellationToken,
}

impl ClientPresence<'_> {
    /// Ends the round in order.
    fn end(mut self) {
        self.turn = None;
    }
}

impl Drop for ClientPresence<'_> {
    fn drop(&mut self) {
        if let Some(turn) = self.turn.filter(|_| !self.gateway.is_cancelled()) {
            turn.cancel();
        }
    }
}

impl Tasks {
    /// Begins or continues a question until it ends or needs input from the person at the client. Dropping
    /// the future earlier stops the turn.
    pub(in crate::gateway::mcp) async fn round(
        &self,
        asking: &Asking,
        client: TaskClient,
        round: Round,
    ) -> Result<CallToolResponse, ErrorData> {
        let notices = Some(Arc::new(round.notices));
        let (key, watched) = match round.state {
            None => match self.begin(asking, &client, round.asked, notices).await {
                Ok(begun) => begun,
                Err(refusal) => return Ok(result(Err(refusal)).into()),
            },
            Some(id) => {
                let (key, joined) = self.find(asking, &client.caller, &id).await?;
                let queue = joined.view.queue.clone();
                let watched = self.watch(asking, &client, &key, joined)?;
                watched.notify(notices);
                take(asking, &client, &key, &watched, &queue, round.answers).await?;
                (key, watched)
            }
        };
        let present = ClientPresence {
            turn: Some(watched.stop()),
            gateway: &asking.life.stop,
        };
        let answer = next(asking, &client, &key, &watched).await;
        present.end();
        watched.notify(None);
        answer
    }
}

/// Waits for the ending or for the next requests for input.
async fn next(
    asking: &Asking,
    client: &TaskClient,
    key: &SessionKey,
    watched: &WatchedTask,
) -> Result<CallToolResponse, ErrorData> {
    let mut changes = watched.changes();
    loop {
        if let Some(ended) = changes.borrow_and_update().ending.clone() {
            return Ok(result(ended).into());
        }
        let joined = asking.sessions.join(key, &client.caller).await;
        let queue = joined.map_err(|refusal| refused(&refusal))?.view.queue;
        let asked = asked(asking, client, watched, &queue);
        if !asked.is_empty() {
            let requests = inputs::requests(asked);
            let state = key.session.to_string();
            return Ok(InputRequiredResult::new(Some(requests), Some(state)).into());
        }
        // The sender lives as long as `watched`, so this cannot fail.
        let _ = changes.changed().await;
    }
}
