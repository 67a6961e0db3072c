//! Lets a company's directory (SCIM) make, change and disable the people and groups of its tenant, and links it to
//! people and groups that are here already.
//!
//! All tokens of a tenant open the same directory, so that one can replace another. A directory sees only the
//! people and groups that it made or was linked to. It never takes somebody over by a name: who exists already
//! is linked by somebody here who could make an owner.

use std::collections::{BTreeSet, HashMap};

use secrecy::{ExposeSecret as _, SecretString};

use super::admin::{check_label, check_user_name};
use super::credential::{Revocation, TOUCH_MS};
use super::groups::MOST_GROUPS;
use super::identity::readable;
use super::roles::check_name;
use super::{Administration, Error, Tenancy, secret};
use sepal_core::domain::{
    Caller, CredentialId, Right, Role, Tenant, TenantId, Timestamp, User, UserId,
};
use sepal_store::records::{
    DirectoryEntry, DirectoryGroup, DirectoryMember, DirectoryPerson, MembersOf, NewUser,
    PeopleWanted, ScimToken, UserGroup,
};

/// The most tokens of a tenant.
pub const MOST_SCIM_TOKENS: usize = 5;

/// The longest name or id in a directory, in characters.
const MAX_DIRECTORY_CHARS: usize = 255;

/// The longest text of what else a directory says of a person, in bytes.
const MAX_PROFILE: usize = 16 * 1024;

/// The names that are tried for a new person whose name in the directory cannot be used here.
const MOST_NAMES: usize = 50;

const NOT_ALLOWED: Error = Error::Refused(
    "only an owner of the tenant, or somebody with the rights `people.manage` and `people.manage_admins`, \
     may do this",
);

/// The reason why a directory's request is refused.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// Somebody or something else has the name or id.
    #[error("{0}")]
    Conflict(&'static str),
    /// Any other reason.
    #[error(transparent)]
    Tenancy(#[from] Error),
}

impl From<sepal_store::Error> for DirectoryError {
    fn from(error: sepal_store::Error) -> Self {
        conflict("the name or id is in use")(error)
    }
}

/// A token to make.
#[derive(Debug, Clone)]
pub struct NewScimToken {
    /// The directory that uses it.
    pub name: String,
    /// The role of people whom the directory makes: viewer or member.
    pub role: Role,
    /// True if a person whom the directory deletes is deleted here for good.
    pub deletes: bool,
}

/// A new token; its secret is shown once.
pub struct CreatedScimToken {
    pub token: ScimToken,
    /// `scim_…`; stored nowhere.
    pub secret: SecretString,
}

/// A directory that showed a valid token.
#[derive(Debug, Clone)]
pub struct DirectoryCaller {
    pub tenant: Tenant,
    pub token: ScimToken,
}

/// What a directory wants to be true of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonDraft {
    pub entry: DirectoryEntry,
    /// Whether the person may enter; `None` = as it is, and yes for a new person.
    pub is_active: Option<bool>,
}

/// What a directory wants to be true of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupDraft {
    pub name: String,
    pub external_id: Option<String>,
    pub members: BTreeSet<UserId>,
}

/// The people and groups that a directory sees.
#[derive(Clone, Copy)]
pub struct Directory<'a> {
    tenancy: &'a Tenancy,
    caller: &'a DirectoryCaller,
}

/// The directory of the caller's tenant, for those who administer it here.
#[derive(Clone, Copy)]
pub struct DirectorySettings<'a> {
    tenancy: &'a Tenancy,
    caller: &'a Caller,
}

impl Tenancy {
    /// Opens the directory of a token; `NotValid` if the token opens none, or its tenant is suspended.
    pub async fn open_directory(&self, shown: &SecretString) -> Result<DirectoryCaller, Error> {
        if !secret::is_scim_token(shown.expose_secret()) {
            return Err(Error::NotValid);
        }
        let tokens = self.records().scim_tokens();
        let found = tokens.open(&secret::hash(shown)).await?;
        let (token, tenant) = found.ok_or(Error::NotValid)?;
        let now = self.now();
        let used_at = token.last_used_at.unwrap_or(Timestamp(0));
        if now.since_ms(used_at) >= TOUCH_MS {
            tokens.touch(&tenant.id, &token.id, now).await?;
        }
        Ok(DirectoryCaller { tenant, token })
    }

