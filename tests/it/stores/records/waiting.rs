//! The sessions in which calls wait, by how long they have waited.

use sepal::domain::{Role, SessionId, TenantId, Timestamp, UserId};
use sepal::store::records::{
    AskedRoles, DecidableSessions, ProjectedRow, SessionRow, SessionState, WaitingCursor,
    WaitingTotals,
};

use super::{row, with_records};
use crate::stores::key;

fn mine() -> DecidableSessions {
    DecidableSessions {
        tenant: TenantId::from_bits(1),
        person: UserId::from_bits(1),
        role: Role::Member,
        within: None,
    }
}

/// Four that wait for me, one that does not, and two that are not mine.
fn rows() -> [SessionRow; 7] {
    let since = |session, since| SessionRow {
        waiting: 2,
        waiting_since: Some(Timestamp(since)),
        updated_at: Timestamp(90_000 - since),
        ..row(session, 1)
    };
    [
        since(4, 30),
        since(2, 20),
        since(3, 20),
        // Of an earlier release: its last change is what there is.
        SessionRow {
            updated_at: Timestamp(10),
            waiting_since: None,
            ..since(1, 0)
        },
        SessionRow {
            waiting: 0,
            waiting_since: None,
            state: SessionState::Idle,
            decided_at: Some(Timestamp(70)),
            ..since(5, 0)
        },
        SessionRow {
            owner: UserId::from_bits(2),
            decided_at: Some(Timestamp(99)),
            ..since(6, 1)
        },
        SessionRow {
            key: key(2, 7),
            decided_at: Some(Timestamp(99)),
            ..since(7, 1)
        },
    ]
}

#[tokio::test]
async fn pages_of_what_waits_go_from_old_to_new_and_only_over_what_one_may_decide() {
    with_records(async |records| {
        let (sessions, mine) = (records.sessions(), mine());
        let rows = rows().map(ProjectedRow::from);
        sessions.project(&rows).await.unwrap();

        let mut seen = Vec::new();
        let mut cursor: Option<WaitingCursor> = None;
        loop {
            let page = sessions.waiting(&mine, None, cursor.as_ref(), 1);
            let page = page.await.unwrap();
            seen.extend(page.rows.into_iter().map(|row| row.key.session));
            let Some(next) = page.next else { break };
            cursor = Some(WaitingCursor::parse(&next.to_wire()).unwrap());
        }
        assert_eq!(seen, [1, 2, 3, 4].map(SessionId::from_bits));
        for (session, is_there) in [(3, true), (5, false), (6, false), (7, false)] {
            let id = SessionId::from_bits(session);
            let page = sessions.waiting(&mine, Some(&id), None, 50).await;
            assert_eq!(page.unwrap().rows.len(), usize::from(is_there), "{session}");
        }
        let totals = WaitingTotals {
            calls: 8,
            sessions: 4,
            decided_at: Some(Timestamp(70)),
        };
        assert_eq!(sessions.waiting_totals(&mine).await.unwrap(), totals);

        // What was decided last is not forgotten by a row that does not say it; what is given up waits
        // for nobody.
        let later = SessionRow {
            waiting: 0,
            decided_at: None,
            ..row(5, 2)
        };
        sessions.project(&[later.into()]).await.unwrap();
        let gone = key(1, 4);
        let given_up = sessions.give_up(&gone, &mine.person, Timestamp(1));
        assert!(given_up.await.unwrap());
        let totals = WaitingTotals {
            calls: 6,
            sessions: 3,
            ..totals
        };
        assert_eq!(sessions.waiting_totals(&mine).await.unwrap(), totals);
    })
    .await;
}

#[tokio::test]
async fn what_waits_for_a_role_waits_for_everybody_of_the_tenant_who_has_it() {
    with_records(async |records| {
        let sessions = records.sessions();
        let theirs = |key: sepal::domain::SessionKey, lowest: &[Role]| {
            let mut asks = AskedRoles::default();
            for role in lowest {
                asks.count(*role);
            }
            SessionRow {
                key,
                owner: UserId::from_bits(2),
                waiting: 3,
                waiting_since: Some(Timestamp(1)),
                asks,
                ..row(0, 1)
            }
        };
        let rows = [
            theirs(key(1, 1), &[Role::Member, Role::Admin]),
            theirs(key(1, 2), &[Role::Owner]),
            theirs(key(1, 3), &[]),
            theirs(key(2, 4), &[Role::Member]),
        ];
        sessions
            .project(&rows.map(ProjectedRow::from))
            .await
            .unwrap();
        for (role, calls, ids) in [
            (Role::Viewer, 0, &[][..]),
            (Role::Member, 1, &[1]),
            (Role::Admin, 2, &[1]),
            (Role::Owner, 3, &[1, 2]),
        ] {
            let of = DecidableSessions { role, ..mine() };
            let page = sessions.waiting(&of, None, None, 50).await.unwrap();
            let seen: Vec<_> = page.rows.into_iter().map(|row| row.key.session).collect();
            let ids: Vec<_> = ids.iter().map(|id| SessionId::from_bits(*id)).collect();
            assert_eq!(seen, ids, "{role:?}");
            let totals = sessions.waiting_totals(&of).await.unwrap();
            assert_eq!((totals.calls, totals.sessions), (calls, ids.len() as u64));
        }
    })
    .await;
}
