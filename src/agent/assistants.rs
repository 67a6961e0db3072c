//! Keeps assistants, and starts sessions with them: within what the caller was given, and never with more than the
//! caller may use.

use std::sync::Arc;

use super::attachments::Attachments;
use super::mailbox::store_away;
use crate::agent::row_error::RowError;
use crate::domain::{
    AssistantId, Attachment, BlobId, Caller, Code, GroupAccess, Right, Role, SessionKey, Share,
    TenantId, Used, UserId,
};
use crate::providers::{Providers, WantedModel};
use crate::session::{AssistantDefinition, ModelChoice, Narrowing, Refusal, SessionAssistant};
use crate::store;
use crate::store::Records;
use crate::store::clock::now;
use crate::store::records::{
    AssistantAccess, AssistantLevel, AssistantRow, AssistantVersion, MOST_VERSIONS,
    NewAssistantVersion,
};

/// The most assistants of the team, and of each person.
const MOST_ASSISTANTS: u64 = 200;
/// The most entries of the list of who may do what.
const MOST_ENTRIES: usize = 200;

/// What a new session begins with.
#[derive(Debug, Clone, Default)]
pub struct SessionStart {
    /// The model; `None` = the caller's default.
    pub model: Option<ModelChoice>,
    pub assistant: Option<Arc<SessionAssistant>>,
}

/// The assistant that a session is started with, and what its owner gives up beyond it.
#[derive(Debug, Clone)]
pub struct AssistantChoice {
    pub id: AssistantId,
    pub narrowed: Narrowing,
}

/// Whose assistant it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssistantScope {
    /// The caller's own.
    Person,
    /// The team's, which those with [`Right::ManageAssistants`] administer.
    Team,
}

/// An assistant, and what the caller may do with it.
#[derive(Debug, Clone, PartialEq)]
pub struct AssistantView {
    pub row: AssistantRow,
    pub level: AssistantLevel,
}

/// A file of a new version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AssistantFile {
    /// A file that an earlier version has.
    Known(BlobId),
    /// A new file.
    New { name: String, bytes: Vec<u8> },
}

/// A new version, before its files are looked at. The definition has no files yet.
#[derive(Debug, Clone, PartialEq)]
pub struct AssistantDraft {
    pub definition: AssistantDefinition,
    pub files: Vec<AssistantFile>,
}

/// An entry of the list of who may do what, with the person as they were named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessEntry {
    pub whom: AccessWhom,
    pub level: AssistantLevel,
}

/// Whom an entry is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessWhom {
    Team,
    Person(UserId),
    /// A person by their name.
    Named(String),
}

/// An entry of the list of who may do what, with the person's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedAccess {
    pub entry: AssistantAccess,
    /// The person's name; `None` for the team.
    pub name: Option<String>,
}

/// The assistants of the caller's tenant.
pub struct Assistants<'s> {
    records: &'s Records,
    providers: &'s Providers,
    attachments: &'s Attachments,
}

impl<'s> Assistants<'s> {
    pub(super) fn new(
        records: &'s Records,
        providers: &'s Providers,
        attachments: &'s Attachments,
    ) -> Self {
        Self {
            records,
            providers,
            attachments,
        }
    }

    /// Counts a body with files against the caller, for as long as the returned share lives.
    pub fn begin_upload(&self, caller: &Caller) -> Result<Share, Refusal> {
        self.attachments.begin(caller.holder())
    }

    /// Lists the assistants that the caller may see, by name.
    pub async fn list(&self, caller: &Caller) -> Result<Vec<AssistantView>, Refusal> {
        let rows = self.records.assistants();
        let rows = rows.list(&caller.tenant.id, &caller.user.id).await;
        let rows = rows.map_err(|error| away(&error))?;
        let views = rows.into_iter().filter_map(|row| {
            let level = level_of(&row, caller.into())?;
            Some(AssistantView { row, level })
        });
        Ok(views.collect())
    }

    /// Returns an assistant that the caller may see.
    pub async fn find(&self, caller: &Caller, id: &AssistantId) -> Result<AssistantView, Refusal> {
        let rows = self.records.assistants();
        let row = rows.find(&caller.tenant.id, &caller.user.id, id).await;
        let row = row.map_err(|error| away(&error))?.ok_or_else(missing)?;
        let level = level_of(&row, caller.into()).ok_or_else(missing)?;
        Ok(AssistantView { row, level })
    }

