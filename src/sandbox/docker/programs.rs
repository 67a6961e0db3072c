//! The volumes that bring our own programs into containers of other people's images.
//!
//! Such an image has none of them, its file system cannot be written, and the engine may be on another
//! machine. So a volume has them: an empty one takes over what our own image has at the place where it
//! is first seen. Each content of our image has a volume of its own in an installation, which all containers
//! that need it see, read-only. It is named like a workspace, so that whoever filters what the engine is asked has one
//! kind of volume to know, and the janitor takes those that no gateway uses any more.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sha2::{Digest as _, Sha256};

use crate::domain::SandboxId;
use crate::sandbox::ImageId;

/// Those that this gateway uses. Never locked across an await.
#[derive(Debug, Default)]
pub(super) struct Programs(Mutex<BTreeSet<SandboxId>>);

impl Programs {
    /// Whose volume has the programs of that content in `installation`; it stays from now on.
    pub(super) fn of(&self, installation: &str, content: &ImageId) -> SandboxId {
        let hash = Sha256::digest(format!("{installation}\0{content}"));
        let bits = hash.iter().take(16);
        let bits = bits.fold(0, |bits, byte| bits << 8 | u128::from(*byte));
        let sandbox = SandboxId::from_bits(bits);
        self.lock().insert(sandbox.clone());
        sandbox
    }

    /// Whether this gateway uses it.
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
