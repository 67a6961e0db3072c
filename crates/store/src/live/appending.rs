//! Appends to journals in SQLite, with one statement for the appends of several sessions, because each
//! statement costs one round trip to the SQLite thread, however many rows it has.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::LazyLock;

use sqlx::SqliteConnection;

use super::NewRecord;
use super::job::{Job, JobOutcome, Work};
use super::reading::int;
use crate::Error;
use sepal_core::domain::SessionKey;

/// The most records in one statement. Each number of records has its own statement, prepared once.
const TOGETHER: usize = 16;

/// The statements for one record, two records, and so on.
static APPEND: LazyLock<Vec<String>> = LazyLock::new(|| (1..=TOGETHER).map(statement).collect());

/// Builds the statement that inserts each record whose expected version is the head of its journal. A
/// trigger maintains the index of unfinished sessions.
fn statement(records: usize) -> String {
    let mut sql = "WITH fresh (tenant, session, expected, commit_id, first_seq, last_seq, body, \
                   is_active) AS (VALUES "
        .to_owned();
    for record in 0..records {
        let separator = if record == 0 { "(" } else { ", (" };
        sql.push_str(separator);
        for field in 1..=8 {
            let comma = if field == 1 { "" } else { ", " };
            // Writing to a `String` cannot fail.
            let _ = write!(sql, "{comma}${}", record * 8 + field);
        }
        sql.push(')');
    }
    sql.push_str(
        ") INSERT INTO journal \
         (tenant, session, version, commit_id, first_seq, last_seq, body, is_active) \
         SELECT tenant, session, expected + 1, commit_id, first_seq, last_seq, body, is_active \
         FROM fresh WHERE expected = coalesce((SELECT max(version) FROM journal \
         WHERE journal.tenant = fresh.tenant AND journal.session = fresh.session), 0)",
    );
    sql
}

/// A queued append.
#[derive(Clone, Copy)]
pub(super) struct Append<'a> {
    key: &'a SessionKey,
    expected_version: u64,
    record: &'a NewRecord,
}

/// Returns the appends at the front of the queue that fit in one statement: at most one for each session, so
/// that none depends on another.
pub(super) fn in_front(jobs: &[Job]) -> Vec<Append<'_>> {
    let mut sessions = HashSet::new();
    let appends = jobs.iter().take(TOGETHER).map_while(|job| {
        let Work::Append {
            expected_version,
            record,
        } = &job.work
        else {
            return None;
        };
        sessions.insert(&job.key).then_some(Append {
            key: &job.key,
            expected_version: *expected_version,
            record,
        })
    });
    appends.collect()
}