    /// Returns an assistant with its newest version.
    pub async fn read(
        &self,
        caller: &Caller,
        id: &AssistantId,
    ) -> Result<(AssistantView, AssistantDefinition), Refusal> {
        let view = self.find(caller, id).await?;
        let definition = self.definition(&caller.tenant.id, id, view.row.version);
        let definition = definition.await?.ok_or_else(missing)?;
        Ok((view, definition))
    }

    /// Adds an assistant. The team's is for everybody to use, until somebody says otherwise; a person's is for
    /// nobody else.
    pub async fn add(
        &self,
        caller: &Caller,
        scope: AssistantScope,
        draft: AssistantDraft,
    ) -> Result<AssistantView, Refusal> {
        check_acts(caller)?;
        let (owner, access) = match scope {
            AssistantScope::Person => (Some(&caller.user.id), Vec::new()),
            AssistantScope::Team if caller.may(Right::ManageAssistants) => {
                let everybody = AssistantAccess {
                    person: None,
                    level: AssistantLevel::Use,
                };
                (None, vec![everybody])
            }
            AssistantScope::Team => {
                let text =
                    "you lack the right `assistants.manage`, which assistants of the team need";
                return Err(Refusal::new(Code::NotAllowed, text));
            }
        };
        let id = AssistantId::from_bits(rand::random());
        let version = self.version(caller, &id, draft).await?;
        let rows = self.records.assistants();
        let of = (&id, owner);
        let added = rows.add(&caller.tenant.id, of, version, &access, MOST_ASSISTANTS);
        if !added.await.map_err(|error| away(&error))? {
            let text = format!(
                "there may be {MOST_ASSISTANTS} assistants of the team, and of each person; delete \
                 one first"
            );
            return Err(Refusal::new(Code::TooLarge, text));
        }
        self.find(caller, &id).await
    }

    /// Stores the next version.
    pub async fn change(
        &self,
        caller: &Caller,
        id: &AssistantId,
        draft: AssistantDraft,
    ) -> Result<AssistantView, RowError> {
        let view = self.editable(caller, id).await?;
        let version = self.version(caller, id, draft).await?;
        self.store(caller, &view.row, version).await
    }

    /// Stores an earlier version again, as the newest one.
    pub async fn restore(
        &self,
        caller: &Caller,
        id: &AssistantId,
        version: u64,
    ) -> Result<AssistantView, RowError> {
        let view = self.editable(caller, id).await?;
        let definition = self.definition(&caller.tenant.id, id, version).await?;
        let definition = definition.ok_or_else(no_version)?;
        let version = NewAssistantVersion {
            definition,
            files: Vec::new(),
            by: caller.user.id.clone(),
            at: now(),
            restored_from: Some(version),
        };
        self.store(caller, &view.row, version).await
    }

    /// Deletes an assistant. Its sessions stay, and start no new turn.
    pub async fn remove(&self, caller: &Caller, id: &AssistantId) -> Result<(), RowError> {
        let view = self.owned(caller, id).await?;
        let rows = self.records.assistants();
        let removed = rows.remove(&caller.tenant.id, &view.row).await?;
        Ok(removed.then_some(()).ok_or_else(missing)?)
    }

    /// Lists the versions, newest first.
    pub async fn versions(
        &self,
        caller: &Caller,
        id: &AssistantId,
    ) -> Result<Vec<AssistantVersion>, Refusal> {
        self.find(caller, id).await?;
        let rows = self.records.assistants();
        let versions = rows.versions(&caller.tenant.id, id).await;
        versions.map_err(|error| away(&error))
    }

    /// Returns one version.
    pub async fn read_version(
        &self,
        caller: &Caller,
        id: &AssistantId,
        version: u64,
    ) -> Result<AssistantDefinition, Refusal> {
        self.find(caller, id).await?;
        let definition = self.definition(&caller.tenant.id, id, version).await?;
        definition.ok_or_else(no_version)
    }

    /// Returns a file of a version, with its content.
    pub async fn file(
        &self,
        caller: &Caller,
        id: &AssistantId,
        file: &BlobId,
    ) -> Result<(Attachment, Vec<u8>), Refusal> {
        self.find(caller, id).await?;
        let found = self.known_file(&caller.tenant.id, id, file).await?;
        found.ok_or_else(|| Refusal::new(Code::NotFound, "the assistant has no such file"))
    }

