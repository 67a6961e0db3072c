//! The index of texts finds the same on every kind of database, and only for whose they are.

use sepal::domain::{SearchQuery, SessionKey, TenantId, Timestamp, UserId};
use sepal::store::Records;
use sepal::store::records::{Behind, NewText, SessionRow, TakenUp, TextChange, TextKind};

use super::{row, with_records};
use crate::stores::key;

const NOW: i64 = 1_760_000_000_000;

fn text(seq: u64, text: &str) -> TextChange {
    TextChange::Put(NewText {
        seq,
        part: 0,
        kind: TextKind::Message,
        at: Timestamp(NOW + i64::try_from(seq / 2).unwrap()),
        version: seq,
        text: text.into(),
    })
}

fn query(text: &str) -> SearchQuery {
    SearchQuery::parse(text).unwrap()
}

/// What these versions of a session's journal changed.
fn taken(
    (key, owner): (&SessionKey, &UserId),
    (from, to): (u64, u64),
    changes: &[TextChange],
) -> TakenUp {
    TakenUp {
        session: Behind {
            key: key.clone(),
            owner: owner.clone(),
            indexed: from,
            version: to,
        },
        to,
        changes: changes.to_vec(),
    }
}

/// The events of session 1 that its owner finds, newest first.
async fn found(records: &Records, text: &str) -> Vec<u64> {
    let whose = (&TenantId::from_bits(1), &UserId::from_bits(1));
    let hits = records.texts().find(whose, &query(text), None, 100).await;
    let hits = hits.unwrap().into_iter();
    hits.map(|hit| {
        assert_eq!(hit.key, key(1, 1), "{text}");
        assert_eq!(
            hit.at(),
            Timestamp(NOW + i64::try_from(hit.seq / 2).unwrap())
        );
        hit.seq
    })
    .collect()
}

#[tokio::test]
async fn texts_are_found_by_their_words_newest_first() {
    with_records(async |records| {
        let owner = UserId::from_bits(1);
        records
            .sessions()
            .project(&[row(1, 9).into()])
            .await
            .unwrap();
        let session = (&key(1, 1), &owner);
        let texts = [
            text(1, "Please read src/main.rs, and don't_stop"),
            text(
                2,
                "ERROR 42: the Größe of e-mail x@y.org is http://a.b/c?d=-5",
            ),
            text(3, "read main, rs src"),
            text(4, "搜索引擎 works"),
            text(5, "a 'quoted' \"text\" with \\ and \0 :* & | ! ( )"),
        ];
        assert!(
            records
                .texts()
                .keep(&[taken(session, (0, 9), &texts)])
                .await
                .unwrap()
        );
        for (text, expected) in [
            ("read", &[3, 1][..]),
            ("READ main", &[3, 1]),
            ("src/main.rs", &[1]),
            ("\"main rs\"", &[3, 1]),
            ("\"rs src\"", &[3]),
            ("\"rea\"", &[]),
            ("rea", &[3, 1]),
            ("rea main", &[]),
            ("größe", &[2]),
            ("grosse", &[]),
            ("42", &[2]),
            ("x@y.org", &[2]),
            ("-5", &[2]),
            ("stop", &[1]),
            ("索引", &[4]),
            ("索擎", &[]),
            ("quoted text", &[5]),
            ("the error", &[2]),
            ("nothing", &[]),
            ("usr_00000000000000000000000000000001", &[]),
        ] {
            assert_eq!(found(&records, text).await, expected, "{text}");
        }
        // Page by page.
        let whose = (&TenantId::from_bits(1), &owner);
        let texts = records.texts();
        let first = texts.find(whose, &query("read"), None, 1).await.unwrap();
        let next = texts
            .find(whose, &query("read"), Some(first[0].id), 1)
            .await;
        assert_eq!((first[0].seq, next.unwrap()[0].seq), (3, 1));
    })
    .await;
}

