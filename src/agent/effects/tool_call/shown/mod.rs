//! What a person is shown of a call is what runs: the digest of it, with the content of the image
//! that it would run in.

pub(in crate::agent) mod hosts;

use std::time::Duration;

use serde_json::Value;

use crate::domain::Digest;
use crate::mcp::ToolboxTool;
use crate::sandbox::ImageId;
use crate::sandbox::host::SandboxHost;
use crate::servers::{BUNDLED, SessionConnection, View};

/// How long looking images up may hold up what needs no sandbox.
const LOOK_LIMIT: Duration = Duration::from_secs(1);

/// What decides, beside server, definition and arguments, what a call does.
pub(in crate::agent) struct Shown<'a> {
    pub(in crate::agent) place: &'a SandboxHost,
    pub(in crate::agent) view: &'a View,
}

impl Shown<'_> {
    /// The digest of a call that runs in that content. The session's own sandbox reaches those hosts beside
    /// the ones of the settings.
    pub(in crate::agent) fn digest(
        &self,
        entry: &ToolboxTool,
        args: &Value,
        (image, hosts): (Option<&ImageId>, &[String]),
    ) -> Digest {
        let mut place = self.place.bundled_image(hosts);
        if entry.at.server != BUNDLED {
            place = self.place.image();
            // What runs for another server is decided by its entry too.
            let identity = self.view.identity(&entry.at.server, &place);
            place = identity.map_or(place, |identity| identity.as_str().to_owned());
        }
        if let Some(image) = image {
            place.push('@');
            place.push_str(image.as_str());
        }
        Digest::of_call(&entry.at, &entry.definition, args, &place)
    }

    /// The content that a call of that server would run in: what its open place was started from,
    /// else what the name of its image stood for when it was last looked up.
    pub(in crate::agent) fn image(
        &self,
        server: &str,
        link: Option<&SessionConnection>,
    ) -> Option<ImageId> {
        if let Some(opened) = link.and_then(SessionConnection::opened) {
            return opened.image.clone();
        }
        let image = self.view.entry(server)?.image()?;
        self.place.runtime.image_id(&image)
    }

    /// The same, looked up now where something would have to be started.
    pub(in crate::agent) async fn look_up_image(
        &self,
        server: &str,
        link: Option<&SessionConnection>,
    ) -> Option<ImageId> {
        if let Some(opened) = link.and_then(SessionConnection::opened) {
            return opened.image.clone();
        }
        let image = self.view.entry(server)?.image()?;
        self.place.runtime.look_up_image(&image).await
    }

    /// Looks up what nobody has yet, so that what is shown from now on names it.
    pub(in crate::agent) async fn name_images(&self) {
        let runtime = &self.place.runtime;
        let images = self.view.images();
        let looking = async {
            for image in images.filter(|image| runtime.image_id(image).is_none()) {
                runtime.look_up_image(&image).await;
            }
        };
        // An engine that does not answer holds no model request up.
        let _ = tokio::time::timeout(LOOK_LIMIT, looking).await;
    }
}