    /// Returns who may do what, to its owners.
    pub async fn access(
        &self,
        caller: &Caller,
        id: &AssistantId,
    ) -> Result<Vec<NamedAccess>, Refusal> {
        self.owned(caller, id).await?;
        let tenant = &caller.tenant.id;
        let entries = self.records.assistants().access(tenant, id).await;
        let mut named = Vec::new();
        for entry in entries.map_err(|error| away(&error))? {
            let name = match &entry.person {
                None => None,
                Some(person) => {
                    let found = self.records.users().find(tenant, person).await;
                    let found = found.map_err(|error| away(&error))?;
                    Some(found.map_or_else(String::new, |found| found.user.name))
                }
            };
            named.push(NamedAccess { entry, name });
        }
        Ok(named)
    }

    /// Says anew who may do what. The person who made it always owns it, and the team's those who administer them.
    pub async fn set_access(
        &self,
        caller: &Caller,
        id: &AssistantId,
        entries: Vec<AccessEntry>,
    ) -> Result<(), RowError> {
        self.owned(caller, id).await?;
        if entries.len() > MOST_ENTRIES {
            let text = format!("`entries` may have {MOST_ENTRIES} entries");
            return Err(Refusal::of_field(Code::TooLarge, "entries", text).into());
        }
        let tenant = &caller.tenant.id;
        let mut list: Vec<AssistantAccess> = Vec::with_capacity(entries.len());
        for AccessEntry { whom, level } in entries {
            let person = match whom {
                AccessWhom::Team => None,
                AccessWhom::Person(id) => Some(id),
                AccessWhom::Named(name) => {
                    let found = self.records.users().find_by_name(tenant, &name).await;
                    let found = found.map_err(|error| away(&error))?;
                    let nobody = || no_person(format!("there is no person `{name}` here"));
                    Some(found.ok_or_else(nobody)?.user.id)
                }
            };
            if list.iter().any(|entry| entry.person == person) {
                return Err(no_person("`entries` names somebody twice".to_owned()).into());
            }
            list.push(AssistantAccess { person, level });
        }
        let rows = self.records.assistants();
        if !rows.set_access(tenant, id, &list).await? {
            let text = "one of the people is not of this team".to_owned();
            return Err(no_person(text).into());
        }
        Ok(())
    }

    /// Returns what a session begins with: the model that was asked for, within what its assistant allows.
    pub async fn start(
        &self,
        caller: &Caller,
        wanted: &WantedModel,
        choice: Option<AssistantChoice>,
    ) -> Result<SessionStart, Refusal> {
        let whose = (&caller.tenant.id, &caller.user.id);
        let access = self.providers.refresh_access(whose.0).await;
        let Some(AssistantChoice { id, narrowed }) = choice else {
            let model = (!wanted.is_empty()).then(|| self.providers.choose(whose, wanted, None));
            return Ok(SessionStart {
                model: model.transpose()?,
                assistant: None,
            });
        };
        check_acts(caller)?;
        let (view, definition) = self.read(caller, &id).await?;
        check_level(view.level, AssistantLevel::Use)?;
        narrowed.check(&definition)?;
        let is_open = |choice: &ModelChoice| self.providers.may_use(whose, choice);
        let default = definition.default_model(is_open).unwrap_or_else(|| {
            let default = self.providers.default_choice(whose);
            ModelChoice {
                effort: definition.effort.or(default.effort),
                ..default
            }
        });
        let model = self.providers.choose(whose, wanted, Some(&default))?;
        definition.check_model(&model)?;
        let assistant = SessionAssistant {
            id,
            version: view.row.version,
            definition: Arc::new(definition),
            narrowed,
        };
        check_servers(&access, whose.1, &assistant)?;
        Ok(SessionStart {
            model: Some(model),
            assistant: Some(Arc::new(assistant)),
        })
    }

