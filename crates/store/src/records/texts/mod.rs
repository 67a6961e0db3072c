//! Stores the full-text index of sessions, in which only a session's owner can search.
//!
//! `SQLite` uses FTS5, `PostgreSQL` a text search vector. Both receive words that are split here, so that
//! both find the same texts.

mod row;

use std::collections::{BTreeMap, BTreeSet};

pub use self::row::{Behind, Hit, NewText, TakenUp, TextChange, TextKind};
use self::row::{BehindRow, HitRow, PLACE_BITS};
use crate::Error;
use crate::db::{Arg, Db, PerRow, Statement, args};
use sepal_core::domain::search::{MAX_TEXT_WORDS, words};
use sepal_core::domain::{SearchQuery, SessionKey, TenantId, Timestamp, UserId};

/// The most texts of one page.
const MAX_ROWS: usize = 1_000;
/// The `seq` of the title.
const TITLE: u64 = 0;

/// Access to the index.
pub struct Texts<'s> {
    db: &'s Db,
}

impl<'s> Texts<'s> {
    pub(in crate::records) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// Sessions whose index is behind and that did not change after `before`, newest change first.
    pub async fn behind(&self, before: Timestamp, limit: usize) -> Result<Vec<Behind>, Error> {
        let sql = "SELECT tenant, id, owner, indexed, version FROM sessions \
                   WHERE indexed < version AND updated_at <= $1 ORDER BY updated_at DESC LIMIT $2";
        self.all_behind(sql, args![before.0, Self::limit(limit)])
            .await
    }

    /// Sessions of a person whose index is behind, newest change first.
    pub async fn behind_of_person(
        &self,
        (tenant, owner): (&TenantId, &UserId),
        limit: usize,
    ) -> Result<Vec<Behind>, Error> {
        let sql = "SELECT tenant, id, owner, indexed, version FROM sessions \
                   WHERE indexed < version AND tenant = $1 AND owner = $2 \
                   ORDER BY updated_at DESC LIMIT $3";
        let whose = args![tenant.as_str(), owner.as_str(), Self::limit(limit)];
        self.all_behind(sql, whose).await
    }

    async fn all_behind(&self, sql: &'static str, args: Vec<Arg>) -> Result<Vec<Behind>, Error> {
        let rows: Vec<BehindRow> = self.db.fetch_all(sql, args).await?;
        rows.into_iter().map(BehindRow::into_behind).collect()
    }

    fn limit(limit: usize) -> i64 {
        i64::try_from(limit).unwrap_or(i64::MAX)
    }

    /// This session, if its index is behind.
    pub async fn behind_of(&self, key: &SessionKey) -> Result<Option<Behind>, Error> {
        let row: Option<BehindRow> = self
            .db
            .fetch_optional(
                "SELECT tenant, id, owner, indexed, version FROM sessions \
                 WHERE tenant = $1 AND id = $2 AND indexed < version",
                args![key.tenant.as_str(), key.session.as_str()],
            )
            .await?;
        row.map(BehindRow::into_behind).transpose()
    }

    /// The number of sessions whose index is behind: of everyone, or of one person.
    pub async fn count_behind(&self, whose: Option<(&TenantId, &UserId)>) -> Result<u64, Error> {
        let (tenant, owner) = whose.map_or(("", ""), |(tenant, owner)| {
            (tenant.as_str(), owner.as_str())
        });
        let count: Option<(i64,)> = self
            .db
            .fetch_optional(
                "SELECT COUNT(*) FROM sessions WHERE indexed < version AND \
                 ($1 = '' OR (tenant = $1 AND owner = $2))",
                args![tenant, owner],
            )
            .await?;
        Ok(count.map_or(0, |(count,)| u64::try_from(count).unwrap_or(0)))
    }

    /// Records that texts are about to be deleted, so that [`Self::erase_deleted`] later erases their words.
    pub async fn erase_later(&self) -> Result<(), Error> {
        match self.db {
            Db::Sqlite(db) => db.erase_later().await,
            Db::Postgres(_) => Ok(()),
        }
    }

