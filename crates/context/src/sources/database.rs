//! Provides the rows of a read-only query of SQLite or PostgreSQL.

use std::str::FromStr as _;
use std::time::Duration;

use async_trait::async_trait;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions, SqliteRow};
use sqlx::{
    AssertSqlSafe, Column as _, PgPool, Row as _, SqlitePool, TypeInfo as _, ValueRef as _,
};

use super::{contexts, hidden};
use crate::{Context, ContextError, ContextProvider, ContextSession};

/// The most connections to a database of contexts.
const CONNECTIONS: u32 = 2;
/// The time limit of a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// The options of each PostgreSQL connection.
const OPTIONS: [(&str, &str); 2] = [
    ("default_transaction_read_only", "on"),
    ("statement_timeout", "8000"),
];

/// The reason a database cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseError {
    /// The address may hold a password, so it is not repeated.
    #[error("its address is neither `sqlite://` with a file nor `postgres://` with a server")]
    Address,
    /// The query has more parameters than there are values.
    #[error("the query names `${0}`, and there are `$1`, the tenant, and `$2`, the question")]
    Parameter(usize),
}

/// Provides the rows of a query, in its order, which has to be newest first. If a row has a column `content`,
/// that is the content, and `id`, `timestamp` and `metadata` are its metadata; any other row becomes JSON.
pub struct DatabaseProvider {
    name: String,
    pool: Pool,
    query: String,
    parameters: usize,
}

enum Pool {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

impl DatabaseProvider {
    /// Makes a provider for that query, with at most so many rows. Nothing is connected before the first
    /// turn, and the query cannot write.
    pub fn new(
        name: impl Into<String>,
        url: &SecretString,
        query: &str,
        most: usize,
    ) -> Result<Self, DatabaseError> {
        let parameters = parameters(query);
        if parameters > 2 {
            return Err(DatabaseError::Parameter(parameters));
        }
        let pool = Pool::open(url.expose_secret())?;
        let query = query.trim().trim_end_matches(';');
        let most = most.min(super::MAX_RECORDS);
        // A query inside another one can only read.
        let query = match &pool {
            Pool::Sqlite(_) => format!("SELECT * FROM ({query}) LIMIT {most}"),
            Pool::Postgres(_) => {
                format!("SELECT row_to_json(q)::text FROM ({query}) AS q LIMIT {most}")
            }
        };
        Ok(Self {
            name: name.into(),
            pool,
            query,
            parameters,
        })
    }

    async fn rows(&self, session: &ContextSession<'_>) -> Result<Vec<Value>, sqlx::Error> {
        let values = [session.tenant().to_string(), session.input().to_owned()];
        let values = values.into_iter().take(self.parameters);
        // The operator wrote it.
        let query = AssertSqlSafe(self.query.clone());
        match &self.pool {
            Pool::Sqlite(pool) => {
                let query = values.fold(sqlx::query(query), sqlx::query::Query::bind);
                let rows = query.fetch_all(pool).await?;
                rows.iter().map(sqlite_row).collect()
            }
            Pool::Postgres(pool) => {
                let query = values.fold(sqlx::query(query), sqlx::query::Query::bind);
                let rows = query.fetch_all(pool).await?;
                let texts = rows.iter().map(|row| row.try_get::<String, _>(0));
                texts
                    .map(|text| {
                        serde_json::from_str(&text?)
                            .map_err(|error| sqlx::Error::Decode(Box::new(error)))
                    })
                    .collect()
            }
        }
    }
}

impl Pool {
    fn open(url: &str) -> Result<Self, DatabaseError> {
        match url.split_once(':').map(|(scheme, _)| scheme) {
            Some("sqlite") => {
                let options = SqliteConnectOptions::from_str(url);
                let options = options.map_err(|_| DatabaseError::Address)?;
                let options = options.read_only(true).create_if_missing(false);
                let pool = SqlitePoolOptions::new()
                    .max_connections(CONNECTIONS)
                    .acquire_timeout(CONNECT_LIMIT);
                Ok(Self::Sqlite(pool.connect_lazy_with(options)))
            }
            Some("postgres" | "postgresql") => {
                let options = PgConnectOptions::from_str(url);
                let options = options.map_err(|_| DatabaseError::Address)?;
                let pool = PgPoolOptions::new()
                    .max_connections(CONNECTIONS)
                    .acquire_timeout(CONNECT_LIMIT);
                Ok(Self::Postgres(
                    pool.connect_lazy_with(options.options(OPTIONS)),
                ))
            }
            _ => Err(DatabaseError::Address),
        }
    }
}

/// Returns the largest `$n` of a query.
fn parameters(query: &str) -> usize {
    let after = query.split('$').skip(1);
    let numbers = after.filter_map(|rest| {
        let end = rest.find(|letter: char| !letter.is_ascii_digit());
        rest.get(..end.unwrap_or(rest.len()))?.parse().ok()
    });
    numbers.max().unwrap_or_default()
}

/// Converts a row to an object.
fn sqlite_row(row: &SqliteRow) -> Result<Value, sqlx::Error> {
    let mut object = Map::new();
    for column in row.columns() {
        let at = column.ordinal();
        let value = row.try_get_raw(at)?;
        let value = match (value.is_null(), value.type_info().name()) {
            (true, _) => Value::Null,
            (false, "INTEGER") => row.try_get_unchecked::<i64, _>(at)?.into(),
            (false, "REAL") => row.try_get_unchecked::<f64, _>(at)?.into(),
            (false, "BLOB") => {
                let bytes = row.try_get_unchecked::<Vec<u8>, _>(at)?.len();
                format!("{bytes} bytes").into()
            }
            (false, _) => row.try_get_unchecked::<String, _>(at)?.into(),
        };
        object.insert(column.name().to_owned(), value);
    }
    Ok(Value::Object(object))
}

#[async_trait]
impl ContextProvider for DatabaseProvider {
    fn name(&self) -> &str {
        &self.name
    }