    /// Finds an assistant that the caller may use, by its id or its name.
    pub async fn find_usable(&self, caller: &Caller, text: &str) -> Result<AssistantId, Refusal> {
        let usable = self.list(caller).await?.into_iter();
        let mut usable = usable.filter(|view| view.level >= AssistantLevel::Use);
        let is_meant = |view: &AssistantView| {
            view.row.id.as_str() == text || view.row.name.eq_ignore_ascii_case(text)
        };
        let (first, second) = (usable.find(is_meant), usable.find(is_meant));
        match (first, second) {
            (Some(one), None) => Ok(one.row.id),
            (Some(_), Some(_)) => {
                let text = format!("several assistants are called `{text}`; name one by its id");
                Err(Refusal::of_field(Code::InvalidArguments, "assistant", text))
            }
            (None, _) => {
                let text = format!("there is no assistant `{text}` that you may use");
                Err(Refusal::of_field(Code::NotFound, "assistant", text))
            }
        }
    }

    /// Stores a version after the one in `row`.
    async fn store(
        &self,
        caller: &Caller,
        row: &AssistantRow,
        version: NewAssistantVersion,
    ) -> Result<AssistantView, RowError> {
        if row.version >= MOST_VERSIONS {
            let text = format!("an assistant may have {MOST_VERSIONS} versions; make a copy of it");
            return Err(Refusal::new(Code::TooLarge, text).into());
        }
        let rows = self.records.assistants();
        let stored = rows.change(&caller.tenant.id, (&row.id, row.version), version);
        if !stored.await? {
            let text = "somebody else has changed the assistant meanwhile; read it again";
            return Err(Refusal::new(Code::ChangedSinceShown, text).into());
        }
        Ok(self.find(caller, &row.id).await?)
    }

    /// Looks at the files of a draft, and checks all of it.
    async fn version(
        &self,
        caller: &Caller,
        id: &AssistantId,
        draft: AssistantDraft,
    ) -> Result<NewAssistantVersion, Refusal> {
        let AssistantDraft {
            mut definition,
            files,
        } = draft;
        // Checked first, so that nothing is decoded for what is refused anyway.
        definition.check()?;
        let tenant = &caller.tenant.id;
        let mut new = Vec::new();
        definition.files.clear();
        for file in files {
            match file {
                AssistantFile::Known(blob) => {
                    let known = self.known_file(tenant, id, &blob).await?;
                    let (file, _) = known.ok_or_else(|| {
                        let text = format!("the assistant has no file `{blob}`");
                        Refusal::of_field(Code::InvalidArguments, "files", text)
                    })?;
                    definition.files.push(file);
                }
                AssistantFile::New { name, bytes } => {
                    let seen = self.attachments.look_at(tenant, &name, bytes).await;
                    let of_files = |refusal: Refusal| Refusal {
                        field: Some("files"),
                        ..refusal
                    };
                    let (file, content) = seen.map_err(of_files)?;
                    definition.files.push(file.clone());
                    new.push((file, content));
                }
            }
        }
        definition.check()?;
        Ok(NewAssistantVersion {
            definition,
            files: new,
            by: caller.user.id.clone(),
            at: now(),
            restored_from: None,
        })
    }

    async fn definition(
        &self,
        tenant: &TenantId,
        id: &AssistantId,
        version: u64,
    ) -> Result<Option<AssistantDefinition>, Refusal> {
        let rows = self.records.assistants();
        let definition = rows.definition(tenant, id, version).await;
        definition.map_err(|error| away(&error))
    }

    async fn known_file(
        &self,
        tenant: &TenantId,
        id: &AssistantId,
        file: &BlobId,
    ) -> Result<Option<(Attachment, Vec<u8>)>, Refusal> {
        let found = self.records.assistants().file(tenant, id, file).await;
        found.map_err(|error| away(&error))
    }

    async fn editable(&self, caller: &Caller, id: &AssistantId) -> Result<AssistantView, Refusal> {
        self.having(caller, id, AssistantLevel::Edit).await
    }

    async fn owned(&self, caller: &Caller, id: &AssistantId) -> Result<AssistantView, Refusal> {
        self.having(caller, id, AssistantLevel::Own).await
    }

    async fn having(
        &self,
        caller: &Caller,
        id: &AssistantId,
        wanted: AssistantLevel,
    ) -> Result<AssistantView, Refusal> {
        let view = self.find(caller, id).await?;
        check_acts(caller)?;
        check_level(view.level, wanted)?;
        Ok(view)
    }
}

