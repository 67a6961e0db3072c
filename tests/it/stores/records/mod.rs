//! What the records promise beyond what signing in tests.

mod checkpoints;
mod idempotency_keys;
mod mcp_grants;
mod notifications;
mod shared_sessions;
mod skills;
mod texts;
mod users;
mod versions;
mod waiting;

use std::collections::BTreeSet;

use sepal::domain::{Role, SessionId, Tenant, TenantId, Timestamp, User, UserId};
use sepal::store::records::{
    AskedRoles, Cursor, FirstOwner, ListFilter, MAX_TAGS, Marks, MarksChange, NewUser,
    NewWebSession, ProjectedRow, SecretHash, SessionRow, SessionState,
};
use sepal::store::{Error, Records};

use super::{Opened, key};

const NOW: Timestamp = Timestamp(1_000);

pub(super) fn row(session: u128, version: u64) -> SessionRow {
    SessionRow {
        key: key(1, session),
        owner: UserId::from_bits(1),
        title: format!("title {version}"),
        state: SessionState::Waiting,
        waiting: version,
        waiting_since: None,
        batch: None,
        decided_at: None,
        asks: AskedRoles::default(),
        created_at: NOW,
        updated_at: Timestamp(NOW.0 + i64::try_from(session / 2).unwrap()),
        version,
        forked_from: None,
        marks: Marks::default(),
    }
}

/// Runs a test on each kind of database.
pub(super) async fn with_records<F: AsyncFn(Records)>(test: F) {
    let (lite, postgres) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let opened = Opened::on(lite.path()).await;
    test(opened.store.records()).await;
    opened.stop().await;
    let opened = Opened::on_postgres(postgres.path()).await;
    test(opened.store.records()).await;
    opened.stop().await;
}

/// Every future that may read or write contains one of these, and is moved with it.
#[tokio::test]
async fn a_read_and_a_write_are_small_on_whatever_database() {
    with_records(async |records| {
        let (tenant, user) = (TenantId::from_bits(1), UserId::from_bits(1));
        let users = records.users();
        let read = size_of_val(&users.is_barred(&tenant, &user));
        let write = size_of_val(&records.sessions().project(&[]));
        assert!(read <= 1_024, "a read is {read} bytes");
        assert!(write <= 3_072, "a write is {write} bytes");
    })
    .await;
}