    /// Permanently erases the data that deleted sessions left in the `SQLite` file: words in the index, and
    /// pages in the write-ahead log. `PostgreSQL` relies on its own vacuum. Returns false if there was
    /// nothing to erase.
    pub async fn erase_deleted(&self) -> Result<bool, Error> {
        match self.db {
            // Source: <https://sqlite.org/fts5.html#the_merge_command>.
            Db::Sqlite(db) => {
                db.erase(
                    "INSERT INTO texts_index (texts_index, rank) VALUES ('merge', -500)",
                    "INSERT INTO texts_index (texts_index, rank) VALUES ('merge', 500)",
                )
                .await
            }
            Db::Postgres(_) => Ok(false),
        }
    }

    /// Stores the changes of several sessions' indexes in one transaction. Returns false and stores none of
    /// them if one index is no longer at the version where its changes begin, because another gateway has
    /// advanced it.
    pub async fn keep(&self, taken: &[TakenUp]) -> Result<bool, Error> {
        let kept = self.db.execute_all(self.statements(taken)).await?;
        Ok(kept.is_some())
    }

    fn statements(&self, taken: &[TakenUp]) -> Vec<Statement> {
        let mut statements: Vec<Statement> = taken.iter().map(advance).collect();
        statements.extend(REMOVE.statements(taken.iter().flat_map(outdated)));
        let mut texts: Vec<(&Behind, &NewText)> = taken.iter().flat_map(remaining).collect();
        // By time, as their ids are: an FTS5 index writes out what it has collected whenever a row comes
        // before the one that it took last.
        texts.sort_by_key(|(_, text)| text.at);
        match self.db {
            Db::Sqlite(_) => {
                statements.extend(PUT_PLACES.statements(places(&texts)));
                statements.extend(PUT_WORDS.statements(texts.iter().map(words_at)));
            }
            Db::Postgres(_) => {
                let vectors = texts.iter().map(|(session, text)| vector(session, text));
                let rows = places(&texts).zip(vectors).map(|(mut place, vector)| {
                    place.push(Arg::from(vector.as_str()));
                    place
                });
                statements.extend(PUT_VECTORS.statements(rows));
            }
        }
        statements
    }

    /// Matches of the query in a person's sessions with an id below `below`, newest first.
    pub async fn find(
        &self,
        (tenant, owner): (&TenantId, &UserId),
        query: &SearchQuery,
        below: Option<i64>,
        limit: usize,
    ) -> Result<Vec<Hit>, Error> {
        let sql = match self.db {
            // `CROSS JOIN` fixes the order; otherwise SQLite would query the index for each text of the
            // tenant.
            Db::Sqlite(_) => {
                "SELECT texts.*, sessions.title, sessions.archived FROM texts_index \
                 CROSS JOIN texts ON texts.id = texts_index.rowid \
                 CROSS JOIN sessions ON sessions.tenant = texts.tenant \
                 AND sessions.id = texts.session \
                 WHERE texts_index MATCH $1 AND texts_index.rowid < $4 AND texts.tenant = $2 \
                 AND texts.owner = $3 AND sessions.delete_at IS NULL \
                 ORDER BY texts_index.rowid DESC LIMIT $5"
            }
            Db::Postgres(_) => {
                "SELECT texts.id, texts.tenant, texts.session, texts.seq, texts.part, texts.kind, \
                 texts.version, sessions.title, sessions.archived FROM texts \
                 JOIN sessions ON sessions.tenant = texts.tenant AND sessions.id = texts.session \
                 WHERE texts.words @@ $1::tsquery AND texts.id < $4 AND texts.tenant = $2 \
                 AND texts.owner = $3 AND sessions.delete_at IS NULL \
                 ORDER BY texts.id DESC LIMIT $5"
            }
        };
        let limit = limit.clamp(1, MAX_ROWS);
        let args = args![
            self.expression(owner.as_str(), query).as_str(),
            tenant.as_str(),
            owner.as_str(),
            below.unwrap_or(i64::MAX),
            i64::try_from(limit).unwrap_or(i64::MAX)
        ];
        let rows: Vec<HitRow> = self.db.fetch_all(sql, args).await?;
        rows.into_iter().map(HitRow::into_hit).collect()
    }

