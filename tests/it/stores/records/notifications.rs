//! The outbox: what waits goes in once, is claimed by one, and comes out again where it failed.

use std::time::Duration;

use sepal::domain::{
    Iteration, ModelRequestId, Role, Tenant, TenantId, Timestamp, TurnId, User, UserId, WebhookId,
};
use sepal::store::Records;
use sepal::store::records::{
    Address, AskedRoles, Attempt, AttemptOutcome, DueNotification, MailChoice, NewUser,
    NotificationEvent, NotificationTarget, SessionRow, WaitingBatch, WebhookRow,
};

use super::{row, with_records};
use crate::stores::key;

const LEASE: Duration = Duration::from_mins(1);
const DAY: i64 = 86_400_000;

fn at(ms: i64) -> Timestamp {
    Timestamp(ms)
}

fn webhook(id: u128, tells_decided: bool) -> WebhookRow {
    WebhookRow {
        tenant: TenantId::from_bits(1),
        id: WebhookId::from_bits(id),
        address: Address::Plain("https://hooks.example".to_owned()),
        sealed: "sealed".to_owned(),
        tells_decided,
        created_at: at(100),
        last: None,
        failing_since: None,
        disabled_at: None,
    }
}

/// A session that waits for the calls of that turn since then; 0 = for none.
fn waits(session: u128, version: u64, turn: u64, since: i64) -> SessionRow {
    let request = ModelRequestId {
        turn: TurnId(turn),
        iteration: Iteration(1),
    };
    SessionRow {
        waiting: u64::from(turn > 0),
        waiting_since: (turn > 0).then_some(at(since)),
        batch: (turn > 0).then(|| {
            Box::new(WaitingBatch {
                expires_at: None,
                request,
                tools: vec!["write_file".to_owned()],
            })
        }),
        ..row(session, version)
    }
}

async fn project(records: &Records, row: SessionRow) {
    records.sessions().project(&[row.into()]).await.unwrap();
}

/// Two webhooks, one batch for them, one of another tenant, and one from before they were added.
async fn fill(records: &Records) {
    let webhooks = records.webhooks();
    for id in [1, 2] {
        assert!(webhooks.add(&webhook(id, id == 1)).await.unwrap());
    }
    project(
        records,
        SessionRow {
            key: key(2, 9),
            ..waits(9, 1, 1, 200)
        },
    )
    .await;
    project(records, waits(3, 1, 1, 50)).await;
    project(records, waits(1, 1, 4, 200)).await;
}

#[tokio::test]
async fn a_batch_goes_in_once_and_is_claimed_by_one() {
    with_records(async |records| {
        fill(&records).await;
        let outbox = records.notifications();
        let twice = tokio::join!(outbox.take_up(at(300), None), outbox.take_up(at(300), None));
        twice.0.unwrap();
        twice.1.unwrap();
        let (one, other) = tokio::join!(
            outbox.claim(at(300), LEASE, 10),
            outbox.claim(at(300), LEASE, 10)
        );
        let claimed = [one.unwrap(), other.unwrap()].concat();
        assert_eq!(claimed.len(), 2, "{claimed:?}");
        for due in &claimed {
            assert_eq!(due.key.session, key(1, 1));
            assert_eq!(due.key.request.turn, TurnId(4));
            assert_eq!((due.attempt, due.at), (1, at(200)));
            assert_eq!(due.tools, ["write_file"]);
        }

        // A lease that is over lets another try, and whoever was too slow says nothing any more.
        assert_eq!(outbox.claim(at(400), LEASE, 10).await.unwrap(), []);
        let again = outbox.claim(at(60_301), LEASE, 10).await.unwrap();
        assert_eq!(again.len(), 2);
        assert!(
            !outbox
                .finish(&claimed[0], AttemptOutcome::Done, at(60_302))
                .await
                .unwrap()
        );
        let (fails, works): (Vec<_>, Vec<_>) = again.into_iter().partition(|due| {
            due.key.target == NotificationTarget::Webhook(WebhookId::from_bits(2))
        });
        let later = AttemptOutcome::Again(at(70_000));
        assert!(outbox.finish(&fails[0], later, at(60_400)).await.unwrap());
        assert!(
            outbox
                .finish(&works[0], AttemptOutcome::Done, at(60_400))
                .await
                .unwrap()
        );
        assert_eq!(outbox.next_due().await.unwrap(), Some(at(70_000)));
        assert_eq!(outbox.claim(at(69_999), LEASE, 10).await.unwrap(), []);
        assert_eq!(
            outbox.claim(at(70_000), LEASE, 10).await.unwrap()[0].attempt,
            3
        );
        // The only gateway knows that nobody else is trying.
        outbox.release().await.unwrap();
        let last = outbox.claim(at(70_001), LEASE, 10).await.unwrap();
        outbox
            .finish(&last[0], AttemptOutcome::Done, at(70_002))
            .await
            .unwrap();
    })
    .await;
}

