//! Budgets in each database: however many requests come at once, over however many connections, nothing
//! goes beyond a limit, and all that was held comes back.

use std::sync::Arc;
use std::time::Duration;

use sepal::domain::{
    Budget, BudgetLevel, BudgetPeriod, CommitId, Grant, Iteration, MicroUsd, ModelRequestId, Need,
    Timestamp, TurnId, UserId,
};
use sepal::session::AssistantBudget;
use sepal::store::Records;
use sepal::store::records::{
    EventPlace, Payer, ProjectedRow, RequestRow, ReservationOutcome, UsageRows,
};
use tokio::sync::Mutex;
use tokio_util::task::TaskTracker;

use super::request_row;
use crate::stores::records::{row, with_records};
use crate::stores::{Opened, in_postgres, key};
use crate::support::DEADLINE;
use crate::support::postgres::new_database;

/// One gateway's records, with the turn to write rows.
type Gateway = Mutex<Records>;

/// Noon of some day.
const NOW: Timestamp = Timestamp(1_800_000_000_000 - 1_800_000_000_000 % 86_400_000 + 43_200_000);
const LEASE: Duration = Duration::from_secs(45);

fn budget(level: BudgetLevel, period: BudgetPeriod, limit: u64) -> Budget {
    Budget {
        period,
        ..Budget::of_settings(level, MicroUsd(limit))
    }
}

fn payer(session: u128) -> Payer {
    Payer {
        key: key(1, session),
        owner: UserId::from_bits(1),
        request: Some(ModelRequestId {
            turn: TurnId(1),
            iteration: Iteration(1),
        }),
        session_since: Timestamp(0),
        turn_since: Timestamp(0),
        assistant: None,
    }
}

fn need(least: u64, usual: u64) -> Need {
    Need {
        least: MicroUsd(least),
        usual: MicroUsd(usual),
        begins: false,
    }
}

async fn set(records: &Records, budget: &Budget) {
    let (budgets, tenant, by) = (records.budgets(), key(1, 1).tenant, UserId::from_bits(9));
    budgets.put(&tenant, budget, &by, NOW).await.unwrap();
}

async fn reserve(
    records: &Records,
    payer: &Payer,
    need: Need,
    now: Timestamp,
) -> ReservationOutcome {
    let budgets = records.budgets();
    let step = budgets.reserve(payer, &[], need, now, LEASE);
    step.await.unwrap()
}

/// The rows that a request leaves, and what it held goes with them.
async fn settle(gateway: &Gateway, session: u128, cost: u64) {
    let used = request_row(session, NOW.0, |row: &mut RequestRow| {
        row.cost = Some(MicroUsd(cost));
        row.place = EventPlace {
            commit: CommitId::from_bits(session),
            at: NOW,
            ..row.place.clone()
        };
    });
    let projected = ProjectedRow {
        row: row(session, 1),
        used: UsageRows {
            requests: vec![used],
            ..UsageRows::default()
        },
        used_from: Some(0),
    };
    // Each gateway has one task that writes rows.
    let records = gateway.lock().await;
    records.sessions().project(&[projected]).await.unwrap();
}

/// How the tenant's budget stands: what is used and held of it.
async fn stands(records: &Records) -> (u64, u64) {
    let reader = Payer {
        request: None,
        ..payer(0)
    };
    let budgets = records.budgets();
    let standings = budgets.standings(&reader, &[], NOW).await.unwrap();
    let tenant = standings
        .iter()
        .find(|standing| standing.budget.level == BudgetLevel::Tenant)
        .unwrap();
    (tenant.used.0, tenant.reserved.0)
}

/// One request: waits for its turn, asks for more in the middle, and is cut where it gets none. Whether
/// it was asked at all.
async fn ask(gateway: Arc<Gateway>, records: Records, session: u128) -> bool {
    let payer = payer(session);
    let first = Need {
        begins: true,
        ..need(2_000, 5_000)
    };
    let given = loop {
        match reserve(&records, &payer, first, NOW).await.grant {
            Grant::Given(given) => break given,
            Grant::Exhausted(_) => return false,
            Grant::Held(_) => tokio::task::yield_now().await,
        }
    };
    let cost = 9_000 + u64::try_from(session % 7).unwrap() * 100;
    let more = reserve(&records, &payer, need(cost, 12_000), NOW).await;
    let cost = match more.grant {
        Grant::Given(_) => cost,
        Grant::Held(_) | Grant::Exhausted(_) => given.0,
    };
    let (used, reserved) = stands(&records).await;
    assert!(used + reserved <= 1_000_000, "{used} + {reserved}");
    settle(&gateway, session, cost).await;
    true
}

