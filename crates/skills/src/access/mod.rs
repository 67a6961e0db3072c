//! Lists, uploads and switches skills, within the rights of the caller.

mod offered;
mod view;

use std::fmt;
use std::sync::Arc;

use self::offered::KeptOffers;
use self::view::{Facts, may_write};
pub use self::view::{SkillScope, SkillSwitch, SkillView};
use crate::archive::{Limits, Upload, read_upload};
use crate::bundle::{Bundle, FileFacts};
use crate::document::Document;
use crate::problem::Problem;
use sepal_core::domain::{Caller, Code, Most, Share, Shares, SkillId, TenantId, UserId};
use sepal_core::session::Refusal;
use sepal_jobs::Pool;
use sepal_store as store;
use sepal_store::Records;
use sepal_store::clock::now;
use sepal_store::records::{OfferedSkill, SkillRow};

/// The most skills packed or unpacked at the same time.
const SIDE_BY_SIDE: usize = 2;
/// Limits on uploads under way: each holds a whole file in memory.
const MAX_UPLOADS: Most = Most {
    all: Some(16),
    per_tenant: Some(8),
    per_user: Some(4),
};

/// The settings of skills.
#[derive(Debug, Clone, Copy)]
pub struct SkillSettings {
    /// True if sessions have skills at all.
    pub is_on: bool,
    /// True if sessions also have the skills of their workspace.
    pub has_workspace: bool,
    /// The most descriptions in a request.
    pub most_offered: usize,
    /// The most skills that one person, and that a tenant, may store.
    pub most_kept: u64,
    /// The size limits of one skill.
    pub limits: Limits,
}

/// The reason skills are not shown, stored or switched.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller may not do this, or there is no such skill.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The upload is not a valid skill.
    #[error("this is no skill that can be used")]
    Invalid(Vec<Problem>),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// A file that is uploaded as a skill.
#[derive(Debug)]
pub struct SkillFile {
    pub content: Vec<u8>,
    /// The sender's share, held until the file was read.
    pub counted: Share,
}

/// The skills of an installation. Cheap to clone.
#[derive(Clone)]
pub struct Skills(Arc<Shared>);

struct Shared {
    records: Records,
    settings: SkillSettings,
    offered: KeptOffers,
    pool: Pool,
    uploads: Arc<Shares>,
}

impl fmt::Debug for Skills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Skills(…)")
    }
}

impl Skills {
    /// Stores skills in `records`.
    pub fn new(records: Records, settings: SkillSettings) -> Self {
        Self(Arc::new(Shared {
            records,
            settings,
            offered: KeptOffers::default(),
            pool: Pool::new("skills", SIDE_BY_SIDE),
            uploads: Shares::new(MAX_UPLOADS),
        }))
    }

    /// The pool in which skills are packed and unpacked.
    pub fn pool(&self) -> &Pool {
        &self.0.pool
    }

    /// Counts an upload against its sender, before any of it is read.
    pub fn begin(&self, caller: &Caller) -> Result<Share, Refusal> {
        self.0.uploads.take(caller.holder(), 1).map_err(|_| {
            let text = "too many skills are being uploaded at the same time; try again in a moment";
            Refusal::new(Code::TooManyRequests, text)
        })
    }

    /// The settings.
    pub fn settings(&self) -> &SkillSettings {
        &self.0.settings
    }

    /// Lists the skills that the caller's sessions may have, by name.
    pub async fn list(&self, caller: &Caller) -> Result<Vec<SkillView>, Error> {
        check_reader(caller)?;
        let records = self.0.records.skills();
        let rows = records.list(&caller.tenant.id, &caller.user.id).await?;
        let mut views: Vec<SkillView> = rows
            .into_iter()
            .map(|row| SkillView::of(row, caller))
            .collect();
        let own = views.iter();
        let own = own.filter(|view| view.scope == SkillScope::Person && view.is_on());
        let own: Vec<String> = own.map(|view| view.row.name.clone()).collect();
        for view in &mut views {
            view.is_hidden = view.scope == SkillScope::Tenant && own.contains(&view.row.name);
        }
        Ok(views)
    }

    /// Returns one of these skills.
    pub async fn find(&self, caller: &Caller, id: &SkillId) -> Result<SkillView, Error> {
        check_reader(caller)?;
        let records = self.0.records.skills();
        let row = records.find(&caller.tenant.id, &caller.user.id, id).await?;
        let row = row.ok_or_else(missing)?;
        Ok(SkillView::of(row, caller))
    }

    /// Returns one of these skills with its files.
    pub async fn bundle(
        &self,
        caller: &Caller,
        id: &SkillId,
    ) -> Result<(SkillView, Bundle), Error> {
        let view = self.find(caller, id).await?;
        let bundle = self.bundle_of(&caller.tenant.id, &view.row.hash).await?;
        Ok((view, bundle.ok_or_else(missing)?))
    }