    /// The people and groups that a directory sees.
    pub fn directory<'a>(&'a self, caller: &'a DirectoryCaller) -> Directory<'a> {
        Directory {
            tenancy: self,
            caller,
        }
    }

    /// Administers the directory of the caller's tenant.
    pub fn directory_settings<'a>(&'a self, caller: &'a Caller) -> DirectorySettings<'a> {
        DirectorySettings {
            tenancy: self,
            caller,
        }
    }
}

impl Directory<'_> {
    fn tenant(&self) -> &TenantId {
        &self.caller.tenant.id
    }

    /// The people that the directory sees, by id: all, or those with an id, a name or the directory's own id.
    pub async fn people(self, wanted: PeopleWanted<'_>) -> Result<Vec<DirectoryPerson>, Error> {
        let wanted = PeopleWanted {
            with_removed: false,
            ..wanted
        };
        let directories = self.tenancy.records().directories();
        Ok(directories.people(self.tenant(), wanted).await?)
    }

    /// One of them.
    pub async fn person(self, id: &str) -> Result<DirectoryPerson, Error> {
        let found = match UserId::parse(id) {
            Some(_) => {
                let wanted = PeopleWanted {
                    id: Some(id),
                    ..PeopleWanted::default()
                };
                self.people(wanted).await?.pop()
            }
            None => None,
        };
        found.ok_or(Error::NotFound("person"))
    }

    /// Makes a person without password, in the role of the token. A person whom the directory deleted earlier
    /// comes back if the directory's own id is the same.
    pub async fn add_person(self, draft: &PersonDraft) -> Result<DirectoryPerson, DirectoryError> {
        let draft = checked(draft)?;
        if let Some(known) = self.find_removed(&draft.entry).await? {
            let id = known.user.id.clone();
            self.put(&known, &draft).await?;
            if draft.is_active.unwrap_or(true) {
                self.enable(&id).await?;
            }
            return Ok(self.person(id.as_str()).await?);
        }
        let user = User {
            id: UserId::from_bits(rand::random()),
            tenant: self.tenant().clone(),
            name: self.name_for(&draft.entry.user_name, None).await?,
            role: self.caller.token.role,
            installation_admin: false,
        };
        let id = user.id.clone();
        let new = NewUser {
            user,
            password_hash: None,
            is_local: false,
        };
        let directories = self.tenancy.records().directories();
        let now = self.tenancy.now();
        directories.add_person(&new, &draft.entry, now).await?;
        if draft.is_active == Some(false) {
            self.disable(&id).await?;
        }
        Ok(self.person(id.as_str()).await?)
    }

    /// Makes what the directory wants true of a person.
    pub async fn replace_person(
        self,
        id: &str,
        draft: &PersonDraft,
    ) -> Result<DirectoryPerson, DirectoryError> {
        let draft = checked(draft)?;
        let known = self.person(id).await?;
        self.put(&known, &draft).await?;
        Ok(self.person(id).await?)
    }

    /// Takes a person out of the directory: they are disabled and the directory sees them no longer, or they are
    /// deleted for good if the token was made for that.
    pub async fn remove_person(self, id: &str) -> Result<(), Error> {
        let known = self.person(id).await?;
        let user = &known.user.id;
        let directories = self.tenancy.records().directories();
        if self.caller.token.deletes {
            let administration = self.tenancy.administration();
            return administration.delete_user(self.tenant(), user).await;
        }
        if !known.is_disabled {
            self.disable(user).await?;
        }
        let now = self.tenancy.now();
        directories.remove_person(self.tenant(), user, now).await?;
        self.tenancy.parts.checked.forget_user(user);
        Ok(())
    }

    /// The groups that the directory sees, by id.
    pub async fn groups(self) -> Result<Vec<DirectoryGroup>, Error> {
        let directories = self.tenancy.records().directories();
        Ok(directories.groups(self.tenant(), None).await?)
    }

    /// One of them.
    pub async fn group(self, id: &str) -> Result<DirectoryGroup, Error> {
        let directories = self.tenancy.records().directories();
        let found = match id {
            "" => None,
            id => directories.groups(self.tenant(), Some(id)).await?.pop(),
        };
        found.ok_or(Error::NotFound("group"))
    }

    /// The memberships of people whom the directory sees in groups that it sees.
    pub async fn members(self, of: MembersOf<'_>) -> Result<Vec<DirectoryMember>, Error> {
        let directories = self.tenancy.records().directories();
        Ok(directories.members(self.tenant(), of).await?)
    }

    /// Makes a group.
    pub async fn add_group(self, draft: &GroupDraft) -> Result<DirectoryGroup, DirectoryError> {
        let groups = self.tenancy.records().user_groups();
        if groups.list(self.tenant(), None).await?.len() >= MOST_GROUPS {
            return Err(Error::Refused("there are 500 groups: delete some first").into());
        }
        let now = self.tenancy.now();
        let new = DirectoryGroup {
            group: UserGroup {
                tenant: self.tenant().clone(),
                id: format!("grp_{:032x}", rand::random::<u128>()),
                name: group_name(&draft.name)?,
                description: String::new(),
                created_at: now,
            },
            external_id: external_id(draft.external_id.as_deref())?,
            is_linked: false,
            changed_at: now,
        };
        self.check_members(&draft.members).await?;
        let directories = self.tenancy.records().directories();
        directories.add_group(&new).await.map_err(conflict(
            "a group here has this name: link it in the settings (Directory), or rename it",
        ))?;
        let id = new.group.id;
        self.change_members(&id, &draft.members, &BTreeSet::new())
            .await?;
        Ok(self.group(&id).await?)
    }

    /// Makes what the directory wants true of a group. Members whom somebody here added stay.
    pub async fn replace_group(
        self,
        id: &str,
        draft: &GroupDraft,
    ) -> Result<DirectoryGroup, DirectoryError> {
        let known = self.group(id).await?;
        let members = self.members(MembersOf::Groups(id, id)).await?;
        let present: BTreeSet<UserId> = members.iter().map(|it| it.user.clone()).collect();
        let joins: BTreeSet<UserId> = draft.members.difference(&present).cloned().collect();
        self.check_members(&joins).await?;
        let changed = DirectoryGroup {
            group: UserGroup {
                name: group_name(&draft.name)?,
                ..known.group.clone()
            },
            external_id: external_id(draft.external_id.as_deref())?,
            changed_at: self.tenancy.now(),
            ..known.clone()
        };
        let is_same =
            changed.group.name == known.group.name && changed.external_id == known.external_id;
        let directories = self.tenancy.records().directories();
        if !is_same && !directories.change_group(&changed).await? {
            return Err(Error::NotFound("group").into());
        }
        let leaves = members
            .into_iter()
            .filter(|it| it.is_by_directory && !draft.members.contains(&it.user));
        let leaves = leaves.map(|it| it.user).collect();
        self.change_members(id, &joins, &leaves).await?;
        Ok(self.group(id).await?)
    }

    /// Deletes a group that the directory made. One that it was linked to stays, without the members whom the
    /// directory put there.
    pub async fn remove_group(self, id: &str) -> Result<(), Error> {
        let known = self.group(id).await?;
        if !known.is_linked {
            let administration = self.tenancy.administration();
            return administration.remove_group(self.tenant(), id).await;
        }
        let directories = self.tenancy.records().directories();
        let was_known = directories.unlink_group(self.tenant(), id, true).await?;
        self.tenancy.parts.checked.forget_tenant(self.tenant());
        self.tenancy.groups_changed(self.tenant());
        was_known.then_some(()).ok_or(Error::NotFound("group"))
    }

    async fn change_members(
        self,
        id: &str,
        joins: &BTreeSet<UserId>,
        leaves: &BTreeSet<UserId>,
    ) -> Result<(), Error> {
        let directories = self.tenancy.records().directories();
        let now = self.tenancy.now();
        directories
            .change_members((self.tenant(), id), joins, leaves, now)
            .await?;
        for user in joins.iter().chain(leaves) {
            self.tenancy.parts.checked.forget_user(user);
        }
        self.tenancy.groups_changed(self.tenant());
        Ok(())
    }

    /// Refuses members whom the directory does not see.
    async fn check_members(self, wanted: &BTreeSet<UserId>) -> Result<(), Error> {
        let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else {
            return Ok(());
        };
        let one = PeopleWanted {
            id: (first == last).then(|| first.as_str()),
            ..PeopleWanted::default()
        };
        let people = self.people(one).await?;
        let known: BTreeSet<&UserId> = people.iter().map(|it| &it.user.id).collect();
        if wanted.iter().all(|user| known.contains(user)) {
            return Ok(());
        }
        Err(Error::Invalid {
            field: "members",
            reason: "names somebody whom the directory does not have here",
        })
    }

    /// The person whom the directory deleted and means again: its own id is the same.
    async fn find_removed(
        self,
        entry: &DirectoryEntry,
    ) -> Result<Option<DirectoryPerson>, DirectoryError> {
        let directories = self.tenancy.records().directories();
        if let Some(id) = &entry.external_id {
            let wanted = PeopleWanted {
                external_id: Some(id),
                with_removed: true,
                ..PeopleWanted::default()
            };
            match directories.people(self.tenant(), wanted).await?.pop() {
                Some(known) if known.is_removed => return Ok(Some(known)),
                Some(_) => {
                    return Err(DirectoryError::Conflict(
                        "a person of the directory has this `externalId`",
                    ));
                }
                None => {}
            }
        }
        let wanted = PeopleWanted {
            user_name: Some(&entry.user_name),
            with_removed: true,
            ..PeopleWanted::default()
        };
        match directories.people(self.tenant(), wanted).await?.pop() {
            None => Ok(None),
            Some(known) if known.is_removed => Err(DirectoryError::Conflict(
                "a person whom the directory deleted earlier has this `userName`, and another `externalId` or \
                 none: delete them here for good, or unlink them (settings, Directory)",
            )),
            Some(_) => Err(DirectoryError::Conflict(
                "a person of the directory has this `userName`",
            )),
        }
    }

    /// Stores what the directory says of a known person.
    async fn put(self, known: &DirectoryPerson, draft: &PersonDraft) -> Result<(), DirectoryError> {
        let id = &known.user.id;
        // A name that still follows the directory goes on to do so; one that was given here stays.
        let follows = known.user.name == name_of(&known.entry.user_name);
        let renamed = name_of(&draft.entry.user_name) != name_of(&known.entry.user_name);
        let name = if follows && renamed {
            Some(
                self.name_for(&draft.entry.user_name, Some(&known.user.name))
                    .await?,
            )
        } else {
            None
        };
        if draft.is_active == Some(false) && !known.is_disabled {
            self.disable(id).await?;
        }
        if draft.entry != known.entry || known.is_removed {
            let directories = self.tenancy.records().directories();
            let is_known = directories
                .change_person(
                    (self.tenant(), id),
                    &draft.entry,
                    name.as_deref(),
                    self.tenancy.now(),
                )
                .await?;
            if !is_known {
                return Err(Error::NotFound("person").into());
            }
            self.tenancy.parts.checked.forget_user(id);
        }
        if draft.is_active == Some(true) && known.is_disabled {
            self.enable(id).await?;
        }
        Ok(())
    }

    async fn disable(self, id: &UserId) -> Result<(), Error> {
        let directories = self.tenancy.records().directories();
        let now = self.tenancy.now();
        if directories.disable(self.tenant(), id, now).await? {
            self.tenancy.revoke(Revocation::User(id.clone()));
            return Ok(());
        }
        let users = self.tenancy.records().users();
        match users.find(self.tenant(), id).await? {
            None => Err(Error::NotFound("person")),
            Some(found) if found.is_disabled => Ok(()),
            Some(_) => Err(Error::Refused("a tenant needs an owner who may enter")),
        }
    }

    /// Lets a person in again whom the directory had disabled. One who was disabled here stays out.
    async fn enable(self, id: &UserId) -> Result<(), Error> {
        let directories = self.tenancy.records().directories();
        let now = self.tenancy.now();
        directories.enable(self.tenant(), id, now).await?;
        Ok(())
    }

    /// The sign-in name of a person with this name in the directory. A name that somebody else here has is a
    /// conflict; one that cannot be used here becomes one like it.
    async fn name_for(&self, user_name: &str, own: Option<&str>) -> Result<String, DirectoryError> {
        let users = self.tenancy.records().users();
        let is_own = |name: &str| own.is_some_and(|own| own.to_lowercase() == name.to_lowercase());
        let wanted = name_of(user_name);
        let is_exact = check_user_name(user_name).is_ok();
        for number in 1..=MOST_NAMES {
            let tried = match number {
                1 => wanted.clone(),
                number => format!("{wanted}{number}"),
            };
            if is_own(&tried) || users.find_by_name(self.tenant(), &tried).await?.is_none() {
                return Ok(tried);
            }
            if is_exact {
                return Err(DirectoryError::Conflict(
                    "somebody here has this name: link them to the directory in the settings (Directory)",
                ));
            }
        }
        Err(DirectoryError::Conflict(
            "too many people here have a name like this",
        ))
    }
}