    /// The `seq` of events of a person's session that match the query, in order.
    pub async fn find_in(
        &self,
        (key, owner): (&SessionKey, &UserId),
        query: &SearchQuery,
        limit: usize,
    ) -> Result<Vec<u64>, Error> {
        let sql = match self.db {
            Db::Sqlite(_) => {
                "SELECT DISTINCT texts.seq FROM texts_index \
                 CROSS JOIN texts ON texts.id = texts_index.rowid \
                 WHERE texts_index MATCH $1 AND texts.tenant = $2 AND texts.session = $3 \
                 AND texts.owner = $4 AND texts.seq > 0 ORDER BY texts.seq LIMIT $5"
            }
            Db::Postgres(_) => {
                "SELECT DISTINCT seq FROM texts \
                 WHERE words @@ $1::tsquery AND tenant = $2 AND session = $3 \
                 AND owner = $4 AND seq > 0 ORDER BY seq LIMIT $5"
            }
        };
        let limit = limit.clamp(1, MAX_ROWS);
        let args = args![
            self.expression(key.session.as_str(), query).as_str(),
            key.tenant.as_str(),
            key.session.as_str(),
            owner.as_str(),
            i64::try_from(limit).unwrap_or(i64::MAX)
        ];
        let rows: Vec<(i64,)> = self.db.fetch_all(sql, args).await?;
        let seqs = rows.into_iter();
        Ok(seqs.filter_map(|(seq,)| u64::try_from(seq).ok()).collect())
    }

    /// Translates the query to the syntax of the database, limited to texts of an owner or a session. Words
    /// contain only letters and digits, so quoting them is safe.
    fn expression(&self, scope: &str, query: &SearchQuery) -> String {
        let (quote, between, and, star) = match self.db {
            Db::Sqlite(_) => ('"', " ", " AND ", "*"),
            Db::Postgres(_) => ('\'', "' <-> '", " & ", ":*"),
        };
        let mut parts: BTreeSet<String> = BTreeSet::from([format!("{quote}{scope}{quote}")]);
        for phrase in query.phrases() {
            let words = phrase.words.join(between);
            let star = if phrase.is_prefix { star } else { "" };
            let part = format!("{quote}{words}{quote}{star}");
            parts.insert(match self.db {
                Db::Sqlite(_) => part,
                Db::Postgres(_) => format!("({part})"),
            });
        }
        Vec::from_iter(parts).join(and)
    }
}

/// Deletes the texts of a session in a range of `seq`.
const REMOVE: PerRow = PerRow {
    before: "DELETE FROM texts WHERE ",
    row: "(tenant = ? AND session = ? AND seq >= ? AND seq <= ?)",
    between: " OR ",
    after: "",
};

/// Adds places behind those that the same millisecond already has.
const PUT_PLACES: PerRow = PerRow {
    before: "WITH fresh (base, nth, tenant, owner, session, seq, part, kind, version) AS (VALUES ",
    row: "(?, ?, ?, ?, ?, ?, ?, ?, ?)",
    between: ", ",
    after: ") INSERT INTO texts (id, tenant, owner, session, seq, part, kind, version) \
        SELECT COALESCE((SELECT MAX(id) + 1 FROM texts \
        WHERE id >= fresh.base AND id < fresh.base + 1048576), base) \
        + ROW_NUMBER() OVER (PARTITION BY base ORDER BY nth) - 1, \
        tenant, owner, session, seq, part, kind, version FROM fresh",
};

/// Adds the words of places. `CROSS JOIN` keeps the order of the rows.
const PUT_WORDS: PerRow = PerRow {
    before: "WITH fresh (tenant, session, seq, part, words) AS (VALUES ",
    row: "(?, ?, ?, ?, ?)",
    between: ", ",
    after: ") INSERT INTO texts_index (rowid, words) SELECT texts.id, fresh.words FROM fresh \
        CROSS JOIN texts ON texts.tenant = fresh.tenant AND texts.session = fresh.session \
        AND texts.seq = fresh.seq AND texts.part = fresh.part",
};

