//! The audit: no act without a record, one chain whoever writes, and nothing of it changes unnoticed, on
//! SQLite and PostgreSQL.

use std::path::Path;

use futures::future::join_all;
use secrecy::SecretString;
use sepal::domain::{Role, Scope, Tenant, TenantId, Timestamp, User, UserId};
use sepal::store::audit::{
    ActName, AuditKey, Break, ChainReport, StoredRecord, Verifier, acting, sign_head,
};
use sepal::store::records::{GrantKey, LeaseName, NewUser, Note, Seal, SecretHash, SecretRow};
use sepal::store::{Error, Records, Store};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, PgConnection, SqliteConnection};

use super::postgres::beside;
use super::{Opened, in_postgres};
use crate::support::postgres::new_database;

const NOW: Timestamp = Timestamp(1_000_000);

fn tenant() -> Tenant {
    Tenant {
        id: TenantId::from_bits(1),
        name: "acme".to_owned(),
    }
}

fn chain() -> Scope {
    Scope::Tenant(tenant().id)
}

fn signer() -> AuditKey {
    AuditKey::parse(&SecretString::from("ab".repeat(32))).unwrap()
}

/// A tenant with a person, who has done a few things.
async fn fill(records: &Records) {
    let tenant = tenant();
    records.tenants().add(&tenant, NOW).await.unwrap();
    let user = User {
        id: UserId::from_bits(7),
        tenant: tenant.id.clone(),
        name: "ann".to_owned(),
        role: Role::Owner,
        installation_admin: false,
    };
    let new = NewUser {
        user,
        password_hash: None,
        is_local: false,
    };
    records.users().add(&new, NOW).await.unwrap();
    for name in ["ONE", "TWO"] {
        let secret = SecretRow {
            scope: chain(),
            name: name.to_owned(),
            sealed: "hush".to_owned(),
            updated_at: NOW,
        };
        records.secrets().put(&secret).await.unwrap();
    }
    assert!(records.secrets().delete(&chain(), "ONE").await.unwrap());
    assert!(!records.secrets().delete(&chain(), "ONE").await.unwrap());
    let ann = UserId::from_bits(7);
    let users = records.users();
    let set = users.set_role(&tenant.id, &ann, Role::Member).await;
    assert!(!set.unwrap(), "the last owner stays one");
}

async fn acts(records: &Records, chain: &Scope) -> Vec<String> {
    let records = records.audit().records(chain, 0).await.unwrap();
    records.into_iter().map(|record| record.act).collect()
}

async fn seal(records: &Records) -> Seal {
    let head = records.audit().head(&chain()).await.unwrap().unwrap();
    let seal = sign_head(&signer(), &chain(), &head, NOW);
    assert!(
        records
            .audit()
            .add_seal(&chain(), &seal, &[])
            .await
            .unwrap()
    );
    seal
}

fn check(records: &[StoredRecord], seals: &[Seal]) -> ChainReport {
    let keys = [signer().public()];
    let mut verifier = Verifier::new(chain().as_str(), &keys);
    for record in records {
        verifier.record(record);
        for seal in seals.iter().filter(|seal| seal.n == record.n) {
            verifier.seal(seal);
        }
    }
    let last = records.iter().map(|record| record.n).max().unwrap_or(0);
    for seal in seals.iter().filter(|seal| seal.n > last) {
        verifier.seal(seal);
    }
    verifier.finish()
}

async fn every_act_has_one_record(opened: &Opened) {
    let records = opened.store.records();
    fill(&records).await;
    let expected = ["user.added", "secret.set", "secret.set", "secret.removed"];
    assert_eq!(acts(&records, &chain()).await, expected);
    assert_eq!(acts(&records, &Scope::Installation).await, ["tenant.added"]);
    let whole = records.audit().records(&chain(), 0).await.unwrap();
    assert!(whole.iter().all(|record| !record.body.contains("hush")));
    let seal = seal(&records).await;
    let report = check(&whole, &[seal]);
    assert_eq!(report.broken, None);
    assert_eq!(report.proven.map(|(n, _)| n), Some(4));
    // What fails as a whole leaves no record.
    let again = records.tenants().add(&tenant(), NOW).await;
    assert!(again.is_err());
    assert_eq!(acts(&records, &Scope::Installation).await, ["tenant.added"]);
    opened.stop().await;
}