impl DirectorySettings<'_> {
    fn tenant(&self) -> &TenantId {
        &self.caller.tenant.id
    }

    /// The tokens, newest first.
    pub async fn tokens(self) -> Result<Vec<ScimToken>, Error> {
        self.check()?;
        let administration = self.tenancy.administration();
        administration.scim_tokens(self.tenant()).await
    }

    /// Makes a token. A key makes no tokens.
    pub async fn add_token(self, new: NewScimToken) -> Result<CreatedScimToken, Error> {
        self.check()?;
        if matches!(self.caller.credential, Some(CredentialId::ApiKey(_))) {
            return Err(Error::Refused(
                "a key cannot make tokens: sign in with a browser",
            ));
        }
        let administration = self.tenancy.administration();
        let by = Some(&self.caller.user.id);
        administration.add_scim_token(self.tenant(), by, new).await
    }

    /// Revokes a token. The people and groups of the directory stay.
    pub async fn revoke_token(self, id: &str) -> Result<(), Error> {
        self.check()?;
        let administration = self.tenancy.administration();
        administration.revoke_scim_token(self.tenant(), id).await
    }

    /// The people of the directory, with those whom it deleted.
    pub async fn people(self) -> Result<Vec<DirectoryPerson>, Error> {
        self.check()?;
        let directories = self.tenancy.records().directories();
        let all = PeopleWanted {
            with_removed: true,
            ..PeopleWanted::default()
        };
        Ok(directories.people(self.tenant(), all).await?)
    }

    /// Links the directory to somebody who is here already: from then on it may change and disable them.
    pub async fn link_person(
        self,
        id: &UserId,
        user_name: &str,
        directory_id: Option<&str>,
    ) -> Result<DirectoryPerson, DirectoryError> {
        self.check()?;
        let people = self.tenancy.people(self.caller);
        let found = people.find_below(id, Right::ManagePeople).await?;
        let entry = DirectoryEntry {
            user_name: directory_text("userName", user_name)?,
            external_id: external_id(directory_id)?,
            profile: "{}".to_owned(),
        };
        let directories = self.tenancy.records().directories();
        let whom = (self.tenant(), &found.user.id);
        let linked = directories.link_person(whom, &entry, self.tenancy.now());
        linked.await.map_err(conflict(
            "the person is linked already, or somebody of the directory has this name or id",
        ))?;
        let found = self.people().await?.into_iter();
        let mut found = found.filter(|person| person.user.id == *id);
        Ok(found.next().ok_or(Error::NotFound("person"))?)
    }

    /// Takes somebody out of the directory. They keep their access, leave the groups in which the directory put
    /// them, and it does not see them any more.
    pub async fn unlink_person(self, id: &UserId) -> Result<(), Error> {
        self.check()?;
        let people = self.tenancy.people(self.caller);
        people.find_below(id, Right::ManagePeople).await?;
        let directories = self.tenancy.records().directories();
        let was_linked = directories.unlink_person(self.tenant(), id).await?;
        self.tenancy.parts.checked.forget_user(id);
        self.tenancy.groups_changed(self.tenant());
        was_linked.then_some(()).ok_or(Error::NotFound("link"))
    }

    /// The groups of the directory.
    pub async fn groups(self) -> Result<Vec<DirectoryGroup>, Error> {
        self.check()?;
        let directories = self.tenancy.records().directories();
        Ok(directories.groups(self.tenant(), None).await?)
    }

    /// Links the directory to a group that is here already: from then on it may rename and fill it.
    pub async fn link_group(
        self,
        id: &str,
        directory_id: Option<&str>,
    ) -> Result<DirectoryGroup, DirectoryError> {
        self.check()?;
        let administration = self.tenancy.administration();
        let found = administration.group(self.tenant(), id).await?;
        let linked = DirectoryGroup {
            group: found.group,
            external_id: external_id(directory_id)?,
            is_linked: true,
            changed_at: self.tenancy.now(),
        };
        let directories = self.tenancy.records().directories();
        directories
            .link_group(&linked)
            .await
            .map_err(conflict("the directory has this group already"))?;
        Ok(linked)
    }

    /// Takes a group out of the directory. It stays with its members.
    pub async fn unlink_group(self, id: &str) -> Result<(), Error> {
        self.check()?;
        let directories = self.tenancy.records().directories();
        let was_linked = directories.unlink_group(self.tenant(), id, false).await?;
        was_linked.then_some(()).ok_or(Error::NotFound("link"))
    }

    /// A directory decides who enters and who is in which group, so only those administer it who may give every
    /// right.
    fn check(&self) -> Result<(), Error> {
        let may = self.caller.may(Right::ManagePeople) && self.caller.may(Right::ManageAdmins);
        may.then_some(()).ok_or(NOT_ALLOWED)
    }
}

