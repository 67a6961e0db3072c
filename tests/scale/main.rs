//! Search and list of somebody who has 10,000 sessions with 1,000,000 texts, on each kind of database:
//! `./run test all` holds them below what a person notices (docs/performance.md). Filling takes minutes,
//! so that this is no test of `./run test`.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test, whose figures are its output"
)]

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use sepal::domain::{SearchQuery, SessionId, SessionKey, TenantId, Timestamp, UserId};
use sepal::store::records::{
    AskedRoles, Behind, ListFilter, Marks, MarksChange, NewText, ProjectedRow, SessionRow,
    SessionState, TakenUp, TextChange, TextKind,
};
use sepal::store::{Access, Records, Settings, Store};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

const SESSIONS: u32 = 10_000;
const TEXTS: u32 = 100;
const WORDS: u32 = 30;
const BEGAN: i64 = 1_760_000_000_000;
/// The gates.
const SEARCH: Duration = Duration::from_millis(200);
const WORST: Duration = Duration::from_secs(2);
const PAGE: Duration = Duration::from_millis(20);
/// How often each is asked. The median counts: what else a machine does is in the slow ones.
const TIMES: usize = 20;

/// What is looked for: how it is called, and what is typed.
const QUERIES: &[(&str, &str)] = &[
    ("a word of most texts", "\"w0\""),
    ("two of them", "\"w0\" \"w1\""),
    ("in that order", "\"w0 w1\""),
    ("one of them and a rare word", "\"w0\" w15000"),
    ("a short beginning", "w1"),
    ("a longer one", "w199"),
    ("a rare word", "w15000"),
    ("a word that nobody said", "nothing"),
];

/// Both stand in every second text, and never in one: the most that can be asked. Nothing can be left out
/// by either database, so that it has a gate of its own.
const APART: &str = "\"odd\" \"even\"";

/// The text of that number; the words that are said most are in every second text, as in any language.
fn text(number: u32) -> String {
    let mut random = fastrand(number);
    let mut text = String::from(if number.is_multiple_of(2) {
        "even"
    } else {
        "odd"
    });
    for _ in 0..WORDS {
        // About as often as its rank says.
        let share = f64::from(random()) / f64::from(u32::MAX);
        let rank = 20_000_f64.powf(share) - 1.0;
        write!(text, " w{rank:.0}").unwrap();
    }
    text
}

/// The same numbers whenever it is run.
fn fastrand(seed: u32) -> impl FnMut() -> u32 {
    let mut state = u64::from(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        u32::try_from(state >> 32).unwrap()
    }
}

fn key(session: u32) -> SessionKey {
    SessionKey {
        tenant: TenantId::from_bits(1),
        session: SessionId::from_bits(u128::from(session)),
    }
}

fn at(number: u32) -> Timestamp {
    Timestamp(BEGAN + i64::from(number) * 1_000)
}

async fn fill_rows(records: &Records) {
    for first in (0..SESSIONS).step_by(500) {
        let rows = (first..first + 500).map(|session| SessionRow {
            key: key(session),
            owner: UserId::from_bits(1),
            title: format!("Session {session}"),
            state: SessionState::Idle,
            waiting: 0,
            waiting_since: None,
            batch: None,
            decided_at: None,
            asks: AskedRoles::default(),
            created_at: at(session * TEXTS),
            updated_at: at((session + 1) * TEXTS),
            version: u64::from(TEXTS),
            forked_from: None,
            marks: Marks::default(),
        });
        let rows: Vec<_> = rows.map(ProjectedRow::from).collect();
        records.sessions().project(&rows).await.unwrap();
    }
    for session in (0..SESSIONS).step_by(97) {
        let change = MarksChange {
            is_pinned: Some(session.is_multiple_of(2)),
            add_tags: ["tagged".to_owned()].into(),
            ..MarksChange::default()
        };
        let owner = UserId::from_bits(1);
        let marked = records
            .sessions()
            .mark(&key(session), &owner, &change)
            .await;
        assert!(marked.unwrap().is_some());
    }
}

