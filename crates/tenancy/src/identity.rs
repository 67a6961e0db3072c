//! Signs people in by their account at an OpenID provider, and out when the provider says so.
//!
//! Knows nothing of the protocol: the gateway hands over what a provider's verified tokens say.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use secrecy::{ExposeSecret as _, SecretString};

use super::credential::Revocation;
use super::device::Visitor;
use super::refusals::Attempt;
use super::sign_in::{SignedIn, new_sign_in};
use super::{Error, Tenancy, admin, secret};
use sepal_core::domain::{CredentialId, Role, Scope, Tenant, Timestamp, User, UserId};
use sepal_store::audit::ActName;
use sepal_store::records::{
    AccountName, DirectoryKey, EndedAt, GroupsChange, Identity, IdentitySignIn, NewUser, OidcFlow,
    SecretHash, StepUp,
};

/// The time, in milliseconds, within which a person has to come back from the provider.
pub const FLOW_LIFE_MS: u64 = 10 * 60_000;

/// The time, in milliseconds, for which a used logout token is remembered.
const LOGOUT_MEMORY_MS: u64 = 60 * 60_000;

/// The longest path of the page to which a person returns, in bytes.
const MAX_RETURN: usize = 512;

/// The names that are tried for a new person before the sign-in fails.
const MOST_NAMES: usize = 50;

/// The tries of a first sign-in: another one may take the name, or bind the account, at the same time.
const MOST_TRIES: usize = 5;

/// The reason the rules keep an account out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotLetIn {
    /// The installation has no owner yet.
    #[error("this installation is not set up yet: its operator opens the setup link first")]
    SetupNeeded,
    /// No tenant is meant for the account.
    #[error("no team here is meant for your account: ask an administrator of this installation")]
    NoTenant,
    /// The tenant is chosen by the mail domain, and the provider does not vouch for the address.
    #[error(
        "your provider does not say that your mail address is verified, and the address decides which \
         team you come into: verify it there, then try again"
    )]
    MailNotVerified,
    /// None of the account's groups lets it in.
    #[error("none of your groups may enter here: ask your administrator for one that may")]
    NoRole,
    /// Nobody here has this account, and the rules make nobody.
    #[error("nobody here has this account yet: ask an administrator to let you in")]
    NoPerson,
    /// The person is disabled.
    #[error("your access here has been ended: ask an administrator to restore it")]
    Disabled,
    /// The tenant is suspended.
    #[error("your team is suspended: ask an administrator of this installation")]
    Suspended,
}

impl NotLetIn {
    /// The word for clients.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SetupNeeded => "setup_needed",
            Self::NoTenant => "no_tenant",
            Self::MailNotVerified => "mail_not_verified",
            Self::NoRole => "no_role",
            Self::NoPerson => "no_person",
            Self::Disabled => "disabled",
            Self::Suspended => "suspended",
        }
    }
}

/// The rules by which the accounts of a provider come in.
#[derive(Debug, Clone)]
pub struct EntryRules {
    pub tenant: TenantChoice,
    /// The role of each group; empty = groups decide nothing.
    pub roles: BTreeMap<String, Role>,
    pub groups: GroupRules,
    /// The role of a new person, and of everybody without such a group; `None` = they are not let in.
    pub default_role: Option<Role>,
    /// True if a person is made at the first sign-in of an account.
    pub makes_people: bool,
    /// How an account that signs in for the first time is that of a person whom the tenant's directory made;
    /// `None` = it never is.
    pub directory_link: Option<DirectoryLink>,
}

/// The claim of an account by which it belongs to a person whom the tenant's directory made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectoryLink {
    /// The account's id at the issuer (`sub`) is the directory's own id of the person.
    Subject,
    /// The account's user name is the person's name in the directory.
    PreferredUsername,
    /// The account's mail address, which the issuer vouches for, is the person's name in the directory.
    Email,
}

/// The groups here that the groups of a provider fill at each sign-in.
#[derive(Debug, Clone, Default)]
pub struct GroupRules {
    /// The name of a group here by the provider's group.
    pub named: BTreeMap<String, String>,
    /// True if a group of the provider fills the group of the same name.
    pub has_same_names: bool,
}

/// The tenant into which accounts come.
#[derive(Debug, Clone)]
pub enum TenantChoice {
    /// All come into the tenant of this name.
    Fixed(String),
    /// The names of the tenants by the domain of the mail address, in lower case.
    ByDomain(BTreeMap<String, String>),
}

