//! Accounts at OpenID providers, sign-ins that begin there and logout tokens, on each kind of database.

use sepal::domain::{Role, Tenant, TenantId, Timestamp, User, UserId};
use sepal::store::Error;
use sepal::store::records::{
    EndedAt, GroupsChange, Identity, IdentitySignIn, NewUser, NewWebSession, OidcFlow, SecretHash,
};

use super::records::with_records;

const NOW: Timestamp = Timestamp(1_000);

fn user(tenant: &TenantId, number: u128, role: Role) -> NewUser {
    NewUser {
        user: User {
            id: UserId::from_bits(number),
            tenant: tenant.clone(),
            name: format!("p{number}"),
            role,
            installation_admin: false,
        },
        password_hash: None,
        is_local: false,
    }
}

fn sign_in(user: &NewUser, id: &str, subject: &str, role: Option<Role>) -> IdentitySignIn {
    IdentitySignIn {
        sign_in: NewWebSession {
            tenant: user.user.tenant.clone(),
            id: id.to_owned(),
            user: user.user.id.clone(),
            hash: SecretHash::of(id),
            verified: None,
            by_passkey: false,
        },
        identity: Identity {
            issuer: "https://op.test".to_owned(),
            subject: subject.to_owned(),
            sid: Some(format!("session {id}")),
        },
        role,
        groups: GroupsChange::default(),
    }
}

#[tokio::test]
async fn an_account_is_bound_once_and_gives_the_role_of_now() {
    with_records(async |records| {
        let tenant = Tenant {
            id: TenantId::from_bits(1),
            name: "one".into(),
        };
        records.tenants().add(&tenant, NOW).await.unwrap();
        let identities = records.identities();
        let ann = user(&tenant.id, 1, Role::Owner);
        let first = sign_in(&ann, "a", "1", None);
        assert!(identities.add(&ann, &first, NOW).await.unwrap());
        let found = identities.find(&tenant.id, &first.identity).await.unwrap();
        assert_eq!(found.as_ref(), Some(&ann.user.id));
        let has_any = identities.has_any(&tenant.id, &ann.user.id).await;
        assert!(has_any.unwrap());
        // The account of somebody, and the name of somebody: nothing stays of either.
        let ben = user(&tenant.id, 2, Role::Member);
        let taken = identities
            .add(&ben, &sign_in(&ben, "b", "1", None), NOW)
            .await;
        assert!(matches!(taken, Err(Error::Taken(_))), "{taken:?}");
        let mut same = user(&tenant.id, 3, Role::Member);
        same.user.name = "P1".into();
        let taken = identities
            .add(&same, &sign_in(&same, "c", "3", None), NOW)
            .await;
        assert!(matches!(taken, Err(Error::Taken(_))), "{taken:?}");
        assert_eq!(records.users().list(&tenant.id).await.unwrap().len(), 1);

        let role = async |user: &NewUser| {
            let found = records.users().find(&tenant.id, &user.user.id).await;
            found.unwrap().unwrap().user.role
        };
        // The last owner stays one.
        let again = sign_in(&ann, "d", "1", Some(Role::Viewer));
        assert!(identities.sign_in(&again, NOW).await.unwrap());
        assert_eq!(role(&ann).await, Role::Owner);
        let second = sign_in(&ben, "e", "2", None);
        assert!(identities.add(&ben, &second, NOW).await.unwrap());
        let raised = sign_in(&ben, "f", "2", Some(Role::Owner));
        assert!(identities.sign_in(&raised, NOW).await.unwrap());
        let lowered = sign_in(&ann, "g", "1", Some(Role::Viewer));
        assert!(identities.sign_in(&lowered, NOW).await.unwrap());
        assert_eq!(
            (role(&ann).await, role(&ben).await),
            (Role::Viewer, Role::Owner)
        );
        // Another account, and a person who is disabled.
        let stranger = sign_in(&ann, "h", "9", Some(Role::Owner));
        assert!(!identities.sign_in(&stranger, NOW).await.unwrap());
        let users = records.users();
        assert!(users.disable(&tenant.id, &ann.user.id).await.unwrap());
        let disabled = sign_in(&ann, "i", "1", Some(Role::Member));
        assert!(!identities.sign_in(&disabled, NOW).await.unwrap());
        assert_eq!(role(&ann).await, Role::Viewer);
        records.tenants().suspend(&tenant.id, NOW).await.unwrap();
        let late = user(&tenant.id, 4, Role::Member);
        let added = identities
            .add(&late, &sign_in(&late, "j", "4", None), NOW)
            .await;
        assert!(!added.unwrap());
    })
    .await;
}