#[tokio::test]
async fn no_act_is_without_its_record_in_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    every_act_has_one_record(&Opened::on(dir.path()).await).await;
}

#[tokio::test]
async fn no_act_is_without_its_record_in_postgres() {
    let dir = tempfile::tempdir().unwrap();
    every_act_has_one_record(&Opened::on_postgres(dir.path()).await).await;
}

/// Many gateways, or commands beside a server, which write at once.
async fn appended_at_once(stores: Vec<Store>) {
    fill(&stores[0].records()).await;
    let notes = (0..80).map(|n| {
        let records = stores[n % stores.len()].records();
        async move {
            let subject = n.to_string();
            let note = Note::new(ActName::Refused, &chain(), "request", &subject);
            records.audit().note(note).await.unwrap();
            let secret = SecretRow {
                scope: chain(),
                name: format!("S{n}"),
                sealed: "hush".to_owned(),
                updated_at: NOW,
            };
            records.secrets().put(&secret).await.unwrap();
        }
    });
    join_all(notes).await;
    let records = stores[0].records();
    let seal = seal(&records).await;
    let whole = records.audit().records(&chain(), 0).await.unwrap();
    assert_eq!(whole.len(), 4 + 160);
    assert_eq!(check(&whole, &[seal]).broken, None);
}

#[tokio::test]
async fn all_who_write_at_once_make_one_chain_in_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::on(dir.path()).await;
    appended_at_once(vec![opened.store.clone(); 2]).await;
    opened.stop().await;
}

#[tokio::test]
async fn all_who_write_at_once_make_one_chain_in_postgres() {
    let dir = tempfile::tempdir().unwrap();
    let url = new_database().await;
    let stores = join_all((0..3).map(|_| beside(dir.path(), &url))).await;
    appended_at_once(stores).await;
}

/// Every byte of every record changed, each record dropped, doubled and moved: all are found, and the record
/// that is named is the first one that is wrong.
#[tokio::test]
async fn nothing_of_a_chain_is_changed_unnoticed() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::on(dir.path()).await;
    let records = opened.store.records();
    fill(&records).await;
    let seals = [seal(&records).await];
    let whole = records.audit().records(&chain(), 0).await.unwrap();
    opened.stop().await;
    for (at, record) in whole.iter().enumerate() {
        let broken = |changed: &StoredRecord| {
            let mut other = whole.clone();
            other[at] = changed.clone();
            check(&other, &seals).broken
        };
        for place in 0..record.body.len() {
            for with in ["0", "x", "\"", "}", " "] {
                let mut changed = record.clone();
                changed.body.replace_range(place..=place, with);
                if changed != *record {
                    assert_eq!(
                        broken(&changed),
                        Some(Break::Changed(record.n)),
                        "{changed:?}"
                    );
                }
            }
        }
        for place in 0..record.link.len() {
            let mut changed = record.clone();
            let other = if record.link.as_bytes()[place] == b'0' {
                "1"
            } else {
                "0"
            };
            changed.link.replace_range(place..=place, other);
            assert_eq!(broken(&changed), Some(Break::Changed(record.n)));
        }
        for change in [
            |it: &mut StoredRecord| it.at += 1,
            |it: &mut StoredRecord| it.act.push('x'),
            |it: &mut StoredRecord| it.person.push('x'),
            |it: &mut StoredRecord| it.kind.push('x'),
            |it: &mut StoredRecord| it.subject.push('x'),
        ] {
            let mut changed = record.clone();
            change(&mut changed);
            assert!(matches!(broken(&changed), Some(Break::Columns(n, _)) if n == record.n));
        }
        let mut dropped = whole.clone();
        dropped.remove(at);
        let found = check(&dropped, &seals).broken.unwrap();
        // Without the first, the second is the first one that is there, and nothing says that it may be.
        let named = if record.n == 1 { 2 } else { record.n };
        assert_eq!(found.n(), named, "{found}");
        let mut doubled = whole.clone();
        doubled.insert(at, record.clone());
        assert_eq!(
            check(&doubled, &seals).broken,
            Some(Break::Doubled(record.n))
        );
        if at > 0 {
            let mut moved = whole.clone();
            moved.swap(at - 1, at);
            assert!(check(&moved, &seals).broken.is_some());
            let mut renumbered = whole.clone();
            renumbered[at].n = whole[at - 1].n;
            renumbered[at - 1].n = record.n;
            assert!(check(&renumbered, &seals).broken.is_some());
        }
    }
    for change in [
        |it: &mut Seal| it.n -= 1,
        |it: &mut Seal| it.at += 1,
        |it: &mut Seal| it.link.replace_range(0..1, "x"),
        |it: &mut Seal| it.signature.replace_range(0..1, "-"),
        |it: &mut Seal| {
            it.key = AuditKey::parse(&"cd".repeat(32).into())
                .unwrap()
                .public()
                .to_string();
        },
    ] {
        let mut seal = seals[0].clone();
        change(&mut seal);
        assert!(check(&whole, &[seal]).broken.is_some());
    }
}

