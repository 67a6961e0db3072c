//! The history of workspaces on each kind of database: steps, where they begin, contents, and what goes with
//! a session.

use std::collections::BTreeMap;

use sepal::domain::{
    ChangeCause, ChangeCounts, ContentHash, FileChange, FileKind, FileState, SessionKey, Timestamp,
    UserId, WorkspaceChange,
};
use sepal::store::Records;
use sepal::store::records::WorkspaceBase;

use super::super::key;
use super::with_records;

const AT: Timestamp = Timestamp(1_000);

fn hash(content: &str) -> ContentHash {
    ContentHash::from_stored(content.repeat(64))
}

fn file(content: &str) -> FileState {
    FileState {
        kind: FileKind::File,
        mode: 0o644,
        bytes: 1,
        version: "1-1-1".to_owned(),
        content: Some(hash(content)),
        target: None,
    }
}

fn step(number: u64) -> (WorkspaceChange, Vec<FileChange>) {
    let changes = vec![FileChange {
        path: "a".to_owned(),
        before: None,
        after: Some(file("a")),
    }];
    let change = WorkspaceChange {
        number,
        at: AT,
        cause: ChangeCause {
            people: vec![UserId::from_bits(1)],
            ..ChangeCause::default()
        },
        counts: ChangeCounts::of(&changes),
    };
    (change, changes)
}

fn base(number: u64) -> WorkspaceBase {
    WorkspaceBase {
        number,
        entries: BTreeMap::from([("a".to_owned(), file("a"))]),
    }
}

async fn fill(records: &Records, key: &SessionKey) {
    let rows = records.checkpoints();
    rows.put_base(key, &base(0), AT).await.unwrap();
    // One is too short to be packed.
    let contents = [("a", 9), ("b", 9_000)];
    let contents =
        contents.map(|(content, times)| (hash(content), content.repeat(times).into_bytes()));
    rows.put_contents(key, contents.to_vec(), AT).await.unwrap();
    for number in 1..=3 {
        let (change, files) = step(number);
        let last = base(number);
        let last = (number == 3).then_some(&last);
        assert!(rows.add(key, &change, &files, last).await.unwrap());
    }
}

#[tokio::test]
async fn a_history_is_kept_pruned_and_never_anothers() {
    with_records(async |records| {
        let (own, other) = (key(1, 1), key(2, 1));
        fill(&records, &own).await;
        let rows = records.checkpoints();
        let (third, files) = step(3);
        assert!(
            !rows.add(&own, &third, &files, None).await.unwrap(),
            "it is there"
        );
        let history = rows.history(&own).await.unwrap();
        let numbers: Vec<_> = history.iter().map(|step| step.number).collect();
        assert_eq!((&numbers[..], &history[0]), (&[3, 2, 1][..], &third));
        assert_eq!(
            rows.change(&own, 3).await.unwrap(),
            Some((third, files.clone()))
        );
        assert_eq!(
            rows.changes_from(&own, 2).await.unwrap(),
            [(2, files.clone()), (3, files)]
        );
        assert_eq!(rows.base(&own).await.unwrap(), Some(base(3)));
        let content = rows.content(&own, &hash("b")).await.unwrap();
        assert_eq!(content, Some(b"b".repeat(9_000)));
        let short = rows.content(&own, &hash("a")).await.unwrap();
        assert_eq!(short.as_deref(), Some(&b"aaaaaaaaa"[..]));
        assert_eq!(rows.kept(&own).await.unwrap().len(), 2);

        assert!(rows.history(&other).await.unwrap().is_empty());
        assert_eq!(rows.change(&other, 3).await.unwrap(), None);
        assert_eq!(rows.base(&other).await.unwrap(), None);
        assert_eq!(rows.content(&other, &hash("b")).await.unwrap(), None);

        rows.prune(&own, 3, &base(3), &[hash("b")], AT)
            .await
            .unwrap();
        assert_eq!(rows.history(&own).await.unwrap().len(), 1);
        assert_eq!(rows.kept(&own).await.unwrap(), [(hash("a"), 9)]);
    })
    .await;
}

#[tokio::test]
async fn a_history_goes_with_its_session_and_what_was_left_goes_with_the_next() {
    with_records(async |records| {
        let (deleted, left, kept) = (key(1, 1), key(1, 2), key(2, 3));
        for key in [&deleted, &left, &kept] {
            fill(&records, key).await;
        }
        // Of a session that is not there any more, written long ago.
        records.sessions().delete(&deleted).await.unwrap();
        let rows = records.checkpoints();
        for gone in [&deleted, &left] {
            assert!(rows.history(gone).await.unwrap().is_empty());
            assert_eq!(rows.base(gone).await.unwrap(), None);
            assert!(rows.kept(gone).await.unwrap().is_empty());
        }
        assert_eq!(rows.history(&kept).await.unwrap().len(), 3);
    })
    .await;
}