#[tokio::test]
async fn a_projected_row_never_goes_back() {
    with_records(async |records| {
        let sessions = records.sessions();
        sessions.project(&[]).await.unwrap();
        sessions
            .project(&[row(1, 2), row(2, 1), row(1, 1)].map(ProjectedRow::from))
            .await
            .unwrap();
        assert_eq!(sessions.find(&key(1, 1)).await.unwrap(), Some(row(1, 2)));
        sessions.project(&[row(1, 3).into()]).await.unwrap();
        let newest = sessions.find(&key(1, 1)).await.unwrap().unwrap();
        assert_eq!(newest.title, "title 3");
        assert_eq!(sessions.find(&key(2, 1)).await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn pages_go_from_new_to_old_without_holes_and_only_over_ones_own() {
    with_records(async |records| {
        let sessions = records.sessions();
        // Two sessions share each moment, so the cursor needs the id too.
        let mut rows: Vec<_> = (1..=7).map(|n| row(n, 1)).collect();
        rows.push(SessionRow {
            owner: UserId::from_bits(2),
            ..row(8, 1)
        });
        rows.push(SessionRow {
            key: key(2, 9),
            ..row(9, 1)
        });
        sessions
            .project(&rows.into_iter().map(ProjectedRow::from).collect::<Vec<_>>())
            .await
            .unwrap();
        let (tenant, owner) = (TenantId::from_bits(1), UserId::from_bits(1));
        let mut seen = Vec::new();
        let mut cursor: Option<Cursor> = None;
        loop {
            let page = sessions
                .list(&tenant, &owner, &ListFilter::default(), cursor.as_ref(), 3)
                .await
                .unwrap();
            seen.extend(page.rows.into_iter().map(|row| row.key.session));
            let Some(next) = page.next else { break };
            cursor = Some(Cursor::parse(&next.to_wire()).unwrap());
        }
        let wanted: Vec<_> = (1..=7).rev().map(SessionId::from_bits).collect();
        assert_eq!(seen, wanted);
        assert!(sessions.delete(&key(1, 7)).await.unwrap());
        assert!(!sessions.delete(&key(1, 7)).await.unwrap());
        assert!(!sessions.delete(&key(1, 9)).await.unwrap());
    })
    .await;
}

fn tags(tags: &[&str]) -> BTreeSet<String> {
    tags.iter().map(|tag| (*tag).to_owned()).collect()
}

/// Marks of that session, which are those that nobody else may change.
async fn mark(records: &Records, session: u128, change: MarksChange) {
    let (key, rows) = (key(1, session), records.sessions());
    let stranger = rows.mark(&key, &UserId::from_bits(2), &change).await;
    assert_eq!(stranger.unwrap(), None);
    let marked = rows.mark(&key, &UserId::from_bits(1), &change).await;
    assert_eq!(rows.find(&key).await.unwrap(), marked.unwrap());
}

/// The sessions of a list, page by page.
async fn listed(records: &Records, filter: ListFilter) -> Vec<SessionId> {
    let (tenant, owner) = (TenantId::from_bits(1), UserId::from_bits(1));
    let mut seen = Vec::new();
    let mut cursor: Option<Cursor> = None;
    loop {
        let rows = records.sessions();
        let page = rows.list(&tenant, &owner, &filter, cursor.as_ref(), 2);
        let page = page.await.unwrap();
        seen.extend(page.rows.into_iter().map(|row| row.key.session));
        let Some(next) = page.next else { return seen };
        cursor = Some(Cursor::parse(&next.to_wire()).unwrap());
    }
}

fn ids(ids: &[u128]) -> Vec<SessionId> {
    ids.iter().copied().map(SessionId::from_bits).collect()
}

#[tokio::test]
async fn pinned_sessions_come_first_over_pages_and_archived_ones_by_themselves() {
    with_records(async |records| {
        let rows: Vec<_> = (1..=9).map(|n| row(n, 1).into()).collect();
        records.sessions().project(&rows).await.unwrap();
        for session in [2, 5] {
            let is_pinned = Some(true);
            let pin = MarksChange {
                is_pinned,
                ..MarksChange::default()
            };
            mark(&records, session, pin).await;
        }
        let archive = MarksChange {
            is_archived: Some(true),
            ..MarksChange::default()
        };
        mark(&records, 7, archive).await;
        // What the journal says changes nothing of it.
        records
            .sessions()
            .project(&[row(2, 2).into()])
            .await
            .unwrap();
        let all = ListFilter::default();
        assert_eq!(listed(&records, all).await, ids(&[5, 2, 9, 8, 6, 4, 3, 1]));
        let archived = ListFilter {
            is_archived: true,
            ..ListFilter::default()
        };
        assert_eq!(listed(&records, archived).await, ids(&[7]));
    })
    .await;
}

#[tokio::test]
async fn a_tag_is_found_as_a_whole_whatever_signs_it_has() {
    with_records(async |records| {
        let rows: Vec<_> = (1..=4).map(|n| row(n, 1).into()).collect();
        records.sessions().project(&rows).await.unwrap();
        let change = |all: Option<&[&str]>, add: &[&str], remove: &[&str]| MarksChange {
            tags: all.map(tags),
            add_tags: tags(add),
            remove_tags: tags(remove),
            ..MarksChange::default()
        };
        mark(&records, 2, change(Some(&["a", "100%_"]), &[], &[])).await;
        mark(&records, 4, change(None, &["ab", "to do"], &[])).await;
        mark(&records, 4, change(None, &["a"], &["ab"])).await;
        for (tag, expected) in [
            ("a", &[4, 2][..]),
            ("100%_", &[2]),
            ("%", &[]),
            ("to", &[]),
            ("to do", &[4]),
        ] {
            let tagged = ListFilter {
                tag: Some(tag.into()),
                ..ListFilter::default()
            };
            assert_eq!(listed(&records, tagged).await, ids(expected), "{tag}");
        }
        let many: Vec<String> = (0..9).map(|tag| tag.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        mark(&records, 1, change(None, &many, &[])).await;
        let row = records.sessions().find(&key(1, 1)).await.unwrap().unwrap();
        assert_eq!(row.marks.tags.len(), MAX_TAGS);
    })
    .await;
}

#[tokio::test]
async fn a_session_that_was_given_up_is_on_no_list_and_comes_back_in_time_only() {
    with_records(async |records| {
        let sessions = records.sessions();
        sessions
            .project(&[row(1, 1).into(), row(2, 1).into()])
            .await
            .unwrap();
        let (tenant, owner) = (TenantId::from_bits(1), UserId::from_bits(1));
        let listed = async || {
            let all = ListFilter::default();
            let page = sessions.list(&tenant, &owner, &all, None, 9).await;
            page.unwrap().rows.len()
        };
        let (one, later) = (key(1, 1), Timestamp(NOW.0 + 10));
        assert!(
            !sessions
                .give_up(&one, &UserId::from_bits(2), later)
                .await
                .unwrap()
        );
        assert!(sessions.give_up(&one, &owner, later).await.unwrap());
        assert!(
            !sessions
                .give_up(&one, &owner, Timestamp(9_999))
                .await
                .unwrap(),
            "twice"
        );
        assert_eq!(listed().await, 1);
        let given_up = sessions.given_up().await.unwrap();
        assert_eq!((given_up.len(), &given_up[0].key), (1, &one));
        assert_eq!(given_up[0].marks.delete_at, Some(later));
        let pin = MarksChange {
            is_pinned: Some(true),
            ..MarksChange::default()
        };
        assert_eq!(sessions.mark(&one, &owner, &pin).await.unwrap(), None);
        // A turn that still ran changes nothing of it.
        sessions.project(&[row(1, 2).into()]).await.unwrap();
        assert_eq!(listed().await, 1);
        assert!(
            !sessions.take_back(&one, &owner, later).await.unwrap(),
            "too late"
        );
        assert!(
            !sessions
                .take_back(&one, &UserId::from_bits(2), NOW)
                .await
                .unwrap()
        );
        assert!(sessions.take_back(&one, &owner, NOW).await.unwrap());
        assert_eq!(listed().await, 2);
        assert_eq!(sessions.given_up().await.unwrap(), []);
    })
    .await;
}

#[tokio::test]
async fn names_are_taken_in_any_spelling_but_only_in_their_tenant() {
    with_records(async |records| {
        let user = |bits, tenant: &TenantId, name: &str| NewUser {
            user: User {
                id: UserId::from_bits(bits),
                tenant: tenant.clone(),
                name: name.into(),
                role: Role::Member,
                installation_admin: false,
            },
            password_hash: None,
            is_local: false,
        };
        let tenants = [("one", 1), ("two", 2)].map(|(name, bits)| Tenant {
            id: TenantId::from_bits(bits),
            name: name.into(),
        });
        for tenant in &tenants {
            records.tenants().add(tenant, NOW).await.unwrap();
        }
        let again = Tenant {
            id: TenantId::from_bits(3),
            name: "one".into(),
        };
        let refusal = records.tenants().add(&again, NOW).await.unwrap_err();
        assert_eq!(refusal.to_string(), "the name `one` is taken");
        let found = records.tenants().find_or_add(again, NOW).await.unwrap();
        assert_eq!(found, tenants[0]);

        let users = records.users();
        let [one, two] = &tenants;
        users.add(&user(1, &one.id, "Änne"), NOW).await.unwrap();
        users.add(&user(2, &two.id, "Änne"), NOW).await.unwrap();
        let refusal = users.add(&user(3, &one.id, "änne"), NOW).await.unwrap_err();
        assert!(matches!(refusal, Error::Taken(name) if name == "änne"));
        let orphan = users.add(&user(4, &TenantId::from_bits(9), "x"), NOW).await;
        assert!(matches!(orphan, Err(Error::Database(_))));
        let found = users.find_by_name(&two.id, "ÄNNE").await.unwrap().unwrap();
        assert_eq!(found.user.id, UserId::from_bits(2));
    })
    .await;
}

#[tokio::test]
async fn a_sign_in_that_rests_on_an_old_password_is_not_kept() {
    with_records(async |records| {
        let tenant = Tenant {
            id: TenantId::from_bits(1),
            name: "one".into(),
        };
        records.tenants().add(&tenant, NOW).await.unwrap();
        let ann = UserId::from_bits(1);
        let new = NewUser {
            user: User {
                id: ann.clone(),
                tenant: tenant.id.clone(),
                name: "ann".into(),
                role: Role::Member,
                installation_admin: false,
            },
            password_hash: Some("new".into()),
            is_local: false,
        };
        records.users().add(&new, NOW).await.unwrap();
        let keep = async |id: &str, verified: Option<&str>| {
            let new = NewWebSession {
                tenant: tenant.id.clone(),
                id: id.into(),
                user: ann.clone(),
                hash: SecretHash::of(id),
                verified: verified.map(str::to_owned),
                by_passkey: false,
            };
            records.web_sessions().add(&new, NOW).await.unwrap()
        };
        assert!(!keep("a", Some("old")).await);
        assert!(keep("b", Some("new")).await);
        assert!(keep("c", None).await);
        assert!(records.users().disable(&tenant.id, &ann).await.unwrap());
        assert!(!keep("d", Some("new")).await);
        assert!(!keep("e", None).await);
    })
    .await;
}

#[tokio::test]
async fn a_setup_link_made_while_somebody_else_set_up_opens_nothing() {
    with_records(async |records| {
        let tenant = Tenant {
            id: TenantId::from_bits(1),
            name: "one".into(),
        };
        records.tenants().add(&tenant, NOW).await.unwrap();
        let set_up = async |bits: u128, name: &str| {
            let link = SecretHash::of(name);
            let links = records.links();
            let added = links.add(&link, &tenant.id, None, Timestamp(NOW.0 + 1));
            added.await.unwrap();
            let first = FirstOwner {
                user: User {
                    id: UserId::from_bits(bits),
                    tenant: tenant.id.clone(),
                    name: name.into(),
                    role: Role::Owner,
                    installation_admin: true,
                },
                password_hash: "hash".into(),
                link,
            };
            records.users().add_first(&first, NOW).await.unwrap()
        };
        assert!(set_up(1, "ann").await);
        assert!(!set_up(2, "eve").await);
        assert_eq!(records.users().list(&tenant.id).await.unwrap().len(), 1);
    })
    .await;
}

#[tokio::test]
async fn the_last_owner_stays() {
    with_records(async |records| {
        let tenant = Tenant {
            id: TenantId::from_bits(1),
            name: "one".into(),
        };
        records.tenants().add(&tenant, NOW).await.unwrap();
        let users = records.users();
        for (bits, name) in [(1, "ann"), (2, "bob")] {
            let new = NewUser {
                user: User {
                    id: UserId::from_bits(bits),
                    tenant: tenant.id.clone(),
                    name: name.into(),
                    role: Role::Owner,
                    installation_admin: false,
                },
                password_hash: None,
                is_local: false,
            };
            users.add(&new, NOW).await.unwrap();
        }
        let (ann, bob) = (UserId::from_bits(1), UserId::from_bits(2));
        assert!(
            users
                .set_role(&tenant.id, &ann, Role::Member)
                .await
                .unwrap()
        );
        assert!(!users.set_role(&tenant.id, &bob, Role::Admin).await.unwrap());
        assert!(!users.disable(&tenant.id, &bob).await.unwrap());
        assert!(users.set_role(&tenant.id, &bob, Role::Owner).await.unwrap());
        assert!(users.set_role(&tenant.id, &ann, Role::Owner).await.unwrap());
        assert!(users.disable(&tenant.id, &bob).await.unwrap());
        assert!(!users.disable(&tenant.id, &ann).await.unwrap());
        assert!(users.enable(&tenant.id, &bob).await.unwrap());
        assert!(users.disable(&tenant.id, &ann).await.unwrap());
        let nobody = UserId::from_bits(9);
        assert!(!users.disable(&tenant.id, &nobody).await.unwrap());
        assert!(!users.enable(&TenantId::from_bits(2), &ann).await.unwrap());
    })
    .await;
}

#[tokio::test]
async fn two_owners_who_disable_each_other_at_once_do_not_both_succeed() {
    with_records(async |records| {
        let tenant = Tenant {
            id: TenantId::from_bits(1),
            name: "one".into(),
        };
        records.tenants().add(&tenant, NOW).await.unwrap();
        let users = records.users();
        for (bits, name) in [(1, "ann"), (2, "bob")] {
            let new = NewUser {
                user: User {
                    id: UserId::from_bits(bits),
                    tenant: tenant.id.clone(),
                    name: name.into(),
                    role: Role::Owner,
                    installation_admin: false,
                },
                password_hash: None,
                is_local: false,
            };
            users.add(&new, NOW).await.unwrap();
        }
        let (ann, bob) = (UserId::from_bits(1), UserId::from_bits(2));
        for _ in 0..20 {
            let (one, two) = tokio::join!(
                users.disable(&tenant.id, &ann),
                users.disable(&tenant.id, &bob)
            );
            assert_ne!(one.unwrap(), two.unwrap());
            users.enable(&tenant.id, &ann).await.unwrap();
            users.enable(&tenant.id, &bob).await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn a_title_that_a_database_cannot_hold_spoils_no_row() {
    with_records(async |records| {
        let sessions = records.sessions();
        let odd = SessionRow {
            title: "a\0b".into(),
            ..row(1, 1)
        };
        sessions
            .project(&[odd.into(), row(2, 1).into()])
            .await
            .unwrap();
        let kept = sessions.find(&key(1, 1)).await.unwrap().unwrap();
        assert!(kept.title.starts_with('a') && kept.title.ends_with('b'));
        assert_eq!(sessions.find(&key(1, 2)).await.unwrap(), Some(row(2, 1)));
    })
    .await;
}
