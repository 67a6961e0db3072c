//! Users that are deleted, on each kind of database.

use sepal::domain::{Role, Tenant, TenantId, Timestamp, User, UserId};
use sepal::store::Records;
use sepal::store::records::NewUser;

use super::{NOW, with_records};

fn user(id: u128, role: Role) -> NewUser {
    let user = User {
        id: UserId::from_bits(id),
        tenant: TenantId::from_bits(1),
        name: format!("user-{id}"),
        role,
        installation_admin: false,
    };
    NewUser {
        user,
        password_hash: None,
        is_local: false,
    }
}

#[tokio::test]
async fn a_user_who_is_given_up_does_not_come_back_and_is_purged() {
    with_records(async |records: Records| {
        let tenant = Tenant {
            id: TenantId::from_bits(1),
            name: "acme".into(),
        };
        records.tenants().add(&tenant, NOW).await.unwrap();
        let (owner, member) = (UserId::from_bits(1), UserId::from_bits(2));
        let users = records.users();
        users.add(&user(1, Role::Owner), NOW).await.unwrap();
        users.add(&user(2, Role::Member), NOW).await.unwrap();
        // The last owner stays.
        assert!(!users.give_up(&tenant.id, &owner, NOW).await.unwrap());
        assert!(users.give_up(&tenant.id, &member, NOW).await.unwrap());
        // It may be asked for again.
        let later = Timestamp(NOW.0 + 1);
        assert!(users.give_up(&tenant.id, &member, later).await.unwrap());
        assert!(!users.enable(&tenant.id, &member).await.unwrap());
        let listed = users.list_with_use(&tenant.id, None).await.unwrap();
        assert_eq!(listed.len(), 1);
        let given_up = users.given_up().await.unwrap();
        assert_eq!(given_up, [(tenant.id.clone(), member.clone())]);
        // Nobody is purged who was not given up.
        users.purge(&tenant.id, &owner).await.unwrap();
        for _ in 0..2 {
            users.purge(&tenant.id, &member).await.unwrap();
        }
        let left = users.list(&tenant.id).await.unwrap();
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].user.id, owner);
        assert_eq!(users.given_up().await.unwrap(), []);
        users.add(&user(2, Role::Member), NOW).await.unwrap();
    })
    .await;
}