/// An account, as the provider's verified tokens describe it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Account {
    /// The issuer's address.
    pub issuer: String,
    /// The account's id at the issuer.
    pub subject: String,
    /// The session at the issuer.
    pub sid: Option<String>,
    pub preferred_username: Option<String>,
    pub email: Option<String>,
    /// True if the issuer vouches for the address.
    pub is_email_verified: bool,
    pub name: Option<String>,
    pub groups: Vec<String>,
}

/// The sign-ins that a logout token ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedSession {
    pub issuer: String,
    /// The token's own id.
    pub jti: String,
    /// The account; `None` = every account of the session.
    pub subject: Option<String>,
    /// The session at the issuer; `None` = every session of the account.
    pub sid: Option<String>,
}

/// The secrets of one sign-in at a provider.
#[derive(Debug, Clone)]
pub struct FlowSecrets {
    pub state: SecretString,
    pub nonce: SecretString,
    /// The PKCE verifier.
    pub verifier: SecretString,
}

/// A sign-in that a browser began.
pub struct BegunSignIn {
    /// The secret for the browser's cookie; stored nowhere.
    pub browser: SecretString,
    pub secrets: FlowSecrets,
}

impl FlowSecrets {
    /// Derives nonce and verifier, so that they need not be stored: only the browser that began can tell them.
    pub(super) fn of(browser: &SecretString, state: SecretString) -> Self {
        Self {
            nonce: secret::derive("sepal oidc nonce", browser, &state),
            verifier: secret::derive("sepal oidc verifier", browser, &state),
            state,
        }
    }
}

impl EntryRules {
    /// The name of the tenant into which an account comes.
    fn tenant_of(&self, account: &Account) -> Result<&str, NotLetIn> {
        match &self.tenant {
            TenantChoice::Fixed(name) => Ok(name),
            TenantChoice::ByDomain(domains) => {
                let email = account.email.as_deref().unwrap_or_default();
                let (_, domain) = email.rsplit_once('@').ok_or(NotLetIn::NoTenant)?;
                let name = domains.get(&domain.to_lowercase());
                let name = name.ok_or(NotLetIn::NoTenant)?;
                if account.is_email_verified {
                    Ok(name)
                } else {
                    Err(NotLetIn::MailNotVerified)
                }
            }
        }
    }

    /// The lower-case names of the groups here in which the account's groups put its person; `None` = the
    /// provider fills no groups.
    fn groups_of(&self, account: &Account) -> Option<BTreeSet<String>> {
        let GroupRules {
            named,
            has_same_names,
        } = &self.groups;
        if named.is_empty() && !has_same_names {
            return None;
        }
        let mut names = BTreeSet::new();
        for group in &account.groups {
            names.extend(named.get(group).map(|name| name.to_lowercase()));
            if *has_same_names {
                names.insert(group.to_lowercase());
            }
        }
        Some(names)
    }

    /// The highest role that the account's groups give, or the default.
    fn role_of(&self, account: &Account) -> Result<Role, NotLetIn> {
        let groups = account.groups.iter();
        let given = groups.filter_map(|group| self.roles.get(group)).max();
        given.copied().or(self.default_role).ok_or(NotLetIn::NoRole)
    }
}

impl Account {
    /// The name of a new person: the account's user name, else its mail address, else its name, with the
    /// letters that names may have here.
    fn name(&self) -> String {
        let given = [&self.preferred_username, &self.email, &self.name];
        let names = given.into_iter().flatten();
        let mut names = names
            .map(|name| readable(name))
            .filter(|name| !name.is_empty());
        names.next().unwrap_or_else(|| "person".to_owned())
    }

    /// The value by which the tenant's directory knows the account; `None` = it cannot be told.
    fn directory_key(&self, link: DirectoryLink) -> Option<DirectoryKey<'_>> {
        match link {
            DirectoryLink::Subject => Some(DirectoryKey::ExternalId(&self.subject)),
            DirectoryLink::PreferredUsername => {
                let name = self.preferred_username.as_deref()?;
                Some(DirectoryKey::UserName(name))
            }
            DirectoryLink::Email => {
                let email = self.email.as_deref().filter(|_| self.is_email_verified)?;
                Some(DirectoryKey::UserName(email))
            }
        }
    }

    /// The issuer with the account's id there.
    pub fn key(&self) -> AccountName {
        AccountName {
            issuer: self.issuer.clone(),
            subject: self.subject.clone(),
        }
    }

    fn identity(&self) -> Identity {
        Identity {
            issuer: self.issuer.clone(),
            subject: self.subject.clone(),
            sid: self.sid.clone(),
        }
    }
}

