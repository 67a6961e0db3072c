//! Names what people and the gateway do, other than in sessions, for the audit.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::acting::{self, Acting, Actor};
use sepal_core::domain::{Scope, TenantId, UserId};

/// The longest text in the details of a record, in characters.
const MAX_CHARS: usize = 300;

/// The link that the first record of a chain names as the one before.
pub const FIRST_PREV: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Declares [`ActName`] with the name of each act in records.
macro_rules! acts {
    ($($(#[$doc:meta])* $name:ident = $text:literal),* $(,)?) => {
        /// Everything that the audit records, other than what happens in sessions.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ActName {
            $($(#[$doc])* $name,)*
        }

        impl ActName {
            /// Every act.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The name in records.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

acts! {
    /// A person signed in with a password, a passkey, a link, or an account at an OpenID provider or a proxy.
    SignedIn = "sign_in.succeeded",
    /// Somebody could not sign in; one record tells all attempts from an address within a minute.
    SignInFailed = "sign_in.failed",
    SignedOut = "sign_in.ended",
    /// Sign-in was refused because there were too many attempts.
    SignInLimited = "sign_in.limited",
    /// A signed-in person asked for something that their role does not allow.
    Refused = "request.refused",
    TenantAdded = "tenant.added",
    TenantSuspended = "tenant.suspended",
    TenantResumed = "tenant.resumed",
    TenantGivenUp = "tenant.given_up",
    TenantDeleted = "tenant.deleted",
    /// Everything of a tenant was written into one file.
    TenantExported = "tenant.exported",
    TenantImportBegun = "tenant.import_begun",
    /// A tenant came from an export. From here on it may have a chain again, even if it was deleted before.
    TenantImported = "tenant.imported",
    LinksSwitched = "tenant.links_switched",
    UserAdded = "user.added",
    UserRenamed = "user.renamed",
    UserRoleSet = "user.role_set",
    InstallationAdminSet = "user.installation_admin_set",
    UserDisabled = "user.disabled",
    UserEnabled = "user.enabled",
    RoleAdded = "role.added",
    RoleChanged = "role.changed",
    RoleRemoved = "role.removed",
    /// A person or a group was given a custom role.
    RoleGiven = "role.given",
    /// A custom role was taken from a person or a group.
    RoleTaken = "role.taken",
    GroupAdded = "group.added",
    GroupChanged = "group.changed",
    GroupRemoved = "group.removed",
    GroupJoined = "group.joined",
    GroupLeft = "group.left",
    ScimTokenAdded = "scim_token.added",
    ScimTokenRevoked = "scim_token.revoked",
    /// A directory changed what it says of a person, or took back that it deleted them.
    DirectoryPersonChanged = "directory.person_changed",
    /// A directory deleted a person, who is disabled and hidden from it.
    DirectoryPersonRemoved = "directory.person_removed",
    /// A directory was linked to somebody who was here before it.
    DirectoryPersonLinked = "directory.person_linked",
    DirectoryPersonUnlinked = "directory.person_unlinked",
    DirectoryGroupLinked = "directory.group_linked",
    DirectoryGroupUnlinked = "directory.group_unlinked",
    /// The account at an OpenID provider was bound to the person whom a directory had made for it.
    AccountBound = "user.account_bound",
    /// A model or a server was limited to the members of a group.
    GroupAccessGiven = "group.access_given",
    /// A group names a model or a server no more.
    GroupAccessTaken = "group.access_taken",
    /// Every browser of a user was signed out by somebody else.
    UserSignedOut = "user.signed_out",
    UserGivenUp = "user.given_up",
    UserDeleted = "user.deleted",
    PasswordSet = "user.password_set",
    /// A person chose to sign in by passkeys and never by their password, or no longer; an administrator may end it.
    PasskeyOnlySet = "user.passkey_only_set",
    MailSet = "user.mail_set",
    SetupDone = "setup.done",
    SetupLinkAdded = "setup.link_added",
    SetupLinksRemoved = "setup.links_removed",
    InvitationAdded = "invitation.added",
    InvitationUsed = "invitation.used",
    InvitationWithdrawn = "invitation.withdrawn",
    LinkAdded = "link.added",
    LinkUsed = "link.used",
    KeyAdded = "key.added",
    KeyRevoked = "key.revoked",
    PasskeyAdded = "passkey.added",
    PasskeyRenamed = "passkey.renamed",
    PasskeyRemoved = "passkey.removed",
    GestureMade = "gesture.made",
    GestureUsed = "gesture.used",
    /// The keys that seal secrets are sealed with another secret key of the operator now.
    SecretKeyChanged = "secret_key.changed",
    /// A new key of the installation seals secrets from now on, after a change of the secret key.
    SealingKeyChanged = "sealing_key.changed",
    /// The operator's secret key was lost, and everything that it had sealed with it.
    SecretKeyForgotten = "secret_key.forgotten",
    ProviderSet = "provider.set",
    ProviderRemoved = "provider.removed",
    SecretSet = "secret.set",
    SecretRemoved = "secret.removed",
    ServerAdded = "server.added",
    ServerChanged = "server.changed",
    ServerRemoved = "server.removed",
    ToolSet = "tool.set",
    /// Everything that was decided about the tools of a server was forgotten.
    ToolsForgotten = "tool.forgotten",
    BundleAdded = "bundle.added",
    BundleRemoved = "bundle.removed",
    PackageBegun = "package.begun",
    PackageChanged = "package.changed",
    PackageRemoved = "package.removed",
    GrantGiven = "grant.given",
    GrantEnded = "grant.ended",
    GrantsForgotten = "grant.forgotten",
    RuleAdded = "rule.added",
    RuleRemoved = "rule.removed",
    BudgetSet = "budget.set",
    BudgetRemoved = "budget.removed",
    SkillAdded = "skill.added",
    SkillReplaced = "skill.replaced",
    SkillRemoved = "skill.removed",
    SkillSwitched = "skill.switched",
    AssistantAdded = "assistant.added",
    /// A new version was stored.
    AssistantChanged = "assistant.changed",
    AssistantRemoved = "assistant.removed",
    /// It was said anew who may do what with an assistant.
    AssistantShared = "assistant.shared",
    ModelDefaultSet = "model_default.set",
    ModelDefaultRemoved = "model_default.removed",
    CompactionSet = "compaction.set",
    CompactionRemoved = "compaction.removed",
    WebhookAdded = "webhook.added",
    WebhookRemoved = "webhook.removed",
    SessionShared = "session.shared",
    ShareRemoved = "session.share_removed",
    SessionGivenUp = "session.given_up",
    SessionTakenBack = "session.taken_back",
    SessionDeleted = "session.deleted",
    /// The newest link of each session that changed, so that the chain proves their journals too.
    SessionsSealed = "sessions.sealed",
    AuditExported = "audit.exported",
    /// Somebody was let in to read the session of another person, for a reason and a limited time.
    ReadingBegun = "session.reading_begun",
    /// Such a permission was given back, or taken away by the owner.
    ReadingEnded = "session.reading_ended",
    /// Somebody took all sessions of a person with them: their own, or those of somebody whose access has ended.
    UserArchived = "user.archived",
    /// A session of a person whose access has ended was copied for somebody else.
    SessionHandedOver = "session.handed_over",
    /// Somebody took the decisions of another person's session with them.
    DecisionsExported = "session.decisions_exported",
    /// Old records of the chain are removed; this record tells up to which.
    ChainCut = "chain.cut",
}

/// Something that was done, to be recorded in the transaction that does it.
#[derive(Debug, Clone)]
pub(crate) struct Act {
    chain: String,
    name: ActName,
    kind: &'static str,
    subject: String,
    details: Map<String, Value>,
    acting: Acting,
}

/// A record as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, sqlx_macros::FromRow)]
pub struct StoredRecord {
    /// Counts the records of the chain, from 1.
    pub n: i64,
    /// The canonical JSON of the record.
    pub body: String,
    /// SHA-256 of `body`, in hex.
    pub link: String,
    /// Members of the body, to search by.
    pub at: i64,
    pub act: String,
    pub person: String,
    pub kind: String,
    pub subject: String,
}

impl StoredRecord {
    /// A record as others have it: its JSON and its link. `None` if it is none.
    pub fn of_json(record: &Value, link: String) -> Option<Self> {
        let text = |path: &str| Some(record.pointer(path)?.as_str()?.to_owned());
        let number = |path: &str| record.pointer(path)?.as_i64();
        Some(Self {
            n: number("/n")?,
            at: number("/at")?,
            act: text("/act")?,
            person: text("/by/id").unwrap_or_default(),
            kind: text("/on/kind")?,
            subject: text("/on/id")?,
            body: canonical(record),
            link,
        })
    }
}

/// The end of a chain.
#[derive(Debug, Clone, PartialEq, Eq, sqlx_macros::FromRow)]
pub struct ChainHead {
    pub n: i64,
    pub at: i64,
    pub link: String,
}

impl Act {
    /// An act of whoever acts now on the thing `subject` of a kind, recorded in the chain of a scope.
    pub(crate) fn new(
        name: ActName,
        chain: impl Into<ChainName>,
        kind: &'static str,
        subject: impl Into<String>,
    ) -> Self {
        Self {
            chain: chain.into().0,
            name,
            kind,
            subject: subject.into(),
            details: Map::new(),
            acting: acting::current(),
        }
    }

    /// Names a fact about the act, never the value of a secret. A long text is cut.
    pub(crate) fn detail(mut self, name: &str, value: impl Into<Value>) -> Self {
        let mut value = value.into();
        if let Value::String(text) = &mut value
            && let Some((end, _)) = text.char_indices().nth(MAX_CHARS)
        {
            text.truncate(end);
            text.push('…');
        }
        self.details.insert(name.to_owned(), value);
        self
    }

    /// Says who acted, where whoever acts now is not known yet: before the sign-in.
    pub(crate) fn by(mut self, tenant: &TenantId, user: &UserId) -> Self {
        self.acting.by = Actor::Person {
            tenant: tenant.clone(),
            user: user.clone(),
            credential: None,
        };
        self
    }

    /// The chain in which the act is recorded.
    pub(crate) fn chain(&self) -> &str {
        &self.chain
    }

    /// The record of this act after `head`, the last one of its chain. Its time is never before that of
    /// `head`.
    pub(crate) fn follow(self, head: Option<&ChainHead>, now: i64) -> StoredRecord {
        let n = head.map_or(0, |head| head.n).saturating_add(1);
        let at = head.map_or(now, |head| head.at.max(now));
        let prev = head.map_or(FIRST_PREV, |head| head.link.as_str());
        let person = self
            .acting
            .by
            .person()
            .map_or("", UserId::as_str)
            .to_owned();
        let body = json!({
            "act": self.name.as_str(),
            "at": at,
            "by": self.acting.by.to_json(),
            "details": self.details,
            "door": self.acting.door_to_json(),
            "n": n,
            "on": { "id": self.subject, "kind": self.kind },
            "prev": prev,
        });
        let body = canonical(&body);
        StoredRecord {
            n,
            link: link_of(&body),
            body,
            at,
            act: self.name.as_str().to_owned(),
            person,
            kind: self.kind.to_owned(),
            subject: self.subject,
        }
    }
}

/// The name of a chain: `installation`, or the id of a tenant.
pub(crate) struct ChainName(String);

impl From<&TenantId> for ChainName {
    fn from(tenant: &TenantId) -> Self {
        Self(tenant.as_str().to_owned())
    }
}

impl From<&Scope> for ChainName {
    fn from(scope: &Scope) -> Self {
        Self(scope.as_str().to_owned())
    }
}

/// Writes canonical JSON (RFC 8785).
pub(crate) fn canonical(value: &Value) -> String {
    // Canonicalization only fails for numbers that JSON cannot represent, which a `Value` does not hold.
    serde_json_canonicalizer::to_string(value).unwrap_or_else(|_| value.to_string())
}

/// The link of a record: SHA-256 of its canonical JSON, in hex.
pub(crate) fn link_of(body: &str) -> String {
    hex::encode(Sha256::digest(body.as_bytes()))
}