/// 200 requests at once on one dollar, over these connections.
async fn two_hundred_at_once(gateways: Vec<Records>) {
    let first = gateways[0].clone();
    set(
        &first,
        &budget(BudgetLevel::Tenant, BudgetPeriod::Day, 1_000_000),
    )
    .await;
    set(
        &first,
        &budget(BudgetLevel::Person, BudgetPeriod::Month, 2_000_000),
    )
    .await;
    let tasks = TaskTracker::new();
    let writers: Vec<_> = gateways
        .iter()
        .map(|records| Arc::new(Mutex::new(records.clone())))
        .collect();
    let asks = (0..200_u128).map(|session| {
        let at = usize::try_from(session).unwrap() % gateways.len();
        let (writer, records) = (Arc::clone(&writers[at]), gateways[at].clone());
        tasks.spawn(ask(writer, records, session + 1))
    });
    let asks: Vec<_> = asks.collect();
    let mut answered = 0;
    for ask in asks {
        let ask = tokio::time::timeout(3 * DEADLINE, ask);
        answered += u64::from(ask.await.unwrap().unwrap());
    }
    let (used, reserved) = stands(&first).await;
    assert_eq!(reserved, 0, "all of it came back");
    assert!(used <= 1_000_000, "{used}");
    assert!(used >= 950_000, "{used} after {answered} answers");
}

/// S1.12.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_requests_at_once_spend_one_dollar_and_no_more() {
    with_records(async |records| two_hundred_at_once(vec![records]).await).await;
}

/// S1.12.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_gateways_spend_one_dollar_together_and_no_more() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let database = new_database().await;
    let redis = crate::support::RedisServer::start();
    let on = |dir: &std::path::Path| sepal::store::Settings {
        redis_url: Some(redis.secret_url()),
        ..in_postgres(dir, &database)
    };
    let a = Opened::with(&on(a.path())).await.unwrap();
    let b = Opened::with(&on(b.path())).await.unwrap();
    two_hundred_at_once(vec![a.store.records(), b.store.records()]).await;
    a.stop().await;
    b.stop().await;
}

#[tokio::test]
async fn every_level_refuses_for_itself_and_a_refused_step_holds_nothing() {
    with_records(async |records| {
        use BudgetLevel::{Own, Person, Session, Tenant};
        use BudgetPeriod::{Day, Month, Whole};
        for (level, period) in [
            (Tenant, Day),
            (Tenant, Month),
            (Person, Day),
            (Person, Month),
            (Session, Whole),
            (Own, Whole),
        ] {
            let subject = match level {
                Own => key(1, 5).session.to_string(),
                Session | Person | Tenant | BudgetLevel::Turn | BudgetLevel::Assistant => {
                    String::new()
                }
            };
            let wide = budget(Tenant, Day, 1_000_000);
            set(&records, &wide).await;
            let tight = Budget {
                subject: subject.clone(),
                ..budget(level, period, 100)
            };
            set(&records, &tight).await;
            let step = reserve(&records, &payer(5), need(101, 200), NOW).await;
            let Grant::Exhausted(standing) = step.grant else {
                panic!("{level:?} {period:?}: {step:?}");
            };
            assert_eq!(standing.budget, tight);
            let given = reserve(&records, &payer(5), need(50, 200), NOW).await;
            assert_eq!(given.grant, Grant::Given(MicroUsd(100)));
            let budgets = records.budgets();
            let tenant = key(1, 1).tenant;
            budgets.give_back(&payer(5), None).await.unwrap();
            let whose = (level, subject.as_str(), period);
            assert!(budgets.delete(&tenant, whose).await.unwrap());
            assert!(!budgets.delete(&tenant, whose).await.unwrap());
        }
    })
    .await;
}

