//! Which content the names of images stand for.
//!
//! People see the name of an image and approve what runs in it, so an id of the content goes into
//! the digest of a call: a tag may be moved at any moment. The ids are kept as they were last looked
//! up, because digests are computed where nobody can wait for an engine.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::Engine;
use super::problem::Problem;
use crate::sandbox::ImageId;

/// What was last looked up. Never locked across an await.
#[derive(Debug, Default)]
pub(in crate::sandbox::docker) struct Images(Mutex<HashMap<String, ImageId>>);

impl Images {
    /// What a name stood for when it was last looked up.
    pub(in crate::sandbox::docker) fn known(&self, name: &str) -> Option<ImageId> {
        self.lock().get(name).cloned()
    }

    /// What it stands for now; `None` where the engine has no such image, or does not name it.
    pub(in crate::sandbox::docker) async fn look_up(
        &self,
        engine: &Engine,
        name: &str,
    ) -> Result<Option<ImageId>, Problem> {
        let found = engine.image(name).await?;
        let id = found.and_then(|found| found.id).map(ImageId::new);
        if let Some(id) = &id {
            self.lock().insert(name.to_owned(), id.clone());
        }
        Ok(id)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, ImageId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
