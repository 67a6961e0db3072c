//! Setup, links, passwords.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use secrecy::{ExposeSecret as _, SecretString};
use sepal::domain::{Code, Role};
use sepal::tenancy::{Error, NewInvitation, Visitor};

use super::{BASE, DAY, House, MINUTE, NOT_VALID, PASSWORD, WRONG, at, peer, refused, secret_of};

#[tokio::test]
async fn the_first_start_writes_a_link_that_makes_one_owner() {
    let house = House::new().await;
    let link = house.tenancy.setup().start(BASE).await.unwrap().unwrap();
    let file = house.dir.path().join("setup-link");
    assert_eq!(
        fs::read_to_string(&file).unwrap().trim_end(),
        link.address.expose_secret()
    );
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert!(
        link.address
            .expose_secret()
            .starts_with("http://localhost:3000/welcome#")
    );
    assert!(link.is_setup && house.tenancy.setup().check_needed().await.unwrap());

    let secret = secret_of(&link);
    let signed_in = house.set_up(&secret, "Ann").await.unwrap();
    let caller = &signed_in.entered.caller;
    assert_eq!(
        (caller.user.name.as_str(), caller.user.role),
        ("Ann", Role::Owner)
    );
    assert!(caller.user.installation_admin);
    assert_eq!(caller.tenant.name, "default");
    assert_eq!(house.cookie(&signed_in).await.unwrap(), signed_in.entered);

    assert!(!file.exists() && !house.tenancy.setup().check_needed().await.unwrap());
    refused(house.set_up(&secret, "eve").await, NOT_VALID);
    assert!(house.tenancy.setup().start(BASE).await.unwrap().is_none());
    assert!(house.sign_in("ann", PASSWORD).await.is_ok());
}

#[tokio::test]
async fn a_setup_link_ends_after_30_minutes_and_at_the_next_start() {
    let house = House::new().await;
    let first = secret_of(&house.tenancy.setup().start(BASE).await.unwrap().unwrap());
    let second = secret_of(&house.tenancy.setup().start(BASE).await.unwrap().unwrap());
    refused(house.set_up(&first, "eve").await, NOT_VALID);
    refused(house.set_up(&"guessed".into(), "eve").await, NOT_VALID);
    house.pass(30 * MINUTE);
    refused(house.set_up(&second, "ann").await, NOT_VALID);
    let third = house.tenancy.setup().link(BASE, None, None).await.unwrap();
    // A setup link is no sign-in link, and what is refused for its form does not use it up.
    refused(house.by_link(&third).await, NOT_VALID);
    let (third_secret, short) = (secret_of(&third), "short".into());
    let short = house
        .tenancy
        .setup()
        .complete(&third_secret, "ann", &short)
        .await;
    refused(short, "`password` needs at least 10 characters");
    refused(
        house.set_up(&secret_of(&third), " ").await,
        "`name` is missing",
    );
    assert!(house.set_up(&secret_of(&third), "ann").await.is_ok());
}

