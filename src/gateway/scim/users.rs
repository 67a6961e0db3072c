//! People of the tenant as SCIM users (`/scim/v2/Users`).

use axum::extract::State;
use axum::response::Response;
use serde_json::{Map, Value, json};

use super::resource::{Resource, Whole};
use super::schema::{Schema, USER};
use super::{ListQuery, Scim, Times, complete, location, refused, refused_here, schema};
use crate::gateway::GatewayState;
use crate::gateway::error::ApiError;
use crate::store::records::{
    DirectoryEntry, DirectoryMember, DirectoryPerson, MembersOf, PeopleWanted,
};
use crate::tenancy::{Directory, PersonDraft, members_by};

/// The attributes that are stored together, as JSON.
const PROFILE: [&str; 3] = ["name", "displayName", "emails"];

/// What the directory says of a person, without groups and without what every resource has.
fn plain(person: &DirectoryPerson) -> Map<String, Value> {
    let mut resource = Map::new();
    let mut put = |name: &str, value: Value| resource.insert(name.to_owned(), value);
    put("id", json!(person.user.id.as_str()));
    put("userName", json!(person.entry.user_name));
    put("active", json!(!person.is_disabled));
    if let Some(id) = &person.entry.external_id {
        put("externalId", json!(id));
    }
    if let Ok(Value::Object(profile)) = serde_json::from_str(&person.entry.profile) {
        resource.extend(profile);
    }
    resource
}

fn groups_of(members: &[DirectoryMember], base: &str) -> Value {
    let groups = members.iter().map(|member| {
        json!({
            "value": member.group,
            "$ref": location(base, &schema::GROUP, &member.group),
            "display": member.group_name,
        })
    });
    Value::Array(groups.collect())
}

fn times(person: &DirectoryPerson) -> Times {
    Times {
        created: person.created_at,
        changed: person.changed_at,
    }
}

/// A person as clients read them.
async fn whole(directory: Directory<'_>, person: &DirectoryPerson, base: &str) -> Whole {
    let mut resource = plain(person);
    let id = person.user.id.as_str();
    let members = directory.members(MembersOf::People(id, id)).await?;
    if !members.is_empty() {
        resource.insert("groups".to_owned(), groups_of(&members, base));
    }
    complete(&mut resource, &USER, base, times(person));
    Ok(resource)
}

/// People.
pub(super) struct Users;

impl Resource for Users {
    const SCHEMA: &'static Schema = &USER;

    type Draft = PersonDraft;

    fn draft(read: &Map<String, Value>) -> Result<PersonDraft, ApiError> {
        USER.check_required(read)?;
        let text = |name: &str| read.get(name).and_then(Value::as_str).map(str::to_owned);
        let profile = read
            .iter()
            .filter(|(name, _)| PROFILE.contains(&name.as_str()));
        let profile: Map<String, Value> = profile
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        Ok(PersonDraft {
            entry: DirectoryEntry {
                user_name: text("userName").unwrap_or_default(),
                external_id: text("externalId"),
                profile: Value::Object(profile).to_string(),
            },
            is_active: read.get("active").and_then(Value::as_bool),
        })
    }

    async fn find(directory: Directory<'_>, id: &str, base: &str) -> Whole {
        let person = directory.person(id).await?;
        whole(directory, &person, base).await
    }

    async fn add(directory: Directory<'_>, draft: &PersonDraft, base: &str) -> Whole {
        let person = directory.add_person(draft).await.map_err(refused)?;
        whole(directory, &person, base).await
    }

    async fn replace(directory: Directory<'_>, id: &str, draft: &PersonDraft, base: &str) -> Whole {
        let person = directory.replace_person(id, draft).await.map_err(refused)?;
        whole(directory, &person, base).await
    }

    async fn remove(directory: Directory<'_>, id: &str) -> Result<(), ApiError> {
        directory.remove_person(id).await.map_err(refused_here)
    }
}

pub(super) async fn list(
    State(state): State<GatewayState>,
    scim: Scim,
    query: ListQuery,
) -> Result<Response, ApiError> {
    let directory = state.tenancy.directory(&scim.caller);
    let filter = query.filter.as_ref();
    let exact = |name: &str| filter.and_then(|filter| filter.exact(name));
    let wanted = PeopleWanted {
        id: exact("id"),
        user_name: exact("userName"),
        external_id: exact("externalId"),
        with_removed: false,
    };
    let people = directory.people(wanted).await?;
    let asks_groups = filter.is_some_and(|filter| filter.asks("groups"));
    let all = match (people.first(), people.last()) {
        (Some(first), Some(last)) if asks_groups => {
            let ids = MembersOf::People(first.user.id.as_str(), last.user.id.as_str());
            members_by(directory.members(ids).await?, |it| it.user.clone())
        }
        _ => members_by(Vec::new(), |it| it.user.clone()),
    };
    let fits = |person: &DirectoryPerson| {
        let Some(filter) = filter else { return true };
        let mut resource = plain(person);
        if let Some(members) = all.get(&person.user.id) {
            resource.insert("groups".to_owned(), groups_of(members, &scim.base));
        }
        complete(&mut resource, &USER, &scim.base, times(person));
        filter.fits(&resource)
    };
    let fitting: Vec<DirectoryPerson> = people.into_iter().filter(fits).collect();
    let (total, page) = query.page(fitting);
    let members = match (page.first(), page.last()) {
        (Some(first), Some(last)) if query.shown.has("groups") || query.shown.has("meta") => {
            let ids = MembersOf::People(first.user.id.as_str(), last.user.id.as_str());
            directory.members(ids).await?
        }
        _ => Vec::new(),
    };
    let members = members_by(members, |it| it.user.clone());
    let resources = page.iter().map(|person| {
        let mut resource = plain(person);
        if let Some(members) = members.get(&person.user.id) {
            resource.insert("groups".to_owned(), groups_of(members, &scim.base));
        }
        complete(&mut resource, &USER, &scim.base, times(person));
        query.shown.cut(&mut resource);
        resource
    });
    let resources: Vec<Map<String, Value>> = resources.collect();
    Ok(query.answer(total, &resources))
}
