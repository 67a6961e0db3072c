//! Ends the turns of people who may no longer act, wherever that was changed: at this gateway, at another
//! one, or on the command line. Also deletes tenants and people that were given up.

use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::registry::SessionRegistry;
use super::removal;
use crate::agent::mailbox::Message;
use crate::domain::{Caller, CredentialId, Rights, SessionKey, TenantId, UserId};
use crate::store::Error;
use crate::store::clock::now;

/// The pause between two checks.
const EVERY: Duration = Duration::from_secs(1);

/// Checks who may act until the registry stops.
pub(super) async fn heed_standing(inner: Weak<SessionRegistry>) {
    repeat(inner, async |registry| {
        if let Err(error) = end_barred_turns(registry).await {
            tracing::debug!(?error, "Who may still act cannot be read");
        }
    })
    .await;
}

/// Deletes given-up tenants and people until the registry stops. Apart from the check of who may act, which must not
/// wait for the sessions of somebody who had thousands.
pub(super) async fn delete_given_up(inner: Weak<SessionRegistry>) {
    repeat(inner, async |registry| {
        if let Err(error) = delete_all_given_up(registry).await {
            tracing::debug!(?error, "Who is to be deleted cannot be read");
        }
    })
    .await;
}

/// Does some work at intervals until the registry stops, which ends running work too.
async fn repeat(inner: Weak<SessionRegistry>, work: impl AsyncFn(&Arc<SessionRegistry>)) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let Some(stop) = inner.upgrade().map(|registry| registry.stop.clone()) else {
            return;
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        let Some(registry) = inner.upgrade() else {
            return;
        };
        stop.run_until_cancelled(work(&registry)).await;
    }
}

async fn end_barred_turns(registry: &Arc<SessionRegistry>) -> Result<(), Error> {
    for key in registry.records().sessions().of_barred().await? {
        // The session checks first whether its person may act.
        registry.review_one(&key).await;
    }
    // One query drops the turns that have ended, and saves one query for each of their people.
    if let Some(noted) = registry.begun.noted() {
        let active: HashSet<SessionKey> = registry.store.active().await?.into_iter().collect();
        registry.begun.forget_ended(noted, &active);
    }
    for ((tenant, credential), keys) in registry.begun.by_credential() {
        if holds(registry, &tenant, &credential).await? {
            continue;
        }
        for key in keys {
            registry.begun.forget(&key);
            tracing::info!(session.id = %key.session, tenant.id = %tenant,
                "A turn ends, because the key or sign-in that began it has ended");
            end_turn(registry, &key).await;
        }
    }
    Ok(())
}

/// One deletion that fails does not hold up the others.
async fn delete_all_given_up(registry: &Arc<SessionRegistry>) -> Result<(), Error> {
    for tenant in registry.records().tenants().given_up(now()).await? {
        if let Err(error) = delete_tenant(registry, &tenant).await {
            tracing::warn!(tenant.id = %tenant, ?error, "A tenant that was given up is still there");
        }
    }
    for (tenant, user) in registry.records().users().given_up().await? {
        if let Err(error) = delete_person(registry, &tenant, &user).await {
            tracing::warn!(tenant.id = %tenant, user.id = %user, ?error,
                "A person who was given up is still there");
        }
    }
    Ok(())
}

/// Returns true if the API key or sign-in still gives access.
async fn holds(
    registry: &SessionRegistry,
    tenant: &TenantId,
    credential: &CredentialId,
) -> Result<bool, Error> {
    let records = registry.records();
    Ok(match credential {
        CredentialId::SignIn(id) => records.web_sessions().check(tenant, id).await?.is_some(),
        CredentialId::ApiKey(id) => records.api_keys().check(tenant, id, now()).await?.is_some(),
        CredentialId::Local(_) => true,
    })
}

/// Makes a session end its turn, whichever gateway runs it.
async fn end_turn(registry: &Arc<SessionRegistry>, key: &SessionKey) {
    let mailbox = registry.spawn(key, None, registry.live.count(None, 1));
    if mailbox.send(Message::EndTurn).await.is_err() {
        tracing::debug!(session.id = %key.session, "A session left memory before its turn was ended");
    }
}

/// Deletes the sessions of a tenant with their workspaces, then everything else of it. A deletion that fails
/// is tried again at the next check.
async fn delete_tenant(registry: &Arc<SessionRegistry>, tenant: &TenantId) -> Result<(), Error> {
    let mut is_left = false;
    let (sessions, tenants) = (registry.records().sessions(), registry.records().tenants());
    for (key, owner) in sessions.of_tenant(tenant, None).await? {
        // An import of the tenant may have begun since it was listed.
        if !tenants.is_due(tenant, now()).await? {
            return Ok(());
        }
        is_left |= !removal::remove_for_good(registry, &key, &owner).await;
    }
    if is_left {
        return Ok(());
    }
    registry.projection.written().await;
    tenants.purge(tenant, now()).await?;
    registry.deleted.notify_one();
    tracing::info!(tenant.id = %tenant, "A tenant was deleted");
    Ok(())
}

/// Deletes the sessions of a person with their workspaces, then their servers and everything else of theirs. A
/// deletion that fails is tried again at the next check.
async fn delete_person(
    registry: &Arc<SessionRegistry>,
    tenant: &TenantId,
    user: &UserId,
) -> Result<(), Error> {
    let records = registry.records();
    let sessions = records.sessions();
    let mut is_left = false;
    for (key, owner) in sessions.of_tenant(tenant, Some(user)).await? {
        is_left |= !removal::remove_for_good(registry, &key, &owner).await;
    }
    let found_tenant = records.tenants().find(tenant).await?;
    let found_person = records.users().find(tenant, user).await?;
    let (Some(of), Some(person), false) = (found_tenant, found_person, is_left) else {
        return Ok(());
    };
    let caller = Caller {
        user: person.user,
        tenant: of,
        custom_rights: Rights::NONE,
        credential: None,
        grant: None,
    };
    let servers = &registry.factory.parts.servers;
    if let Err(error) = servers.administration(&caller).remove_all_own().await {
        tracing::warn!(user.id = %user, ?error, "The servers of a person who is deleted are still there");
        return Ok(());
    }
    registry.projection.written().await;
    records.users().purge(tenant, user).await?;
    registry.deleted.notify_one();
    tracing::info!(tenant.id = %tenant, user.id = %user, "A person was deleted");
    Ok(())
}