/// Checks that the owner of a session may still use its assistant, and gives the session the files that its next
/// message brings along. Read from the database, because any gateway may have changed it.
pub(super) async fn admit_turn(
    records: &Records,
    key: &SessionKey,
    owner: &UserId,
    assistant: &SessionAssistant,
    due: &[Attachment],
) -> Result<(), Refusal> {
    usable(records, &key.tenant, owner, assistant).await?;
    let access = records.group_access().of_tenant(&key.tenant).await;
    check_servers(&access.map_err(|error| away(&error))?, owner, assistant)?;
    if due.is_empty() {
        return Ok(());
    }
    let rows = records.assistants();
    let attached = rows.attach(key, &assistant.id, due, now()).await;
    if !attached.map_err(|error| away(&error))? {
        // It was deleted a moment ago.
        return Err(gone(assistant));
    }
    Ok(())
}

/// Returns the newest version of a session's assistant, for its owner.
pub(super) async fn newest(
    records: &Records,
    key: &SessionKey,
    owner: &UserId,
    assistant: &SessionAssistant,
) -> Result<Arc<SessionAssistant>, Refusal> {
    let row = usable(records, &key.tenant, owner, assistant).await?;
    let rows = records.assistants();
    let definition = rows.definition(&key.tenant, &row.id, row.version).await;
    let definition = definition.map_err(|error| away(&error))?;
    Ok(Arc::new(SessionAssistant {
        id: row.id,
        version: row.version,
        definition: Arc::new(definition.ok_or_else(|| gone(assistant))?),
        narrowed: assistant.narrowed.clone(),
    }))
}

/// Refuses an assistant that names a server which groups keep for their members, to everybody else.
fn check_servers(
    access: &GroupAccess,
    user: &UserId,
    assistant: &SessionAssistant,
) -> Result<(), Refusal> {
    let named = assistant.definition.tools.iter().flat_map(|tools| &tools.0);
    let mut named = named.map(|tools| tools.server.as_str());
    let closed = named.find(|server| {
        assistant.allows_server(server) && !access.may_use(user, Used::Server(server))
    });
    let Some(server) = closed else {
        return Ok(());
    };
    let text = format!(
        "the assistant `{}` uses the server `{server}`, which is only for members of its groups, and you are \
         in none of them: ask an administrator of your tenant, or use another assistant",
        assistant.definition.name
    );
    Err(Refusal::of_field(Code::NotAllowed, "assistant", text))
}

/// Returns the row of a session's assistant, if the owner may use it now.
async fn usable(
    records: &Records,
    tenant: &TenantId,
    owner: &UserId,
    assistant: &SessionAssistant,
) -> Result<AssistantRow, Refusal> {
    let row = records
        .assistants()
        .find(tenant, owner, &assistant.id)
        .await;
    let row = row.map_err(|error| away(&error))?;
    let row = row.ok_or_else(|| gone(assistant))?;
    let user = records.users().find(tenant, owner).await;
    let user = user.map_err(|error| away(&error))?;
    let custom = records.custom_roles().rights_of(tenant, owner).await;
    let custom = custom.map_err(|error| away(&error))?;
    let level = user.and_then(|found| {
        let rights = found.user.built_in_rights().and(custom);
        let who = Standing {
            id: owner,
            role: found.user.role,
            administers: rights.has(Right::ManageAssistants),
        };
        level_of(&row, who)
    });
    if level.is_some_and(|level| level >= AssistantLevel::Use) {
        return Ok(row);
    }
    let text = format!(
        "you may not use the assistant `{}` any more: this session can be read, but starts no new \
         turn; ask whoever owns the assistant, or begin a new session",
        assistant.definition.name
    );
    Err(Refusal::new(Code::NotAllowed, text))
}

/// The facts about a person that decide their level for an assistant.
#[derive(Debug, Clone, Copy)]
struct Standing<'a> {
    id: &'a UserId,
    role: Role,
    /// They have [`Right::ManageAssistants`].
    administers: bool,
}

impl<'a> From<&'a Caller> for Standing<'a> {
    fn from(caller: &'a Caller) -> Self {
        Self {
            id: &caller.user.id,
            role: caller.user.role,
            administers: caller.may(Right::ManageAssistants),
        }
    }
}

/// What somebody may do with an assistant; `None` = to them it does not exist. A viewer only reads.
fn level_of(row: &AssistantRow, who: Standing<'_>) -> Option<AssistantLevel> {
    let is_own = row.owner.as_ref() == Some(who.id);
    let is_of_team = row.owner.is_none() || row.team_level.is_some();
    let given = if is_own || (is_of_team && who.administers) {
        Some(AssistantLevel::Own)
    } else {
        row.own_level.max(row.team_level)
    };
    let most = if who.role.may_act() {
        AssistantLevel::Own
    } else {
        AssistantLevel::See
    };
    given.map(|given| given.min(most))
}

