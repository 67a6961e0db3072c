//! The rows of what was used: kept once, found where some are missing, and summed alike by each database.

mod budgets;

use sepal::domain::{
    CommitId, MicroUsd, RequestParts, RequestPurpose, TenantId, Timestamp, TokenUsage, UserId,
};
use sepal::store::records::{
    DAY_MS, Direction, EventPlace, ProjectedRow, RequestRow, Sorting, UsageBy, UsageFilter,
    UsageRows,
};

use super::key;
use super::records::{row, with_records};

fn request_row(session: u128, at: i64, change: impl FnOnce(&mut RequestRow)) -> RequestRow {
    let mut row = RequestRow {
        place: EventPlace {
            commit: CommitId::from_bits(session),
            index: 0,
            at: Timestamp(at),
            owner: UserId::from_bits(1),
        },
        turn: 1,
        iteration: 1,
        attempt: 1,
        purpose: RequestPurpose::Turn,
        is_answer: true,
        provider: "p".into(),
        model: "m".into(),
        usage: TokenUsage {
            input_tokens: 10,
            output_tokens: 2,
            ..TokenUsage::default()
        },
        cost: Some(MicroUsd(3)),
        price_version: None,
        charged: None,
        parts: RequestParts {
            system: 4,
            context: [("AGENTS.md".to_owned(), 1)].into(),
            tools: [("web".to_owned(), 5)].into(),
            ..RequestParts::default()
        },
    };
    change(&mut row);
    row
}

fn used(requests: Vec<RequestRow>) -> UsageRows {
    UsageRows {
        requests,
        ..UsageRows::default()
    }
}

/// The rows of a commit are there once, however often they are made, and a session is complete only
/// where no commit is missing in between.
#[tokio::test]
async fn usage_rows_are_kept_once_and_gaps_are_found() {
    with_records(async |records| {
        let sessions = records.sessions();
        let projected = |version, used_from, used| ProjectedRow {
            row: row(1, version),
            used,
            used_from,
        };
        let first = used(vec![request_row(1, 5, |_| {})]);
        for _ in 0..2 {
            sessions
                .project(&[projected(2, Some(0), first.clone())])
                .await
                .unwrap();
        }
        let progress = async || records.usage().progress(&key(1, 1)).await.unwrap().unwrap();
        assert_eq!(progress().await.version, 2);
        assert_eq!(records.usage().behind(None).await.unwrap(), []);
        // The commit before was not told.
        let later = used(vec![request_row(4, 5, |_| {})]);
        sessions
            .project(&[projected(4, Some(3), later.clone())])
            .await
            .unwrap();
        assert_eq!(progress().await.version, 2);
        assert_eq!(records.usage().behind(None).await.unwrap().len(), 1);
        let rows = used(vec![request_row(3, 5, |_| {}), request_row(4, 5, |_| {})]);
        records.usage().add(&key(1, 1), &rows, 4).await.unwrap();
        assert_eq!(records.usage().behind(None).await.unwrap(), []);
        let sums = records.usage().total_of_requests(&filter()).await.unwrap();
        assert_eq!((sums.requests, sums.cost), (3, MicroUsd(9)));
        // What was used is kept.
        assert!(sessions.delete(&key(1, 1)).await.unwrap());
        let left = records.usage().total_of_requests(&filter()).await.unwrap();
        assert_eq!(left, sums);
    })
    .await;
}

fn filter() -> UsageFilter {
    UsageFilter {
        tenant: TenantId::from_bits(1),
        owner: None,
        reader: UserId::from_bits(1),
        from: Timestamp(0),
        to: Timestamp(10 * DAY_MS),
        provider: None,
        model: None,
        session: None,
    }
}