#[tokio::test]
async fn a_flow_is_taken_once_by_its_own_browser() {
    with_records(async |records| {
        let flows = records.oidc_flows();
        let (state, browser) = (SecretHash::of("state"), SecretHash::of("browser"));
        let flow = OidcFlow {
            state: state.clone(),
            browser: browser.clone(),
            provider: "company".into(),
            return_to: "/rules".into(),
            expires_at: Timestamp(2_000),
            step_up: None,
        };
        flows.add(&flow).await.unwrap();
        let other = SecretHash::of("another");
        for (state, browser, provider, now) in [
            (&other, &browser, "company", NOW),
            (&state, &other, "company", NOW),
            (&state, &browser, "another", NOW),
            (&state, &browser, "company", Timestamp(2_000)),
        ] {
            let taken = flows.take(state, browser, provider, now).await;
            assert_eq!(taken.unwrap(), None);
        }
        let taken = flows.take(&state, &browser, "company", NOW).await;
        assert_eq!(taken.unwrap().as_deref(), Some("/rules"));
        let taken = flows.take(&state, &browser, "company", NOW).await;
        assert_eq!(taken.unwrap(), None);
        flows.add(&flow).await.unwrap();
        flows.remove_old(Timestamp(2_000)).await.unwrap();
        flows.add(&flow).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_logout_ends_the_sign_ins_of_its_session_or_account_once() {
    with_records(async |records| {
        let tenant = Tenant {
            id: TenantId::from_bits(1),
            name: "one".into(),
        };
        records.tenants().add(&tenant, NOW).await.unwrap();
        let ann = user(&tenant.id, 1, Role::Owner);
        let identities = records.identities();
        let first = sign_in(&ann, "a", "1", None);
        identities.add(&ann, &first, NOW).await.unwrap();
        let second = sign_in(&ann, "b", "1", None);
        identities.sign_in(&second, NOW).await.unwrap();
        let flows = records.oidc_flows();
        let ids = async |issuer: &str, subject: Option<&str>, sid: Option<&str>| {
            let ended = EndedAt {
                issuer,
                subject,
                sid,
            };
            let mut found = flows.sign_ins(ended).await.unwrap();
            found.sort_by(|one, two| one.1.cmp(&two.1));
            found
        };
        let op = "https://op.test";
        let (a, b) = (
            (tenant.id.clone(), "a".to_owned()),
            (tenant.id.clone(), "b".to_owned()),
        );
        assert_eq!(ids(op, Some("1"), None).await, [a.clone(), b.clone()]);
        let of_session = ids(op, None, Some("session a")).await;
        assert_eq!(of_session, std::slice::from_ref(&a));
        assert_eq!(ids(op, Some("1"), Some("session b")).await, [b]);
        assert_eq!(ids(op, Some("2"), Some("session b")).await, []);
        assert_eq!(ids("https://other.test", Some("1"), None).await, []);
        assert_eq!(ids(op, None, None).await, []);
        let token = SecretHash::of("token");
        let until = Timestamp(2_000);
        assert!(
            flows
                .log_out(&token, until, std::slice::from_ref(&a))
                .await
                .unwrap()
        );
        assert_eq!(ids(op, None, Some("session a")).await, []);
        let left = ids(op, Some("1"), None).await;
        assert!(!flows.log_out(&token, until, &left).await.unwrap());
        assert_eq!(ids(op, Some("1"), None).await, left);
    })
    .await;
}
