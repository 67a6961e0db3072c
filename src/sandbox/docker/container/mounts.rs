//! The volumes that a container sees, each in its one place.

use bollard::models::{Mount, MountType, MountVolumeOptions};

use super::{Plan, volume};
use crate::domain::SandboxId;
use crate::sandbox::{Access, Packages};

/// Where installed packages are seen.
const PACKAGES: &str = "/packages";
/// Where our own programs lie in our image, and are seen in those of others.
const PROGRAMS: &str = "/sepal";

impl Plan<'_> {
    pub(super) fn mounts(&self) -> Vec<Mount> {
        let packages = match &self.launch.packages {
            Packages::None | Packages::Installing => None,
            Packages::Installed(sandbox) => Some(Mount {
                target: Some(PACKAGES.to_owned()),
                source: Some(volume(sandbox)),
                typ: Some(MountType::VOLUME),
                read_only: Some(true),
                ..Mount::default()
            }),
        };
        let programs = self
            .wrapped
            .map(|wrapped| programs(&wrapped.programs, true));
        let workspace = self.workspace().into_iter();
        workspace.chain(packages).chain(programs).collect()
    }

    pub(super) fn workspace(&self) -> Option<Mount> {
        let is_read_only = match self.launch.workspace {
            Access::None => return None,
            Access::ReadOnly => true,
            Access::ReadWrite => false,
        };
        Some(Mount {
            target: Some("/workspace".to_owned()),
            source: Some(volume(&self.launch.sandbox)),
            typ: Some(MountType::VOLUME),
            read_only: Some(is_read_only),
            ..Mount::default()
        })
    }
}

/// Our own programs. What an image of other people has in the place never comes into the volume, which
/// everybody's containers see.
pub(super) fn programs(programs: &SandboxId, is_foreign: bool) -> Mount {
    Mount {
        target: Some(PROGRAMS.to_owned()),
        source: Some(volume(programs)),
        typ: Some(MountType::VOLUME),
        read_only: Some(true),
        volume_options: is_foreign.then(|| MountVolumeOptions {
            no_copy: Some(true),
            ..MountVolumeOptions::default()
        }),
        ..Mount::default()
    }
}