    async fn provide(&self, session: &ContextSession<'_>) -> Result<Vec<Context>, ContextError> {
        let rows = self.rows(session).await;
        let rows =
            rows.map_err(|error| hidden("its database does not answer the query", &error))?;
        Ok(contexts(&self.name, &rows, rows.len()))
    }
}

#[cfg(test)]
mod tests {
    use sqlx::{Connection as _, SqliteConnection};

    use super::{DatabaseError, DatabaseProvider, parameters};
    use crate::{ContextProvider as _, ContextSession};
    use sepal_core::domain::{Entry, SessionId, SessionKey, TenantId, Timestamp};

    async fn told(url: &str, query: &str, tenant: u128) -> Result<String, String> {
        let provider = DatabaseProvider::new("notes", &url.into(), query, 2);
        let provider = provider.map_err(|error| error.to_string())?;
        let mut session = ContextSession::create(SessionKey {
            tenant: TenantId::from_bits(tenant),
            session: SessionId::from_bits(1),
        });
        session.add_entry(Entry::message("user", "pears"), Timestamp(1));
        let contexts = provider.provide(&session).await;
        let contexts = contexts.map_err(|error| error.to_string())?;
        let texts = contexts
            .iter()
            .map(|context| context.content().into_owned());
        Ok(texts.collect::<Vec<_>>().join(" | "))
    }

    /// Asserts S4.22: only rows of the own tenant, if the query says so, and nothing is written.
    #[tokio::test]
    async fn rows_are_contexts_and_no_query_writes() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/notes.db", folder.path().display());
        let mut own = SqliteConnection::connect(&format!("{url}?mode=rwc"))
            .await
            .unwrap();
        let tenants = [1, 2].map(TenantId::from_bits);
        let made = format!(
            "CREATE TABLE notes (at INTEGER, tenant TEXT, content TEXT, weight REAL, blob BLOB);
             INSERT INTO notes VALUES (1, '{}', 'old pears', 0.5, NULL), (2, '{}', 'new pears', 1.5, x'00ff'),
             (3, '{}', 'plums', 1, NULL), (4, '{}', 'newest pears', 2, NULL);",
            tenants[0], tenants[0], tenants[1], tenants[0]
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(made))
            .execute(&mut own)
            .await
            .unwrap();
        own.close().await.unwrap();
        let all =
            "SELECT * FROM notes WHERE tenant = $1 AND content LIKE '%' || $2 ORDER BY at DESC;";
        assert_eq!(
            told(&url, all, 1).await.unwrap(),
            "newest pears | new pears"
        );
        assert_eq!(told(&url, all, 2).await.unwrap(), "");
        let bare = "SELECT at, weight, blob FROM notes WHERE at = 2";
        let expected = r#"{"at":2,"blob":"2 bytes","weight":1.5}"#;
        assert_eq!(told(&url, bare, 1).await.unwrap(), expected);
        for query in [
            "DELETE FROM notes",
            "SELECT 1); DELETE FROM notes; --",
            "SELECT nothing",
        ] {
            let error = told(&url, query, 1).await.unwrap_err();
            assert_eq!(error, "its database does not answer the query", "{query}");
        }
        assert_eq!(
            told(&url, "SELECT count(*) AS n FROM notes", 1)
                .await
                .unwrap(),
            "{\"n\":4}"
        );
    }

    #[test]
    fn what_can_never_be_asked_is_refused_at_once() {
        assert_eq!(parameters("SELECT '$', $1, $2::text, $10"), 10);
        assert_eq!(parameters("SELECT 1"), 0);
        let made = |url: &str, query| DatabaseProvider::new("x", &url.into(), query, 1).err();
        assert_eq!(
            made("mysql://a:secret@b", "SELECT 1"),
            Some(DatabaseError::Address)
        );
        assert_eq!(
            made("sqlite://a.db", "SELECT $3"),
            Some(DatabaseError::Parameter(3))
        );
    }
}