/// As the gateway does it.
async fn fill_texts(records: &Records) {
    let owner = UserId::from_bits(1);
    for session in 0..SESSIONS {
        let texts = (0..TEXTS).map(|place| {
            let number = session * TEXTS + place;
            TextChange::Put(NewText {
                seq: u64::from(place) + 1,
                part: 0,
                kind: TextKind::Message,
                at: at(number),
                version: u64::from(place) + 1,
                text: text(number),
            })
        });
        let texts: Vec<_> = texts.collect();
        let taken = TakenUp {
            session: Behind {
                key: key(session),
                owner: owner.clone(),
                indexed: 0,
                version: u64::from(TEXTS),
            },
            to: u64::from(TEXTS),
            changes: texts,
        };
        let kept = records.texts().keep(&[taken]).await;
        assert!(kept.unwrap());
    }
}

/// The same rows in one go: a server would be asked three million times.
async fn copy_texts(url: &str) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let run = async |connection: &mut PgConnection, sql: &'static str| {
        sqlx::query(sql).execute(connection).await.unwrap();
    };
    let index: (String,) = sqlx::query_as("SELECT pg_get_indexdef('texts_index'::regclass)")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    run(&mut connection, "DROP INDEX texts_index").await;
    let mut copy = connection
        .copy_in_raw("COPY texts FROM STDIN")
        .await
        .unwrap();
    let (tenant, owner) = (TenantId::from_bits(1), UserId::from_bits(1));
    for session in 0..SESSIONS {
        let mut lines = String::new();
        let session_id = key(session).session;
        for place in 0..TEXTS {
            let number = session * TEXTS + place;
            let (id, seq) = (at(number).0 << 20, place + 1);
            write!(lines, "{id}\t{tenant}\t{owner}\t{session_id}\t{seq}\t0\tmessage\t{seq}\t'{owner}' '{session_id}'").unwrap();
            for (word, place) in text(number).split(' ').zip(1..) {
                write!(lines, " '{word}':{place}").unwrap();
            }
            lines.push('\n');
        }
        copy.send(lines.as_bytes()).await.unwrap();
    }
    copy.finish().await.unwrap();
    let create = sqlx::query(AssertSqlSafe(index.0)).execute(&mut connection);
    create.await.unwrap();
    run(&mut connection, "UPDATE sessions SET indexed = version").await;
    run(&mut connection, "ANALYZE").await;
    run(&mut connection, "VACUUM texts").await;
}