impl Administration<'_> {
    /// The SCIM tokens of a tenant, newest first.
    pub async fn scim_tokens(self, tenant: &TenantId) -> Result<Vec<ScimToken>, Error> {
        Ok(self.0.records().scim_tokens().list(tenant).await?)
    }

    /// Makes a SCIM token. `by` is the user who makes it; `None` = the operator.
    pub async fn add_scim_token(
        self,
        tenant: &TenantId,
        by: Option<&UserId>,
        new: NewScimToken,
    ) -> Result<CreatedScimToken, Error> {
        if new.role > Role::Member {
            return Err(Error::Invalid {
                field: "role",
                reason: "is `viewer` or `member`: higher roles are given here",
            });
        }
        let tokens = self.0.records().scim_tokens();
        if tokens.list(tenant).await?.len() >= MOST_SCIM_TOKENS {
            return Err(Error::Refused(
                "there are 5 SCIM tokens: revoke one of them first",
            ));
        }
        let secret = secret::scim_token();
        let token = ScimToken {
            tenant: tenant.clone(),
            id: format!("sct_{:032x}", rand::random::<u128>()),
            name: check_label("name", &new.name)?.to_owned(),
            role: new.role,
            deletes: new.deletes,
            created_by: by.cloned(),
            created_at: self.0.now(),
            last_used_at: None,
        };
        tokens.add(&token, &secret::hash(&secret)).await?;
        Ok(CreatedScimToken { token, secret })
    }

    /// Revokes a SCIM token. The people and groups of the directory stay.
    pub async fn revoke_scim_token(self, tenant: &TenantId, id: &str) -> Result<(), Error> {
        let was_known = self.0.records().scim_tokens().revoke(tenant, id).await?;
        was_known.then_some(()).ok_or(Error::NotFound("token"))
    }
}

