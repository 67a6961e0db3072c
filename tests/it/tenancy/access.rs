//! Cookies, keys, tickets, and their end.

use std::os::unix::fs::PermissionsExt as _;

use secrecy::ExposeSecret as _;
use sepal::domain::{Code, CredentialId, Role, Timestamp};
use sepal::tenancy::{AuthenticatedCaller, Credential, NewKey, csrf_of, key_prefix};

use super::{DAY, House, MINUTE, NOT_VALID, PASSWORD, refused};

#[tokio::test]
async fn a_sign_in_ends_when_it_is_idle_for_30_days_or_after_90() {
    let (house, ann) = House::of_ann().await;
    for _ in 0..3 {
        house.pass(29 * DAY);
        house.cookie(&ann).await.unwrap();
    }
    house.pass(3 * DAY);
    refused(house.cookie(&ann).await, NOT_VALID);
    let again = house.sign_in("ann", PASSWORD).await.unwrap();
    house.pass(30 * DAY);
    refused(house.cookie(&again).await, NOT_VALID);
}

#[tokio::test]
async fn signing_out_ends_one_sign_in() {
    let (house, ann) = House::of_ann().await;
    let other = house.sign_in("ann", PASSWORD).await.unwrap();
    let entered = house.cookie(&ann).await.unwrap();
    let mut revoked = house.tenancy.revocations();
    house.tenancy.sign_out(&entered).await.unwrap();
    assert!(revoked.try_recv().unwrap().concerns(&entered));
    refused(house.cookie(&ann).await, NOT_VALID);
    assert!(house.cookie(&other).await.is_ok());
}

#[tokio::test]
async fn a_guessed_secret_opens_nothing() {
    let (house, ann) = House::of_ann().await;
    let owner = &ann.entered.caller.user;
    let key = house
        .tenancy
        .administration()
        .create_key(&owner.tenant, &owner.id, "ci")
        .await
        .unwrap();
    let id = ann.entered.credential.clone();
    let CredentialId::SignIn(id) = id else {
        unreachable!("a sign-in")
    };
    // Not by chance, not by the id, and not through another door than one's own.
    for credential in [
        Credential::Cookie("guess".into()),
        Credential::Cookie("".into()),
        Credential::Cookie(id.into()),
        Credential::Cookie(key.secret.clone()),
        Credential::ApiKey(ann.secret.clone()),
        Credential::ApiKey(key_prefix(&key.id).into()),
        Credential::Ticket(ann.secret.clone()),
        Credential::Ticket("guess".into()),
    ] {
        refused(house.tenancy.authenticate(&credential).await, NOT_VALID);
    }
}

#[tokio::test]
async fn a_key_has_the_rights_of_its_user_until_it_is_revoked() {
    let (house, ann) = House::of_ann().await;
    let bob = house.member(&ann, "bob").await;
    let key = house
        .tenancy
        .administration()
        .create_key(&bob.tenant, &bob.id, " ci ")
        .await
        .unwrap();
    assert!(key.secret.expose_secret().starts_with(&key_prefix(&key.id)));
    let entered = house.key(&key.secret).await.unwrap();
    assert_eq!(entered.caller.user, bob);
    let keys = house
        .tenancy
        .administration()
        .keys(&bob.tenant)
        .await
        .unwrap();
    assert_eq!(
        (keys[0].name.as_str(), keys[0].user.clone()),
        ("ci", bob.id.clone())
    );
    assert!(keys[0].last_used_at.is_some() && keys[0].revoked_at.is_none());

    let mut revoked = house.tenancy.revocations();
    house
        .tenancy
        .administration()
        .revoke_key(&bob.tenant, &key.id)
        .await
        .unwrap();
    assert!(revoked.try_recv().unwrap().concerns(&entered));
    refused(house.key(&key.secret).await, NOT_VALID);
    assert!(!house.tenancy.check_still_valid(&entered).await.unwrap());
    let again = house
        .tenancy
        .administration()
        .revoke_key(&bob.tenant, &key.id)
        .await;
    refused(again, "there is no such key");
}

#[tokio::test]
async fn a_disabled_user_is_out_at_once_with_everything_they_have() {
    let (house, ann) = House::of_ann().await;
    let bob = house.member(&ann, "bob").await;
    let signed_in = house.sign_in("bob", PASSWORD).await.unwrap();
    let key = house
        .tenancy
        .administration()
        .create_key(&bob.tenant, &bob.id, "ci")
        .await
        .unwrap();
    let by_cookie = house.cookie(&signed_in).await.unwrap();
    let by_key = house.key(&key.secret).await.unwrap();
    let ticket = house.tenancy.issue_ticket(&by_key);
    let mut revoked = house.tenancy.revocations();
    house
        .tenancy
        .administration()
        .disable_user(&bob.tenant, &bob.id)
        .await
        .unwrap();
    let message = revoked.try_recv().unwrap();
    assert!(message.concerns(&by_cookie) && message.concerns(&by_key));
    assert!(!message.concerns(&ann.entered));
    refused(house.cookie(&signed_in).await, NOT_VALID);
    refused(house.key(&key.secret).await, NOT_VALID);
    refused(house.by_ticket(ticket).await, NOT_VALID);
    for entered in [&by_cookie, &by_key] {
        assert!(!house.tenancy.check_still_valid(entered).await.unwrap());
    }
    // Sockets check because they were told. If a check told them, none of them would ever rest.
    assert!(revoked.is_empty(), "a check told the sockets again");
    house
        .tenancy
        .administration()
        .enable_user(&bob.tenant, &bob.id)
        .await
        .unwrap();
    refused(house.cookie(&signed_in).await, NOT_VALID);
    assert!(house.key(&key.secret).await.is_ok());
}