/// Runs the appends in one statement. `appends` must be a result of [`in_front`].
pub(super) async fn append(
    connection: &mut SqliteConnection,
    appends: &[Append<'_>],
) -> Result<Vec<JobOutcome>, Error> {
    let Some(sql) = appends.len().checked_sub(1).and_then(|at| APPEND.get(at)) else {
        return Ok(Vec::new());
    };
    let mut query = sqlx::query(sql.as_str());
    for append in appends {
        let record = append.record;
        query = query
            .bind(append.key.tenant.as_str())
            .bind(append.key.session.as_str())
            .bind(int(append.expected_version))
            .bind(record.commit_id.as_str())
            .bind(int(record.first_seq))
            .bind(int(record.last_seq))
            .bind(&record.body[..])
            .bind(record.is_active);
    }
    let inserted = query.execute(&mut *connection).await?.rows_affected();
    if inserted == appends.len() as u64 {
        return Ok(vec![JobOutcome::Done; appends.len()]);
    }
    if inserted == 0 {
        return Ok(vec![JobOutcome::Conflict; appends.len()]);
    }
    let mut outcomes = Vec::with_capacity(appends.len());
    for append in appends {
        outcomes.push(find_written(connection, append).await?);
    }
    Ok(outcomes)
}

/// Writes a whole journal if none exists, in the caller's transaction.
pub(super) async fn create(
    connection: &mut SqliteConnection,
    key: &SessionKey,
    records: &[NewRecord],
) -> Result<JobOutcome, Error> {
    for (expected_version, record) in (0..).zip(records) {
        let next = Append {
            key,
            expected_version,
            record,
        };
        // Only the first record can conflict, because the transaction keeps other writers out.
        if append(connection, &[next]).await? != [JobOutcome::Done] {
            return Ok(JobOutcome::Conflict);
        }
    }
    Ok(JobOutcome::Done)
}

/// Checks whether the journal contains this record, with the same commit id.
async fn find_written(
    connection: &mut SqliteConnection,
    append: &Append<'_>,
) -> Result<JobOutcome, Error> {
    let sql = "SELECT 1 FROM journal \
               WHERE tenant = $1 AND session = $2 AND version = $3 AND commit_id = $4";
    let found = sqlx::query_scalar::<_, i64>(sql)
        .bind(append.key.tenant.as_str())
        .bind(append.key.session.as_str())
        .bind(int(append.expected_version.saturating_add(1)))
        .bind(append.record.commit_id.as_str())
        .fetch_optional(connection)
        .await?;
    Ok(match found {
        Some(_) => JobOutcome::Done,
        None => JobOutcome::Conflict,
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tokio::sync::oneshot;

    use super::{TOGETHER, append, in_front};
    use crate::db::SqliteDb;
    use crate::live::NewRecord;
    use crate::live::job::{Job, JobOutcome, Work};
    use sepal_core::domain::{CommitId, SessionId, SessionKey, TenantId};

    fn key(session: u128) -> SessionKey {
        SessionKey {
            tenant: TenantId::from_bits(1),
            session: SessionId::from_bits(session),
        }
    }

    fn job(session: u128, expected_version: u64) -> Job {
        let record = NewRecord {
            commit_id: CommitId::from_bits(rand::random()),
            first_seq: 1,
            last_seq: 1,
            is_active: session.is_multiple_of(2),
            body: Bytes::from_static(b"{}"),
            wake: None,
        };
        Job {
            key: key(session),
            work: Work::Append {
                expected_version,
                record,
            },
            answer: oneshot::channel().0,
        }
    }

    #[test]
    fn one_statement_takes_one_append_of_each_session() {
        let count = |jobs: &[Job]| in_front(jobs).len();
        assert_eq!(count(&[job(1, 0), job(2, 0), job(1, 1), job(3, 0)]), 2);
        let mut jobs = vec![job(1, 0), job(2, 0)];
        jobs[1].work = Work::Remove;
        assert_eq!(count(&jobs), 1);
        assert_eq!(count(&jobs[1..]), 0);
        let many: Vec<Job> = (0..100).map(|session| job(session, 0)).collect();
        assert_eq!(count(&many), TOGETHER);
    }

    #[tokio::test]
    async fn each_append_of_a_statement_has_its_own_fate() {
        let dir = tempfile::tempdir().unwrap();
        let db = SqliteDb::open(&dir.path().join("s.db")).await.unwrap();
        let mut connection = db.writing().await.unwrap().connection;
        let jobs: Vec<Job> = (0..16).map(|session| job(session, 0)).collect();
        let outcomes = append(&mut connection, &in_front(&jobs)).await.unwrap();
        assert_eq!(outcomes, [JobOutcome::Done; TOGETHER]);

        let jobs = [job(1, 1), job(2, 0), job(3, 7), job(99, 0), job(98, 1)];
        let outcomes = append(&mut connection, &in_front(&jobs)).await.unwrap();
        let (done, conflict) = (JobOutcome::Done, JobOutcome::Conflict);
        assert_eq!(outcomes, [done, conflict, conflict, done, conflict]);
        let jobs = [job(1, 1), job(2, 0)];
        let outcomes = append(&mut connection, &in_front(&jobs)).await.unwrap();
        assert_eq!(outcomes, [conflict; 2]);

        let active = "SELECT count(*) FROM active";
        let (active,): (i64,) = sqlx::query_as(active)
            .fetch_one(&mut connection)
            .await
            .unwrap();
        assert_eq!(active, 8);
    }
}