/// The error of the store, where a name or id that is in use has this meaning.
fn conflict(text: &'static str) -> impl FnOnce(sepal_store::Error) -> DirectoryError {
    move |error| {
        if matches!(error, sepal_store::Error::Taken(_)) {
            DirectoryError::Conflict(text)
        } else {
            DirectoryError::Tenancy(error.into())
        }
    }
}

/// Groups memberships by what `key` gives of them.
pub fn members_by<K: std::hash::Hash + Eq>(
    members: Vec<DirectoryMember>,
    key: impl Fn(&DirectoryMember) -> K,
) -> HashMap<K, Vec<DirectoryMember>> {
    let mut grouped: HashMap<K, Vec<DirectoryMember>> = HashMap::new();
    for member in members {
        grouped.entry(key(&member)).or_default().push(member);
    }
    grouped
}

/// The sign-in name of a person with this name in the directory: the same, or what of it can be a name here.
fn name_of(user_name: &str) -> String {
    if let Ok(name) = check_user_name(user_name) {
        return name.to_owned();
    }
    let name = readable(user_name);
    if name.is_empty() {
        return "person".to_owned();
    }
    name
}

fn checked(draft: &PersonDraft) -> Result<PersonDraft, Error> {
    if draft.entry.profile.len() > MAX_PROFILE {
        return Err(Error::Invalid {
            field: "emails",
            reason: "and names are longer than 16 KiB together",
        });
    }
    Ok(PersonDraft {
        entry: DirectoryEntry {
            user_name: directory_text("userName", &draft.entry.user_name)?,
            external_id: external_id(draft.entry.external_id.as_deref())?,
            profile: draft.entry.profile.clone(),
        },
        is_active: draft.is_active,
    })
}

