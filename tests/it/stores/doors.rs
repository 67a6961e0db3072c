//! Keys, sign-ins, links and sandboxes: every query that no other test here asks, on each kind of
//! database.

use sepal::domain::{
    ApiKeyId, KeyGrant, Role, SandboxId, Tenant, TenantId, Timestamp, User, UserId,
};
use sepal::store::Records;
use sepal::store::records::{NewApiKey, NewUser, NewWebSession, SandboxRow, SecretHash};

use super::key;
use super::records::{row, with_records};

const NOW: Timestamp = Timestamp(1_000);

/// A tenant with an owner.
async fn owner(records: &Records) -> (TenantId, UserId) {
    let tenant = Tenant {
        id: TenantId::from_bits(1),
        name: "one".into(),
    };
    records.tenants().add(&tenant, NOW).await.unwrap();
    let user = NewUser {
        user: User {
            id: UserId::from_bits(1),
            tenant: tenant.id.clone(),
            name: "ann".into(),
            role: Role::Owner,
            installation_admin: true,
        },
        password_hash: Some("old".into()),
        is_local: false,
    };
    records.users().add(&user, NOW).await.unwrap();
    assert!(records.users().exist().await.unwrap());
    assert_eq!(
        records.tenants().list().await.unwrap(),
        std::slice::from_ref(&tenant)
    );
    let found = records.tenants().find(&tenant.id).await.unwrap();
    assert_eq!(found, Some(tenant.clone()));
    let first = records.users().first_owner(&tenant.id).await.unwrap();
    assert_eq!(first.unwrap().user, user.user);
    (tenant.id, user.user.id)
}

#[tokio::test]
async fn a_key_opens_until_it_is_revoked() {
    with_records(async |records| {
        let (tenant, ann) = owner(&records).await;
        let (keys, id, hash) = (
            records.api_keys(),
            ApiKeyId::from_bits(1),
            SecretHash::of("k"),
        );
        let new = NewApiKey {
            grant: KeyGrant::unlimited(),
            tenant: tenant.clone(),
            id: id.clone(),
            user: ann.clone(),
            name: "test".into(),
            hash: hash.clone(),
            expires_at: None,
        };
        keys.add(&new, NOW).await.unwrap();
        keys.touch(&tenant, &id, Timestamp(2_000)).await.unwrap();
        let opened = keys.open(&hash, NOW).await.unwrap().unwrap();
        assert_eq!(
            (&opened.caller.user.id, opened.used_at),
            (&ann, Timestamp(2_000))
        );
        assert_eq!(keys.check(&tenant, &id, NOW).await.unwrap(), Some(opened));
        assert!(keys.revoke(&tenant, &id, NOW).await.unwrap());
        assert!(!keys.revoke(&tenant, &id, NOW).await.unwrap());
        assert_eq!(keys.open(&hash, NOW).await.unwrap(), None);
        assert_eq!(keys.check(&tenant, &id, NOW).await.unwrap(), None);
        let listed = keys.list(&tenant).await.unwrap();
        assert_eq!(listed.first().unwrap().revoked_at, Some(NOW));
    })
    .await;
}

#[tokio::test]
async fn a_new_password_ends_the_other_sign_ins() {
    with_records(async |records| {
        let (tenant, ann) = owner(&records).await;
        let sessions = records.web_sessions();
        for id in ["kept", "other", "old"] {
            let new = NewWebSession {
                tenant: tenant.clone(),
                id: id.into(),
                user: ann.clone(),
                hash: SecretHash::of(id),
                verified: None,
                by_passkey: false,
            };
            assert!(sessions.add(&new, NOW).await.unwrap());
        }
        for id in ["kept", "other"] {
            sessions.touch(&tenant, id, Timestamp(5_000)).await.unwrap();
        }
        let ended = sessions.end_old(Timestamp(2_000), Timestamp(500)).await;
        assert_eq!(ended.unwrap(), 1);
        let opened = sessions.open(&SecretHash::of("kept")).await.unwrap();
        assert!(opened.is_some());
        assert_eq!(sessions.check(&tenant, "kept").await.unwrap(), opened);
        let users = records.users();
        let set = users.set_password(&tenant, &ann, "new", Some("kept"));
        assert!(set.await.unwrap());
        let left = sessions.of_user(&tenant, &ann).await.unwrap();
        let left: Vec<&str> = left.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(left, ["kept"]);
        sessions.end(&tenant, "kept").await.unwrap();
        assert!(sessions.of_user(&tenant, &ann).await.unwrap().is_empty());
        let kept = users.find(&tenant, &ann).await.unwrap().unwrap();
        assert_eq!(kept.password_hash.as_deref(), Some("new"));
    })
    .await;
}

#[tokio::test]
async fn a_link_opens_once_and_only_for_a_while() {
    with_records(async |records| {
        let (tenant, ann) = owner(&records).await;
        let links = records.links();
        let add = async |name: &str, user: Option<&UserId>| {
            let hash = SecretHash::of(name);
            links
                .add(&hash, &tenant, user, Timestamp(2_000))
                .await
                .unwrap();
            hash
        };
        let (sign_in, setup) = (add("sign in", Some(&ann)).await, add("setup", None).await);
        assert_eq!(links.open(&sign_in, Timestamp(2_000)).await.unwrap(), None);
        let target = links.open(&sign_in, NOW).await.unwrap().unwrap();
        assert_eq!((target.tenant, target.user), (tenant.clone(), ann.clone()));
        assert_eq!(links.open(&sign_in, NOW).await.unwrap(), None);
        assert_eq!(links.open(&setup, NOW).await.unwrap(), None);
        assert!(links.opens_setup(&setup, NOW).await.unwrap());
        links.remove_setup().await.unwrap();
        assert!(!links.opens_setup(&setup, NOW).await.unwrap());
        let late = add("late", Some(&ann)).await;
        links.remove_old(Timestamp(2_000)).await.unwrap();
        assert_eq!(links.open(&late, NOW).await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn a_session_has_one_sandbox_whoever_claims_it() {
    with_records(async |records| {
        let sandboxes = records.sandboxes();
        let claim = |bits| SandboxRow {
            key: key(1, 1),
            sandbox: SandboxId::from_bits(bits),
            engine: "bubblewrap".into(),
        };
        records
            .sessions()
            .project(&[row(1, 1).into(), row(2, 1).into()])
            .await
            .unwrap();
        let (one, two) = tokio::join!(sandboxes.claim(claim(1)), sandboxes.claim(claim(2)));
        let kept = one.unwrap();
        assert_eq!(kept, two.unwrap());
        assert_eq!(sandboxes.of(&key(1, 1)).await.unwrap(), Some(kept.clone()));
        assert_eq!(sandboxes.of(&key(2, 1)).await.unwrap(), None);
        let all = sandboxes.all().await.unwrap();
        let all: Vec<_> = all.into_iter().map(|it| (it.row, it.is_listed)).collect();
        assert_eq!(all, [(kept, true)]);
        assert_eq!(sandboxes.sessions_without().await.unwrap(), [key(1, 2)]);
        sandboxes.forget(&key(1, 1)).await.unwrap();
        assert_eq!(sandboxes.of(&key(1, 1)).await.unwrap(), None);
    })
    .await;
}
