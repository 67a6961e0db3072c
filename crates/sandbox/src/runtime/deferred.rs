//! Provides a runtime that becomes available later: until then every start fails with the reason, and
//! afterwards all calls go to that runtime.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;

use crate::{
    CopyOrder, CopyResult, Error, Image, ImageId, Launch, Limits, Network, Off, Running, Runtime,
};
use sepal_core::domain::{EngineId, SandboxId, SandboxKind};

/// A placeholder for a runtime that becomes available later. It is set once.
pub struct DeferredRuntime {
    /// The runtime; [`Off`] once this is closed without one.
    came: OnceLock<Arc<dyn Runtime>>,
    /// The reason that there is no runtime. Never held across an await.
    lack: Mutex<Arc<Error>>,
}

impl DeferredRuntime {
    /// Creates a placeholder with the current reason.
    pub fn new(lack: Arc<Error>) -> Self {
        Self {
            came: OnceLock::new(),
            lack: Mutex::new(lack),
        }
    }

    /// Replaces the reason.
    pub fn lacks(&self, lack: Arc<Error>) {
        *self.lack.lock().unwrap_or_else(PoisonError::into_inner) = lack;
    }

    /// Sets the runtime, which serves all calls from now on. Returns `false` if this is already closed; then
    /// nothing was started with the runtime.
    pub fn come(&self, runtime: Arc<dyn Runtime>) -> bool {
        self.came.set(runtime).is_ok()
    }

    fn runtime(&self) -> &dyn Runtime {
        self.came.get().map_or(&Off, |came| &**came)
    }
}

#[async_trait]
impl Runtime for DeferredRuntime {
    fn kind(&self) -> SandboxKind {
        self.runtime().kind()
    }

    fn limits(&self) -> Limits {
        self.runtime().limits()
    }

    fn network(&self) -> Network {
        self.runtime().network()
    }

    fn engine(&self) -> EngineId {
        self.runtime().engine()
    }

    fn lack(&self) -> Option<Error> {
        if let Some(came) = self.came.get() {
            return came.lack();
        }
        let lack = self.lack.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Error::Awaited(Arc::clone(&lack)))
    }

    fn container(&self, sandbox: &SandboxId) -> Option<String> {
        self.runtime().container(sandbox)
    }

    fn image_id(&self, image: &Image) -> Option<ImageId> {
        self.runtime().image_id(image)
    }

    async fn look_up_image(&self, image: &Image) -> Option<ImageId> {
        self.runtime().look_up_image(image).await
    }

    fn reserve(&self) -> Option<SandboxId> {
        self.runtime().reserve()
    }

    async fn start(&self, launch: Launch) -> Result<Running, Error> {
        match self.lack() {
            Some(lack) => Err(lack),
            None => self.runtime().start(launch).await,
        }
    }

    async fn reap(&self) -> Result<usize, Error> {
        self.runtime().reap().await
    }

    async fn tidy(&self) -> Result<usize, Error> {
        self.runtime().tidy().await
    }

    async fn workspaces(&self) -> Result<Vec<SandboxId>, Error> {
        self.runtime().workspaces().await
    }

    async fn has_workspace(&self, sandbox: &SandboxId) -> Result<bool, Error> {
        self.runtime().has_workspace(sandbox).await
    }

    async fn copy_workspace(&self, order: CopyOrder) -> Result<CopyResult, Error> {
        if let Some(lack) = self.lack() {
            return Err(lack);
        }
        self.runtime().copy_workspace(order).await
    }

    async fn remove_workspace(&self, sandbox: &SandboxId) -> Result<(), Error> {
        self.runtime().remove_workspace(sandbox).await
    }

    async fn close(&self) {
        self.came.get_or_init(|| Arc::new(Off)).close().await;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use crate::{Access, Bounds, Capacity, DiskMonitor, DockerProblem, Packages, Program, Room};
    use sepal_core::domain::Most;

    fn missing(image: &str) -> Arc<Error> {
        let image = image.to_owned();
        Arc::new(DockerProblem::NoImage { image }.into())
    }

    fn launch() -> Launch {
        Launch {
            sandbox: SandboxId::from_bits(1),
            packages: Packages::None,
            holder: None,
            server: "files".to_owned(),
            program: Program::Command(vec!["true".to_owned()]),
            environment: BTreeMap::new(),
            workspace: Access::None,
            egress: None,
            bounds: Bounds::default(),
        }
    }

    /// Some runtime, whose answers the placeholder passes on; any runtime will do.
    fn something() -> Arc<dyn Runtime> {
        let room = Room {
            most: Most::default(),
            idle: Duration::from_mins(1),
            patience: Duration::ZERO,
        };
        Arc::new(Capacity::new(Arc::new(Off), room, DiskMonitor::off()))
    }

    #[tokio::test]
    async fn a_start_says_what_is_missing_now_and_then_is_that_of_what_came() {
        let late = DeferredRuntime::new(missing("a:1"));
        assert_eq!(late.kind(), SandboxKind::None);
        let refused = late.start(launch()).await.unwrap_err();
        assert!(refused.to_string().contains("`a:1`"), "{refused}");
        late.lacks(missing("b:1"));
        let refused = late.start(launch()).await.unwrap_err();
        assert!(refused.to_string().contains("`b:1`"), "{refused}");
        assert_eq!(refused.remedy(), missing("b:1").remedy());

        assert!(late.come(something()));
        assert!(matches!(late.lack(), Some(Error::Off)));
        assert!(!late.come(something()), "it comes once");
    }

    #[tokio::test]
    async fn nothing_comes_once_it_is_closed() {
        let late = DeferredRuntime::new(missing("a:1"));
        late.close().await;
        assert!(!late.come(something()));
    }
}
