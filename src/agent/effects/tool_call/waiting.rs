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

/// The waits of one call for its person.
pub(super) struct PersonWaits<'a> {
    /// The waits so far.
    count: usize,
    /// Cancelled when the call is to end.
    cancel: &'a CancellationToken,
}

impl<'a> PersonWaits<'a> {
    pub(super) fn new(cancel: &'a CancellationToken) -> Self {
        Self { count: 0, cancel }
    }

    /// Waits for the session's owner to connect, if the server requires it. Returns true if the call is to be
    /// tried again. Nobody else can connect for the owner.
    pub(super) async fn connects(
        &mut self,
        tools: &SessionTools,
        call: &Call,
        outcome: &Outcome,
        on_news: &mut impl FnMut(CallNews),
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
        let (Some(server), true, true) = (server, is_wanted, self.count < MOST_WAITS) else {
            return false;
        };
        self.count += 1;
        on_news(CallNews::Progress(ToolProgress {
            progress: 0.0,
            total: None,
            message: Some(format!("waits until you connect to `{}`", server.name)),
        }));
        let person = tools.assignment.holder();
        tokio::select! {
            connects = tools.servers.person_connects(server, &person) => connects,
            () = self.cancel.cancelled() => false,
        }
    }

    /// Waits until the person has visited the pages that this error asks for, so that the call can be tried
    /// again. Otherwise returns the error.
    pub(super) async fn visited(
        &mut self,
        opened: &Opened,
        error: Error,
        on_news: &mut impl FnMut(CallNews),
    ) -> Result<(), Error> {
        let Error::AddressRequired { addresses } = &error else {
            return Err(error);
        };
        if self.count >= MOST_WAITS {
            return Err(error);
        }
        self.count += 1;
        if opened.visit(addresses.clone(), self.cancel, on_news).await {
            Ok(())
        } else if self.cancel.is_cancelled() {
            Err(Error::Cancelled { is_confirmed: true })
        } else {
            Err(error)
        }
    }
}
