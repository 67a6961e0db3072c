//! Pauses a call whose server requires its person to open pages first. Nothing of the call has run yet.

use tokio_util::sync::CancellationToken;

use super::authorizing::MOST_WAITS;
use crate::mcp::{CallNews, Error};
use crate::servers::Opened;

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
