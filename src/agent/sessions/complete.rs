//! Authorizes a request to a session and completes it with what it names: the one way into a session's mailbox.

use super::offers::{SessionOffers, calls, context};
use super::{Sessions, may_act, may_decide};
use crate::agent::attachments::MAX_OF_MESSAGE;
use crate::agent::mailbox::store_away;
use crate::agent::request::{SessionAction, SessionRequest, Submission, SubmitOptions};
use crate::domain::{Attachment, Caller, Code, Gesture, SessionKey};
use crate::session::{Command, Refusal};
use crate::store::clock::now;
use crate::store::records::SecretHash;

impl Sessions {
    /// Checks that the caller may act, and completes their request: the one way into a session's mailbox.
    pub(super) async fn complete(
        &self,
        key: &SessionKey,
        caller: &Caller,
        request: SessionRequest,
    ) -> Result<Submission, Refusal> {
        if request.action.decides().is_some() {
            may_decide(caller)?;
        } else {
            may_act(caller)?;
        }
        let SessionRequest {
            mut action,
            options,
        } = request;
        if action.asks_model() {
            let providers = &self.0.factory.parts.providers;
            Box::pin(providers.refresh_access(&caller.tenant.id)).await;
        }
        // What few requests need is boxed, because all of them would be as large as the largest part.
        let mut gesture = None;
        if let Some(proof) = &options.proof {
            gesture = Box::pin(self.use_proof(key, caller, proof)).await?;
        }
        match &mut action {
            SessionAction::Command(Command::Say { attachments, .. })
                if options.adds_to_message() =>
            {
                Box::pin(self.admit(key, caller)).await?;
                *attachments = Box::pin(self.gather_attachments(key, caller, &options)).await?;
            }
            SessionAction::CallByView(asked) => {
                Box::pin(calls::find_view(self, key, caller, asked)).await?;
            }
            SessionAction::Command(_)
            | SessionAction::Choose(_)
            | SessionAction::Decide { .. }
            | SessionAction::UpdateAssistant { .. } => {}
        }
        Ok(Submission {
            by: caller.user.id.clone(),
            servers: caller.confined_servers().cloned(),
            action,
            gesture,
        })
    }

    /// Returns everything that comes with a message, as its attachments.
    async fn gather_attachments(
        &self,
        key: &SessionKey,
        caller: &Caller,
        options: &SubmitOptions,
    ) -> Result<Vec<Attachment>, Refusal> {
        let mut all = self.attachments().find(key, &options.attached).await?;
        for resource in &options.resources {
            all.extend(Box::pin(SessionOffers::of(self).read(key, caller, resource)).await?);
        }
        all.extend(Box::pin(context::keep(self, key, caller, &options.views)).await?);
        if all.len() > MAX_OF_MESSAGE {
            let text = format!(
                "a message may have {MAX_OF_MESSAGE} attachments, resources and words of views"
            );
            return Err(Refusal::of_field(Code::InvalidArguments, "resources", text));
        }
        Ok(all)
    }

    /// Uses up the proof of a fresh gesture, whatever the result of the decision. Without a valid proof the
    /// session decides whether it requires one.
    async fn use_proof(
        &self,
        key: &SessionKey,
        caller: &Caller,
        proof: &SecretHash,
    ) -> Result<Option<Gesture>, Refusal> {
        let (tenant, user) = (&caller.tenant.id, &caller.user.id);
        let gestures = self.records().gestures();
        let taken = gestures.take_proof(tenant, user, proof, &key.session, now());
        taken.await.map_err(|_| store_away())
    }
}
