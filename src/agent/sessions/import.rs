//! Imports conversations from other programs as sessions of the caller.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

use super::refusal::unreadable;
use super::{Sessions, may_act};
use crate::agent::attachments::MAX_OF_MESSAGE;
use crate::agent::journal::{Journal, JournalError};
use crate::agent::key_limits;
use crate::domain::{Attachment, Caller, Code, CommitId, SessionId, SessionKey, Timestamp};
use crate::jobs::{Place, Watch};
use crate::session::{Genesis, Import, Refusal, SaidElsewhere};
use crate::store::records::AttachedTo;

/// A conversation from another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// The program, and the conversation's id there: the same conversation is imported once.
    pub origin: (&'static str, String),
    /// At most 200 characters.
    pub title: String,
    pub created_at: Option<Timestamp>,
    pub said: Vec<SaidElsewhere>,
    /// The attachments of people, as far as the file contains them.
    pub files: Vec<CarriedFile>,
}

/// A file that comes with a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarriedFile {
    /// The index in `said` of the message that it belongs to.
    pub at: usize,
    pub name: String,
    pub content: Bytes,
}

/// The result of importing a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportResult {
    New(SessionKey),
    /// It was imported before.
    There(SessionKey),
}

/// A running import. Only a few run at a time, because each holds its input in memory.
pub struct Importing {
    sessions: Sessions,
    caller: Caller,
    /// `None` while a file is read.
    place: Option<Place>,
}

impl Importing {
    /// Begins an import, before anything is read.
    pub fn begin(sessions: &Sessions, caller: &Caller) -> Result<Self, Refusal> {
        may_act(caller)?;
        key_limits::check_begins(caller)?;
        let place = sessions.0.imports.try_place().ok_or_else(|| {
            let text = "other imports run; try again in a minute";
            Refusal::new(Code::TooManyRequests, text)
        })?;
        // Count the import as one session: its content is bounded by the file's size.
        sessions.0.creation_limit.count(&caller.holder())?;
        Ok(Self {
            sessions: sessions.clone(),
            caller: caller.clone(),
            place: Some(place),
        })
    }

    /// Parses the input, off the threads that serve others. The import keeps its place until the work ends,
    /// even if nobody waits for it any more; the work can check that with `Watch`.
    pub async fn read<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&Watch) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let broken = || Refusal::new(Code::Internal, "reading a file to import broke");
        let place = self.place.take().ok_or_else(broken)?;
        let (place, read) = place.run_watched(work).await.map_err(|_| broken())?;
        self.place = Some(place);
        Ok(read)
    }

    /// Imports a conversation. Its id is derived from tenant, person, program and its id there, so each
    /// person imports the same conversation only once.
    pub async fn take(&self, mut conversation: Conversation) -> Result<ImportResult, Refusal> {
        let registry = &self.sessions.0;
        let (place, id) = (conversation.origin.0, conversation.origin.1.as_str());
        let Caller { tenant, user, .. } = &self.caller;
        let words = [tenant.id.as_str(), user.id.as_str(), "import", place, id];
        let key = SessionKey {
            tenant: tenant.id.clone(),
            session: SessionId::derived(&words),
        };
        if self.has_journal(&key).await? {
            return Ok(ImportResult::There(key));
        }
        self.keep_files(&key, &mut conversation).await?;
        let now = Timestamp(jiff::Timestamp::now().as_millisecond());
        let id = || CommitId::from_bits(rand::random());
        let first = conversation.said.iter().find_map(|said| said.at);
        let begun = conversation.created_at.or(first).unwrap_or(now);
        let genesis = Genesis {
            servers: self.caller.confined_servers().cloned(),
            ..registry.genesis(&key.tenant, self.caller.actor())
        };
        let mut import = Import::new(genesis, &conversation.title, begun, now, id());
        for said in &conversation.said {
            import.take(said, id());
        }
        let (commits, state) = import.finish(id());
        let journal = Journal::new(Arc::clone(&registry.store), key.clone());
        if let Err(refusal) = journal.create(&commits).await {
            // A concurrent import of the same file was faster.
            let is_there = refusal.code == Code::Internal && self.has_journal(&key).await?;
            return is_there.then_some(ImportResult::There(key)).ok_or(refusal);
        }
        registry.projection.update(&key, &state.control);
        Ok(ImportResult::New(key))
    }

    /// Stores the attachments, as an upload would, within the same limits. A refused one is named in the
    /// message instead.
    async fn keep_files(
        &self,
        key: &SessionKey,
        conversation: &mut Conversation,
    ) -> Result<(), Refusal> {
        let attachments = self.sessions.attachments();
        // Store the same content once, however often it is used.
        let mut done: HashMap<(usize, usize), Result<Attachment, String>> = HashMap::new();
        for file in std::mem::take(&mut conversation.files) {
            let Some(said) = conversation.said.get_mut(file.at) else {
                continue;
            };
            let kept = if said.attachments.len() >= MAX_OF_MESSAGE {
                Err(format!("a message may have {MAX_OF_MESSAGE} attachments"))
            } else if file.content.len() as u64 > attachments.limits().file {
                Err("it is larger than an attachment may be here".to_owned())
            } else if let Some(known) = done.get(&place(&file.content)) {
                known.clone()
            } else {
                let to = AttachedTo::Ahead(key);
                let content = file.content.to_vec();
                let kept = match attachments.keep(to, &file.name, content, None).await {
                    Ok(attachment) => Ok(attachment),
                    Err(refusal) if refusal.code == Code::StoreUnavailable => return Err(refusal),
                    Err(refusal) => Err(refusal.message),
                };
                done.insert(place(&file.content), kept.clone());
                kept
            };
            match kept {
                Ok(attachment) if said.attachments.contains(&attachment) => {}
                Ok(attachment) => said.attachments.push(attachment),
                Err(why) => {
                    let line = format!("[Left out: the file `{}`: {why}]", file.name);
                    let gap = if said.text.is_empty() { "" } else { "\n\n" };
                    said.text = format!("{}{gap}{line}", said.text);
                }
            }
        }
        Ok(())
    }

    async fn has_journal(&self, key: &SessionKey) -> Result<bool, Refusal> {
        let head = self.sessions.0.store.head(key).await;
        let head = head.map_err(|error| unreadable(key, &JournalError::Store(error)))?;
        Ok(head.is_some())
    }
}

/// The address and length of a content, which are the same for all files that share it.
fn place(content: &Bytes) -> (usize, usize) {
    (content.as_ptr().addr(), content.len())
}
