//! Stores decisions about single tools.

use super::{Administration, unknown};
use crate::catalogue::tool_report::ToolReport;
use crate::error::Error;
use crate::permission::must_look_after;
use sepal_core::domain::{Digest, ToolRef};
use sepal_core::session::PolicyEffect;
use sepal_store::records::ToolSetting;

/// A decision about one tool.
#[derive(Debug, Clone, Default)]
pub struct ToolChange {
    /// Enables or disables the tool.
    pub enabled: Option<bool>,
    /// The effect on its calls.
    pub effect: Option<PolicyEffect>,
    /// The hash of the definition that the person saw.
    pub hash: Option<Digest>,
}

impl ToolChange {
    /// Returns true if the decision accepts the current definition. A drifted definition is accepted only if
    /// the decision names its hash.
    fn accepts(&self, is_drifted: bool) -> bool {
        self.effect.is_some() && (self.hash.is_some() || !is_drifted)
    }

    /// Returns true if the decision is about the current definition. A decision without a hash may always
    /// restrict a drifted tool, but not permit it.
    fn is_about(&self, now: &Digest, is_drifted: bool) -> bool {
        let lets_more = matches!(self.effect, Some(PolicyEffect::Allow | PolicyEffect::Ask));
        match &self.hash {
            Some(seen) => seen == now,
            None => !(is_drifted && lets_more),
        }
    }
}

impl Administration<'_> {
    /// Stores a decision about one tool for everybody who is offered its server. A decision with the current
    /// hash and an effect also accepts the definition.
    pub async fn set_tool(
        &self,
        name: &str,
        tool: &str,
        change: ToolChange,
    ) -> Result<ToolReport, Error> {
        let tenant = &self.caller.tenant.id;
        let _alone = self.servers.0.changing.lock().await;
        let offering = self.servers.offering_to_manage(self.caller).await?;
        let server = offering.server(name).ok_or_else(|| unknown(name))?;
        must_look_after(self.caller, &server.entry)?;
        let mut listed = server.listed.iter().flat_map(|tools| tools.iter());
        let known = listed.find(|known| known.name == tool);
        let known = known.ok_or_else(|| Error::NoTool {
            server: name.to_owned(),
            tool: tool.to_owned(),
        })?;
        let is_drifted = server.drift(known).is_some();
        if !change.is_about(&known.hash(), is_drifted) {
            let now = ToolReport::new(&offering, server, known);
            return Err(Error::ChangedTool(Box::new(now)));
        }
        let (enabled, effect) = server.setting(tool);
        let setting = ToolSetting {
            tool: ToolRef {
                server: name.to_owned(),
                tool: tool.to_owned(),
            },
            is_enabled: change.enabled.unwrap_or(enabled),
            effect: change.effect.unwrap_or(effect),
        };
        self.servers
            .0
            .records
            .tool_settings()
            .put(tenant, &setting)
            .await?;
        // Last: a setting that somebody changed meanwhile is refused, and the definition stays unaccepted.
        if change.accepts(is_drifted) {
            self.servers
                .0
                .definitions
                .accept(tenant, name, known)
                .await?;
        }
        self.servers.policy_changed(tenant);
        let offering = self.servers.offering_to_manage(self.caller).await?;
        let server = offering.server(name).ok_or_else(|| unknown(name))?;
        Ok(ToolReport::new(&offering, server, known))
    }
}