/// The part of a foreign name that may be a name here, with room for a number at its end.
pub(super) fn readable(name: &str) -> String {
    let letters = name.chars().filter(|letter| {
        admin::check_user_name(letter.encode_utf8(&mut [0; 4])).is_ok() || *letter == ' '
    });
    let short: String = letters
        .take(admin::MAX_NAME_CHARS.saturating_sub(4))
        .collect();
    short.trim().to_owned()
}

/// Checks the path of our page to which a person returns: it never leads to another site.
fn check_return(path: &str) -> Result<&str, Error> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
    let is_ours = path.starts_with('/') && !path.starts_with("//");
    if is_ours && path.len() <= MAX_RETURN && path.bytes().all(is_plain) {
        return Ok(path);
    }
    Err(Error::Invalid {
        field: "returnTo",
        reason: "is a path of this page, such as `/s/new`",
    })
}

impl Tenancy {
    /// Begins a sign-in at a provider. It has to end within [`FLOW_LIFE_MS`], in the same browser. `browser` is
    /// the cookie of another sign-in that this browser began.
    pub async fn begin_sign_in(
        &self,
        provider: &str,
        browser: Option<SecretString>,
        return_to: &str,
        visitor: Visitor<'_>,
    ) -> Result<BegunSignIn, Error> {
        let return_to = check_return(return_to)?.to_owned();
        self.count_begun(visitor)?;
        self.begin_flow(provider, browser, return_to, None).await
    }

    /// Begins a sign-in, or a confirmation.
    pub(super) async fn begin_flow(
        &self,
        provider: &str,
        browser: Option<SecretString>,
        return_to: String,
        step_up: Option<StepUp>,
    ) -> Result<BegunSignIn, Error> {
        let known = browser.filter(|it| secret::is_random(it.expose_secret()));
        let browser = known.unwrap_or_else(secret::random);
        let state = secret::random();
        let flows = self.records().oidc_flows();
        flows
            .add(&OidcFlow {
                state: secret::hash(&state),
                browser: secret::hash(&browser),
                provider: provider.to_owned(),
                return_to,
                expires_at: self.after(FLOW_LIFE_MS),
                step_up,
            })
            .await?;
        let secrets = FlowSecrets::of(&browser, state);
        Ok(BegunSignIn { browser, secrets })
    }

    /// Counts a sign-in that is begun without a name: for its browser if somebody signed in there before, else for
    /// its address.
    pub(super) fn count_begun(&self, visitor: Visitor<'_>) -> Result<(), Error> {
        let limits = &self.parts.limits;
        match self.device(visitor.device) {
            Some(device) => limits.attempt_from(&device),
            None => limits.attempt_link(visitor.peer),
        }
    }

    /// Uses up a sign-in that this browser began at a provider. Returns its secrets, and the path to which the
    /// person returns; `NotValid` if this browser began none, or it was used or has expired.
    pub async fn resume_sign_in(
        &self,
        provider: &str,
        browser: &SecretString,
        state: SecretString,
        peer: IpAddr,
    ) -> Result<(FlowSecrets, String), Error> {
        let (of_state, of_browser) = (secret::hash(&state), secret::hash(browser));
        let flows = self.records().oidc_flows();
        let taken = flows
            .take(&of_state, &of_browser, provider, self.now())
            .await?;
        let Some(return_to) = taken else {
            self.parts.limits.attempt_link(peer)?;
            return Err(Error::NotValid);
        };
        Ok((FlowSecrets::of(browser, state), return_to))
    }

