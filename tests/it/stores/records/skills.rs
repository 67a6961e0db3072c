//! Skills on each kind of database: versions, names, files that two share, and switches.

use sepal::domain::{SkillId, TenantId, Timestamp, UserId};
use sepal::store::records::SkillRow;
use sepal::store::{Error, Records};

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

/// The tenant, two of its persons, a skill of the tenant and one of the first person, with the same files.
async fn kept(records: &Records) -> (TenantId, [UserId; 2], [SkillRow; 2]) {
    let tenant = TenantId::from_bits(1);
    let rows = [row(1, None, "h"), row(2, Some(1), "h")];
    for row in &rows {
        let files = b"files".to_vec();
        let added = records.skills().add(&tenant, row, files, 2).await;
        assert!(added.unwrap());
    }
    (tenant, [1, 2].map(UserId::from_bits), rows)
}

#[tokio::test]
async fn a_persons_and_the_tenants_skills_are_kept_apart() {
    with_records(async |records| {
        let (tenant, [ana, ben], [team, own]) = kept(&records).await;
        let (skills, other) = (records.skills(), TenantId::from_bits(2));
        let again = row(3, Some(1), "h");
        let taken = skills.add(&tenant, &again, Vec::new(), 2).await;
        assert!(matches!(taken, Err(Error::Taken(name)) if name == "pdf"));
        let full = row(4, Some(1), "h");
        assert!(!skills.add(&tenant, &full, Vec::new(), 1).await.unwrap());
        let all = [team.clone(), own.clone()];
        assert_eq!(skills.list(&tenant, &ana).await.unwrap(), all);
        assert_eq!(skills.list(&tenant, &ben).await.unwrap(), all[..1]);
        assert_eq!(skills.list(&other, &ana).await.unwrap(), []);
        let hidden = skills.find(&tenant, &ben, &own.id).await.unwrap();
        assert_eq!(hidden, None);
        assert_eq!(skills.content(&other, "h").await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn a_switch_of_a_person_is_theirs_alone_and_that_of_the_tenant_everybodys() {
    with_records(async |records| {
        let (tenant, [ana, ben], [team, _]) = kept(&records).await;
        let (skills, other) = (records.skills(), TenantId::from_bits(2));
        let offered = async |person| {
            let offered = skills.offered(&tenant, person).await.unwrap();
            offered.into_iter().map(|it| it.is_own).collect::<Vec<_>>()
        };
        for _ in 0..2 {
            let switched = skills.switch(&tenant, &ana, &team.id, false);
            switched.await.unwrap();
        }
        assert_eq!(offered(&ana).await, [true]);
        assert_eq!(offered(&ben).await, [false]);
        let switched = skills.switch(&tenant, &ana, &team.id, true);
        switched.await.unwrap();
        assert_eq!(offered(&ana).await, [false, true]);
        let off = (&team.id, false);
        assert!(!skills.set_enabled(&other, off).await.unwrap());
        assert!(skills.set_enabled(&tenant, off).await.unwrap());
        assert_eq!(offered(&ana).await, [true]);
        assert_eq!(offered(&ben).await, [false; 0]);
    })
    .await;
}

#[tokio::test]
async fn files_are_kept_once_and_go_with_the_last_skill_that_has_them() {
    with_records(async |records| {
        let (tenant, [ana, _], [team, own]) = kept(&records).await;
        let skills = records.skills();
        let next = SkillRow {
            hash: "i".to_owned(),
            ..own.clone()
        };
        let replace = || skills.replace(&tenant, &next, b"others".to_vec(), "h");
        assert!(replace().await.unwrap());
        let late = replace().await.unwrap();
        assert!(!late, "it was version 1");
        let found = skills.find(&tenant, &ana, &own.id).await.unwrap();
        let found = found.unwrap();
        assert_eq!((found.version, found.hash.as_str()), (2, "i"));
        let content = async |hash| skills.content(&tenant, hash).await.unwrap();
        assert_eq!(content("h").await.unwrap(), b"files");
        assert!(skills.remove(&tenant, &team).await.unwrap());
        assert!(!skills.remove(&tenant, &team).await.unwrap());
        assert_eq!(content("h").await, None, "nobody has them");
        assert_eq!(content("i").await.unwrap(), b"others");
    })
    .await;
}
