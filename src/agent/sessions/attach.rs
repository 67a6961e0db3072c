//! Prepares what comes with a request to a session: an uploaded file, whose sender is checked before its
//! first byte is read, and the single-use proof of a fresh gesture.

use super::Sessions;
use super::offers::{SessionOffers, calls, context};
use crate::agent::attachments::{Attachments, MAX_OF_MESSAGE};
use crate::agent::mailbox::{SessionRequest, store_away};
use crate::domain::{Attachment, BlobId, Caller, Code, Holder, SessionKey, Share};
use crate::session::{Command, Refusal};
use crate::store::clock::now;
use crate::store::records::{AttachedTo, SecretHash};

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
        self.attachments.keep(to, (name, bytes), counted).await
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
        let open = SessionRequest::Command(Command::Open { title: None });
        self.submit(key, caller, open).await?;
        self.listed().await;
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
        &self.0.factory.attachments
    }

    /// Looks up what a request names, once the session is known to be the caller's.
    pub(super) async fn look_up(
        &self,
        key: &SessionKey,
        caller: &Caller,
        ask: SessionRequest,
    ) -> Result<SessionRequest, Refusal> {
        let (mut say, attached, resources, views) = match ask {
            SessionRequest::Say {
                say,
                attached,
                resources,
                views,
            } => (say, attached, resources, views),
            SessionRequest::WithProof { decision, proof } => {
                return self.use_proof(key, caller, (decision, &proof)).await;
            }
            SessionRequest::CallByView(mut asked) => {
                calls::find_view(self, key, caller, &mut asked).await?;
                return Ok(SessionRequest::CallByView(asked));
            }
            SessionRequest::Command(_)
            | SessionRequest::Choose(_)
            | SessionRequest::Decide { .. }
            | SessionRequest::WithGesture { .. } => return Ok(ask),
        };
        self.admit(key, caller).await?;
        if let Command::Say { attachments, .. } = &mut say {
            *attachments = self.attachments().find(key, &attached).await?;
            for resource in &resources {
                attachments
                    .extend(Box::pin(SessionOffers::of(self).read(key, caller, resource)).await?);
            }
            attachments.extend(Box::pin(context::keep(self, key, caller, &views)).await?);
            if attachments.len() > MAX_OF_MESSAGE {
                let text = format!(
                    "a message may have {MAX_OF_MESSAGE} attachments, resources and words of views"
                );
                return Err(Refusal::of_field(Code::InvalidArguments, "resources", text));
            }
        }
        Ok(SessionRequest::Command(say))
    }

    /// Uses up the proof of a fresh gesture, whatever the result of the decision. Without a valid proof the
    /// session decides whether it requires one.
    async fn use_proof(
        &self,
        key: &SessionKey,
        caller: &Caller,
        (decision, proof): (Box<SessionRequest>, &SecretHash),
    ) -> Result<SessionRequest, Refusal> {
        let whose = (&caller.tenant.id, &caller.user.id);
        let gestures = self.records().gestures();
        let taken = gestures.take_proof(whose, (proof, &key.session), now());
        let taken = taken.await.map_err(|_| store_away())?;
        Ok(match taken {
            Some(gesture) => SessionRequest::WithGesture { decision, gesture },
            None => *decision,
        })
    }
}
