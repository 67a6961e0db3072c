//! Takes in and gives back the attachments of a session. The sender of a file is checked before its first
//! byte is read.

use super::Sessions;
use crate::agent::attachments::Attachments;
use crate::domain::{Attachment, BlobId, Caller, Code, Holder, SessionKey, Share};
use crate::session::{Command, Refusal};
use crate::store::records::AttachedTo;

/// Permission to upload a file. While it lives, it counts against the sender.
pub struct Upload {
    attachments: Attachments,
    key: SessionKey,
    counted: Share,
}

impl Upload {
    /// The size limit of the file in bytes.
    pub fn limit(&self) -> usize {
        usize::try_from(self.attachments.limits().file).unwrap_or(usize::MAX)
    }

    /// The refusal for a larger file.
    pub fn too_large(&self) -> Refusal {
        let most = self.limit() / (1024 * 1024);
        let text = format!(
            "a file may have {most} MiB; send a smaller one, or have the operator raise \
             `runtime.limits.attachment_mb`"
        );
        Refusal::of_field(Code::TooLarge, "file", text)
    }

    /// Stores the whole file.
    pub async fn finish(self, name: &str, bytes: Vec<u8>) -> Result<Attachment, Refusal> {
        let to = AttachedTo::Stored(&self.key);
        let counted = Some(self.counted);
        self.attachments.keep(to, name, bytes, counted).await
    }
}

impl Sessions {
    /// Lets the owner of a session attach a file. Stores the session first, so that the file belongs to it.
    pub async fn attach(&self, key: &SessionKey, caller: &Caller) -> Result<Upload, Refusal> {
        let attachments = self.attachments();
        if attachments.limits().file == 0 {
            let text = "attachments are switched off here (`runtime.limits.attachment_mb`)";
            return Err(Refusal::new(Code::NotAllowed, text));
        }
        let open = Command::Open { title: None };
        self.submit(key, caller, open.into()).await?;
        let share = attachments.begin(Holder {
            tenant: caller.tenant.id.clone(),
            user: caller.user.id.clone(),
        })?;
        Ok(Upload {
            attachments: attachments.clone(),
            key: key.clone(),
            counted: share,
        })
    }

    /// Returns an attachment with its content, to callers who may see the session; `None` if the session does
    /// not have it.
    pub async fn attachment(
        &self,
        key: &SessionKey,
        caller: &Caller,
        id: &BlobId,
    ) -> Result<Option<(Attachment, Vec<u8>)>, Refusal> {
        self.admit(key, caller).await?;
        self.attachments().read(key, id).await
    }

    pub(super) fn attachments(&self) -> &Attachments {
        &self.0.factory.parts.attachments
    }
}
