//! Serves `/metrics` at its own address, without a key.

use std::net::SocketAddr;

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::serving;
use crate::config::Metrics;
use crate::gateway;

/// Listens at the configured address, if there is one, until `stop`. Returns the actual address, in case the
/// port was left open.
pub(in crate::app) async fn open(
    settings: &Metrics,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) -> anyhow::Result<Option<SocketAddr>> {
    let Some(wanted) = settings.listen else {
        return Ok(None);
    };
    let listener = TcpListener::bind(wanted).await.with_context(|| {
        format!(
            "cannot listen on `{wanted}` for /metrics; set `runtime.metrics.listen` \
             (SPL_METRICS_LISTEN) to another address"
        )
    })?;
    let address = listener.local_addr().unwrap_or(wanted);
    tracing::info!("Figures for Prometheus are at http://{address}/metrics");
    let stop = stop.clone();
    tasks.spawn(async move {
        let until = stop.cancelled_owned();
        serving::serve(
            listener,
            gateway::open_metrics(),
            serving::Connections::unlimited(),
            until,
        )
        .await;
    });
    Ok(Some(address))
}
