//! Reading changes nothing: every GET of the description, asked by a person of each tenant, leaves all tables
//! of the database as they were.

use std::collections::BTreeMap;
use std::path::Path;

use sepal::domain::Role;
use serde_json::{Value, json};
use sqlx::Row as _;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};

use crate::support::{TestApp, TestSocket};

/// Tables that reading may write to, each with its reason.
const BOOKKEEPING: &[(&str, &str, &str)] = &[
    ("api_keys", "last_used_at", "when a key was last used"),
    ("audit", "*", "a request that is refused is recorded"),
    ("texts", "*", "a search brings its own index up"),
    ("sessions", "indexed", "the same"),
];

/// Reads that cost money on purpose. Pages of other sites cannot ask for them.
const PAID: &[&str] = &["/api/models/check"];

fn is_kept(table: &str, column: &str) -> bool {
    // The words of a search index lie in tables of their own.
    !table.starts_with("texts_")
        && !BOOKKEEPING
            .iter()
            .any(|(of, named, _)| *of == table && (*named == "*" || *named == column))
}

/// Every row of every table.
async fn content(data: &Path) -> BTreeMap<String, Vec<String>> {
    let options = SqliteConnectOptions::new().filename(data.join("sepal.db"));
    let pool = SqlitePoolOptions::new()
        .connect_with(options)
        .await
        .unwrap();
    let columns = "SELECT m.name AS name, c.name AS column_name FROM sqlite_master m \
                   JOIN pragma_table_info(m.name) c WHERE m.type = 'table'";
    let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in sqlx::query(columns).fetch_all(&pool).await.unwrap() {
        let (table, column): (String, String) = (row.get("name"), row.get("column_name"));
        if is_kept(&table, &column) {
            tables
                .entry(table)
                .or_default()
                .push(format!("quote(\"{column}\")"));
        }
    }
    let mut found = BTreeMap::new();
    for (table, columns) in tables {
        let rows = format!(
            "SELECT {} FROM \"{table}\" ORDER BY 1",
            columns.join(" || ' ' || ")
        );
        let rows = sqlx::query_scalar::<_, String>(sqlx::AssertSqlSafe(rows));
        found.insert(table, rows.fetch_all(&pool).await.unwrap());
    }
    pool.close().await;
    found
}

#[tokio::test]
async fn no_get_changes_anything() {
    let app = TestApp::start().await;
    let owner = app.person_with("acme", Role::Owner).await;
    let stranger = app.person_with("other", Role::Owner).await;
    app.model.will_say("Hello");
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    socket.say("hello").await;
    socket.wait_for_answer().await;
    let session = socket.session();
    app.sessions.listed().await;
    let data = app.folder.path().join("data");
    let before = content(&data).await;
    let asked = app.model.requests().len();

    let http = TestApp::http();
    let api = http.get(app.url("/api/openapi.json")).send().await.unwrap();
    let api: Value = api.json().await.unwrap();
    let mut tried = 0;
    for (path, methods) in api["paths"].as_object().unwrap() {
        if methods["get"].is_null() || PAID.contains(&path.as_str()) {
            continue;
        }
        let path = path
            .replace("{id}", &session)
            .replace("{callId}", "call_1_0")
            .replace("{name}", "mine");
        for person in [&owner, &stranger] {
            tried += 1;
            let asked = http.get(app.url(&path)).bearer_auth(&person.key);
            let answer = asked.send().await.unwrap();
            assert!(answer.status().as_u16() != 500, "{path}");
        }
    }
    assert!(tried >= 60, "{tried}");
    app.sessions.listed().await;
    let after = content(&data).await;
    let changed: Vec<&String> = before
        .iter()
        .filter(|(table, rows)| after.get(*table) != Some(*rows))
        .map(|(table, _)| table)
        .collect();
    assert_eq!(json!(changed), json!([]), "reading changed these tables");
    assert_eq!(app.model.requests().len(), asked, "and no model was asked");
}
