//! Budgets in each database: however many requests come at once, over however many connections, nothing
//! goes beyond a limit, and all that was held comes back.

use std::sync::Arc;
use std::time::Duration;

use sepal::domain::{
    Budget, BudgetLevel, BudgetPeriod, CommitId, Grant, Iteration, MicroUsd, ModelRequestId, Need,
    Role, Tenant, Timestamp, TurnId, User, UserId,
};
use sepal::session::AssistantBudget;
use sepal::store::Records;
use sepal::store::records::{
    EventPlace, NewUser, Payer, ProjectedRow, RequestRow, ReservationOutcome, UsageRows, UserGroup,
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

/// Makes the tenant and the group whose members spend: everybody's requests are those of user 1.
async fn one_member(records: &Records) -> String {
    let tenant = Tenant {
        id: key(1, 1).tenant,
        name: "acme".into(),
    };
    records.tenants().add(&tenant, NOW).await.unwrap();
    for bits in [1, 2] {
        let user = User {
            id: UserId::from_bits(bits),
            tenant: tenant.id.clone(),
            name: format!("user-{bits}"),
            role: Role::Member,
            installation_admin: false,
        };
        let new = NewUser {
            user,
            password_hash: None,
            is_local: false,
        };
        records.users().add(&new, NOW).await.unwrap();
    }
    for id in ["grp_a", "grp_b"] {
        let group = UserGroup {
            tenant: tenant.id.clone(),
            id: id.to_owned(),
            name: format!("Group {id}"),
            description: String::new(),
            created_at: NOW,
        };
        records.user_groups().add(&group).await.unwrap();
    }
    join(records, "grp_a", 1).await;
    "grp_a".to_owned()
}

async fn join(records: &Records, group: &str, user: u128) {
    let (groups, tenant) = (records.user_groups(), key(1, 1).tenant);
    let user = UserId::from_bits(user);
    groups.add_member(&tenant, group, &user).await.unwrap();
}

/// How the budget that all share stands: what is used and held of it.
async fn stands(records: &Records, level: BudgetLevel) -> (u64, u64) {
    let reader = Payer {
        request: None,
        ..payer(0)
    };
    let budgets = records.budgets();
    let standings = budgets.standings(&reader, &[], NOW).await.unwrap();
    let tenant = standings
        .iter()
        .find(|standing| standing.budget.level == level)
        .unwrap();
    (tenant.used.0, tenant.reserved.0)
}

/// One request: waits for its turn, asks for more in the middle, and is cut where it gets none. Whether
/// it was asked at all.
async fn ask(gateway: Arc<Gateway>, records: Records, level: BudgetLevel, session: u128) -> bool {
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
    let (used, reserved) = stands(&records, level).await;
    assert!(used + reserved <= 1_000_000, "{used} + {reserved}");
    settle(&gateway, session, cost).await;
    true
}

/// 200 requests at once on one dollar, over these connections.
async fn two_hundred_at_once(gateways: Vec<Records>, level: BudgetLevel) {
    let first = gateways[0].clone();
    let subject = if level == BudgetLevel::Tenant {
        String::new()
    } else {
        one_member(&first).await
    };
    let shared = Budget {
        subject,
        ..budget(level, BudgetPeriod::Day, 1_000_000)
    };
    set(&first, &shared).await;
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
        tasks.spawn(ask(writer, records, level, session + 1))
    });
    let asks: Vec<_> = asks.collect();
    let mut answered = 0;
    for ask in asks {
        let ask = tokio::time::timeout(3 * DEADLINE, ask);
        answered += u64::from(ask.await.unwrap().unwrap());
    }
    let (used, reserved) = stands(&first, level).await;
    assert_eq!(reserved, 0, "all of it came back");
    assert!(used <= 1_000_000, "{used}");
    assert!(used >= 950_000, "{used} after {answered} answers");
}

