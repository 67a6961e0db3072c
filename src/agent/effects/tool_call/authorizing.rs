//! A call whose server wants its person to connect waits for that: nothing of it has run.

use tokio_util::sync::CancellationToken;

use super::{SessionTools, called};
use crate::domain::Code;
use crate::mcp::{CallNews, ToolProgress};
use crate::session::{Call, Outcome};

/// How often one call waits: a person may have to allow more than they did at first.
pub(super) const MOST_WAITS: usize = 3;

/// Whether the call is to be tried again: its server wanted its person, and they have connected. The
/// person is the one whose session it is; nobody else connects for them.
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
    let view = tools.refresh().await;
    let entry = called(&view, call);
    let server = entry.and_then(|entry| view.entry(&entry.at.server));
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
