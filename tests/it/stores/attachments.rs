//! What is attached to sessions: contents once for each tenant, gone with the last session.

use sepal::domain::{Attachment, BlobId, MediaType, Timestamp};
use sepal::store::records::{AttachedTo, PutOutcome};

use super::key;
use super::records::{row, with_records};

const PLENTY: u64 = 1_000;
const NOW: Timestamp = Timestamp(1);

fn text(name: &str, content: &[u8]) -> Attachment {
    Attachment {
        id: BlobId::of(content),
        name: name.to_owned(),
        media_type: MediaType::Text,
        bytes: content.len() as u64,
        width: None,
        height: None,
        source: None,
    }
}

/// Asserts S3.19: contents are kept by hash within a tenant, and go with the last session.
#[tokio::test]
async fn a_content_is_a_tenants_own_and_goes_with_the_last_session_that_holds_it() {
    with_records(async |records| {
        let (sessions, attached) = (records.sessions(), records.attachments());
        let other = sepal::store::records::SessionRow {
            key: key(2, 3),
            ..row(3, 1)
        };
        sessions
            .project(&[row(1, 1), row(2, 1), other].map(Into::into))
            .await
            .unwrap();
        let note = text("note.txt", b"same");
        for holder in [key(1, 1), key(1, 2)] {
            let put = attached
                .put(
                    AttachedTo::Stored(&holder),
                    &note,
                    b"same".to_vec(),
                    PLENTY,
                    NOW,
                )
                .await;
            assert_eq!(put.unwrap(), PutOutcome::Stored);
        }
        let renamed = text("other.txt", b"same");
        let put = attached
            .put(
                AttachedTo::Stored(&key(1, 1)),
                &renamed,
                b"same".to_vec(),
                PLENTY,
                NOW,
            )
            .await;
        assert_eq!(put.unwrap(), PutOutcome::Stored);
        assert_eq!(
            attached.find(&key(1, 1), &note.id).await.unwrap(),
            Some(renamed)
        );
        assert_eq!(
            attached.find(&key(1, 2), &note.id).await.unwrap(),
            Some(note.clone())
        );
        // Who knows the hash has nothing by it: neither another tenant nor another session.
        for stranger in [key(2, 1), key(2, 3), key(1, 9)] {
            assert_eq!(attached.find(&stranger, &note.id).await.unwrap(), None);
            assert_eq!(attached.content(&stranger, &note.id).await.unwrap(), None);
        }
        sessions.delete(&key(1, 1)).await.unwrap();
        assert_eq!(attached.content(&key(1, 1), &note.id).await.unwrap(), None);
        let left = attached.content(&key(1, 2), &note.id).await.unwrap();
        assert_eq!(left.as_deref(), Some(b"same".as_slice()));
        sessions.delete(&key(1, 2)).await.unwrap();
        // The content is gone as well: nothing comes back with a new holder of other bytes.
        sessions.project(&[row(5, 1).into()]).await.unwrap();
        let more = text("more.txt", b"more");
        let holder = key(1, 5);
        let put = attached.put(
            AttachedTo::Stored(&holder),
            &more,
            b"more".to_vec(),
            PLENTY,
            NOW,
        );
        assert_eq!(put.await.unwrap(), PutOutcome::Stored);
        assert_eq!(attached.content(&key(1, 5), &note.id).await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn a_session_that_is_gone_or_full_takes_nothing() {
    with_records(async |records| {
        let attached = records.attachments();
        records
            .sessions()
            .project(&[row(1, 1).into()])
            .await
            .unwrap();
        let put = async |session, content: &[u8], most| {
            let it = text("it", content);
            let holder = key(1, session);
            let put = attached.put(
                AttachedTo::Stored(&holder),
                &it,
                content.to_vec(),
                most,
                NOW,
            );
            put.await.unwrap()
        };
        for (session, content, most, expected) in [
            (9, b"abc".as_slice(), 10, PutOutcome::NoSession),
            (1, b"abc", 5, PutOutcome::Stored),
            // The same again takes no more.
            (1, b"abc", 5, PutOutcome::Stored),
            (1, b"def", 5, PutOutcome::Full),
            (1, b"de", 5, PutOutcome::Stored),
        ] {
            assert_eq!(put(session, content, most).await, expected, "{content:?}");
        }
        let id = BlobId::of(b"def");
        assert_eq!(attached.find(&key(1, 1), &id).await.unwrap(), None);
    })
    .await;
}