/// The budget of an assistant is of each of its sessions, beside all others.
#[tokio::test]
async fn an_assistant_limits_each_of_its_sessions() {
    with_records(async |records| {
        let limited = |session, is_hard| Payer {
            assistant: Some(AssistantBudget {
                limit: MicroUsd(100),
                warn_percent: 50,
                is_hard,
            }),
            ..payer(session)
        };
        let step = reserve(&records, &limited(1, true), need(101, 200), NOW).await;
        let Grant::Exhausted(standing) = step.grant else {
            panic!("{step:?}");
        };
        assert_eq!(standing.budget.level, BudgetLevel::Assistant);
        for session in [5, 6] {
            let given = reserve(&records, &limited(session, true), need(60, 200), NOW).await;
            assert_eq!(given.grant, Grant::Given(MicroUsd(100)));
            assert_eq!(given.warnings.len(), 1, "{given:?}");
        }
        let soft = reserve(&records, &limited(3, false), need(101, 200), NOW).await;
        assert_eq!(soft.grant, Grant::Given(MicroUsd(200)));
        let plain = reserve(&records, &payer(4), need(101, 200), NOW).await;
        assert_eq!(plain.grant, Grant::Given(MicroUsd(200)));
    })
    .await;
}

#[tokio::test]
async fn what_a_killed_gateway_held_is_free_when_its_lease_is_over_and_people_are_warned_once() {
    with_records(async |records| {
        let day = budget(BudgetLevel::Tenant, BudgetPeriod::Day, 1_000);
        set(&records, &day).await;
        let first = reserve(&records, &payer(1), need(700, 900), NOW).await;
        assert_eq!(
            (first.grant, first.warnings),
            (Grant::Given(MicroUsd(900)), vec![])
        );
        let later = Timestamp(NOW.0 + 44_000);
        let held = reserve(&records, &payer(2), need(200, 200), later).await;
        assert!(matches!(held.grant, Grant::Held(_)), "{held:?}");
        let after = Timestamp(NOW.0 + 45_000);
        let given = reserve(&records, &payer(2), need(800, 900), after).await;
        assert_eq!(given.grant, Grant::Given(MicroUsd(900)));
        assert_eq!(given.warnings.len(), 1, "{given:?}");
        let again = reserve(&records, &payer(2), need(850, 900), after).await;
        assert_eq!(again.warnings, []);
        // Another day, another warning; and a budget that is changed warns anew.
        let tomorrow = Timestamp(after.0 + 86_400_000);
        let next = reserve(&records, &payer(2), need(850, 900), tomorrow).await;
        assert_eq!(next.warnings.len(), 1, "{next:?}");
        set(
            &records,
            &budget(BudgetLevel::Tenant, BudgetPeriod::Day, 1_001),
        )
        .await;
        let changed = reserve(&records, &payer(2), need(850, 900), tomorrow).await;
        assert_eq!(changed.warnings.len(), 1, "{changed:?}");
    })
    .await;
}

#[tokio::test]
async fn spending_is_counted_once_in_its_day_and_month_and_by_whom() {
    with_records(async |records| {
        let month = budget(BudgetLevel::Tenant, BudgetPeriod::Month, 100);
        set(&records, &month).await;
        let gateway = Mutex::new(records.clone());
        for _ in 0..2 {
            settle(&gateway, 1, 30).await;
        }
        settle(&gateway, 2, 12).await;
        assert_eq!(stands(&records).await, (42, 0));
        // The same again, as an incomplete session is completed.
        let used = request_row(1, NOW.0, |row: &mut RequestRow| {
            row.cost = Some(MicroUsd(30));
        });
        let rows = UsageRows {
            requests: vec![used],
            ..UsageRows::default()
        };
        records.usage().add(&key(1, 1), &rows, 1).await.unwrap();
        assert_eq!(stands(&records).await, (42, 0));
        let (budgets, tenant) = (records.budgets(), key(1, 1).tenant);
        let list = budgets.list(&tenant, NOW).await.unwrap();
        assert_eq!(list.len(), 1);
        assert_eq!(list[0].standing.used, MicroUsd(42));
        let next_month = Timestamp(NOW.0 + 40 * 86_400_000);
        let list = budgets.list(&tenant, next_month).await.unwrap();
        assert_eq!(list[0].standing.used, MicroUsd(0));
        assert_eq!(budgets.list(&key(2, 1).tenant, NOW).await.unwrap(), []);
        assert_eq!(budgets.tenants().await.unwrap(), [tenant]);
    })
    .await;
}