fn check_acts(caller: &Caller) -> Result<(), Refusal> {
    if caller.user.role.may_act() {
        return Ok(());
    }
    let text = "a viewer may read, not act";
    Err(Refusal::new(Code::NotAllowed, text))
}

fn check_level(has: AssistantLevel, wanted: AssistantLevel) -> Result<(), Refusal> {
    if has >= wanted {
        return Ok(());
    }
    let text = match wanted {
        AssistantLevel::See => "you may not see this assistant",
        AssistantLevel::Use => "you may see this assistant, not start sessions with it",
        AssistantLevel::Edit => "only whoever may edit this assistant changes it",
        AssistantLevel::Own => "only whoever owns this assistant does this",
    };
    Err(Refusal::new(Code::NotAllowed, text))
}

fn missing() -> Refusal {
    Refusal::new(Code::NotFound, "there is no such assistant")
}

/// Refuses what only a session with an assistant does.
pub(super) fn no_assistant() -> Refusal {
    let text = "the session was not started with an assistant";
    Refusal::new(Code::NothingToDo, text)
}

fn no_version() -> Refusal {
    Refusal::new(Code::NotFound, "the assistant has no such version")
}

fn no_person(text: String) -> Refusal {
    Refusal::of_field(Code::InvalidArguments, "entries", text)
}

fn gone(assistant: &SessionAssistant) -> Refusal {
    let text = format!(
        "the assistant `{}` was deleted: this session can be read, but starts no new turn; begin a \
         new session",
        assistant.definition.name
    );
    Refusal::new(Code::NotAllowed, text)
}

fn away(error: &store::Error) -> Refusal {
    tracing::warn!(?error, "Assistants are out of reach");
    store_away()
}

#[cfg(test)]
mod tests {
    use super::{Standing, level_of};
    use crate::domain::{AssistantId, Right, Role, Timestamp, UserId};
    use crate::store::records::AssistantLevel::{Edit, Own, See, Use};
    use crate::store::records::AssistantRow;

    #[test]
    fn a_level_comes_from_the_owner_the_list_or_the_role() {
        let me = UserId::from_bits(1);
        let other = UserId::from_bits(2);
        let row = |owner: Option<&UserId>, own_level, team_level| AssistantRow {
            id: AssistantId::from_bits(1),
            owner: owner.cloned(),
            name: String::new(),
            description: String::new(),
            version: 1,
            created_by: other.clone(),
            created_at: Timestamp(0),
            updated_by: other.clone(),
            updated_at: Timestamp(0),
            own_level,
            team_level,
        };
        for (row, role, expected) in [
            (row(Some(&me), None, None), Role::Member, Some(Own)),
            (row(Some(&me), None, None), Role::Viewer, Some(See)),
            (row(Some(&other), None, None), Role::Member, None),
            // What somebody keeps to themselves is no matter of the admins.
            (row(Some(&other), None, None), Role::Owner, None),
            (row(Some(&other), Some(Use), None), Role::Admin, Some(Use)),
            (row(Some(&other), None, Some(See)), Role::Admin, Some(Own)),
            (
                row(Some(&other), Some(Edit), Some(See)),
                Role::Member,
                Some(Edit),
            ),
            (
                row(Some(&other), Some(See), Some(Use)),
                Role::Member,
                Some(Use),
            ),
            (row(Some(&other), Some(Own), None), Role::Viewer, Some(See)),
            (row(None, None, None), Role::Member, None),
            (row(None, None, None), Role::Admin, Some(Own)),
            (row(None, None, Some(Use)), Role::Member, Some(Use)),
        ] {
            let who = Standing {
                id: &me,
                role,
                administers: role.rights().has(Right::ManageAssistants),
            };
            assert_eq!(level_of(&row, who), expected, "{row:?} {role:?}");
        }
        // A custom role gives the right, and a viewer still only reads.
        for (role, expected) in [(Role::Member, Own), (Role::Viewer, See)] {
            let who = Standing {
                id: &me,
                role,
                administers: true,
            };
            assert_eq!(level_of(&row(None, None, None), who), Some(expected));
        }
    }
}