/// A request on the first day, a dear one and one of unknown price on the second, and one long after.
fn dear_and_unknown() -> UsageRows {
    let dear = |row: &mut RequestRow| {
        row.model = "dear".into();
        row.cost = Some(MicroUsd(50));
        row.purpose = RequestPurpose::Compaction;
    };
    let unknown = |row: &mut RequestRow| {
        row.model = "unknown".into();
        row.cost = None;
        row.usage.is_estimated = true;
    };
    used(vec![
        request_row(1, 1, |_| {}),
        request_row(2, DAY_MS, dear),
        request_row(3, DAY_MS + 1, unknown),
        request_row(4, 20 * DAY_MS, |_| {}),
    ])
}

/// What is summed apart, in which order and which page, and the names of the groups.
type Grouping = (UsageBy, (Sorting, Direction), (usize, usize), &'static str);

fn groupings() -> [Grouping; 10] {
    let all = (0, 10);
    let (up, down) = (Direction::Ascending, Direction::Descending);
    [
        (UsageBy::Day, (Sorting::Name, up), all, "0 1"),
        (UsageBy::Day, (Sorting::Name, down), all, "1 0"),
        (UsageBy::Day, (Sorting::Count, up), all, "0 1"),
        (UsageBy::Model, (Sorting::Name, up), all, "dear m unknown"),
        (UsageBy::Model, (Sorting::Name, down), all, "unknown m dear"),
        (UsageBy::Model, (Sorting::Cost, down), all, "dear m unknown"),
        (UsageBy::Model, (Sorting::Cost, down), (1, 1), "m"),
        (
            UsageBy::Purpose,
            (Sorting::Cost, down),
            all,
            "compaction turn",
        ),
        (
            UsageBy::Purpose,
            (Sorting::Name, down),
            all,
            "turn compaction",
        ),
        (
            UsageBy::DayAndModel,
            (Sorting::Name, up),
            all,
            "m dear unknown",
        ),
    ]
}

/// The same groups in the same order from each database, with unknown prices and another tenant beside.
#[tokio::test]
async fn usage_is_grouped_filtered_and_sorted_alike() {
    with_records(async |records| {
        let usage = records.usage();
        let rows = dear_and_unknown();
        usage.add(&key(1, 1), &rows, 1).await.unwrap();
        usage.add(&key(2, 1), &rows, 1).await.unwrap();
        let names = async |by, sorted, page| {
            let groups = usage
                .of_requests(&filter(), by, sorted, page)
                .await
                .unwrap();
            let names = groups.into_iter().map(|group| {
                let day = group.day.map(|day| (day.0 / DAY_MS).to_string());
                group.model.or(day).or(group.purpose).unwrap()
            });
            names.collect::<Vec<_>>().join(" ")
        };
        let all = (0, 10);
        let down = Direction::Descending;
        for (by, sorted, page, expected) in groupings() {
            assert_eq!(names(by, sorted, page).await, expected, "{by:?} {sorted:?}");
        }
        let sums = usage.total_of_requests(&filter()).await.unwrap();
        assert_eq!(
            (sums.requests, sums.unpriced_requests, sums.cost),
            (3, 1, MicroUsd(53))
        );
        assert_eq!((sums.estimated_requests, sums.estimated_tokens), (1, 12));
        // What context providers gave counts as system prompt: no input is left over.
        assert_eq!((sums.parts.system, sums.parts.all_tools()), (15, 15));
        assert_eq!(sums.parts.total(), sums.tokens.input_tokens);
        let only = UsageFilter {
            model: Some("dear".into()),
            ..filter()
        };
        assert_eq!(usage.total_of_requests(&only).await.unwrap().requests, 1);
        let all_of_it = filter();
        let servers = usage.of_calls(&all_of_it, UsageBy::Server, (Sorting::Count, down), all);
        let servers = servers.await.unwrap();
        assert_eq!(servers.len(), 1);
        assert_eq!(servers[0].server.as_deref(), Some("web"));
        assert_eq!(servers[0].sums.definition_tokens, 15);
    })
    .await;
}
