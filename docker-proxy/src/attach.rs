//! Copies the streams of a container in both directions.

use std::{io, sync::Arc};

use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncWriteExt as _, copy, split},
    sync::OwnedSemaphorePermit,
};
use tokio_util::sync::CancellationToken;
use tracing::debug;

/// A connection's permit among `--max-connections`, held while any clone lives.
#[derive(Debug, Clone)]
pub(crate) struct Seat(
    #[expect(dead_code, reason = "it is held, not used")] Arc<OwnedSemaphorePermit>,
);

impl Seat {
    pub(crate) fn new(place: OwnedSemaphorePermit) -> Self {
        Self(Arc::new(place))
    }
}

/// Copies until the container's side ends, or the proxy shuts down. The end of the client's side is passed on
/// and ends only its own direction: a program reads the end of its stdin and may still answer.
pub(crate) async fn copy_streams(client: OnUpgrade, engine: Upgraded, shutdown: CancellationToken) {
    let copying = async {
        let client = client.await.map_err(io::Error::other)?;
        both(client, engine).await
    };
    tokio::select! {
        copied = copying => if let Err(error) = copied {
            debug!(%error, "The streams of a container broke");
        },
        () = shutdown.cancelled() => {}
    }
}

async fn both(client: Upgraded, engine: Upgraded) -> io::Result<()> {
    let (mut from_client, mut to_client) = split(TokioIo::new(client));
    let (mut from_engine, mut to_engine) = split(TokioIo::new(engine));
    let mut said = Box::pin(async {
        // A container that cannot be written to has ended, which the other direction notices.
        let _ = copy(&mut from_client, &mut to_engine).await;
        let _ = to_engine.shutdown().await;
    });
    let mut heard = Box::pin(async {
        copy(&mut from_engine, &mut to_client).await?;
        to_client.shutdown().await
    });
    tokio::select! {
        heard = &mut heard => return heard,
        () = &mut said => {}
    }
    heard.await
}
