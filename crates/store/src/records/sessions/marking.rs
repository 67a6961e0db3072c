//! Changes the marks of sessions, and gives sessions up for deletion.

use super::marks::{Marks, MarksChange, tags_column};
use super::row::Row;
use super::{MAX_ROWS, SessionRow, Sessions};
use crate::Error;
use crate::audit::{Act, ActName};
use crate::db::{Counted, Statement, args};
use crate::versions::RecordName;
use sepal_core::domain::{SessionKey, Timestamp, UserId};

/// The number of attempts to change marks when concurrent changes conflict.
const TRIES: usize = 4;

impl Sessions<'_> {
    /// Changes the marks of a person's session. Returns `None` if the person has no such session, or if
    /// concurrent changes prevented all four attempts.
    pub async fn mark(
        &self,
        key: &SessionKey,
        owner: &UserId,
        change: &MarksChange,
    ) -> Result<Option<SessionRow>, Error> {
        for _ in 0..TRIES {
            let row = self.find(key).await?;
            let is_own = |row: &SessionRow| row.owner == *owner && row.marks.delete_at.is_none();
            let Some(mut row) = row.filter(is_own) else {
                return Ok(None);
            };
            let marks = change.apply(&row.marks);
            if marks == row.marks {
                Counted::check(self.db, &[Counted::of(RecordName::marks(key))]).await?;
                return Ok(Some(row));
            }
            let change = Statement::required(
                "UPDATE sessions SET pinned = $3, archived = $4, tags = $5, \
                     marked = marked + 1 WHERE tenant = $1 AND id = $2 AND marked = $6",
                args![
                    key.tenant.as_str(),
                    key.session.as_str(),
                    marks.is_pinned,
                    marks.is_archived,
                    tags_column(&marks.tags).as_str(),
                    i64::try_from(row.marks.changes).unwrap_or(i64::MAX)
                ],
            )
            .changing(RecordName::marks(key));
            if self.db.execute_all(vec![change]).await?.is_some() {
                row.marks = Marks {
                    changes: row.marks.changes + 1,
                    ..marks
                };
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// Gives up a person's session: it leaves all lists at once and is deleted at `delete_at`. Returns false
    /// if there is no such session, or it was given up before.
    pub async fn give_up(
        &self,
        key: &SessionKey,
        owner: &UserId,
        delete_at: Timestamp,
    ) -> Result<bool, Error> {
        let act = Act::new(
            ActName::SessionGivenUp,
            &key.tenant,
            "session",
            key.session.as_str(),
        );
        let changed = self.db.record(
            act.detail("deleteAt", delete_at.0),
            "UPDATE sessions SET delete_at = $4, marked = marked + 1 \
             WHERE tenant = $1 AND id = $2 AND owner = $3 AND delete_at IS NULL",
            args![
                key.tenant.as_str(),
                key.session.as_str(),
                owner.as_str(),
                delete_at.0
            ],
        );
        Ok(changed.await? > 0)
    }

    /// Takes back that a session was given up, before its time has come. Returns true if it was given up.
    pub async fn take_back(
        &self,
        key: &SessionKey,
        owner: &UserId,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let act = Act::new(
            ActName::SessionTakenBack,
            &key.tenant,
            "session",
            key.session.as_str(),
        );
        let changed = self.db.record(
            act,
            "UPDATE sessions SET delete_at = NULL, marked = marked + 1 \
             WHERE tenant = $1 AND id = $2 AND owner = $3 AND delete_at > $4",
            args![
                key.tenant.as_str(),
                key.session.as_str(),
                owner.as_str(),
                now.0
            ],
        );
        Ok(changed.await? > 0)
    }

    /// The sessions that were given up, of tenants that stay; soonest deletion first, at most 200.
    pub async fn given_up(&self) -> Result<Vec<SessionRow>, Error> {
        let sql = "SELECT * FROM sessions WHERE delete_at IS NOT NULL AND NOT EXISTS (SELECT 1 \
                   FROM tenants WHERE tenants.id = sessions.tenant AND tenants.delete_at IS NOT NULL) \
                   ORDER BY delete_at LIMIT $1";
        let limit = i64::try_from(MAX_ROWS).unwrap_or(i64::MAX);
        let rows: Vec<Row> = self.db.fetch_all(sql, args![limit]).await?;
        rows.into_iter().map(Row::into_row).collect()
    }
}