#[tokio::test]
async fn what_was_told_is_forgotten_once_it_waits_no_longer() {
    with_records(async |records| {
        let (outbox, webhooks) = (records.notifications(), records.webhooks());
        for id in [1, 2] {
            webhooks.add(&webhook(id, id == 1)).await.unwrap();
        }
        project(&records, waits(1, 1, 4, 200)).await;
        outbox.take_up(at(300), None).await.unwrap();
        for due in outbox.claim(at(300), LEASE, 10).await.unwrap() {
            outbox
                .finish(&due, AttemptOutcome::Done, at(400))
                .await
                .unwrap();
        }

        // What was told is not forgotten while it waits, or it would be told again.
        outbox.prune(at(30 * DAY)).await.unwrap();
        outbox.take_up(at(30 * DAY), None).await.unwrap();
        assert_eq!(outbox.next_due().await.unwrap(), None);
        project(&records, waits(1, 2, 0, 0)).await;
        outbox.take_up(at(30 * DAY), None).await.unwrap();
        let decided = outbox.claim(at(30 * DAY), LEASE, 10).await.unwrap();
        assert_eq!(decided.len(), 1, "only one wanted to know: {decided:?}");
        assert_eq!(decided[0].key.event, NotificationEvent::Decided);
        assert_eq!(decided[0].at, at(30 * DAY));
        outbox
            .finish(&decided[0], AttemptOutcome::Done, at(30 * DAY))
            .await
            .unwrap();
        outbox.prune(at(40 * DAY)).await.unwrap();
        outbox.take_up(at(40 * DAY), None).await.unwrap();
        assert_eq!(outbox.next_due().await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn one_target_is_told_one_thing_at_a_time_and_forgets_what_is_deleted() {
    with_records(async |records| {
        let (outbox, webhooks) = (records.notifications(), records.webhooks());
        webhooks.add(&webhook(1, false)).await.unwrap();
        for session in 1..=3 {
            project(
                &records,
                waits(session, 1, 1, 200 + i64::try_from(session).unwrap()),
            )
            .await;
        }
        outbox.take_up(at(300), None).await.unwrap();
        let first = outbox.claim(at(300), LEASE, 10).await.unwrap();
        assert_eq!(first.len(), 1);
        assert_eq!(first[0].key.session, key(1, 1));
        assert_eq!(outbox.claim(at(301), LEASE, 10).await.unwrap(), []);
        outbox
            .finish(&first[0], AttemptOutcome::Done, at(302))
            .await
            .unwrap();
        records.sessions().delete(&key(1, 2)).await.unwrap();
        let next = outbox.claim(at(303), LEASE, 10).await.unwrap();
        assert_eq!(next[0].key.session, key(1, 3));
        let id = WebhookId::from_bits(1);
        let tenant = TenantId::from_bits(1);
        assert!(!webhooks.delete(&TenantId::from_bits(2), &id).await.unwrap());
        assert!(webhooks.delete(&tenant, &id).await.unwrap());
        assert_eq!(outbox.next_due().await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn a_webhook_that_failed_for_three_days_is_told_nothing_more() {
    with_records(async |records| {
        let webhooks = records.webhooks();
        let (tenant, id) = (TenantId::from_bits(1), WebhookId::from_bits(1));
        webhooks.add(&webhook(1, false)).await.unwrap();
        let note = async |ms: i64, status: Option<u16>| {
            let failed = status != Some(204);
            let attempt = Attempt {
                at: at(ms),
                status,
                error: failed.then(|| "why".to_owned()),
            };
            webhooks.note(&tenant, &id, &attempt).await.unwrap();
            let row = webhooks.get(&tenant, &id).await.unwrap().unwrap();
            assert_eq!(row.last, Some(attempt));
            (row.failing_since, row.disabled_at)
        };
        let well = (None, None);
        assert_eq!(note(1_000, Some(500)).await, (Some(at(1_000)), None));
        assert_eq!(note(DAY, Some(204)).await, well);
        assert_eq!(note(2 * DAY, None).await, (Some(at(2 * DAY)), None));
        assert_eq!(
            note(5 * DAY - 1, Some(404)).await,
            (Some(at(2 * DAY)), None)
        );
        let disabled = (Some(at(2 * DAY)), Some(at(5 * DAY)));
        assert_eq!(note(5 * DAY, Some(404)).await, disabled);
        assert_eq!(note(6 * DAY, Some(404)).await, disabled);
        project(&records, waits(1, 1, 1, 6 * DAY)).await;
        let outbox = records.notifications();
        outbox.take_up(at(6 * DAY), None).await.unwrap();
        assert_eq!(outbox.next_due().await.unwrap(), None);
        assert_eq!(note(7 * DAY, Some(204)).await, well);
        outbox.take_up(at(7 * DAY), None).await.unwrap();
        assert!(outbox.next_due().await.unwrap().is_some());
        let gone = (Some(at(8 * DAY)), Some(at(8 * DAY)));
        assert_eq!(note(8 * DAY, Some(410)).await, gone);
    })
    .await;
}

/// The owner of the sessions.
async fn add_user(records: &Records) -> User {
    let tenant = Tenant {
        id: TenantId::from_bits(1),
        name: "acme".to_owned(),
    };
    records.tenants().add(&tenant, at(1)).await.unwrap();
    add_person(records, 1, Role::Member).await
}

/// A person of the owner's tenant.
async fn add_person(records: &Records, bits: u128, role: Role) -> User {
    let user = User {
        id: UserId::from_bits(bits),
        tenant: TenantId::from_bits(1),
        name: format!("person {bits}"),
        role,
        installation_admin: false,
    };
    let new = NewUser {
        user: user.clone(),
        password_hash: None,
        is_local: false,
    };
    records.users().add(&new, at(1)).await.unwrap();
    user
}

#[tokio::test]
async fn mail_waits_a_while_and_is_not_sent_for_what_was_decided() {
    with_records(async |records| {
        let user = add_user(&records).await;
        let whose = (&user.tenant, &user.id);
        let choice = MailChoice {
            address: Some("ana@sepal.example".to_owned()),
            since: Some(at(100)),
        };
        records.users().set_mail(whose, &choice).await.unwrap();
        let later = MailChoice {
            since: Some(at(900)),
            ..choice.clone()
        };
        records.users().set_mail(whose, &later).await.unwrap();
        let kept = records.users().mail(whose.0, whose.1).await.unwrap();
        assert_eq!(kept, choice, "since when they want it stays");

        let (outbox, minute) = (records.notifications(), Some(Duration::from_mins(1)));
        project(&records, waits(1, 1, 1, 200)).await;
        project(&records, waits(2, 1, 1, 300)).await;
        outbox.take_up(at(400), None).await.unwrap();
        assert_eq!(outbox.next_due().await.unwrap(), None, "there is no relay");
        outbox.take_up(at(400), minute).await.unwrap();
        assert_eq!(outbox.next_due().await.unwrap(), Some(at(60_200)));
        assert_eq!(outbox.claim(at(60_199), LEASE, 10).await.unwrap(), []);
        project(&records, waits(1, 2, 0, 0)).await;
        outbox.take_up(at(500), minute).await.unwrap();
        assert_eq!(outbox.next_due().await.unwrap(), Some(at(60_300)));
        let due = outbox.claim(at(60_300), LEASE, 10).await.unwrap();
        assert_eq!(due[0].key.session, key(1, 2));
        assert_eq!(
            due[0].key.target,
            NotificationTarget::Mail(UserId::from_bits(1))
        );
        outbox
            .finish(&due[0], AttemptOutcome::Done, at(60_400))
            .await
            .unwrap();
        let sent = outbox.mails_since(whose, at(60_000)).await.unwrap();
        assert_eq!(sent, 1, "one that was not sent does not count");
        let off = MailChoice {
            since: None,
            ..choice
        };
        records.users().set_mail(whose, &off).await.unwrap();
        project(&records, waits(3, 1, 1, 60_500)).await;
        outbox.take_up(at(60_500), minute).await.unwrap();
        assert_eq!(outbox.next_due().await.unwrap(), None);
    })
    .await;
}

/// The person wants mail from the beginning.
async fn turn_mail_on(records: &Records, user: &User) {
    let choice = MailChoice {
        address: Some("ana@sepal.example".to_owned()),
        since: Some(at(100)),
    };
    let whose = (&user.tenant, &user.id);
    records.users().set_mail(whose, &choice).await.unwrap();
}

#[tokio::test]
async fn somebody_else_who_may_decide_is_mailed_how_many_calls_wait_and_no_more() {
    with_records(async |records| {
        let owner = add_user(&records).await;
        let admin = add_person(&records, 2, Role::Admin).await;
        let member = add_person(&records, 3, Role::Member).await;
        for user in [&admin, &member] {
            turn_mail_on(&records, user).await;
        }
        let mut asks = AskedRoles::default();
        asks.count(Role::Admin);
        let session = waits(1, 1, 1, 200);
        let batch = session.batch.clone().map(|batch| {
            Box::new(WaitingBatch {
                expires_at: Some(at(9_000)),
                ..*batch
            })
        });
        let session = SessionRow {
            waiting: 3,
            asks,
            batch,
            ..session
        };
        project(&records, session).await;

        let outbox = records.notifications();
        for _ in 0..2 {
            outbox.take_up(at(300), Some(Duration::ZERO)).await.unwrap();
        }
        let claimed = outbox.claim(at(300), LEASE, 10).await.unwrap();
        let [due] = &claimed[..] else {
            panic!("{claimed:?}")
        };
        assert_eq!(due.key.target, NotificationTarget::Mail(admin.id));
        assert_eq!((&due.owner, due.calls), (&owner.id, 1));
        assert_eq!((due.title.as_str(), due.tools.len()), ("", 0));
        assert_eq!(due.expires_at, Some(at(9_000)));
    })
    .await;
}

#[tokio::test]
async fn a_mail_that_was_not_sent_is_not_counted_and_not_tried_once_its_batch_was_decided() {
    with_records(async |records| {
        let user = add_user(&records).await;
        turn_mail_on(&records, &user).await;
        for (session, since) in [(1, 201), (2, 202), (3, 203), (4, 204)] {
            project(&records, waits(session, 1, 1, since)).await;
        }
        let (outbox, now) = (records.notifications(), Some(Duration::ZERO));
        let claim = async |ms: i64, session: u128| {
            let claimed = outbox.claim(at(ms), LEASE, 10).await.unwrap();
            assert_eq!(claimed.len(), 1, "{claimed:?}");
            assert_eq!(claimed[0].key.session, key(1, session));
            claimed[0].clone()
        };
        let finish = async |due: DueNotification, tried: AttemptOutcome, ms: i64| {
            assert!(outbox.finish(&due, tried, at(ms)).await.unwrap());
        };
        let decide = async |session: u128, ms: i64| {
            project(&records, waits(session, 2, 0, 0)).await;
            outbox.take_up(at(ms), now).await.unwrap();
        };
        let sent = async || {
            let whose = (&user.tenant, &user.id);
            outbox.mails_since(whose, at(0)).await.unwrap()
        };

        outbox.take_up(at(300), now).await.unwrap();
        // One failed, and was decided before it was tried again.
        finish(claim(310, 1).await, AttemptOutcome::Again(at(90_000)), 320).await;
        decide(1, 330).await;
        assert_eq!(sent().await, 0);
        // One was decided while it was tried, which failed.
        let due = claim(410, 2).await;
        decide(2, 420).await;
        finish(due, AttemptOutcome::Again(at(90_000)), 430).await;
        assert_eq!(sent().await, 0);
        // One was given up.
        finish(claim(510, 3).await, AttemptOutcome::Dropped, 520).await;
        assert_eq!(sent().await, 0);
        // One was decided while it was sent.
        let due = claim(610, 4).await;
        decide(4, 620).await;
        finish(due, AttemptOutcome::Done, 630).await;
        assert_eq!(sent().await, 1);
        assert_eq!(outbox.next_due().await.unwrap(), None);
    })
    .await;
}