#[tokio::test]
async fn texts_of_others_are_not_found() {
    with_records(async |records| {
        let others = SessionRow {
            owner: UserId::from_bits(2),
            ..row(2, 1)
        };
        // Another tenant's person with the same id, which could not be made by this program.
        let foreign = SessionRow {
            key: key(2, 3),
            ..row(3, 1)
        };
        for row in [row(1, 1), others, foreign] {
            records
                .sessions()
                .project(&[row.clone().into()])
                .await
                .unwrap();
            let session = (&row.key, &row.owner);
            let said = [text(1, "a secret")];
            assert!(
                records
                    .texts()
                    .keep(&[taken(session, (0, 1), &said)])
                    .await
                    .unwrap()
            );
        }
        assert_eq!(found(&records, "secret").await, [1]);
        let texts = records.texts();
        let (own, other) = (UserId::from_bits(1), UserId::from_bits(2));
        let secret = query("secret");
        for (session, owner, expected) in [
            (key(1, 1), &own, &[1][..]),
            (key(1, 2), &own, &[]),
            (key(1, 1), &other, &[]),
            (key(2, 3), &other, &[]),
        ] {
            let inside = texts.find_in((&session, owner), &secret, 9).await.unwrap();
            assert_eq!(inside, expected, "{session:?} {owner}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_version_is_taken_up_once_and_a_session_leaves_with_its_texts() {
    with_records(async |records| {
        let owner = UserId::from_bits(1);
        let texts = records.texts();
        let (session, said) = ((&key(1, 1), &owner), [text(1, "hello"), text(2, "world")]);
        assert!(
            !texts.keep(&[taken(session, (0, 1), &said)]).await.unwrap(),
            "no such session"
        );
        records
            .sessions()
            .project(&[row(1, 2).into()])
            .await
            .unwrap();
        let behind = texts.behind(Timestamp(i64::MAX), 9).await.unwrap();
        assert_eq!((behind[0].indexed, behind[0].version), (0, 2));
        assert!(texts.keep(&[taken(session, (0, 1), &said)]).await.unwrap());
        assert!(
            !texts.keep(&[taken(session, (0, 1), &said)]).await.unwrap(),
            "taken up twice"
        );
        assert_eq!(
            texts.behind_of(&key(1, 1)).await.unwrap().unwrap().indexed,
            1
        );
        assert_eq!(found(&records, "hello").await, [1]);
        let changes = [text(1, "other"), TextChange::Remove { seq: 2 }];
        assert!(
            texts
                .keep(&[taken(session, (1, 2), &changes)])
                .await
                .unwrap()
        );
        assert_eq!(texts.count_behind(None).await.unwrap(), 0);
        assert_eq!(found(&records, "hello").await, [0; 0]);
        assert_eq!(found(&records, "world").await, [0; 0]);
        assert_eq!(found(&records, "other").await, [1]);
        assert_eq!(
            texts.find_in(session, &query("other"), 9).await.unwrap(),
            [1]
        );
        assert!(records.sessions().delete(&key(1, 1)).await.unwrap());
        assert_eq!(
            texts.find_in(session, &query("other"), 9).await.unwrap(),
            [0; 0]
        );
        // The same session again, as a name may be given again.
        records
            .sessions()
            .project(&[row(1, 1).into()])
            .await
            .unwrap();
        assert_eq!(found(&records, "other").await, [0; 0]);
        assert!(
            texts
                .keep(&[taken(session, (0, 1), &[text(1, "again")])])
                .await
                .unwrap()
        );
        assert_eq!(found(&records, "again").await, [1]);
    })
    .await;
}

#[tokio::test]
async fn sessions_are_taken_up_together_or_not_at_all() {
    with_records(async |records| {
        let owner = UserId::from_bits(1);
        let rows = [row(1, 1), row(2, 1)].map(Into::into);
        records.sessions().project(&rows).await.unwrap();
        let texts = records.texts();
        let (one, two) = ((&key(1, 1), &owner), (&key(1, 2), &owner));
        let said = [text(1, "hello")];
        let stale = [taken(one, (0, 1), &said), taken(two, (1, 2), &said)];
        assert!(!texts.keep(&stale).await.unwrap());
        assert_eq!(
            texts.find_in(one, &query("hello"), 9).await.unwrap(),
            [0; 0]
        );
        let both = [one, two].map(|session| taken(session, (0, 1), &said));
        assert!(texts.keep(&both).await.unwrap());
        for session in [one, two] {
            assert_eq!(
                texts.find_in(session, &query("hello"), 9).await.unwrap(),
                [1]
            );
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_behind_is_known_by_its_age_and_by_its_person() {
    with_records(async |records| {
        let other = SessionRow {
            owner: UserId::from_bits(2),
            ..row(2, 1)
        };
        let later = SessionRow {
            updated_at: Timestamp(row(3, 1).updated_at.0 + 1_000),
            ..row(3, 1)
        };
        let rows = [row(1, 1), other, later.clone()].map(Into::into);
        records.sessions().project(&rows).await.unwrap();
        let texts = records.texts();
        let keys = |behind: Vec<Behind>| {
            let keys = behind.into_iter().map(|behind| behind.key);
            keys.collect::<std::collections::BTreeSet<_>>()
        };
        let before = Timestamp(later.updated_at.0 - 1);
        let old = keys(texts.behind(before, 9).await.unwrap());
        assert_eq!(old, [key(1, 1), key(1, 2)].into());
        let own = (&TenantId::from_bits(1), &UserId::from_bits(1));
        let own = texts.behind_of_person(own, 9).await.unwrap();
        assert_eq!(own[0].key, later.key, "what changed last comes first");
        assert_eq!(keys(own), [key(1, 1), key(1, 3)].into());
        let stranger = (&TenantId::from_bits(2), &UserId::from_bits(1));
        assert_eq!(texts.behind_of_person(stranger, 9).await.unwrap(), []);
    })
    .await;
}
