//! Forks sessions: makes a new session that shares the history of another up to a point.

use std::sync::Arc;

use super::Sessions;
use super::refusal::unreadable;
use crate::agent::journal::Journal;
use crate::agent::key_limits;
use crate::agent::mailbox::store_away;
use crate::agent::request::SessionRequest;
use crate::domain::{Caller, Code, CommitId, ForkOrigin, SessionId, SessionKey, Timestamp};
use crate::history;
use crate::session::{Command, Fork, Refusal, SessionState};
use crate::store::records::SessionRow;

/// The number of commits from which folding a snapshot is faster than folding the journal.
const SNAPSHOT_FROM: usize = 100;

/// A request to fork a session.
#[derive(Debug, Default)]
pub struct ForkRequest {
    /// `seq` of the last event that both sessions share; `None` = the last event.
    pub from_seq: Option<u64>,
    /// Requests to the new session, in this order: the choice of a model, and a message.
    pub then: Vec<SessionRequest>,
}

/// Forks a session. The transcript of the new session begins with that of the other one, and its workspace
/// becomes a copy of the other's current workspace, before a model is asked. If the shared history ends with
/// an unanswered message, or `then` has a message, the model is asked at once.
pub async fn fork(
    sessions: &Sessions,
    key: &SessionKey,
    caller: &Caller,
    request: ForkRequest,
) -> Result<SessionKey, Refusal> {
    super::may_act(caller)?;
    sessions.admit(key, caller).await?;
    key_limits::check_begins(caller)?;
    sessions.0.creation_limit.count(&caller.holder())?;
    let new = SessionKey {
        tenant: key.tenant.clone(),
        session: SessionId::from_bits(rand::random()),
    };
    let ForkRequest { from_seq, mut then } = request;
    let fork = store_fork(sessions, key, &new, caller, from_seq).await?;
    if fork.is_unanswered && !then.iter().any(|request| request.action.says()) {
        then.push(Command::Retry.into());
    }
    if fork.awaits_workspace {
        // This gateway makes the copy; if it ends, the one that takes over does.
        then.insert(0, Command::TakeOver { from: None }.into());
    }
    for request in then {
        if let Err(refusal) = sessions.submit(&new, caller, request).await {
            // A caller who asked for a session with an answer must not be left with one that has none.
            if let Err(error) = sessions.delete(&new, caller).await {
                tracing::warn!(session.id = %new.session, error = error.message, "A fork that was refused is still there");
            }
            return Err(refusal);
        }
    }
    Ok(new)
}

/// The parts of a stored fork's state that decide how it goes on.
pub(super) struct StoredFork {
    /// True if its shared history ends with an unanswered message.
    is_unanswered: bool,
    /// True if it has to get a copy of the other session's workspace.
    awaits_workspace: bool,
}

/// Stores a fork of a session, which its owner's list then shows.
pub(super) async fn store_fork(
    sessions: &Sessions,
    key: &SessionKey,
    new: &SessionKey,
    owner: &Caller,
    from_seq: Option<u64>,
) -> Result<StoredFork, Refusal> {
    let (journal, state) = write_fork(sessions, key, new, owner, from_seq).await?;
    sessions.0.projection.update(new, &state.control);
    let fork = StoredFork {
        is_unanswered: !state.control.waiting.is_empty(),
        awaits_workspace: state.control.awaits_workspace,
    };
    if state.control.version > SNAPSHOT_FROM as u64 {
        journal
            .keep_snapshot(state, history::Limits::default())
            .await;
    }
    sessions.listed().await;
    Ok(fork)
}

/// Returns the caller's sessions that share a part of their history with this one, including itself, oldest
/// first.
pub async fn family(
    sessions: &Sessions,
    key: &SessionKey,
    caller: &Caller,
) -> Result<Vec<SessionRow>, Refusal> {
    sessions.admit(key, caller).await?;
    sessions.listed().await;
    let rows = sessions.0.factory.parts.place.records.sessions();
    let away = |error| {
        tracing::warn!(session.id = %key.session, ?error, "The list of sessions cannot be read");
        store_away()
    };
    let row = rows.find(key).await.map_err(away)?;
    let origin = row.and_then(|row| row.forked_from);
    let root = origin.map_or_else(|| key.session.clone(), |origin| origin.root);
    let family = rows.family(&caller.tenant.id, &caller.user.id, &root);
    let mut family = family.await.map_err(away)?;
    family.retain(|row| caller.reaches(&row.key.session));
    Ok(family)
}

/// Writes the new session's journal, after its attachments: a session that exists has everything that its
/// transcript names.
async fn write_fork(
    sessions: &Sessions,
    key: &SessionKey,
    new: &SessionKey,
    owner: &Caller,
    from_seq: Option<u64>,
) -> Result<(Journal, SessionState), Refusal> {
    let source = Journal::new(Arc::clone(&sessions.0.store), key.clone());
    let id = || CommitId::from_bits(rand::random());
    let mut past = SessionState::default();
    let mut commits = Vec::new();
    // Read all of it, because the origin of an earlier fork may be recorded anywhere in it.
    while source
        .catch_up(&mut past, |commit| commits.push(commit.clone()))
        .await
        .map_err(|error| unreadable(key, &error))?
        > 0
    {}
    let control = &past.control;
    // The fork may use the servers that the session may.
    let (of_key, of_session) = (owner.confined_servers(), control.servers.as_ref());
    key_limits::check_servers(of_key.map(|it| &**it), of_session.map(|it| &**it))?;
    let seq = from_seq.unwrap_or(control.seq);
    if seq > control.seq {
        let text = format!("the session has {} events, and no `seq` {seq}", control.seq);
        return Err(Refusal::of_field(Code::InvalidArguments, "fromSeq", text));
    }
    let root = control.forked_from.as_ref().map(|origin| &origin.root);
    let origin = ForkOrigin {
        session: key.session.clone(),
        seq,
        root: root.unwrap_or(&key.session).clone(),
    };
    let genesis = sessions.0.genesis(&key.tenant, owner.actor());
    let place = &sessions.0.factory.parts.place;
    let has_files = place.has_workspace(key).await;
    let mut fork = Fork::new(origin, genesis).with_files(has_files);
    for commit in &commits {
        if !fork.take(commit, id()) {
            break;
        }
    }
    let now = Timestamp(jiff::Timestamp::now().as_millisecond());
    let (commits, mut state) = fork.finish(id(), now);
    let attachments = &sessions.0.factory.parts.attachments;
    attachments.share(key, &new.session, now).await?;
    let journal = Journal::new(Arc::clone(&sessions.0.store), new.clone());
    state.link = journal.create(&commits).await?;
    Ok((journal, state))
}