    /// Signs in by an account that a provider vouches for. Makes the person if nobody has the account and the
    /// rules allow it, and gives them the role of their groups.
    pub async fn sign_in_by_account(
        &self,
        account: &Account,
        rules: &EntryRules,
        peer: IpAddr,
    ) -> Result<SignedIn, Error> {
        let result = self.enter_by_account(account, rules).await;
        let result = result.map(|signed_in| SignedIn {
            entered: signed_in.entered.by_account(Some(account.key())),
            ..signed_in
        });
        if let Err(Error::NotLetIn(_)) = &result {
            let tenant = match rules.tenant_of(account) {
                Ok(name) => self.records().tenants().find_by_name(name).await?,
                Err(_) => None,
            };
            let known = match &tenant {
                Some(tenant) => {
                    let identities = self.records().identities();
                    identities.find(&tenant.id, &account.identity()).await?
                }
                None => None,
            };
            let attempt = Attempt {
                name: ActName::SignInFailed,
                chain: tenant.map_or(Scope::Installation, |it| Scope::Tenant(it.id)),
                kind: "user",
                subject: known.map_or_else(String::new, |id| id.to_string()),
                peer: None,
            };
            self.note_attempt(attempt.from(peer), None).await;
        }
        result
    }

    /// Signs in by an account that the sign-in proxy names. Attempts of one account are limited, because a browser
    /// needs only one.
    pub async fn sign_in_by_proxy(
        &self,
        account: &Account,
        rules: &EntryRules,
        peer: IpAddr,
    ) -> Result<SignedIn, Error> {
        let Account {
            issuer, subject, ..
        } = account;
        self.parts
            .limits
            .attempt_of(&format!("{issuer}/{subject}"))?;
        self.sign_in_by_account(account, rules, peer).await
    }

    async fn enter_by_account(
        &self,
        account: &Account,
        rules: &EntryRules,
    ) -> Result<SignedIn, Error> {
        if self.setup().check_needed().await? {
            // The first person becomes the owner of everything, who no provider decides.
            return Err(NotLetIn::SetupNeeded.into());
        }
        let name = rules.tenant_of(account)?;
        let tenant = self.records().tenants().find_by_name(name).await?;
        let tenant = tenant.ok_or(NotLetIn::NoTenant)?;
        let identity = account.identity();
        for _ in 0..MOST_TRIES {
            let identities = self.records().identities();
            let known = match identities.find(&tenant.id, &identity).await? {
                Some(user) => Some(user),
                None => self.bind_to_directory(&tenant, account, rules).await?,
            };
            let entered = match known {
                Some(user) => {
                    return self.enter_known(&tenant, &user, account, rules).await;
                }
                None if rules.makes_people => self.enter_new(&tenant, account, rules).await?,
                None => return Err(NotLetIn::NoPerson.into()),
            };
            if let Some(signed_in) = entered {
                return Ok(signed_in);
            }
        }
        Err(Error::NotValid)
    }

    /// Binds an account to the person whom the tenant's directory made for it, once. Nobody is bound who was here
    /// before the directory, or has an account already.
    async fn bind_to_directory(
        &self,
        tenant: &Tenant,
        account: &Account,
        rules: &EntryRules,
    ) -> Result<Option<UserId>, Error> {
        let link = rules.directory_link;
        let Some(key) = link.and_then(|link| account.directory_key(link)) else {
            return Ok(None);
        };
        let directories = self.records().directories();
        let identity = account.identity();
        let bound = directories.bind(&tenant.id, key, &identity, self.now());
        Ok(bound.await?)
    }

    async fn enter_known(
        &self,
        tenant: &Tenant,
        user: &UserId,
        account: &Account,
        rules: &EntryRules,
    ) -> Result<SignedIn, Error> {
        let record = self.records().users().find(&tenant.id, user).await?;
        let record = record.ok_or(Error::NotValid)?;
        if record.is_suspended {
            return Err(NotLetIn::Suspended.into());
        }
        if record.is_disabled {
            return Err(NotLetIn::Disabled.into());
        }
        let role = if rules.roles.is_empty() {
            None
        } else {
            Some(rules.role_of(account)?)
        };
        let (sign_in, secret) = new_sign_in(&record.user, None);
        let id = sign_in.id.clone();
        let known = IdentitySignIn {
            sign_in,
            identity: account.identity(),
            role: role.filter(|role| *role != record.user.role),
            groups: self.group_change(tenant, user, account, rules).await?,
        };
        let identities = self.records().identities();
        if !identities.sign_in(&known, self.now()).await? {
            return Err(Error::NotValid);
        }
        self.parts.checked.forget_user(user);
        if known.groups != GroupsChange::default() {
            self.groups_changed(&tenant.id);
        }
        let now = self.records().users().find(&tenant.id, user).await?;
        let user = now.ok_or(Error::NotValid)?.user;
        let caller = self.caller_of(user, tenant.clone()).await?;
        Ok(SignedIn::new(caller, id, secret))
    }