/// Whoever rewrites a record and all links after it has to sign again.
#[tokio::test]
async fn a_chain_that_was_written_anew_is_not_the_one_that_was_signed() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let opened = Opened::on(dir.path()).await;
    fill(&opened.store.records()).await;
    let seals = [seal(&opened.store.records()).await];
    opened.stop().await;
    let forged = Opened::on(other.path()).await;
    let records = forged.store.records();
    acting::through(acting::Door::CommandLine, None, fill(&records)).await;
    let whole = records.audit().records(&chain(), 0).await.unwrap();
    forged.stop().await;
    assert_eq!(check(&whole, &[]).broken, None);
    assert_eq!(check(&whole, &seals).broken, Some(Break::Resealed(4)));
}

async fn sqlite(dir: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(dir.join("sepal.db"));
    SqliteConnection::connect_with(&options).await.unwrap()
}

const FORBIDDEN: [&str; 4] = [
    "UPDATE audit SET body = 'x' WHERE n = 1",
    "DELETE FROM audit WHERE n = 1",
    "UPDATE audit_seals SET at = 1",
    "DELETE FROM audit_seals",
];

#[tokio::test]
async fn the_tables_of_the_audit_can_only_be_appended_to() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::on(dir.path()).await;
    fill(&opened.store.records()).await;
    seal(&opened.store.records()).await;
    let mut file = sqlite(dir.path()).await;
    for sql in FORBIDDEN {
        let refused = sqlx::query(sql).execute(&mut file).await.unwrap_err();
        assert!(refused.to_string().contains("append-only"), "{refused}");
    }
    opened.stop().await;
    let (other, url) = (tempfile::tempdir().unwrap(), new_database().await);
    let opened = Opened::with(&in_postgres(other.path(), &url))
        .await
        .unwrap();
    fill(&opened.store.records()).await;
    seal(&opened.store.records()).await;
    let mut server = PgConnection::connect(&url).await.unwrap();
    for sql in FORBIDDEN {
        let refused = sqlx::query(sql).execute(&mut server).await.unwrap_err();
        assert!(refused.to_string().contains("append-only"), "{refused}");
    }
    opened.stop().await;
}

async fn cut_and_deleted(opened: &Opened) {
    let records = opened.store.records();
    fill(&records).await;
    let audit = records.audit();
    let whole = audit.records(&chain(), 0).await.unwrap();
    let last = audit
        .last_before(&chain(), Timestamp(i64::MAX))
        .await
        .unwrap()
        .unwrap();
    audit.record_cut(&chain(), &last).await.unwrap();
    let rest = audit.records(&chain(), 4).await.unwrap();
    assert_eq!(rest[0].act, "chain.cut");
    // Before its signature, the cut proves nothing.
    assert_eq!(check(&rest, &[]).broken, Some(Break::Uncut(5)));
    let seal = seal(&records).await;
    audit.remove_cut(&chain(), &last).await.unwrap();
    assert_eq!(audit.records(&chain(), 0).await.unwrap(), rest);
    assert_eq!(audit.cut(&chain()).await.unwrap(), 4);
    let report = check(&rest, std::slice::from_ref(&seal));
    assert_eq!(
        (report.broken, report.proven.map(|(n, _)| n)),
        (None, Some(5))
    );
    // Not another beginning.
    let other = [&whole[3..], &rest[..]].concat();
    assert_eq!(check(&other, &[seal]).broken, Some(Break::Uncut(4)));
    // With the tenant goes its chain; the installation keeps where it ended.
    let tenants = records.tenants();
    tenants.give_up(&tenant().id, NOW).await.unwrap();
    let end = audit.head(&chain()).await.unwrap().unwrap().link;
    tenants.purge(&tenant().id, NOW).await.unwrap();
    assert_eq!(audit.records(&chain(), 0).await.unwrap(), []);
    let told = audit.records(&Scope::Installation, 0).await.unwrap();
    let told = &told.last().unwrap().body;
    assert!(
        told.contains("tenant.deleted") && told.contains(&end),
        "{told}"
    );
    opened.stop().await;
}