#[tokio::test]
async fn of_two_setups_at_once_one_wins() {
    let house = House::new().await;
    let one = secret_of(&house.tenancy.setup().start(BASE).await.unwrap().unwrap());
    let two = secret_of(&house.tenancy.setup().link(BASE, None, None).await.unwrap());
    let answers = tokio::join!(
        house.set_up(&one, "ann"),
        house.set_up(&one, "bob"),
        house.set_up(&two, "eve"),
    );
    let won = [&answers.0, &answers.1, &answers.2];
    assert_eq!(won.iter().filter(|answer| answer.is_ok()).count(), 1);
    let is_refused = |answer: &Result<_, Error>| matches!(answer, Err(Error::NotValid));
    assert_eq!(won.iter().filter(|answer| is_refused(answer)).count(), 2);
    let tenant = house
        .tenancy
        .administration()
        .find_tenant("default")
        .await
        .unwrap();
    assert_eq!(
        house
            .tenancy
            .administration()
            .users(&tenant.id)
            .await
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn a_sign_in_link_opens_once_and_for_whom_it_was_made() {
    let (house, ann) = House::of_ann().await;
    let bob = house.member(&ann, "bob").await;
    let cli = house.command_line().await;
    let link = cli.setup().link(BASE, None, None).await.unwrap();
    assert!(
        link.address
            .expose_secret()
            .starts_with("http://localhost:3000/sign-in#")
    );
    let answers = tokio::join!(house.by_link(&link), house.by_link(&link),);
    let by_link = [answers.0, answers.1]
        .into_iter()
        .find_map(Result::ok)
        .unwrap();
    assert_eq!(by_link.entered.caller.user.name, "ann");
    refused(house.by_link(&link).await, NOT_VALID);

    let for_bob = cli.setup().link(BASE, None, Some("Bob")).await.unwrap();
    refused(house.set_up(&secret_of(&for_bob), "eve").await, NOT_VALID);
    let signed_in = house.by_link(&for_bob).await;
    assert_eq!(signed_in.unwrap().entered.caller.user.id, bob.id);
    let late = cli
        .setup()
        .link(BASE, Some("default"), Some("bob"))
        .await
        .unwrap();
    house.pass(30 * MINUTE);
    refused(house.by_link(&late).await, NOT_VALID);
    refused(
        cli.setup().link(BASE, None, Some("eve")).await,
        "there is no such user",
    );
    refused(
        cli.setup().link(BASE, Some("x"), None).await,
        "there is no such tenant",
    );
}

#[tokio::test]
async fn nobody_is_told_what_was_wrong() {
    let (house, ann) = House::of_ann().await;
    let bob = house.member(&ann, "bob").await;
    house
        .tenancy
        .administration()
        .disable_user(&bob.tenant, &bob.id)
        .await
        .unwrap();
    for (name, password) in [
        ("ann", "wrong horse battery"),
        ("ann", ""),
        ("eve", PASSWORD),
        ("", PASSWORD),
        ("bob", PASSWORD),
    ] {
        let answer = house.sign_in(name, password).await;
        assert_eq!(
            answer.as_ref().err().map(Error::code),
            Some(Code::Unauthorized)
        );
        refused(answer, WRONG);
    }
    let long = "x".repeat(100_000);
    refused(house.sign_in("ann", &long).await, WRONG);
    let elsewhere = house.sign_in_at(Some("nowhere"), "ann", PASSWORD).await;
    refused(elsewhere, WRONG);
    assert!(house.sign_in(" ANN ", PASSWORD).await.is_ok());
}

#[tokio::test]
async fn guessing_is_slowed_down_for_the_guesser_only() {
    let (house, _) = House::of_ann().await;
    for _ in 0..10 {
        refused(house.sign_in("ann", "wrong horse battery").await, WRONG);
    }
    let answer = house
        .sign_in("ann", PASSWORD)
        .await
        .map(|_| ())
        .unwrap_err();
    assert_eq!(answer.code(), Code::TooManyRequests);
    let right = PASSWORD.into();
    let elsewhere = house.tenancy.sign_in(None, "ann", &right, at(2)).await;
    assert!(elsewhere.is_ok());
    house.pass(MINUTE);
    assert!(house.sign_in("ann", PASSWORD).await.is_ok());
}

/// A browser at the address of [`at`], with the cookie of an earlier sign-in.
fn from(device: &SecretString) -> Visitor<'_> {
    Visitor {
        peer: peer(1),
        device: Some(device),
    }
}

#[tokio::test]
async fn strangers_at_the_same_address_lock_nobody_out_of_a_known_browser() {
    let (house, owner) = House::of_ann().await;
    house
        .tenancy
        .set_device_key("a key of 32 letters and digits..".into());
    let right: SecretString = PASSWORD.into();
    let wrong: SecretString = "wrong horse battery".into();
    let ann = &owner.entered.caller.user.id;
    let cookie = house.tenancy.device_cookie(ann, None).unwrap();
    let again = house.tenancy.device_cookie(ann, Some(&cookie)).unwrap();
    assert_eq!(cookie.expose_secret(), again.expose_secret());
    let sign_in = async |password: &SecretString, visitor: Visitor<'_>| {
        let tenancy = &house.tenancy;
        let answer = tenancy.sign_in(None, "Ann", password, visitor).await;
        answer.map(|_| ()).map_err(|error| error.code())
    };
    // Strangers behind the same router use up the attempts on Ann, and all others.
    for _ in 0..10 {
        assert_eq!(sign_in(&wrong, at(1)).await, Err(Code::Unauthorized));
    }
    assert_eq!(sign_in(&right, at(1)).await, Err(Code::TooManyRequests));
    for n in 0..60 {
        let name = format!("n{n}");
        let _ = house.tenancy.sign_in(None, &name, &wrong, at(1)).await;
    }
    let begun = house
        .tenancy
        .begin_sign_in("op", None, "/s/new", at(1))
        .await;
    assert_eq!(begun.err().unwrap().code(), Code::TooManyRequests);
    assert_eq!(sign_in(&right, from(&cookie)).await, Ok(()));
    let begun = house
        .tenancy
        .begin_sign_in("op", None, "/s/new", from(&cookie));
    assert!(begun.await.is_ok());
    // Neither a forged cookie nor that of somebody else helps with Ann's password.
    let bob = house.member(&owner, "bob").await;
    let of_bob = house.tenancy.device_cookie(&bob.id, None).unwrap();
    let forged = format!("{}A", cookie.expose_secret()).into();
    for cookie in [&of_bob, &forged] {
        let refused = sign_in(&right, from(cookie)).await;
        assert_eq!(refused, Err(Code::TooManyRequests));
    }
    // A known browser has its limit too.
    for _ in 0..8 {
        let refused = sign_in(&wrong, from(&cookie)).await;
        assert_eq!(refused, Err(Code::Unauthorized));
    }
    let refused = sign_in(&right, from(&cookie)).await;
    assert_eq!(refused, Err(Code::TooManyRequests));
    house.pass(MINUTE);
    assert_eq!(sign_in(&right, from(&cookie)).await, Ok(()));
}

