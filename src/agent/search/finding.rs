//! Finds texts in a person's sessions, and returns hits by session, each with its context.

use std::sync::Arc;

use futures::{StreamExt as _, stream};

use super::commit_texts::text_at;
pub use super::snippet::SnippetPiece;
use super::snippet::snippet;
use crate::domain::{Caller, SearchQuery, SessionKey, Timestamp};
use crate::session::Commit;
use crate::store::records::{Hit, Records, TextKind};
use crate::store::{Error, LiveStore};

/// Sessions on a page.
const SESSIONS: usize = 20;
/// The most hits of one session on a page.
const HITS: usize = 3;
/// Hits read from the index at once.
const ROUND: usize = 100;
/// The most rounds for a page, if few sessions have all the hits.
const ROUNDS: usize = 5;
/// Commits read concurrently.
const READS: usize = 8;

/// A page of sessions with hits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPage {
    /// Newest hit first.
    pub sessions: Vec<FoundSession>,
    /// The start of the next page, if there is more. It may show more of the same sessions.
    pub next: Option<i64>,
    /// True if older sessions of this person are still being indexed.
    pub is_indexing: bool,
}

/// A session with hits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSession {
    pub key: SessionKey,
    pub title: String,
    pub is_archived: bool,
    /// Newest first, at most three.
    pub hits: Vec<FoundText>,
    /// True if the page has more hits than these.
    pub has_more: bool,
}

/// A text that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundText {
    /// The `seq` of its event; `None` for the title.
    pub seq: Option<u64>,
    pub kind: TextKind,
    pub at: Timestamp,
    pub snippet: Vec<SnippetPiece>,
}

/// Searches all sessions of the caller.
pub(in crate::agent) async fn find(
    store: &Arc<dyn LiveStore>,
    records: &Records,
    caller: &Caller,
    query: &SearchQuery,
    below: Option<i64>,
) -> Result<FoundPage, Error> {
    let whose = (&caller.tenant.id, &caller.user.id);
    let texts = records.texts();
    let is_indexing = texts.count_behind(Some(whose)).await? > 0;
    let mut groups = Groups::default();
    let mut next = below;
    for _ in 0..ROUNDS {
        let mut hits = texts.find(whose, query, next, ROUND).await?;
        let is_last = hits.len() < ROUND;
        let lowest = hits.last().map(|hit| hit.id);
        hits.retain(|hit| caller.reaches(&hit.key.session));
        let left_over = groups.take(hits, &mut next);
        if !left_over {
            // Also past those that do not exist for the caller's key.
            next = lowest.or(next);
        }
        if left_over || is_last {
            if !left_over {
                next = None;
            }
            break;
        }
    }
    let shown = stream::iter(groups.0).map(|group| show(store, query, group));
    let sessions = shown.buffered(READS).collect::<Vec<_>>().await;
    Ok(FoundPage {
        sessions: sessions.into_iter().flatten().collect(),
        next,
        is_indexing,
    })
}

/// The hits of one session, and true if there are more.
type Group = (Vec<Hit>, bool);

#[derive(Default)]
struct Groups(Vec<Group>);

impl Groups {
    /// Adds hits up to the first for which there is no room. Returns true if there was one. `next` is moved
    /// to the last hit added.
    fn take(&mut self, hits: Vec<Hit>, next: &mut Option<i64>) -> bool {
        for hit in hits {
            let id = hit.id;
            let is_full = self.0.len() >= SESSIONS;
            let of_session = |(hits, _): &&mut Group| {
                hits.first().is_some_and(|first: &Hit| first.key == hit.key)
            };
            match self.0.iter_mut().find(of_session) {
                Some((hits, _)) if hits.len() < HITS => hits.push(hit),
                Some((_, has_more)) => *has_more = true,
                None if is_full => return true,
                None => self.0.push((vec![hit], false)),
            }
            *next = Some(id);
        }
        false
    }
}

/// Loads the texts of the hits; `None` if all of them are gone by now.
async fn show(
    store: &Arc<dyn LiveStore>,
    query: &SearchQuery,
    (hits, has_more): Group,
) -> Option<FoundSession> {
    let first = hits.first()?;
    let mut found = FoundSession {
        key: first.key.clone(),
        title: first.title.clone(),
        is_archived: first.is_archived,
        hits: Vec::new(),
        has_more,
    };
    for hit in &hits {
        match text_of(store, hit).await {
            Ok(Some(text)) => found.hits.push(FoundText {
                seq: (hit.seq > 0).then_some(hit.seq),
                kind: hit.kind,
                at: hit.at(),
                snippet: snippet(&text, query),
            }),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(session.id = %hit.key.session, %error, "A hit of the search cannot be shown");
            }
        }
    }
    (!found.hits.is_empty()).then_some(found)
}

/// Reads the text from the journal.
async fn text_of(store: &Arc<dyn LiveStore>, hit: &Hit) -> Result<Option<String>, Error> {
    let before = hit.version.saturating_sub(1);
    let records = store.read_after_version(&hit.key, before, 1).await?;
    let record = records
        .first()
        .filter(|record| record.version == hit.version);
    Ok(record
        .and_then(|record| Commit::from_bytes(&record.body).ok())
        .and_then(|commit| text_at(&commit, hit.seq, hit.part)))
}
