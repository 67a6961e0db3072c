//! Stores whether and where a person gets mail when calls wait for them.

use super::Notifications;
use super::access::NotificationError;
use crate::domain::{Caller, Code};
use crate::net::is_mail_address;
use crate::session::Refusal;
use crate::store::clock::now;
use crate::store::records::MailChoice;

/// A person's mail setting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MailSetting {
    /// True if this installation sends mail at all.
    pub is_available: bool,
    /// `None` = no address given.
    pub address: Option<String>,
    /// True if they get mail when calls wait for them.
    pub is_on: bool,
}

impl Notifications {
    /// Returns the caller's own setting.
    pub async fn mail_setting(&self, caller: &Caller) -> Result<MailSetting, NotificationError> {
        let users = self.0.parts.records.users();
        let choice = users.mail(&caller.tenant.id, &caller.user.id).await?;
        Ok(MailSetting {
            is_available: self.0.parts.mailer.is_some(),
            address: choice.address,
            is_on: choice.since.is_some(),
        })
    }

    /// Stores the caller's own setting; an empty address counts as none.
    pub async fn set_mail(
        &self,
        caller: &Caller,
        address: Option<String>,
        is_on: bool,
    ) -> Result<MailSetting, NotificationError> {
        let wrong = |text: &str| Refusal::of_field(Code::InvalidArguments, "address", text);
        let address = address.map(|address| address.trim().to_owned());
        let address = address.filter(|address| !address.is_empty());
        if address.as_deref().is_some_and(|it| !is_mail_address(it)) {
            return Err(wrong("`address` is one mail address, such as `ana@example.org`").into());
        }
        if is_on && address.is_none() {
            return Err(wrong("mail needs an address").into());
        }
        let choice = MailChoice {
            address,
            since: is_on.then(now),
        };
        let users = self.0.parts.records.users();
        let whose = (&caller.tenant.id, &caller.user.id);
        users.set_mail(whose, &choice).await?;
        self.mail_setting(caller).await
    }
}
