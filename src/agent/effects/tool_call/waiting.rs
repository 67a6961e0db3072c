//! Pauses a call whose server requires its person to connect, or to open pages first. Nothing of the call has
//! run yet.

use tokio_util::sync::CancellationToken;

use super::{SessionTools, called};
use crate::domain::Code;
use crate::mcp::{CallNews, Error, ToolProgress};
use crate::servers::Opened;
use crate::session::{Call, Outcome};

/// The most waits of one call: a person may have to grant more than they did at first.
const MOST_WAITS: usize = 3;

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

/// Waits until the person has visited the pages that this error asks for, so that the call can be tried
/// again. Otherwise returns the error.
pub(super) async fn visited(
    opened: &Opened,
    error: Error,
    waits: &mut usize,
    (cancel, on_news): (&CancellationToken, &mut impl FnMut(CallNews)),
) -> Result<(), Error> {
    let Error::AddressRequired { addresses } = &error else {
        return Err(error);
    };
    if *waits >= MOST_WAITS {
        return Err(error);
    }
    *waits += 1;
    if opened.visit(addresses.clone(), cancel, on_news).await {
        Ok(())
    } else if cancel.is_cancelled() {
        Err(Error::Cancelled { is_confirmed: true })
    } else {
        Err(error)
    }
}
