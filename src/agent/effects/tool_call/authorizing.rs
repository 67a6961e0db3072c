//! Pauses a call whose server requires its person to connect. Nothing of the call has run yet.

use tokio_util::sync::CancellationToken;

use super::{SessionTools, called};
use crate::domain::Code;
use crate::mcp::{CallNews, ToolProgress};
use crate::session::{Call, Outcome};

/// The most waits of one call: a person may have to grant more than they did at first.
pub(super) const MOST_WAITS: usize = 3;

/// Waits for the session's owner to connect, if the server requires it. Returns true if the call is to be
/// tried again. Nobody else can connect for the owner.
pub(super) async fn connects(
    tools: &SessionTools,
    (call, outcome): (&Call, &Outcome),
    waits: &mut usize,
    (cancel, on_news): (&CancellationToken, &mut impl FnMut(CallNews)),
) -> bool {
    let is_wanted = matches!(
        outcome,
        Outcome::Failed {
            code: Code::AuthorizationRequired,
            ..
        }
    );
    let offering = tools.refresh().await;
    let entry = called(&offering, call);
    let server = entry.and_then(|entry| offering.entry(&entry.at.server));
    let (Some(server), true, true) = (server, is_wanted, *waits < MOST_WAITS) else {
        return false;
    };
    *waits += 1;
    on_news(CallNews::Progress(ToolProgress {
        progress: 0.0,
        total: None,
        message: Some(format!("waits until you connect to `{}`", server.name)),
    }));
    let person = tools.assignment.holder();
    tokio::select! {
        connects = tools.servers.person_connects(server, &person) => connects,
        () = cancel.cancelled() => false,
    }
}
