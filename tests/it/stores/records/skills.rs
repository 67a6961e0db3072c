//! Skills on each kind of database: versions, names, files that two share, and switches.

use sepal::domain::{SkillId, TenantId, Timestamp, UserId};
use sepal::store::Error;
use sepal::store::records::SkillRow;

use super::with_records;

fn row(id: u128, owner: Option<u128>, hash: &str) -> SkillRow {
    let by = UserId::from_bits(owner.unwrap_or(9));
    SkillRow {
        id: SkillId::from_bits(id),
        owner: owner.map(UserId::from_bits),
        name: "pdf".to_owned(),
        description: "Reads.".to_owned(),
        hash: hash.to_owned(),
        facts: "{}".to_owned(),
        is_enabled: true,
        version: 1,
        created_by: by.clone(),
        created_at: Timestamp(1),
        updated_by: by,
        updated_at: Timestamp(1),
        is_off_for_reader: false,
    }
}

#[tokio::test]
async fn a_persons_and_the_tenants_skills_are_kept_apart_and_files_once() {
    with_records(async |records| {
        let (tenant, other) = (TenantId::from_bits(1), TenantId::from_bits(2));
        let (ana, ben) = (UserId::from_bits(1), UserId::from_bits(2));
        let skills = records.skills();
        let (team, own) = (row(1, None, "h"), row(2, Some(1), "h"));
        for row in [&team, &own] {
            assert!(
                skills
                    .add(&tenant, row, (b"files".to_vec(), 2))
                    .await
                    .unwrap()
            );
        }
        let taken = skills
            .add(&tenant, &row(3, Some(1), "h"), (Vec::new(), 2))
            .await;
        assert!(matches!(taken, Err(Error::Taken(name)) if name == "pdf"));
        let full = row(4, Some(1), "h");
        assert!(!skills.add(&tenant, &full, (Vec::new(), 1)).await.unwrap());
        assert_eq!(
            skills.list(&tenant, &ana).await.unwrap(),
            [team.clone(), own.clone()]
        );
        assert_eq!(
            skills.list(&tenant, &ben).await.unwrap(),
            std::slice::from_ref(&team)
        );
        assert_eq!(skills.list(&other, &ana).await.unwrap(), []);
        assert_eq!(skills.find(&tenant, (&ben, &own.id)).await.unwrap(), None);
        assert_eq!(skills.content(&other, "h").await.unwrap(), None);
        // A switch of a person is theirs alone; that of the tenant is everybody's.
        skills
            .switch(&tenant, (&ana, &team.id), false)
            .await
            .unwrap();
        skills
            .switch(&tenant, (&ana, &team.id), false)
            .await
            .unwrap();
        let offered = async |person| {
            let offered = skills.offered(&tenant, person).await.unwrap();
            offered.into_iter().map(|it| it.is_own).collect::<Vec<_>>()
        };
        assert_eq!(offered(&ana).await, [true]);
        assert_eq!(offered(&ben).await, [false]);
        skills
            .switch(&tenant, (&ana, &team.id), true)
            .await
            .unwrap();
        assert!(
            skills
                .set_enabled(&tenant, (&team.id, false))
                .await
                .unwrap()
        );
        assert!(!skills.set_enabled(&other, (&team.id, false)).await.unwrap());
        assert_eq!(offered(&ana).await, [true]);
        assert_eq!(offered(&ben).await, [false; 0]);
        // Another version; the files of the other skill stay.
        let next = SkillRow {
            hash: "i".to_owned(),
            ..own.clone()
        };
        let files = || (b"others".to_vec(), "h");
        assert!(skills.replace(&tenant, &next, files()).await.unwrap());
        assert!(
            !skills.replace(&tenant, &next, files()).await.unwrap(),
            "it was version 1"
        );
        let kept = skills
            .find(&tenant, (&ana, &own.id))
            .await
            .unwrap()
            .unwrap();
        assert_eq!((kept.version, kept.hash.as_str()), (2, "i"));
        assert_eq!(
            skills.content(&tenant, "h").await.unwrap().unwrap(),
            b"files"
        );
        assert!(skills.remove(&tenant, &team).await.unwrap());
        assert!(!skills.remove(&tenant, &team).await.unwrap());
        assert_eq!(
            skills.content(&tenant, "h").await.unwrap(),
            None,
            "nobody has them"
        );
        assert_eq!(
            skills.content(&tenant, "i").await.unwrap().unwrap(),
            b"others"
        );
    })
    .await;
}