    /// Checks an upload without storing it.
    pub async fn check(
        &self,
        caller: &Caller,
        scope: SkillScope,
        file: SkillFile,
    ) -> Result<(Document, Vec<FileFacts>), Error> {
        check_writer(caller, scope)?;
        let (bundle, document) = self.read(file).await?;
        Ok((document, bundle.facts()))
    }

    /// Stores a new skill, switched on.
    pub async fn add(
        &self,
        caller: &Caller,
        scope: SkillScope,
        file: SkillFile,
    ) -> Result<SkillView, Error> {
        check_writer(caller, scope)?;
        let (bundle, document) = self.read(file).await?;
        let at = now();
        let by = caller.user.id.clone();
        let row = SkillRow {
            id: SkillId::from_bits(rand::random()),
            owner: (scope == SkillScope::Person).then(|| by.clone()),
            name: String::new(),
            description: String::new(),
            hash: String::new(),
            facts: String::new(),
            is_enabled: true,
            version: 1,
            created_by: by.clone(),
            created_at: at,
            updated_by: by,
            updated_at: at,
            is_off_for_reader: false,
        };
        let (row, content) = self.filled(row, bundle, document).await?;
        let most = self.0.settings.most_kept;
        let records = self.0.records.skills();
        let kept = records.add(&caller.tenant.id, &row, content, most).await;
        self.0.offered.stale();
        if !kept.map_err(|error| named(error, &row.name))? {
            let text = format!(
                "there are {most} skills already; remove one, or have the operator raise \
                 `agent.skills.max_kept`"
            );
            return Err(Refusal::new(Code::TooLarge, text).into());
        }
        tracing::info!(tenant.id = %caller.tenant.id, user.id = %caller.user.id, skill.id = %row.id, skill.name = row.name, skill.hash = row.hash, scope = scope.as_str(), "A skill was added");
        Ok(SkillView::of(row, caller))
    }

    /// Replaces a skill's files, as its next version. It stays switched on or off.
    pub async fn replace(
        &self,
        caller: &Caller,
        id: &SkillId,
        file: SkillFile,
    ) -> Result<SkillView, Error> {
        let before = self.writable(caller, id).await?;
        let (bundle, document) = self.read(file).await?;
        let old = before.row.hash.clone();
        let row = SkillRow {
            updated_by: caller.user.id.clone(),
            updated_at: now(),
            ..before.row
        };
        let (mut row, content) = self.filled(row, bundle, document).await?;
        let records = self.0.records.skills();
        let replaced = records.replace(&caller.tenant.id, &row, content, &old);
        let replaced = replaced.await;
        self.0.offered.stale();
        if !replaced.map_err(|error| named(error, &row.name))? {
            let text = "somebody else changed the skill meanwhile; look at it and try again";
            return Err(Refusal::new(Code::ChangedSinceShown, text).into());
        }
        row.version += 1;
        tracing::info!(tenant.id = %caller.tenant.id, user.id = %caller.user.id, skill.id = %row.id, skill.name = row.name, skill.hash = row.hash, "A skill was replaced");
        Ok(SkillView::of(row, caller))
    }

    /// Deletes a skill. Text that sessions read of it stays in their transcripts.
    pub async fn remove(&self, caller: &Caller, id: &SkillId) -> Result<(), Error> {
        let view = self.writable(caller, id).await?;
        let records = self.0.records.skills();
        let removed = records.remove(&caller.tenant.id, &view.row).await;
        self.0.offered.stale();
        if !removed? {
            return Err(missing().into());
        }
        tracing::info!(tenant.id = %caller.tenant.id, user.id = %caller.user.id, skill.id = %id, skill.name = view.row.name, "A skill was removed");
        Ok(())
    }

    /// Switches a skill on or off.
    pub async fn switch(
        &self,
        caller: &Caller,
        id: &SkillId,
        switch: SkillSwitch,
    ) -> Result<SkillView, Error> {
        let view = self.find(caller, id).await?;
        let tenant = &caller.tenant.id;
        let records = self.0.records.skills();
        let of_all = match (view.scope, switch) {
            (SkillScope::Person, SkillSwitch { of_tenant, .. }) if of_tenant.is_some() => {
                let text = "this skill is a person's own: the tenant has nothing to switch";
                return Err(
                    Refusal::of_field(Code::InvalidArguments, "enabledForTenant", text).into(),
                );
            }
            (SkillScope::Person, switch) => switch.mine,
            (SkillScope::Tenant, switch) => switch.of_tenant,
        };
        if let Some(is_on) = of_all {
            check_writer(caller, view.scope)?;
            let switched = records.set_enabled(tenant, (id, is_on)).await;
            self.0.offered.stale();
            switched?;
            tracing::info!(tenant.id = %tenant, user.id = %caller.user.id, skill.id = %id, is_on, "A skill was switched");
        }
        if let Some(is_on) = switch.mine.filter(|_| view.scope == SkillScope::Tenant) {
            let switched = records.switch(tenant, &caller.user.id, id, is_on).await;
            self.0.offered.stale();
            switched?;
        }
        self.find(caller, id).await
    }

