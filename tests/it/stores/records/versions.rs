//! Versions of records that are changed as a whole, on each kind of database.

use sepal::domain::{Scope, TenantId};
use sepal::store::Error;
use sepal::store::versions::{RecordName, requiring};

use super::with_records;

#[tokio::test]
async fn the_versions_of_records_come_in_their_order() {
    with_records(async |records| {
        let versions = records.versions();
        assert_eq!(versions.of(&[]).await.unwrap(), [0; 0]);
        let tenants = [1, 2].map(TenantId::from_bits);
        let [one, other] = tenants.each_ref().map(RecordName::budgets);
        let server = RecordName::server(&Scope::Installation, "post");
        for record in [&one, &server, &server] {
            versions.count(record.clone()).await.unwrap();
        }
        let all = [server.clone(), other, one.clone(), server.clone()];
        assert_eq!(versions.of(&all).await.unwrap(), [2, 0, 1, 2]);
        // The version that is required of the changed record counts, whatever else is required.
        for (required, is_refused) in [(1, true), (2, false)] {
            let required = vec![(one.clone(), 1), (server.clone(), required)];
            let change = requiring(required, versions.count(server.clone())).await;
            assert_eq!(
                matches!(change, Err(Error::Changed)),
                is_refused,
                "{change:?}"
            );
        }
        assert_eq!(versions.of(&all[2..]).await.unwrap(), [1, 3]);
    })
    .await;
}
