//! Stores the models and MCP servers that groups name, and reads for whom they are open.

use std::collections::{BTreeMap, HashMap};

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Db, Statement, args};
use super::{tenant_id, user_id};
use sepal_core::domain::{AccessKind, GroupAccess, KnownGroup, TenantId};

/// A model or a server that a group names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedThing {
    pub kind: AccessKind,
    /// A provider, a model as `provider/model`, or a server.
    pub name: String,
}

/// Access to what groups name.
pub struct GroupAccesses<'s> {
    db: &'s Db,
}

impl<'s> GroupAccesses<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// What the groups of a tenant name and who is in them. Groups that neither name anything nor have a rule
    /// are left out.
    pub async fn of_tenant(&self, tenant: &TenantId) -> Result<GroupAccess, Error> {
        Ok(self
            .read(Some(tenant))
            .await?
            .remove(tenant)
            .unwrap_or_default())
    }

    /// The same for every tenant that has such groups.
    pub async fn all(&self) -> Result<HashMap<TenantId, GroupAccess>, Error> {
        self.read(None).await
    }

    /// What a group names, in order.
    pub async fn of_group(&self, tenant: &TenantId, id: &str) -> Result<Vec<NamedThing>, Error> {
        let sql = "SELECT kind, name FROM group_access WHERE tenant = $1 AND group_id = $2 \
                   ORDER BY kind, name";
        let rows: Vec<(String, String)> =
            self.db.fetch_all(sql, args![tenant.as_str(), id]).await?;
        let things = rows.into_iter().map(|(kind, name)| {
            let kind = kind_of(&kind)?;
            Ok(NamedThing { kind, name })
        });
        things.collect()
    }

    /// Lets a group name things, and others no more, as one step.
    pub async fn change(
        &self,
        (tenant, id): (&TenantId, &str),
        given: &[NamedThing],
        taken: &[NamedThing],
    ) -> Result<(), Error> {
        let act = |name, thing: &NamedThing| {
            Act::new(name, tenant, "group", id)
                .detail("kind", thing.kind.as_str())
                .detail("name", thing.name.as_str())
        };
        let values = |thing: &NamedThing| {
            let (kind, name) = (thing.kind.as_str(), thing.name.as_str());
            args![tenant.as_str(), id, kind, name]
        };
        let given = given.iter().map(|thing| {
            let sql = "INSERT INTO group_access (tenant, group_id, kind, name) \
                       SELECT $1, $2, $3, $4 WHERE EXISTS (SELECT 1 FROM user_groups \
                       WHERE tenant = $1 AND id = $2) ON CONFLICT DO NOTHING";
            Statement::new(sql, values(thing)).recorded(act(ActName::GroupAccessGiven, thing))
        });
        let taken = taken.iter().map(|thing| {
            let sql = "DELETE FROM group_access WHERE tenant = $1 AND group_id = $2 \
                       AND kind = $3 AND name = $4";
            Statement::new(sql, values(thing)).recorded(act(ActName::GroupAccessTaken, thing))
        });
        self.db.execute_all(given.chain(taken).collect()).await?;
        Ok(())
    }

    async fn read(
        &self,
        tenant: Option<&TenantId>,
    ) -> Result<HashMap<TenantId, GroupAccess>, Error> {
        let whose = || args![tenant.map_or("", TenantId::as_str)];
        let people = "SELECT g.tenant, g.id, g.name, m.user_id FROM user_groups g \
                      LEFT JOIN group_members m ON m.tenant = g.tenant AND m.group_id = g.id \
                      WHERE ($1 = '' OR g.tenant = $1) AND (EXISTS (SELECT 1 FROM group_access a \
                      WHERE a.tenant = g.tenant AND a.group_id = g.id) OR EXISTS (SELECT 1 \
                      FROM rules r WHERE r.tenant = g.tenant AND r.group_id = g.id))";
        let people: Vec<(String, String, String, Option<String>)> =
            self.db.fetch_all(people, whose()).await?;
        if people.is_empty() {
            return Ok(HashMap::new());
        }
        let named = "SELECT tenant, group_id, kind, name FROM group_access \
                     WHERE ($1 = '' OR tenant = $1)";
        let named: Vec<(String, String, String, String)> =
            self.db.fetch_all(named, whose()).await?;
        let mut all: BTreeMap<String, Facts> = BTreeMap::new();
        for (tenant, id, name, user) in people {
            let group = all.entry(tenant).or_default().0.entry(id).or_default();
            group.name = name;
            if let Some(user) = user {
                group.members.insert(user_id(user)?);
            }
        }
        for (tenant, group, kind, name) in named {
            // A group that was made a moment ago is read with the next look.
            if let Some((groups, named)) = all.get_mut(&tenant)
                && groups.contains_key(&group)
            {
                named.push((group, kind_of(&kind)?, name));
            }
        }
        let all = all.into_iter().map(|(tenant, (groups, named))| {
            Ok((tenant_id(tenant)?, GroupAccess::new(groups, named)))
        });
        all.collect()
    }
}

/// The groups of a tenant, and what they name.
type Facts = (
    BTreeMap<String, KnownGroup>,
    Vec<(String, AccessKind, String)>,
);

fn kind_of(text: &str) -> Result<AccessKind, Error> {
    AccessKind::parse(text).ok_or_else(|| Error::corrupt("kind of a named thing", text.to_owned()))
}