    /// Returns the stored skills that are offered to sessions of that person. Changes made at another gateway
    /// may show up to five seconds later.
    pub async fn offered(
        &self,
        tenant: &TenantId,
        owner: &UserId,
    ) -> Result<Vec<OfferedSkill>, store::Error> {
        self.0.offered.of(&self.0.records, tenant, owner).await
    }

    /// Returns the files with that hash; `None` = no skill of the tenant has them any more.
    pub async fn bundle_of(
        &self,
        tenant: &TenantId,
        hash: &str,
    ) -> Result<Option<Bundle>, store::Error> {
        let Some(content) = self.0.records.skills().content(tenant, hash).await? else {
            return Ok(None);
        };
        let unpacked = self.0.pool.run(move || Bundle::from_zip(&content)).await;
        let corrupt = |value: String| store::Error::Corrupt {
            what: "skill",
            value,
        };
        let bundle = unpacked.map_err(|error| corrupt(error.to_string()))?;
        bundle.map(Some).map_err(|error| corrupt(error.to_string()))
    }

    /// Unpacks and checks an upload off the async threads. The upload counts until that is done.
    async fn read(&self, file: SkillFile) -> Result<(Bundle, Document), Error> {
        let limits = self.0.settings.limits;
        let read = self.0.pool.run(move || {
            let SkillFile { content, counted } = file;
            let _counted = counted;
            let Upload { bundle, folder } = read_upload(&content, limits)?;
            let document = bundle.document(folder.as_deref())?;
            Ok((bundle, document))
        });
        let read = read.await.map_err(|error| {
            tracing::error!(%error, "A skill could not be read");
            Refusal::new(Code::Internal, "the skill could not be read")
        })?;
        read.map_err(Error::Invalid)
    }

    /// Fills the row from the skill's files, and packs them into an archive.
    async fn filled(
        &self,
        row: SkillRow,
        bundle: Bundle,
        document: Document,
    ) -> Result<(SkillRow, Vec<u8>), Error> {
        let packing = self.0.pool.run(move || filled(row, &bundle, document));
        packing.await.map_err(|error| {
            tracing::error!(%error, "A skill cannot be kept");
            Refusal::new(Code::Internal, "the skill cannot be kept")
        })?
    }

    async fn writable(&self, caller: &Caller, id: &SkillId) -> Result<SkillView, Error> {
        let view = self.find(caller, id).await?;
        check_writer(caller, view.scope)?;
        Ok(view)
    }
}

/// Fills the row from the skill's files, and packs them into an archive.
fn filled(
    row: SkillRow,
    bundle: &Bundle,
    document: Document,
) -> Result<(SkillRow, Vec<u8>), Error> {
    let internal = |error: &dyn fmt::Display| {
        tracing::error!(%error, "A skill cannot be kept");
        Refusal::new(Code::Internal, "the skill cannot be kept")
    };
    let Document {
        manifest, warnings, ..
    } = document;
    let (name, description) = (manifest.name.clone(), manifest.description.clone());
    let warnings = warnings.into_iter();
    let facts = Facts {
        manifest,
        files: bundle.facts(),
        warnings: warnings.map(|it| (it.at, it.message, it.remedy)).collect(),
    };
    let content = bundle.to_zip(None).map_err(|error| internal(&error))?;
    let facts = serde_json::to_string(&facts).map_err(|error| internal(&error))?;
    let row = SkillRow {
        name,
        description,
        hash: bundle.hash(),
        facts,
        ..row
    };
    Ok((row, content))
}

/// Viewers have no sessions of their own, and so no skills.
fn check_reader(caller: &Caller) -> Result<(), Refusal> {
    if caller.user.role.may_act() {
        return Ok(());
    }
    let text = "viewers have no skills: they only read what was opened to them";
    Err(Refusal::new(Code::NotAllowed, text))
}

fn check_writer(caller: &Caller, scope: SkillScope) -> Result<(), Refusal> {
    check_reader(caller)?;
    if may_write(caller, scope) {
        return Ok(());
    }
    let text = "only admins change the skills of the whole tenant";
    Err(Refusal::new(Code::NotAllowed, text))
}

fn missing() -> Refusal {
    Refusal::new(Code::NotFound, "there is no such skill")
}

/// Converts the error of a taken name into a problem with a remedy.
fn named(error: store::Error, name: &str) -> Error {
    if !matches!(error, store::Error::Taken(_)) {
        return error.into();
    }
    let message = format!("there is a skill `{name}` already");
    let remedy = "Replace that one, or give this one another name.";
    Error::Invalid(vec![Problem::new("name", message, remedy)])
}