/// Adds places with their words, for `PostgreSQL`.
const PUT_VECTORS: PerRow = PerRow {
    before: "WITH fresh (base, nth, tenant, owner, session, seq, part, kind, version, words) AS (VALUES ",
    row: "(CAST(? AS BIGINT), CAST(? AS BIGINT), ?, ?, ?, CAST(? AS BIGINT), CAST(? AS BIGINT), ?, \
        CAST(? AS BIGINT), CAST(? AS TSVECTOR))",
    between: ", ",
    after: ") INSERT INTO texts (id, tenant, owner, session, seq, part, kind, version, words) \
        SELECT COALESCE((SELECT MAX(id) + 1 FROM texts \
        WHERE id >= fresh.base AND id < fresh.base + 1048576), base) \
        + ROW_NUMBER() OVER (PARTITION BY base ORDER BY nth) - 1, \
        tenant, owner, session, seq, part, kind, version, words FROM fresh",
};

/// Advances the index of a session, unless another gateway has.
fn advance(taken: &TakenUp) -> Statement {
    let key = &taken.session.key;
    Statement::required(
        "UPDATE sessions SET indexed = $3 WHERE tenant = $1 AND id = $2 AND indexed = $4",
        args![
            key.tenant.as_str(),
            key.session.as_str(),
            int(taken.to),
            int(taken.session.indexed)
        ],
    )
}

/// The ranges of `seq` whose stored texts the changes replace: those taken back, an earlier title, and
/// everything from the first new event on, which is there only if the journal lost its end meanwhile.
fn outdated(taken: &TakenUp) -> Vec<Vec<Arg>> {
    let key = &taken.session.key;
    let range = |from: u64, to: u64| {
        let (tenant, session) = (key.tenant.as_str(), key.session.as_str());
        args![tenant, session, int(from), int(to)]
    };
    let put = taken.changes.iter().filter_map(|change| match change {
        TextChange::Put(text) => Some(text.seq),
        TextChange::Remove { .. } => None,
    });
    let first_new = put.clone().filter(|seq| *seq > TITLE).min();
    let title = put.filter(|seq| *seq == TITLE);
    let taken_back = taken.changes.iter().filter_map(|change| match change {
        TextChange::Remove { seq } => Some(*seq),
        TextChange::Put(_) => None,
    });
    let earlier: BTreeSet<u64> = title
        .chain(taken_back)
        .filter(|seq| first_new.is_none_or(|first| *seq < first))
        .collect();
    let earlier = earlier.into_iter().map(|seq| range(seq, seq));
    let new = first_new.map(|first| range(first, u64::MAX));
    earlier.chain(new).collect()
}

/// The new texts of a session that were not replaced or taken back again.
fn remaining(taken: &TakenUp) -> impl Iterator<Item = (&Behind, &NewText)> {
    let mut texts = BTreeMap::new();
    for change in &taken.changes {
        match change {
            TextChange::Put(text) => {
                texts.insert((text.seq, text.part), text);
            }
            TextChange::Remove { seq } => texts.retain(|(of, _), _| of != seq),
        }
    }
    let texts = texts.into_values();
    texts.map(|text| (&taken.session, text))
}

/// The values of the places of texts, numbered in their order.
fn places(texts: &[(&Behind, &NewText)]) -> impl Iterator<Item = Vec<Arg>> {
    (0_i64..).zip(texts).map(|(nth, (session, text))| {
        let key = &session.key;
        args![
            text.at.0 << PLACE_BITS,
            nth,
            key.tenant.as_str(),
            session.owner.as_str(),
            key.session.as_str(),
            int(text.seq),
            int(text.part),
            text.kind.as_str(),
            int(text.version)
        ]
    })
}

/// The words of a text for `SQLite`, with the ids of owner and session.
fn words_at((session, text): &(&Behind, &NewText)) -> Vec<Arg> {
    let key = &session.key;
    let scopes = [session.owner.as_str(), key.session.as_str()];
    let words = words(&text.text).take(MAX_TEXT_WORDS).map(|word| word.text);
    let indexed: Vec<String> = scopes.map(str::to_owned).into_iter().chain(words).collect();
    args![
        key.tenant.as_str(),
        key.session.as_str(),
        int(text.seq),
        int(text.part),
        indexed.join(" ").as_str()
    ]
}

