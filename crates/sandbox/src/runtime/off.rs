//! Implements the runtime without sandboxes: every start fails with the way to enable them.

use async_trait::async_trait;

use crate::{CopyOrder, CopyResult, Error, Launch, Limits, Network, Running, Runtime};
use sepal_core::domain::{SandboxId, SandboxKind};

/// The runtime of an installation without sandboxes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Off;

#[async_trait]
impl Runtime for Off {
    fn kind(&self) -> SandboxKind {
        SandboxKind::None
    }

    fn limits(&self) -> Limits {
        Limits::NONE
    }

    fn network(&self) -> Network {
        Network::Sealed
    }

    fn lack(&self) -> Option<Error> {
        Some(Error::Off)
    }

    async fn start(&self, _launch: Launch) -> Result<Running, Error> {
        Err(Error::Off)
    }

    async fn reap(&self) -> Result<usize, Error> {
        Ok(0)
    }

    async fn workspaces(&self) -> Result<Vec<SandboxId>, Error> {
        Ok(Vec::new())
    }

    async fn has_workspace(&self, _sandbox: &SandboxId) -> Result<bool, Error> {
        Ok(false)
    }

    async fn copy_workspace(&self, _order: CopyOrder) -> Result<CopyResult, Error> {
        Err(Error::Off)
    }

    async fn remove_workspace(&self, _sandbox: &SandboxId) -> Result<(), Error> {
        Ok(())
    }

    async fn close(&self) {}
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{Access, Bounds, Packages, Program};

    #[tokio::test]
    async fn every_start_says_how_to_get_sandboxes() {
        let launch = Launch {
            sandbox: SandboxId::from_bits(1),
            packages: Packages::None,
            holder: None,
            server: "files".to_owned(),
            program: Program::Command(vec!["true".to_owned()]),
            environment: BTreeMap::new(),
            workspace: Access::None,
            egress: None,
            bounds: Bounds::default(),
        };
        let error = Off.start(launch).await.unwrap_err();
        assert!(
            error.to_string().contains("set `sandbox.driver`"),
            "{error}"
        );
        assert_eq!(Off.limits(), Limits::NONE);
    }
}