fn directory_text(field: &'static str, text: &str) -> Result<String, Error> {
    let text = text.trim();
    let reason = if text.is_empty() {
        "is missing"
    } else if text.chars().count() > MAX_DIRECTORY_CHARS {
        "is longer than 255 characters"
    } else if text.chars().any(char::is_control) {
        "holds control characters"
    } else {
        return Ok(text.to_owned());
    };
    Err(Error::Invalid { field, reason })
}

fn external_id(id: Option<&str>) -> Result<Option<String>, Error> {
    let id = id.filter(|id| !id.trim().is_empty());
    id.map(|id| directory_text("externalId", id)).transpose()
}

fn group_name(name: &str) -> Result<String, Error> {
    match check_name(name) {
        Ok(name) => Ok(name.to_owned()),
        Err(Error::Invalid { reason, .. }) => Err(Error::Invalid {
            field: "displayName",
            reason,
        }),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::name_of;

    #[test]
    fn a_name_of_the_directory_becomes_one_that_can_be_used_here() {
        for (user_name, name) in [
            ("ann@acme.com", "ann@acme.com"),
            (" Ann ", "Ann"),
            (
                "ann_other.com#EXT#@acme.onmicrosoft.com",
                "ann_other.comEXT@acme.onmicrosoft.com",
            ),
            ("###", "person"),
        ] {
            assert_eq!(name_of(user_name), name, "{user_name}");
        }
        assert_eq!(name_of(&"x".repeat(99)).len(), 60);
    }
}
