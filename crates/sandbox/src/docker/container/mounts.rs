//! Builds the volume mounts of a container.

use bollard::models::{Mount, MountType, MountVolumeOptions};

use super::{Plan, volume};
use crate::{Access, Packages};
use sepal_core::domain::SandboxId;

/// The mount point of installed packages.
const PACKAGES: &str = "/packages";
/// The folder of our own programs in our image, and their mount point in third-party images.
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

/// Mounts our own programs. The files of a third-party image at the mount point are never copied into the
/// volume, which all containers share.
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