#[tokio::test]
async fn what_a_command_beside_revokes_is_noticed_at_the_next_check() {
    let (house, ann) = House::of_ann().await;
    let bob = house.member(&ann, "bob").await;
    let signed_in = house.sign_in("bob", PASSWORD).await.unwrap();
    let entered = house.cookie(&signed_in).await.unwrap();
    assert!(house.tenancy.check_still_valid(&entered).await.unwrap());
    let mut revoked = house.tenancy.revocations();
    let cli = house.command_line().await;
    cli.administration()
        .disable_user(&bob.tenant, &bob.id)
        .await
        .unwrap();
    // Believed for two seconds, so that a check per command is cheap.
    house.pass(1_999);
    assert!(house.tenancy.check_still_valid(&entered).await.unwrap());
    house.pass(1);
    assert!(!house.tenancy.check_still_valid(&entered).await.unwrap());
    assert!(revoked.try_recv().unwrap().concerns(&entered));
    assert!(!house.tenancy.check_still_valid(&entered).await.unwrap());
    assert!(revoked.is_empty(), "the sockets are told once");
}

#[tokio::test]
async fn new_rights_count_from_the_next_command() {
    let (house, ann) = House::of_ann().await;
    let bob = house.member(&ann, "bob").await;
    let signed_in = house.sign_in("bob", PASSWORD).await.unwrap();
    let entered = house.cookie(&signed_in).await.unwrap();
    let role = async |role| {
        house
            .tenancy
            .administration()
            .set_role(&bob.tenant, &bob.id, role)
            .await
    };
    role(Role::Viewer).await.unwrap();
    assert!(!house.tenancy.check_still_valid(&entered).await.unwrap());
    let fresh = house.tenancy.refresh(&entered).await.unwrap();
    assert_eq!(fresh.caller.user.role, Role::Viewer);
    assert!(house.tenancy.check_still_valid(&fresh).await.unwrap());
    let owner = &ann.entered.caller.user;
    let demoted = house
        .tenancy
        .administration()
        .set_role(&owner.tenant, &owner.id, Role::Admin);
    let refusal = demoted.await.unwrap_err();
    assert_eq!(refusal.code(), Code::NotAllowed);
}

#[tokio::test]
async fn a_ticket_opens_once_within_a_minute() {
    let (house, ann) = House::of_ann().await;
    let entered = house.cookie(&ann).await.unwrap();
    let ticket = || Credential::Ticket(house.tenancy.issue_ticket(&entered));
    let first = ticket();
    let opened: AuthenticatedCaller = house.tenancy.authenticate(&first).await.unwrap();
    assert_eq!(opened, entered);
    refused(house.tenancy.authenticate(&first).await, NOT_VALID);
    let late = ticket();
    house.pass(MINUTE);
    refused(house.tenancy.authenticate(&late).await, NOT_VALID);
    // It ends with the sign-in for which it was made.
    let orphan = ticket();
    house.tenancy.sign_out(&entered).await.unwrap();
    refused(house.tenancy.authenticate(&orphan).await, NOT_VALID);
}

#[tokio::test]
async fn a_page_needs_the_token_of_its_own_sign_in() {
    let (house, ann) = House::of_ann().await;
    let other = house.sign_in("ann", PASSWORD).await.unwrap();
    assert_eq!(csrf_of(&ann.secret), ann.csrf);
    house.tenancy.check_csrf(&ann.secret, &ann.csrf).unwrap();
    for token in [other.csrf.as_str(), "", ann.secret.expose_secret()] {
        let refusal = house.tenancy.check_csrf(&ann.secret, token).unwrap_err();
        assert_eq!(refusal.code(), Code::NotAllowed);
    }
}

#[tokio::test]
async fn no_secret_lies_in_the_data_folder() {
    let (house, ann) = House::of_ann().await;
    let owner = &ann.entered.caller.user;
    let key = house
        .tenancy
        .administration()
        .create_key(&owner.tenant, &owner.id, "ci")
        .await
        .unwrap();
    let mut looked_at = 0;
    for entry in std::fs::read_dir(house.dir.path()).unwrap() {
        let path = entry.unwrap().path();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
        let content = std::fs::read(path).unwrap();
        let text = String::from_utf8_lossy(&content);
        for secret in [
            PASSWORD,
            ann.secret.expose_secret(),
            key.secret.expose_secret(),
        ] {
            assert!(!text.contains(secret));
        }
        looked_at += content.len();
    }
    assert!(looked_at > 10_000);
    let shown = format!(
        "{:?} {:?}",
        ann.entered,
        house.tenancy.administration().keys(&owner.tenant).await
    );
    assert!(!shown.contains(ann.secret.expose_secret()));
    assert!(!shown.contains(key.secret.expose_secret()));
}

#[tokio::test]
async fn a_key_ends_when_it_expires() {
    let (house, ann) = House::of_ann().await;
    let caller = &ann.entered.caller;
    let people = house.tenancy.people(caller);
    let until = Timestamp(house.tenancy.now().0 + DAY);
    let key = people
        .add_key(NewKey {
            expires_at: Some(until),
            ..NewKey::unlimited("ci")
        })
        .await
        .unwrap();
    house.pass(DAY - MINUTE);
    let entered = house.key(&key.secret).await.unwrap();
    house.pass(2 * MINUTE);
    refused(house.key(&key.secret).await, NOT_VALID);
    refused(house.tenancy.refresh(&entered).await, NOT_VALID);
}