#[tokio::test]
async fn two_tenants_may_have_the_same_name_for_two_people() {
    let (house, ann) = House::of_ann().await;
    let acme = house
        .tenancy
        .administration()
        .create_tenant("acme")
        .await
        .unwrap();
    refused(
        house.tenancy.administration().create_tenant("acme").await,
        "the name `acme` is taken",
    );
    let other = sepal::tenancy::NewPerson {
        name: "ann".into(),
        role: Role::Admin,
        installation_admin: false,
        password: Some("another long password".into()),
    };
    let other = house
        .tenancy
        .administration()
        .create_user(&acme.id, other)
        .await
        .unwrap();
    let sign_in = async |tenant, password: &str| {
        let signed_in = house.sign_in_at(tenant, "ann", password).await;
        signed_in.map(|signed_in| signed_in.entered.caller.user.id)
    };
    let first = sign_in(Some("default"), PASSWORD).await.unwrap();
    assert_eq!(first, ann.entered.caller.user.id);
    let second = sign_in(Some("acme"), "another long password").await;
    assert_eq!(second.unwrap(), other.id);
    refused(sign_in(Some("acme"), PASSWORD).await, WRONG);
    refused(sign_in(None, "another long password").await, WRONG);
    // Ids of one tenant mean nothing in the other.
    let foreign = house
        .tenancy
        .administration()
        .disable_user(&acme.id, &first)
        .await;
    refused(foreign, "there is no such user");
    let foreign = house
        .tenancy
        .administration()
        .create_key(&acme.id, &first, "x")
        .await;
    refused(foreign.map(|_| ()), "there is no such user");
}

