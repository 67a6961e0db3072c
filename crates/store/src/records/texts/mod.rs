//! Stores the full-text index of sessions, in which only a session's owner can search.
//!
//! `SQLite` uses FTS5, `PostgreSQL` a text search vector. Both receive words that are split here, so that
//! both find the same texts.

mod row;

use std::collections::BTreeSet;

pub use self::row::{Behind, Hit, NewText, TakenUp, TextChange, TextKind};
use self::row::{BehindRow, HitRow, PLACE_BITS};
use crate::Error;
use crate::db::{Arg, Db, Statement, args};
use sepal_core::domain::search::{MAX_TEXT_WORDS, words};
use sepal_core::domain::{SearchQuery, SessionKey, TenantId, Timestamp, UserId};

/// The most texts of one page.
const MAX_ROWS: usize = 1_000;

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
        let statements = taken.iter().flat_map(|taken| self.statements(taken));
        let kept = self.db.execute_all(statements.collect()).await?;
        Ok(kept.is_some())
    }

    fn statements(&self, taken: &TakenUp) -> Vec<Statement> {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let (key, owner) = (&taken.session.key, &taken.session.owner);
        let (tenant, session) = (key.tenant.as_str(), key.session.as_str());
        let (from, to) = (number(taken.session.indexed), number(taken.to));
        let mut statements = vec![Statement::required(
            "UPDATE sessions SET indexed = $3 WHERE tenant = $1 AND id = $2 AND indexed = $4",
            args![tenant, session, to, from],
        )];
        for change in &taken.changes {
            match change {
                TextChange::Put(text) => {
                    statements.push(Statement::new(
                        "DELETE FROM texts WHERE tenant = $1 AND session = $2 AND seq = $3 \
                         AND part = $4",
                        args![tenant, session, number(text.seq), number(text.part)],
                    ));
                    statements.extend(self.put(key, owner, text));
                }
                TextChange::Remove { seq } => statements.push(Statement::new(
                    "DELETE FROM texts WHERE tenant = $1 AND session = $2 AND seq = $3",
                    args![tenant, session, number(*seq)],
                )),
            }
        }
        statements
    }

    fn put(&self, key: &SessionKey, owner: &UserId, text: &NewText) -> Vec<Statement> {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let (tenant, session) = (key.tenant.as_str(), key.session.as_str());
        let first = text.at.0 << PLACE_BITS;
        let place: Vec<Arg> = args![
            first,
            first + (1 << PLACE_BITS),
            tenant,
            owner.as_str(),
            session,
            number(text.seq),
            number(text.part),
            text.kind.as_str(),
            number(text.version)
        ];
        let scopes = [owner.as_str(), session];
        let words = words(&text.text).take(MAX_TEXT_WORDS).map(|word| word.text);
        match self.db {
            Db::Sqlite(_) => {
                let indexed: Vec<String> =
                    scopes.map(str::to_owned).into_iter().chain(words).collect();
                vec![
                    Statement::new(
                        "INSERT INTO texts (id, tenant, owner, session, seq, part, kind, version) \
                         SELECT COALESCE(MAX(id) + 1, $1), $3, $4, $5, $6, $7, $8, $9 \
                         FROM texts WHERE id >= $1 AND id < $2",
                        place,
                    ),
                    Statement::new(
                        "INSERT INTO texts_index (rowid, words) SELECT id, $5 FROM texts \
                         WHERE tenant = $1 AND session = $2 AND seq = $3 AND part = $4",
                        args![
                            tenant,
                            session,
                            number(text.seq),
                            number(text.part),
                            indexed.join(" ").as_str()
                        ],
                    ),
                ]
            }
            Db::Postgres(_) => {
                let mut vector: Vec<String> = scopes.map(|scope| format!("'{scope}'")).into();
                let places = words
                    .zip(1..)
                    .map(|(word, place)| format!("'{word}':{place}"));
                vector.extend(places);
                let mut place = place;
                place.push(Arg::from(vector.join(" ").as_str()));
                vec![Statement::new(
                    "INSERT INTO texts (id, tenant, owner, session, seq, part, kind, version, words) \
                     SELECT COALESCE(MAX(id) + 1, $1), $3, $4, $5, $6, $7, $8, $9, $10::tsvector \
                     FROM texts WHERE id >= $1 AND id < $2",
                    place,
                )]
            }
        }
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