/// How long it takes, and whether that is below its gate.
async fn measure(what: &str, gate: Duration, ask: impl AsyncFn() -> usize) -> bool {
    let mut times = Vec::new();
    let mut found = 0;
    for _ in 0..TIMES {
        let began = Instant::now();
        found = ask().await;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    let (median, slow) = (times[TIMES / 2], times[TIMES - 3]);
    println!("{what}: {median:.1?}, {slow:.1?} at worst ({found} found)");
    median < gate
}

/// How long the search of that takes, below that hit.
async fn search(
    records: &Records,
    (what, typed): (&str, &str),
    (user, below): (u128, Option<i64>),
    gate: Duration,
) -> bool {
    let (tenant, owner) = (TenantId::from_bits(1), UserId::from_bits(user));
    let query = SearchQuery::parse(typed).unwrap();
    let ask = async || {
        let texts = records.texts();
        let hits = texts.find((&tenant, &owner), &query, below, 100).await;
        hits.unwrap().len()
    };
    measure(what, gate, ask).await
}

/// How long a page of the list takes, after so many others.
async fn list(records: &Records, what: &str, filter: ListFilter, pages: usize) -> bool {
    let (tenant, owner) = (TenantId::from_bits(1), UserId::from_bits(1));
    let mut cursor = None;
    for _ in 0..pages {
        let rows = records.sessions();
        let page = rows
            .list(&tenant, &owner, &filter, cursor.as_ref(), 50)
            .await;
        cursor = page.unwrap().next;
    }
    let ask = async || {
        let rows = records.sessions();
        let page = rows
            .list(&tenant, &owner, &filter, cursor.as_ref(), 50)
            .await;
        page.unwrap().rows.len()
    };
    measure(what, PAGE, ask).await
}

async fn measure_all(records: &Records) {
    let mut is_held = true;
    for query in QUERIES {
        is_held &= search(records, *query, (1, None), SEARCH).await;
    }
    let apart = ("two common words that never meet", APART);
    is_held &= search(records, apart, (1, None), WORST).await;
    let deep = Some(at(SESSIONS * TEXTS / 2).0 << 20);
    is_held &= search(records, ("a page far behind", "w0"), (1, deep), SEARCH).await;
    is_held &= search(records, ("somebody who has none", "w0"), (2, None), SEARCH).await;
    let (session, owner) = (key(SESSIONS / 2), UserId::from_bits(1));
    let query = SearchQuery::parse("w0").unwrap();
    let ask = async || {
        let texts = records.texts();
        let seqs = texts.find_in((&session, &owner), &query, 1_000).await;
        seqs.unwrap().len()
    };
    is_held &= measure("inside of one session", SEARCH, ask).await;

    let all = ListFilter::default;
    let tagged = ListFilter {
        tag: Some("tagged".into()),
        ..all()
    };
    let waiting = ListFilter {
        state: Some(SessionState::Waiting),
        ..all()
    };
    let archived = ListFilter {
        is_archived: true,
        ..all()
    };
    is_held &= list(records, "the list", all(), 0).await;
    is_held &= list(records, "the 151st page of the list", all(), 150).await;
    is_held &= list(records, "those with a tag", tagged, 0).await;
    is_held &= list(records, "those that wait", waiting, 0).await;
    is_held &= list(records, "the archive", archived, 0).await;
    assert!(is_held, "a gate does not hold");
}

async fn open(settings: &Settings) -> (Store, TaskTracker, CancellationToken) {
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let store = Store::open(settings, Access::Serve, &tasks, stop.clone()).await;
    (store.unwrap(), tasks, stop)
}

async fn end((store, tasks, stop): (Store, TaskTracker, CancellationToken)) {
    stop.cancel();
    tasks.close();
    tasks.wait().await;
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_million_texts_are_searched_in_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    let opened = open(&Settings::in_folder(dir.path())).await;
    let records = opened.0.records();
    let began = Instant::now();
    fill_rows(&records).await;
    fill_texts(&records).await;
    let size = std::fs::metadata(dir.path().join("sepal.db"))
        .unwrap()
        .len();
    println!(
        "SQLite: filled in {:.0?}, {} MiB",
        began.elapsed(),
        size >> 20
    );
    measure_all(&records).await;
    end(opened).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_million_texts_are_searched_in_postgresql() {
    #[expect(
        clippy::disallowed_methods,
        reason = "the server is told by the environment: `tests/servers/servers postgres`"
    )]
    let server = std::env::var("SEPAL_TEST_POSTGRES").unwrap();
    let mut connection = PgConnection::connect(&server).await.unwrap();
    let name = format!("scale{:032x}", rand::random::<u128>());
    let made = sqlx::query(AssertSqlSafe(format!(
        "CREATE DATABASE {name} TEMPLATE template0"
    )));
    made.execute(&mut connection).await.unwrap();
    let url = format!("{}/{name}", server.rsplit_once('/').unwrap().0);
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings {
        database_url: Some(url.clone()),
        ..Settings::in_folder(dir.path())
    };
    let opened = open(&settings).await;
    let records = opened.0.records();
    let began = Instant::now();
    fill_rows(&records).await;
    copy_texts(&url).await;
    println!("PostgreSQL: filled in {:.0?}", began.elapsed());
    measure_all(&records).await;
    end(opened).await;
}
