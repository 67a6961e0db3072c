//! Manages the volumes that provide our own programs to containers of third-party images.
//!
//! Such an image has none of our programs, its file system is read-only, and the engine may be on another
//! machine. So a volume holds them: an empty volume is filled with the files that our own image has at its
//! mount point. Each content of our image has one volume per installation, which all containers that need it
//! mount read-only. The volume is named like a workspace, so that a filter in front of the engine has to know
//! only one kind of volume, and the janitor removes those that no gateway uses any more.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sha2::{Digest as _, Sha256};

use crate::ImageId;
use sepal_core::domain::SandboxId;

/// The sandbox ids of the volumes that this gateway uses. Never locked across an await.
#[derive(Debug, Default)]
pub(super) struct Programs(Mutex<BTreeSet<SandboxId>>);

impl Programs {
    /// Returns the sandbox id whose volume holds the programs of that content in `installation`, and marks it
    /// as used.
    pub(super) fn of(&self, installation: &str, content: &ImageId) -> SandboxId {
        let hash = Sha256::digest(format!("{installation}\0{content}"));
        let bits = hash.iter().take(16);
        let bits = bits.fold(0, |bits, byte| bits << 8 | u128::from(*byte));
        let sandbox = SandboxId::from_bits(bits);
        self.lock().insert(sandbox.clone());
        sandbox
    }

    /// Returns true if this gateway uses the volume.
    pub(super) fn has(&self, sandbox: &SandboxId) -> bool {
        self.lock().contains(sandbox)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<SandboxId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_content_has_its_own_which_stays() {
        let programs = Programs::default();
        let [one, other] = ["sha256:1", "sha256:2"].map(ImageId::new);
        let first = programs.of("a", &one);
        assert_eq!(programs.of("a", &one), first);
        assert_ne!(programs.of("a", &other), first);
        assert_ne!(programs.of("b", &one), first);
        assert!(programs.has(&first));
        assert!(!programs.has(&SandboxId::from_bits(7)));
    }
}
