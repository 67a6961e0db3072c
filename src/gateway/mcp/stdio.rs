//! Serves the agent as an MCP server on standard input and output. Only protocol messages are written there
//! (S0.57).

use std::sync::Arc;

use rmcp::ServiceExt as _;
use tokio::io::BufReader;
use tokio::sync::broadcast::error::RecvError;

use super::asking::Asking;
use super::logged::LoggedServer;
use super::notices::{Notices, Threshold};
use super::server::AgentServer;
use super::tasks::Tasks;
use super::{Exposure, Life};
use crate::agent::Sessions;
use crate::domain::Caller;
use crate::telemetry;

/// Serves until the client disconnects or the server stops.
pub async fn serve_stdio(
    sessions: Sessions,
    caller: Caller,
    exposure: Arc<Exposure>,
    life: Life,
    buffer: usize,
) -> anyhow::Result<()> {
    let threshold = Threshold::default();
    let server = AgentServer {
        asking: Asking {
            sessions,
            exposure,
            life: life.clone(),
            // There is only one client, so its questions need no limit.
            questions: Arc::default(),
        },
        local: Some(caller),
        threshold: threshold.clone(),
        tasks: Tasks::default(),
    };
    let (input, output) = rmcp::transport::io::stdio_pipes();
    let input = BufReader::with_capacity(buffer, input);
    let server = LoggedServer::at("stdio", server);
    let serving = server.serve_with_ct((input, output), life.stop.child_token());
    let running = serving.await?;
    let notices = Notices::new(running.peer().clone(), threshold, None);
    let logging = life.tasks.spawn(pass_log(notices, life.clone()));
    let ended = running.waiting().await;
    life.stop.cancel();
    let _ = logging.await;
    ended?;
    Ok(())
}

/// Sends the process's log to its one client, because whoever started the process may read all of it.
async fn pass_log(notices: Notices, life: Life) {
    let Some(mut entries) = telemetry::subscribe() else {
        return;
    };
    loop {
        tokio::select! {
            () = life.stop.cancelled() => return,
            entry = entries.recv() => match entry {
                Ok(entry) => notices.pass(entry).await,
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            },
        }
    }
}
