//! Groups of the tenant as SCIM groups (`/scim/v2/Groups`).

use std::collections::BTreeSet;

use axum::extract::State;
use axum::response::Response;
use serde_json::{Map, Value, json};

use super::resource::{Resource, Whole};
use super::schema::{GROUP, Schema, USER};
use super::{ListQuery, Scim, ScimType, Times, complete, invalid, location, refused, refused_here};
use crate::domain::UserId;
use crate::gateway::GatewayState;
use crate::gateway::error::ApiError;
use crate::store::records::{DirectoryGroup, DirectoryMember, MembersOf};
use crate::tenancy::{Directory, GroupDraft, members_by};

/// A group as clients read it.
fn resource(group: &DirectoryGroup, members: &[DirectoryMember], base: &str) -> Map<String, Value> {
    let mut resource = Map::new();
    let mut put = |name: &str, value: Value| resource.insert(name.to_owned(), value);
    put("id", json!(group.group.id));
    put("displayName", json!(group.group.name));
    if let Some(id) = &group.external_id {
        put("externalId", json!(id));
    }
    if !members.is_empty() {
        let members = members.iter().map(|member| {
            json!({
                "value": member.user.as_str(),
                "$ref": location(base, &USER, member.user.as_str()),
            })
        });
        put("members", Value::Array(members.collect()));
    }
    let times = Times {
        created: group.group.created_at,
        changed: group.changed_at,
    };
    complete(&mut resource, &GROUP, base, times);
    resource
}

async fn whole(directory: Directory<'_>, group: &DirectoryGroup, base: &str) -> Whole {
    let id = group.group.id.as_str();
    let members = directory.members(MembersOf::Groups(id, id)).await?;
    Ok(resource(group, &members, base))
}

/// Groups of people.
pub(super) struct Groups;

impl Resource for Groups {
    const SCHEMA: &'static Schema = &GROUP;

    type Draft = GroupDraft;

    fn draft(read: &Map<String, Value>) -> Result<GroupDraft, ApiError> {
        GROUP.check_required(read)?;
        let text = |name: &str| read.get(name).and_then(Value::as_str).map(str::to_owned);
        let members = read.get("members").and_then(Value::as_array);
        let mut ids = BTreeSet::new();
        for member in members.into_iter().flatten() {
            let id = member
                .get("value")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let id = UserId::parse(id).ok_or_else(|| {
                let text = "a member is the `id` of a user; groups in groups are not supported";
                invalid(ScimType::InvalidValue, text)
            })?;
            ids.insert(id);
        }
        Ok(GroupDraft {
            name: text("displayName").unwrap_or_default(),
            external_id: text("externalId"),
            members: ids,
        })
    }

    async fn find(directory: Directory<'_>, id: &str, base: &str) -> Whole {
        let group = directory.group(id).await?;
        whole(directory, &group, base).await
    }

    async fn add(directory: Directory<'_>, draft: &GroupDraft, base: &str) -> Whole {
        let group = directory.add_group(draft).await.map_err(refused)?;
        whole(directory, &group, base).await
    }

    async fn replace(directory: Directory<'_>, id: &str, draft: &GroupDraft, base: &str) -> Whole {
        let group = directory.replace_group(id, draft).await.map_err(refused)?;
        whole(directory, &group, base).await
    }

    async fn remove(directory: Directory<'_>, id: &str) -> Result<(), ApiError> {
        directory.remove_group(id).await.map_err(refused_here)
    }
}

pub(super) async fn list(
    State(state): State<GatewayState>,
    scim: Scim,
    query: ListQuery,
) -> Result<Response, ApiError> {
    let directory = state.tenancy.directory(&scim.caller);
    let filter = query.filter.as_ref();
    let groups = match filter.and_then(|filter| filter.exact("id")) {
        Some(id) => directory.group(id).await.into_iter().collect(),
        None => directory.groups().await?,
    };
    // Members are read where they count.
    let asks_members = filter.is_some_and(|filter| filter.asks("members"));
    let needs_members = |groups: &[DirectoryGroup]| match (groups.first(), groups.last()) {
        (Some(first), Some(last)) => Some((first.group.id.clone(), last.group.id.clone())),
        _ => None,
    };
    let all = match needs_members(&groups).filter(|_| asks_members) {
        Some((first, last)) => directory.members(MembersOf::Groups(&first, &last)).await?,
        None => Vec::new(),
    };
    let all = members_by(all, |it| it.group.clone());
    let of = |group: &DirectoryGroup| all.get(&group.group.id).map_or(&[][..], Vec::as_slice);
    let fits = |group: &DirectoryGroup| {
        filter.is_none_or(|filter| filter.fits(&resource(group, of(group), &scim.base)))
    };
    let fitting: Vec<DirectoryGroup> = groups.into_iter().filter(fits).collect();
    let (total, page) = query.page(fitting);
    let shows_members = query.shown.has("members");
    let members = match needs_members(&page).filter(|_| shows_members) {
        Some((first, last)) => directory.members(MembersOf::Groups(&first, &last)).await?,
        None => Vec::new(),
    };
    let members = members_by(members, |it| it.group.clone());
    let resources = page.iter().map(|group| {
        let of = members.get(&group.group.id);
        let mut resource = resource(group, of.map_or(&[][..], Vec::as_slice), &scim.base);
        if !shows_members
            && let Some(meta) = resource.get_mut("meta").and_then(Value::as_object_mut)
        {
            // The version is one of the whole.
            meta.remove("version");
        }
        query.shown.cut(&mut resource);
        resource
    });
    let resources: Vec<Map<String, Value>> = resources.collect();
    Ok(query.answer(total, &resources))
}