/// The same for `PostgreSQL`.
fn vector(session: &Behind, text: &NewText) -> String {
    let scopes = [session.owner.as_str(), session.key.session.as_str()];
    let words = words(&text.text).take(MAX_TEXT_WORDS).map(|word| word.text);
    let mut vector: Vec<String> = scopes.map(|scope| format!("'{scope}'")).into();
    let places = words
        .zip(1..)
        .map(|(word, place)| format!("'{word}':{place}"));
    vector.extend(places);
    vector.join(" ")
}

fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Behind, NewText, TakenUp, TextChange, TextKind, Texts};
    use crate::db::{Db, SqliteDb};
    use sepal_core::domain::{SessionId, SessionKey, TenantId, Timestamp, UserId};

    fn text(seq: u64, part: u64, at: i64) -> TextChange {
        TextChange::Put(NewText {
            seq,
            part,
            kind: TextKind::Message,
            at: Timestamp(at),
            version: seq,
            text: format!("text {seq}.{part}"),
        })
    }

    fn taken(session: u128, changes: Vec<TextChange>) -> TakenUp {
        TakenUp {
            session: Behind {
                key: SessionKey {
                    tenant: TenantId::from_bits(1),
                    session: SessionId::from_bits(session),
                },
                owner: UserId::from_bits(1),
                indexed: 0,
                version: 2,
            },
            to: 2,
            changes,
        }
    }

    /// One for each session, one for what was there before, and two for the places and words of all texts.
    #[tokio::test]
    async fn texts_of_all_sessions_are_written_together() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::Sqlite(SqliteDb::open(&dir.path().join("s.db")).await.unwrap());
        let texts = Texts::new(&db);
        let a_turn = |session| taken(session, vec![text(1, 0, 1), text(3, 0, 2)]);
        assert_eq!(texts.statements(&[a_turn(1)]).len(), 4);
        assert_eq!(texts.statements(&[a_turn(1), a_turn(2)]).len(), 2 + 3);
    }

    #[tokio::test]
    async fn places_follow_time_and_replace_what_was_there() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::Sqlite(SqliteDb::open(&dir.path().join("s.db")).await.unwrap());
        let texts = Texts::new(&db);
        let store = async |taken: &[TakenUp]| {
            // Without the rows of the session list, whose versions are checked first.
            let statements = texts.statements(taken).split_off(taken.len());
            db.execute_all(statements).await.unwrap();
            let sql = "SELECT texts.session, texts.seq, texts.part, texts.id FROM texts \
                       JOIN texts_index ON texts_index.rowid = texts.id ORDER BY texts.id";
            let rows: Vec<(String, i64, i64, i64)> = db.fetch_all(sql, vec![]).await.unwrap();
            let last = |session: &str| session.ends_with('2');
            let rows = rows.into_iter();
            let rows = rows.map(|(session, seq, part, id)| {
                (
                    1 + i64::from(last(&session)),
                    seq,
                    part,
                    id >> 20,
                    id % (1 << 20),
                )
            });
            rows.collect::<Vec<_>>()
        };
        let one = taken(1, vec![text(0, 0, 7), text(1, 0, 5), text(2, 0, 7)]);
        let two = taken(2, vec![text(1, 0, 6), text(2, 0, 7), text(2, 1, 7)]);
        assert_eq!(
            store(&[one, two]).await,
            [
                (1, 1, 0, 5, 0),
                (2, 1, 0, 6, 0),
                (1, 0, 0, 7, 0),
                (1, 2, 0, 7, 1),
                (2, 2, 0, 7, 2),
                (2, 2, 1, 7, 3),
            ]
        );
        // Another title, a message taken back, one that never shows, and an event that is told once more.
        let one = taken(
            1,
            vec![
                text(0, 0, 8),
                TextChange::Remove { seq: 1 },
                text(2, 0, 7),
                text(3, 0, 9),
                TextChange::Remove { seq: 3 },
            ],
        );
        assert_eq!(
            store(&[one]).await,
            [
                (2, 1, 0, 6, 0),
                (2, 2, 0, 7, 2),
                (2, 2, 1, 7, 3),
                (1, 2, 0, 7, 4),
                (1, 0, 0, 8, 0),
            ]
        );
    }
}
