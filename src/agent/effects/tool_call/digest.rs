//! Makes sure that what a person is shown of a call is what runs: computes its digest, with the content of
//! the image that it would run in.

use std::time::Duration;

use serde_json::Value;

use crate::domain::Digest;
use crate::mcp::ToolboxTool;
use crate::sandbox::ImageId;
use crate::sandbox::host::SandboxHost;
use crate::servers::{BUNDLED, SessionConnection, ToolOffering};

/// The time limit of looking up images, so that it does not delay requests that need no sandbox.
const LOOKUP_LIMIT: Duration = Duration::from_secs(1);

/// The inputs of a call's digest besides server, definition and arguments.
pub(in crate::agent) struct DigestInputs<'a> {
    pub(in crate::agent) place: &'a SandboxHost,
    pub(in crate::agent) offering: &'a ToolOffering,
}

impl DigestInputs<'_> {
    /// Computes the digest of a call that runs in that image. The session's own sandbox reaches these hosts
    /// besides those of the settings.
    pub(in crate::agent) fn digest(
        &self,
        entry: &ToolboxTool,
        args: &Value,
        image: Option<&ImageId>,
        hosts: &[String],
    ) -> Digest {
        let mut place = self.place.bundled_image(hosts);
        if entry.at.server != BUNDLED {
            place = self.place.image();
            // For other servers, their entry also decides what runs.
            let identity = self.offering.identity(&entry.at.server, &place);
            place = identity.map_or(place, |identity| identity.as_str().to_owned());
        }
        if let Some(image) = image {
            place.push('@');
            place.push_str(image.as_str());
        }
        Digest::of_call(&entry.at, &entry.definition, args, &place)
    }

    /// Returns the image that a call of that server would run in: that of the open connection, otherwise the
    /// one that its name stood for at the last look-up.
    pub(in crate::agent) fn image(
        &self,
        server: &str,
        link: Option<&SessionConnection>,
    ) -> Option<ImageId> {
        if let Some(opened) = link.and_then(SessionConnection::opened) {
            return opened.image.clone();
        }
        let image = self.offering.entry(server)?.image()?;
        self.place.runtime.image_id(&image)
    }

    /// The same, but looks the image up now if a sandbox would have to be started.
    pub(in crate::agent) async fn look_up_image(
        &self,
        server: &str,
        link: Option<&SessionConnection>,
    ) -> Option<ImageId> {
        if let Some(opened) = link.and_then(SessionConnection::opened) {
            return opened.image.clone();
        }
        let image = self.offering.entry(server)?.image()?;
        self.place.runtime.look_up_image(&image).await
    }

    /// Looks up images that are still unknown, so that cards show them from now on.
    pub(in crate::agent) async fn name_images(&self) {
        let runtime = &self.place.runtime;
        let images = self.offering.images();
        let looking = async {
            for image in images.filter(|image| runtime.image_id(image).is_none()) {
                runtime.look_up_image(&image).await;
            }
        };
        // An engine that does not answer must not delay model requests.
        let _ = tokio::time::timeout(LOOKUP_LIMIT, looking).await;
    }
}