/// S1.12.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_requests_at_once_spend_one_dollar_and_no_more() {
    with_records(async |records| {
        two_hundred_at_once(vec![records], BudgetLevel::Tenant).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_requests_at_once_spend_the_pool_of_a_group_and_no_more() {
    with_records(async |records| {
        two_hundred_at_once(vec![records], BudgetLevel::GroupPooled).await;
    })
    .await;
}

#[tokio::test]
async fn what_is_spent_counts_for_the_groups_of_that_time() {
    with_records(async |records| {
        one_member(&records).await;
        for group in ["grp_a", "grp_b"] {
            for level in [BudgetLevel::GroupPooled, BudgetLevel::GroupEach] {
                let of_group = Budget {
                    subject: group.to_owned(),
                    ..budget(level, BudgetPeriod::Day, 100)
                };
                set(&records, &of_group).await;
            }
        }
        let used = async |user: u128| {
            let reader = Payer {
                request: None,
                owner: UserId::from_bits(user),
                ..payer(0)
            };
            let budgets = records.budgets();
            let standings = budgets.standings(&reader, &[], NOW).await.unwrap();
            let of_group = standings.iter().filter(|it| it.budget.level.is_of_group());
            let of_group = of_group.map(|it| (it.group.clone().unwrap(), it.used.0));
            of_group.collect::<Vec<_>>()
        };
        let gateway = Mutex::new(records.clone());
        assert_eq!(used(2).await, []);
        settle(&gateway, 1, 40).await;
        join(&records, "grp_b", 1).await;
        join(&records, "grp_b", 2).await;
        settle(&gateway, 2, 30).await;
        let named = |group: &str, used: u64| (format!("Group {group}"), used);
        // First what each member has, then what all have together.
        let of_first = [
            named("grp_a", 70),
            named("grp_b", 30),
            named("grp_a", 70),
            named("grp_b", 30),
        ];
        assert_eq!(used(1).await, of_first);
        assert_eq!(used(2).await, [named("grp_b", 0), named("grp_b", 30)]);
        // Every one of them holds.
        let step = reserve(&records, &payer(9), need(31, 40), NOW).await;
        assert!(matches!(step.grant, Grant::Exhausted(_)), "{step:?}");
        let step = reserve(&records, &payer(9), need(20, 40), NOW).await;
        assert_eq!(step.grant, Grant::Given(MicroUsd(30)));
        // Whoever left has none of its budgets, and what they spent stays with the group.
        let (groups, tenant) = (records.user_groups(), key(1, 1).tenant);
        let leaver = UserId::from_bits(1);
        let left = groups.remove_member(&tenant, "grp_b", &leaver).await;
        assert!(left.unwrap());
        settle(&gateway, 3, 5).await;
        assert_eq!(used(1).await, [named("grp_a", 75), named("grp_a", 75)]);
        assert_eq!(used(2).await, [named("grp_b", 0), named("grp_b", 30)]);
        assert!(groups.remove(&tenant, "grp_b").await.unwrap());
        let listed = records.budgets().list(&tenant, NOW).await.unwrap();
        assert_eq!(listed.len(), 2, "{listed:?}");
    })
    .await;
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
    let gateways = || vec![a.store.records(), b.store.records()];
    two_hundred_at_once(gateways(), BudgetLevel::Tenant).await;
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
                Session
                | Person
                | Tenant
                | BudgetLevel::Turn
                | BudgetLevel::Assistant
                | BudgetLevel::GroupEach
                | BudgetLevel::GroupPooled => String::new(),
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
        assert_eq!(stands(&records, BudgetLevel::Tenant).await, (42, 0));
        // The same again, as an incomplete session is completed.
        let used = request_row(1, NOW.0, |row: &mut RequestRow| {
            row.cost = Some(MicroUsd(30));
        });
        let rows = UsageRows {
            requests: vec![used],
            ..UsageRows::default()
        };
        records.usage().add(&key(1, 1), &rows, 1).await.unwrap();
        assert_eq!(stands(&records, BudgetLevel::Tenant).await, (42, 0));
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