    /// Makes the person of an account; `None` if the name was taken or the account bound meanwhile.
    async fn enter_new(
        &self,
        tenant: &Tenant,
        account: &Account,
        rules: &EntryRules,
    ) -> Result<Option<SignedIn>, Error> {
        let role = rules.role_of(account)?;
        let user = User {
            id: UserId::from_bits(rand::random()),
            tenant: tenant.id.clone(),
            name: self.free_name(tenant, &account.name()).await?,
            role,
            installation_admin: false,
        };
        let (sign_in, secret) = new_sign_in(&user, None);
        let id = sign_in.id.clone();
        let first = IdentitySignIn {
            sign_in,
            identity: account.identity(),
            role: None,
            groups: self.group_change(tenant, &user.id, account, rules).await?,
        };
        let new = NewUser {
            user: user.clone(),
            password_hash: None,
            is_local: false,
        };
        let identities = self.records().identities();
        match identities.add(&new, &first, self.now()).await {
            Ok(true) => {
                if first.groups != GroupsChange::default() {
                    self.groups_changed(&tenant.id);
                }
                let caller = self.caller_of(user, tenant.clone()).await?;
                Ok(Some(SignedIn::new(caller, id, secret)))
            }
            Ok(false) => Err(NotLetIn::Suspended.into()),
            Err(sepal_store::Error::Taken(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The groups that a person joins and leaves, because their provider says so.
    async fn group_change(
        &self,
        tenant: &Tenant,
        user: &UserId,
        account: &Account,
        rules: &EntryRules,
    ) -> Result<GroupsChange, Error> {
        let Some(names) = rules.groups_of(account) else {
            return Ok(GroupsChange::default());
        };
        let groups = self.records().user_groups();
        let all = groups.list(&tenant.id, None).await?.into_iter();
        let wanted: BTreeSet<String> = all
            .filter(|listed| names.contains(&listed.group.name.to_lowercase()))
            .map(|listed| listed.group.id)
            .collect();
        let known = groups.filled(&tenant.id, user, &account.issuer).await?;
        Ok(GroupsChange {
            leaves: known.difference(&wanted).cloned().collect(),
            joins: wanted.difference(&known).cloned().collect(),
        })
    }

    /// The name itself, or with the first number behind it that nobody in the tenant has.
    async fn free_name(&self, tenant: &Tenant, name: &str) -> Result<String, Error> {
        let users = self.records().users();
        for number in 1..=MOST_NAMES {
            let tried = match number {
                1 => name.to_owned(),
                number => format!("{name}{number}"),
            };
            if users.find_by_name(&tenant.id, &tried).await?.is_none() {
                return Ok(tried);
            }
        }
        Err(Error::Refused(
            "too many people here have this name: ask an administrator",
        ))
    }

    /// Ends the sign-ins that a provider's logout token names, and their sockets. Returns their number;
    /// `NotValid` if the token was used before.
    pub async fn end_session(&self, ended: &EndedSession) -> Result<usize, Error> {
        let flows = self.records().oidc_flows();
        let sign_ins = flows
            .sign_ins(EndedAt {
                issuer: &ended.issuer,
                subject: ended.subject.as_deref(),
                sid: ended.sid.as_deref(),
            })
            .await?;
        let token = SecretHash::of(&format!("{}\n{}", ended.issuer, ended.jti));
        let until = self.after(LOGOUT_MEMORY_MS);
        if !flows.log_out(&token, until, &sign_ins).await? {
            return Err(Error::NotValid);
        }
        let count = sign_ins.len();
        for (_, id) in sign_ins {
            let ended = CredentialId::SignIn(id);
            self.revoke(Revocation::Credential(ended));
        }
        Ok(count)
    }

    /// Ends the sign-ins of a session at a provider, and their sockets. Whoever knows the session's id may do it, so
    /// attempts that end nothing are limited. Returns their number.
    pub async fn end_session_by_sid(
        &self,
        issuer: &str,
        sid: &str,
        peer: IpAddr,
    ) -> Result<usize, Error> {
        let flows = self.records().oidc_flows();
        let ended = EndedAt {
            issuer,
            subject: None,
            sid: Some(sid),
        };
        let sign_ins = flows.sign_ins(ended).await?;
        if sign_ins.is_empty() {
            self.parts.limits.attempt_link(peer)?;
            return Ok(0);
        }
        flows.end(&sign_ins).await?;
        let count = sign_ins.len();
        for (_, id) in sign_ins {
            let ended = CredentialId::SignIn(id);
            self.revoke(Revocation::Credential(ended));
        }
        Ok(count)
    }

    fn after(&self, life_ms: u64) -> Timestamp {
        Timestamp(self.now().0.saturating_add_unsigned(life_ms))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Account, EntryRules, GroupRules, NotLetIn, TenantChoice, check_return};
    use sepal_core::domain::Role;

    fn rules(tenant: TenantChoice, default_role: Option<Role>) -> EntryRules {
        let roles = [("staff", Role::Member), ("ops", Role::Admin)];
        EntryRules {
            tenant,
            roles: roles.map(|(group, role)| (group.to_owned(), role)).into(),
            groups: GroupRules::default(),
            default_role,
            makes_people: true,
            directory_link: None,
        }
    }

    fn account(email: &str, is_email_verified: bool, groups: &[&str]) -> Account {
        Account {
            email: Some(email.to_owned()),
            is_email_verified,
            groups: groups.iter().map(|&it| it.to_owned()).collect(),
            ..Account::default()
        }
    }

    #[test]
    fn the_highest_role_of_the_groups_counts() {
        let check = |default, groups: &[&str], expected| {
            let rules = rules(TenantChoice::Fixed("acme".to_owned()), default);
            assert_eq!(rules.role_of(&account("a@b.c", true, groups)), expected);
        };
        check(None, &["ops", "staff", "x"], Ok(Role::Admin));
        check(Some(Role::Viewer), &["staff"], Ok(Role::Member));
        check(Some(Role::Viewer), &["x"], Ok(Role::Viewer));
        check(None, &["x"], Err(NotLetIn::NoRole));
        check(None, &["Staff"], Err(NotLetIn::NoRole));
    }

    #[test]
    fn a_mail_domain_chooses_the_tenant_only_if_the_address_is_verified() {
        let domains = [("acme.com".to_owned(), "acme".to_owned())];
        let domains = TenantChoice::ByDomain(BTreeMap::from(domains));
        let rules = rules(domains, None);
        for (email, is_verified, expected) in [
            ("ann@acme.com", true, Ok("acme")),
            ("ann@ACME.com", true, Ok("acme")),
            ("ann@acme.com", false, Err(NotLetIn::MailNotVerified)),
            ("ann@evil.com", true, Err(NotLetIn::NoTenant)),
            ("ann@acme.com@evil.com", true, Err(NotLetIn::NoTenant)),
            ("acme.com", true, Err(NotLetIn::NoTenant)),
        ] {
            let account = account(email, is_verified, &[]);
            assert_eq!(rules.tenant_of(&account), expected, "{email}");
        }
    }

    #[test]
    fn a_person_gets_a_readable_name() {
        let named = |username: Option<&str>, email: Option<&str>, name: Option<&str>| {
            let account = Account {
                preferred_username: username.map(str::to_owned),
                email: email.map(str::to_owned),
                name: name.map(str::to_owned),
                ..Account::default()
            };
            account.name()
        };
        assert_eq!(named(Some("ann"), Some("a@b.c"), Some("Ann")), "ann");
        assert_eq!(named(Some("<>"), Some("a@b.c"), Some("Ann")), "a@b.c");
        assert_eq!(
            named(None, None, Some(" Ann\u{202e} O'Hara ")),
            "Ann O'Hara"
        );
        assert_eq!(named(None, None, None), "person");
        assert_eq!(named(Some(&"x".repeat(99)), None, None).len(), 60);
    }

    #[test]
    fn the_way_back_is_a_path_of_our_page() {
        for (path, is_ours) in [
            ("/s/new", true),
            ("/rules?x=1", true),
            ("", false),
            ("s/new", false),
            ("//evil.example", false),
            ("/\\evil.example", false),
            ("https://evil.example", false),
            ("/a b", false),
            ("/a\r\nSet-Cookie: x", false),
        ] {
            assert_eq!(check_return(path).is_ok(), is_ours, "{path:?}");
        }
        assert!(check_return(&format!("/{}", "x".repeat(512))).is_err());
    }
}
