//! Stores the sign-ins that browsers began at OpenID providers, and the logout tokens that were used.

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Db, Statement, args};
use super::admission::SecretHash;
use super::{from_json, tenant_id, to_json};
use sepal_core::domain::{GestureCall, TenantId, Timestamp, UserId};
use serde::{Deserialize, Serialize};

/// A sign-in that a browser began.
#[derive(Clone)]
pub struct OidcFlow {
    /// The hash of its `state`.
    pub state: SecretHash,
    /// The hash of the cookie of its browser.
    pub browser: SecretHash,
    /// The provider's name in the settings.
    pub provider: String,
    /// The path of the page to which the person returns.
    pub return_to: String,
    pub expires_at: Timestamp,
    /// What the person confirms; `None` = they sign in.
    pub step_up: Option<StepUp>,
}

/// What a person confirms at their provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepUp {
    pub tenant: TenantId,
    pub user: UserId,
    /// The calls that they approve by it.
    pub calls: Vec<GestureCall>,
}

/// The sign-ins that a provider ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedAt<'a> {
    /// The issuer's address.
    pub issuer: &'a str,
    /// The account; `None` = every account of the session.
    pub subject: Option<&'a str>,
    /// The session at the issuer; `None` = every session of the account.
    pub sid: Option<&'a str>,
}

/// Access to the flows.
pub struct OidcFlows<'s> {
    db: &'s Db,
}

impl<'s> OidcFlows<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// Stores a flow.
    pub async fn add(&self, new: &OidcFlow) -> Result<(), Error> {
        let sql = "INSERT INTO oidc_flows (hash, browser, provider, return_to, expires_at, step_up) \
                   VALUES ($1, $2, $3, $4, $5, $6)";
        let step_up = new.step_up.as_ref();
        let step_up = step_up.map(|it| to_json("step-up", it)).transpose()?;
        let values = args![
            new.state.as_str(),
            new.browser.as_str(),
            new.provider.as_str(),
            new.return_to.as_str(),
            new.expires_at.0,
            step_up.as_deref()
        ];
        self.db.execute(sql, values).await?;
        Ok(())
    }

    /// Uses up a flow and returns the path to which its person returns. `None` if this browser began none
    /// with this state at this provider, or if it was used or has expired.
    pub async fn take(
        &self,
        state: &SecretHash,
        browser: &SecretHash,
        provider: &str,
        now: Timestamp,
    ) -> Result<Option<String>, Error> {
        let sql = "DELETE FROM oidc_flows WHERE hash = $1 AND browser = $2 AND provider = $3 \
                   AND expires_at > $4 AND step_up IS NULL RETURNING return_to";
        let values = args![state.as_str(), browser.as_str(), provider, now.0];
        let rows: Vec<(String,)> = self.db.execute_returning(sql, values).await?;
        Ok(rows.into_iter().next().map(|(return_to,)| return_to))
    }

    /// Uses up a flow in which somebody confirms something. Returns the provider's name and what they confirm; `None`
    /// as for [`Self::take`].
    pub async fn take_step_up(
        &self,
        state: &SecretHash,
        browser: &SecretHash,
        now: Timestamp,
    ) -> Result<Option<(String, StepUp)>, Error> {
        let sql = "DELETE FROM oidc_flows WHERE hash = $1 AND browser = $2 AND expires_at > $3 \
                   AND step_up IS NOT NULL RETURNING provider, step_up";
        let values = args![state.as_str(), browser.as_str(), now.0];
        let rows: Vec<(String, String)> = self.db.execute_returning(sql, values).await?;
        let row = rows.into_iter().next();
        row.map(|(provider, text)| Ok((provider, from_json("step-up", &text)?)))
            .transpose()
    }

    /// The sign-ins, of any tenant, that end with a session or an account at an issuer: their tenants and ids.
    /// None if neither is named. If both are, a sign-in whose session the issuer did not name ends, too.
    pub async fn sign_ins(&self, ended: EndedAt<'_>) -> Result<Vec<(TenantId, String)>, Error> {
        if ended.subject.is_none() && ended.sid.is_none() {
            return Ok(Vec::new());
        }
        let sql = "SELECT tenant, id FROM web_sessions WHERE issuer = $1 \
                   AND ($2 = '' OR subject = $2) \
                   AND ($3 = '' OR sid = $3 OR ($2 <> '' AND sid IS NULL))";
        let values = args![
            ended.issuer,
            ended.subject.unwrap_or_default(),
            ended.sid.unwrap_or_default()
        ];
        let rows: Vec<(String, String)> = self.db.fetch_all(sql, values).await?;
        rows.into_iter()
            .map(|(tenant, id)| Ok((tenant_id(tenant)?, id)))
            .collect()
    }

    /// Uses up a logout token and ends sign-ins, as one step. Returns false, and ends none, if the token was
    /// used before. `token` is the hash of its issuer and `jti`, kept until `expires_at`.
    pub async fn log_out(
        &self,
        token: &SecretHash,
        expires_at: Timestamp,
        sign_ins: &[(TenantId, String)],
    ) -> Result<bool, Error> {
        let mut statements = vec![Statement::required(
            "INSERT INTO oidc_logouts (hash, expires_at) VALUES ($1, $2) \
             ON CONFLICT (hash) DO NOTHING",
            args![token.as_str(), expires_at.0],
        )];
        statements.extend(ended(sign_ins));
        Ok(self.db.execute_all(statements).await?.is_some())
    }

    /// Ends sign-ins for which no logout token was sent.
    pub async fn end(&self, sign_ins: &[(TenantId, String)]) -> Result<(), Error> {
        if !sign_ins.is_empty() {
            let statements = ended(sign_ins).collect();
            self.db.execute_all(statements).await?;
        }
        Ok(())
    }

    /// Deletes expired flows and the memory of expired logout tokens.
    pub async fn remove_old(&self, now: Timestamp) -> Result<(), Error> {
        for sql in [
            "DELETE FROM oidc_flows WHERE expires_at <= $1",
            "DELETE FROM oidc_logouts WHERE expires_at <= $1",
        ] {
            self.db.keep_up(sql, args![now.0]).await?;
        }
        Ok(())
    }
}

/// The statements that end sign-ins because a provider says so.
fn ended(sign_ins: &[(TenantId, String)]) -> impl Iterator<Item = Statement> {
    sign_ins.iter().map(|(tenant, id)| {
        let act = Act::new(ActName::SignedOut, tenant, "sign_in", id.as_str());
        Statement::new(
            "DELETE FROM web_sessions WHERE tenant = $1 AND id = $2",
            args![tenant.as_str(), id.as_str()],
        )
        .recorded(act.detail("byProvider", true))
    })
}