#[tokio::test]
async fn a_new_password_ends_the_other_sign_ins() {
    let (house, ann) = House::of_ann().await;
    let other = house.sign_in("ann", PASSWORD).await.unwrap();
    assert!(house.cookie(&other).await.is_ok());
    let link = house.tenancy.setup().link(BASE, None, None).await.unwrap();
    let mut revoked = house.tenancy.revocations();
    let new = "a new long password".into();
    let change = async |old: Option<&str>| {
        let old = old.map(Into::into);
        house
            .tenancy
            .change_password(&ann.entered, old.as_ref(), &new)
            .await
    };
    refused(change(None).await, WRONG);
    refused(change(Some("not the old one")).await, WRONG);
    change(Some(PASSWORD)).await.unwrap();
    assert!(revoked.try_recv().unwrap().concerns(&other.entered));
    assert!(revoked.try_recv().is_err());
    refused(house.cookie(&other).await, NOT_VALID);
    assert!(house.cookie(&ann).await.is_ok());
    refused(house.by_link(&link).await, NOT_VALID);
    refused(house.sign_in("ann", PASSWORD).await, WRONG);
    assert!(house.sign_in("ann", "a new long password").await.is_ok());
}

#[tokio::test]
async fn without_sign_in_there_is_one_local_owner_whom_the_setup_names() {
    let house = House::new().await;
    let answers = tokio::join!(
        house.tenancy.setup().anonymous_caller(),
        house.tenancy.setup().anonymous_caller()
    );
    let local = answers.0.unwrap();
    assert_eq!(local, answers.1.unwrap());
    assert_eq!(
        (local.caller.user.name.as_str(), local.caller.user.role),
        ("local", Role::Owner)
    );
    assert!(house.tenancy.check_still_valid(&local).await.unwrap());
    assert!(house.tenancy.setup().check_needed().await.unwrap());
    let link = house.tenancy.setup().start(BASE).await.unwrap().unwrap();
    let ann = house.set_up(&secret_of(&link), "ann").await.unwrap();
    assert_eq!(ann.entered.caller.user.id, local.caller.user.id);
    assert_eq!(
        house
            .tenancy
            .setup()
            .anonymous_caller()
            .await
            .unwrap()
            .caller
            .user
            .name,
        "ann"
    );
}

#[tokio::test]
async fn what_ended_is_forgotten() {
    let (house, ann) = House::of_ann().await;
    house.pass(31 * DAY);
    house.tenancy.setup().forget_old().await.unwrap();
    refused(house.cookie(&ann).await, NOT_VALID);
}

#[tokio::test]
async fn an_invitation_ends_when_it_expires_or_its_tenant_is_suspended() {
    let (house, ann) = House::of_ann().await;
    let caller = &ann.entered.caller;
    let invite = async |days| {
        let new = NewInvitation {
            role: Role::Member,
            note: String::new(),
            days,
        };
        house.tenancy.people(caller).invite(new).await
    };
    for days in [0, 31] {
        let refusal = invite(days).await.err().map(|error| error.code());
        assert_eq!(refusal, Some(Code::InvalidArguments));
    }
    let secret = invite(1).await.unwrap().secret;
    house.pass(DAY - MINUTE);
    assert!(house.tenancy.read_invitation(&secret).await.is_ok());
    let administration = house.tenancy.administration();
    administration
        .suspend_tenant(&caller.tenant.id)
        .await
        .unwrap();
    refused(house.tenancy.read_invitation(&secret).await, NOT_VALID);
    let accept = async || {
        let password = PASSWORD.into();
        let coming = house.tenancy.accept_invitation(&secret, "bob", &password);
        coming.await
    };
    refused(accept().await, NOT_VALID);
    administration
        .resume_tenant(&caller.tenant.id)
        .await
        .unwrap();
    house.pass(2 * MINUTE);
    refused(accept().await, NOT_VALID);
}
