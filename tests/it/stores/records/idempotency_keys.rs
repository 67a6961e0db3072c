//! Requests with a key that are interrupted, on each kind of database.

use futures::future::LocalBoxFuture;
use sepal::domain::{Scope, TenantId, Timestamp, UserId};
use sepal::store::audit::acting::{self, Door};
use sepal::store::records::{KeyOutcome, KeyedRequest, Records, SecretRow};
use sepal::store::{Error, Sealer};

use super::with_records;

fn request(key: &str, runner: &str) -> KeyedRequest {
    KeyedRequest {
        tenant: TenantId::from_bits(1),
        owner: UserId::from_bits(7),
        key: key.to_owned(),
        fingerprint: "of the request".to_owned(),
        runner: runner.to_owned(),
    }
}

/// Runs `work` as a part of a request with a key.
fn carried_out<'w, T: 'w>(
    request: &'w KeyedRequest,
    work: impl Future<Output = T> + 'w,
) -> LocalBoxFuture<'w, T> {
    let work = async {
        acting::set_request(Some(request.clone()));
        work.await
    };
    Box::pin(acting::through(Door::Http, None, work))
}

#[tokio::test]
async fn an_interrupted_request_runs_again_unless_it_has_changed_something() {
    with_records(async |records: Records| {
        let keys = records.idempotency_keys(Sealer::with_key(&"one".into()));
        let begin = async |key: &str, runner: &str, now, until| {
            let request = request(key, runner);
            let begun = keys.begin(&request, Timestamp(now), Timestamp(until));
            Box::pin(begun).await.unwrap()
        };
        let secrets = records.secrets();
        let scope = Scope::Tenant(TenantId::from_bits(1));
        let secret = SecretRow {
            scope: scope.clone(),
            name: "ONE".to_owned(),
            sealed: "hush".to_owned(),
            updated_at: Timestamp(1),
        };
        // Nothing was changed.
        assert_eq!(begin("a", "1", 100, 200).await, KeyOutcome::Begun);
        assert_eq!(begin("a", "2", 200, 300).await, KeyOutcome::Running);
        assert_eq!(begin("a", "2", 201, 300).await, KeyOutcome::Begun);
        // An act is noted with it, and changes as many rows as before.
        let second = request("a", "2");
        carried_out(&second, secrets.put(&secret)).await.unwrap();
        let deleted = carried_out(&second, secrets.delete(&scope, "TWO")).await;
        assert!(!deleted.unwrap(), "there was none");
        assert_eq!(begin("a", "3", 300, 400).await, KeyOutcome::Running);
        Box::pin(keys.extend(&second, Timestamp(500)))
            .await
            .unwrap();
        assert_eq!(begin("a", "3", 500, 600).await, KeyOutcome::Running);
        assert_eq!(begin("a", "3", 501, 600).await, KeyOutcome::Interrupted);
        // One that lost its lease notes nothing for the next.
        assert_eq!(begin("b", "1", 100, 200).await, KeyOutcome::Begun);
        assert_eq!(begin("b", "2", 201, 300).await, KeyOutcome::Begun);
        carried_out(&request("b", "1"), secrets.put(&secret))
            .await
            .unwrap();
        assert_eq!(begin("b", "3", 301, 400).await, KeyOutcome::Begun);
        // Changes elsewhere are noted before they are made.
        carried_out(&request("b", "3"), keys.note_change())
            .await
            .unwrap();
        assert_eq!(begin("b", "4", 401, 500).await, KeyOutcome::Interrupted);
        Box::pin(keys.note_change()).await.unwrap();
        // A failure after a change is not forgotten, one before it is.
        assert_eq!(begin("d", "1", 100, 200).await, KeyOutcome::Begun);
        let failed = request("d", "1");
        assert!(Box::pin(keys.forget_unchanged(&failed)).await.unwrap());
        assert_eq!(begin("d", "1", 100, 200).await, KeyOutcome::Begun);
        carried_out(&failed, secrets.put(&secret)).await.unwrap();
        assert!(!Box::pin(keys.forget_unchanged(&failed)).await.unwrap());
        assert_eq!(begin("d", "2", 150, 200).await, KeyOutcome::Running);
        // What is rolled back is not noted.
        assert_eq!(begin("c", "1", 100, 200).await, KeyOutcome::Begun);
        let changed = async {
            let record = sepal::store::versions::RecordName::sharing(&TenantId::from_bits(1));
            let tenants = records.tenants();
            let tenant = TenantId::from_bits(1);
            let change = Box::pin(tenants.set_allows_links(&tenant, true));
            sepal::store::versions::requiring(vec![(record, 9)], change).await
        };
        let changed = carried_out(&request("c", "1"), changed).await;
        assert!(matches!(changed, Err(Error::Changed)), "{changed:?}");
        assert_eq!(begin("c", "2", 201, 300).await, KeyOutcome::Begun);
    })
    .await;
}
