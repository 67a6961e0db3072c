//! Resolves the names of images to the ids of their content.
//!
//! People see the name of an image and approve what runs in it, so the id of the content is part of a call's
//! digest: a tag may be moved at any time. The ids of the last look-up are cached, because digests are
//! computed in places that cannot wait for an engine.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::Engine;
use super::problem::Problem;
use crate::ImageId;

/// The ids of the last look-ups. Never locked across an await.
#[derive(Debug, Default)]
pub(in crate::docker) struct Images(Mutex<HashMap<String, ImageId>>);

impl Images {
    /// Returns the id of a name's last look-up.
    pub(in crate::docker) fn known(&self, name: &str) -> Option<ImageId> {
        self.lock().get(name).cloned()
    }

    /// Looks up the current id of a name; `None` if the engine has no such image, or does not report its id.
    pub(in crate::docker) async fn look_up(
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