#[tokio::test]
async fn a_chain_is_cut_by_a_signed_record_and_deleted_with_its_tenant_in_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    cut_and_deleted(&Opened::on(dir.path()).await).await;
}

#[tokio::test]
async fn a_chain_is_cut_by_a_signed_record_and_deleted_with_its_tenant_in_postgres() {
    let dir = tempfile::tempdir().unwrap();
    cut_and_deleted(&Opened::on_postgres(dir.path()).await).await;
}

fn lease<'a>(work: &'a str, holder: &'a str) -> LeaseName<'a> {
    LeaseName { work, holder }
}

async fn leased_by_one(opened: &Opened) {
    let records = opened.store.records();
    let audit = records.audit();
    let take = async |holder: &str, now, until| {
        let (now, until) = (Timestamp(now), Timestamp(until));
        audit
            .take_lease(lease("work", holder), now, until)
            .await
            .unwrap()
    };
    let renew = async |holder: &str, until| {
        let renewed = audit.renew_lease(lease("work", holder), Timestamp(until));
        renewed.await.unwrap()
    };
    assert!(take("a", 0, 30).await);
    assert!(!take("b", 29, 59).await && !take("b", 30, 60).await);
    assert!(renew("a", 50).await);
    assert!(!take("b", 31, 61).await, "renewed");
    assert!(!renew("b", 99).await, "not its own");
    assert!(take("b", 51, 81).await, "run out");
    assert!(!renew("a", 99).await, "taken over");
    audit.end_lease(lease("work", "a")).await.unwrap();
    assert!(!take("a", 52, 82).await, "only its holder ends it");
    audit.end_lease(lease("work", "b")).await.unwrap();
    assert!(take("a", 53, 83).await);
    let other = audit.take_lease(lease("other work", "b"), Timestamp(53), Timestamp(83));
    assert!(other.await.unwrap());
    opened.stop().await;
}

#[tokio::test]
async fn work_is_leased_by_one_gateway_until_it_ends_or_the_lease_runs_out_in_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    leased_by_one(&Opened::on(dir.path()).await).await;
}

#[tokio::test]
async fn work_is_leased_by_one_gateway_until_it_ends_or_the_lease_runs_out_in_postgres() {
    let dir = tempfile::tempdir().unwrap();
    leased_by_one(&Opened::on_postgres(dir.path()).await).await;
}

/// A change that is no act appends to no chain, so it does not wait for those that do.
#[tokio::test]
async fn what_is_no_act_does_not_wait_for_a_chain() {
    let (dir, url) = (tempfile::tempdir().unwrap(), new_database().await);
    let opened = Opened::with(&in_postgres(dir.path(), &url)).await.unwrap();
    let records = opened.store.records();
    fill(&records).await;
    let authorizations = records.mcp_authorizations();
    let key = GrantKey {
        scope: chain(),
        server: "post".to_owned(),
        tenant: tenant().id,
        user: UserId::from_bits(7),
    };
    let state = SecretHash::of("state");
    let until = Timestamp(NOW.0 + 1);
    let begun = authorizations.begin(&key, &state, "sealed", NOW, until);
    begun.await.unwrap();
    let mut server = PgConnection::connect(&url).await.unwrap();
    let mut appending = server.begin().await.unwrap();
    let lock = "LOCK TABLE _audit_turn IN EXCLUSIVE MODE";
    sqlx::query(lock).execute(&mut *appending).await.unwrap();
    let take = || authorizations.take(&key.tenant, &key.user, &state, NOW);
    let taken = take().await.unwrap();
    assert_eq!(taken, Some((key.clone(), "sealed".to_owned())));
    assert_eq!(take().await.unwrap(), None, "used up");
    appending.rollback().await.unwrap();
    opened.stop().await;
}

