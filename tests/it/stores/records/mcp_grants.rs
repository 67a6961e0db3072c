//! The access of people to MCP servers: how a connection ends.

use sepal::domain::{Role, Scope, Tenant, TenantId, User, UserId};
use sepal::store::Records;
use sepal::store::records::{GrantKey, NewUser, SealedTokens};

use super::{NOW, with_records};

/// A grant of a new person at a server of the installation.
async fn grant(records: &Records) -> GrantKey {
    let tenant = Tenant {
        id: TenantId::from_bits(1),
        name: "acme".to_owned(),
    };
    records.tenants().add(&tenant, NOW).await.unwrap();
    let user = User {
        id: UserId::from_bits(1),
        tenant: tenant.id,
        name: "ana".to_owned(),
        role: Role::Member,
        installation_admin: false,
    };
    let key = GrantKey {
        scope: Scope::Installation,
        server: "files".to_owned(),
        tenant: user.tenant.clone(),
        user: user.id.clone(),
    };
    let new = NewUser {
        user,
        password_hash: None,
        is_local: false,
    };
    records.users().add(&new, NOW).await.unwrap();
    key
}

async fn connect(records: &Records, key: &GrantKey, sealed: &str) {
    let tokens = SealedTokens {
        sealed,
        scopes: &["read".to_owned()],
    };
    let grants = records.mcp_grants();
    grants.connect(key, tokens, NOW).await.unwrap();
}

#[tokio::test]
async fn at_no_moment_of_a_disconnection_the_server_is_forgotten() {
    with_records(async |records| {
        let key = grant(&records).await;
        let grants = records.mcp_grants();
        assert_eq!(grants.disconnect(&key).await.unwrap(), None);
        connect(&records, &key, "tokens").await;
        let disconnecting = async {
            for _ in 0..30 {
                let ended = grants.disconnect(&key).await.unwrap();
                assert_eq!(ended.as_deref(), Some("tokens"));
                let row = grants.get(&key).await.unwrap().unwrap();
                assert_eq!((row.sealed, row.scopes.len()), (None, 0));
                assert_eq!(grants.disconnect(&key).await.unwrap(), None);
                connect(&records, &key, "tokens").await;
            }
        };
        let advancing = async {
            loop {
                let is_known = grants.is_for_people(&key.scope, &key.server).await;
                assert!(is_known.unwrap());
            }
        };
        tokio::select! {
            () = disconnecting => {}
            () = looking => {}
        }
    })
    .await;
}

#[tokio::test]
async fn whoever_knows_only_the_connection_before_ends_nothing() {
    with_records(async |records| {
        let key = grant(&records).await;
        let grants = records.mcp_grants();
        connect(&records, &key, "first").await;
        let first = grants.get(&key).await.unwrap().unwrap();
        grants.disconnect(&key).await.unwrap();
        connect(&records, &key, "second").await;
        grants.end(&key, first.version).await.unwrap();
        let second = grants.get(&key).await.unwrap().unwrap();
        assert_eq!(second.sealed.as_deref(), Some("second"));
    })
    .await;
}
