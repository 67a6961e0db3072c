//! Stores the default models of new sessions, set for the installation, for a tenant, or by a user for
//! themselves.

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Db, args};
use super::super::versions::RecordName;
use super::{scope, user_id};
use sepal_core::domain::{Scope, Timestamp, UserId};

/// A stored default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelDefault {
    pub scope: Scope,
    /// The user to whom the default applies; `None` = everyone in the scope.
    pub user: Option<UserId>,
    pub provider: String,
    /// The model's name at the provider.
    pub model: String,
    /// The time at which the default was set.
    pub updated_at: Timestamp,
}

/// Access to the stored defaults.
pub struct ModelDefaults<'s> {
    db: &'s Db,
}

impl<'s> ModelDefaults<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// The defaults of every scope and user, for the start of the server.
    pub async fn all(&self) -> Result<Vec<ModelDefault>, Error> {
        let sql = "SELECT * FROM model_defaults ORDER BY scope, user_id";
        let rows: Vec<Row> = self.db.fetch_all(sql, args![]).await?;
        rows.into_iter().map(Row::into_default).collect()
    }

    /// Sets a default.
    pub async fn put(&self, default: &ModelDefault) -> Result<(), Error> {
        let act = of(
            ActName::ModelDefaultSet,
            &default.scope,
            default.user.as_ref(),
        )
        .detail("provider", default.provider.as_str())
        .detail("model", default.model.as_str());
        self.db
            .change(
                RecordName::model_default(&default.scope, default.user.as_ref()),
                act,
                "INSERT INTO model_defaults (scope, user_id, provider, model, updated_at) \
                 VALUES ($1, $2, $3, $4, $5) ON CONFLICT (scope, user_id) DO UPDATE SET \
                 provider = excluded.provider, model = excluded.model, \
                 updated_at = excluded.updated_at",
                args![
                    default.scope.as_str(),
                    default.user.as_ref().map_or("", UserId::as_str),
                    default.provider.as_str(),
                    default.model.as_str(),
                    default.updated_at.0
                ],
            )
            .await?;
        Ok(())
    }

    /// Deletes a default.
    pub async fn delete(&self, scope: &Scope, user: Option<&UserId>) -> Result<(), Error> {
        let sql = "DELETE FROM model_defaults WHERE scope = $1 AND user_id = $2";
        let act = of(ActName::ModelDefaultRemoved, scope, user);
        let record = RecordName::model_default(scope, user);
        let values = args![scope.as_str(), user.map_or("", UserId::as_str)];
        self.db.change(record, act, sql, values).await?;
        Ok(())
    }
}

/// An act on the default of a person, or of everybody in the scope.
fn of(name: ActName, scope: &Scope, user: Option<&UserId>) -> Act {
    match user {
        Some(user) => Act::new(name, scope, "user", user.as_str()),
        None => Act::new(name, scope, "tenant", scope.as_str()),
    }
}

#[derive(sqlx_macros::FromRow)]
struct Row {
    scope: String,
    user_id: String,
    provider: String,
    model: String,
    updated_at: i64,
}

impl Row {
    fn into_default(self) -> Result<ModelDefault, Error> {
        let user = Some(self.user_id).filter(|id| !id.is_empty());
        Ok(ModelDefault {
            scope: scope(self.scope)?,
            user: user.map(user_id).transpose()?,
            provider: self.provider,
            model: self.model,
            updated_at: Timestamp(self.updated_at),
        })
    }
}