async fn oldest_of_each_anchor(opened: &Opened) {
    let records = opened.store.records();
    fill(&records).await;
    let audit = records.audit();
    assert_eq!(audit.oldest_unanchored().await.unwrap(), []);
    let head = audit.head(&chain()).await.unwrap().unwrap();
    let at = Timestamp(head.at);
    let seal = sign_head(&signer(), &chain(), &head, at);
    let anchors = ["file", "mail"];
    assert!(audit.add_seal(&chain(), &seal, &anchors).await.unwrap());
    let both = anchors.map(|anchor| (anchor.to_owned(), at));
    assert_eq!(audit.oldest_unanchored().await.unwrap(), both);
    // One took it, and the other one failed.
    let due = audit.due_anchors("file", at).await.unwrap();
    audit.anchored(&due[0], Ok(None), at).await.unwrap();
    let due = audit.due_anchors("mail", at).await.unwrap();
    let failed = Err(("away", Timestamp(at.0 + 9)));
    audit.anchored(&due[0], failed, at).await.unwrap();
    assert_eq!(audit.oldest_unanchored().await.unwrap(), both[1..]);
    opened.stop().await;
}

#[tokio::test]
async fn the_oldest_seal_that_an_anchor_lacks_is_known_in_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    oldest_of_each_anchor(&Opened::on(dir.path()).await).await;
}

#[tokio::test]
async fn the_oldest_seal_that_an_anchor_lacks_is_known_in_postgres() {
    let dir = tempfile::tempdir().unwrap();
    oldest_of_each_anchor(&Opened::on_postgres(dir.path()).await).await;
}

/// What people of a tenant do while it is deleted: either it is counted among the tenant's records, or it is
/// refused, and leaves nothing.
async fn deleted_while_people_act(stores: Vec<Store>) {
    let records = stores[0].records();
    fill(&records).await;
    records.tenants().give_up(&tenant().id, NOW).await.unwrap();
    let acts_at_once = (0..60).map(|n| {
        let records = stores[n % stores.len()].records();
        async move {
            let name = format!("S{n}");
            let secret = SecretRow {
                scope: chain(),
                name: name.clone(),
                sealed: "hush".to_owned(),
                updated_at: NOW,
            };
            let note = Note::new(ActName::Refused, &chain(), "request", &name);
            // The deletion comes after some of them, and before others.
            let done = match n {
                20 => {
                    let purged = records.tenants().purge(&tenant().id, NOW).await;
                    purged.map(|()| 0)
                }
                n if n % 2 == 0 => records.secrets().put(&secret).await.map(|()| 1),
                _ => records.audit().note(note).await.map(|()| 1),
            };
            match done {
                Ok(acts) => acts,
                Err(Error::TenantDeleted) => 0,
                Err(error) => panic!("{error:?}"),
            }
        }
    });
    let done: i64 = join_all(acts_at_once).await.into_iter().sum();
    assert_eq!(acts(&records, &chain()).await, [""; 0]);
    assert_eq!(records.secrets().names(&chain()).await.unwrap(), [""; 0]);
    let told = records.audit().records(&Scope::Installation, 0).await;
    let told = told.unwrap().last().unwrap().body.clone();
    assert!(told.contains("tenant.deleted"), "{told}");
    // Those of `fill`, and that the tenant was given up, came first.
    let counted = format!("\"records\":{},", 5 + done);
    let other = format!("\"records\":{}}}", 5 + done);
    assert!(
        told.contains(&counted) || told.contains(&other),
        "{counted} in {told}"
    );
    // Later, too.
    let note = Note::new(ActName::Refused, &chain(), "request", "late");
    let late = records.audit().note(note).await;
    assert!(matches!(late, Err(Error::TenantDeleted)), "{late:?}");
    assert_eq!(acts(&records, &chain()).await, [""; 0]);
}

#[tokio::test]
async fn nothing_of_a_tenant_comes_after_its_end_in_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::on(dir.path()).await;
    deleted_while_people_act(vec![opened.store.clone(); 2]).await;
    opened.stop().await;
}

#[tokio::test]
async fn nothing_of_a_tenant_comes_after_its_end_in_postgres() {
    let dir = tempfile::tempdir().unwrap();
    let url = new_database().await;
    let stores = join_all((0..3).map(|_| beside(dir.path(), &url))).await;
    deleted_while_people_act(stores).await;
}
