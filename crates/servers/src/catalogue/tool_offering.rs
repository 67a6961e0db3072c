//! Builds the tool offering of a tenant, or of one person of it: the tools and rules of its sessions, and the servers
//! behind them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::deferred::{self, Deferred};
use super::entry::{BUNDLED, ServerEntry, Source};
use super::rule_sets::{ListedRule, RuleSets, is_rule};
use sepal_core::domain::{Digest, GroupAccess, TenantId, Timestamp, Tool, ToolRef, UserId};
use sepal_core::history;
use sepal_core::session::{PolicyEffect, Rules, SessionAssistant};
use sepal_llm::tokens;
use sepal_llm::tool_search::{Searchable, ServerTools};
use sepal_mcp::{Naming, Offer, Toolbox, ToolboxTool, is_offered};
use sepal_sandbox::Image;
use sepal_skills as skills;
use sepal_store::records::{RuleRow, ToolSetting};

/// The number of tools above which a warning is logged, because each definition is sent with each request.
const MANY_TOOLS: usize = 100;

/// The inputs of an offering; equal inputs give equal offerings.
#[derive(PartialEq)]
pub struct Ingredients {
    pub naming: Naming,
    pub servers: Vec<Ingredient>,
    /// The rules of the tenant and its people.
    pub rules: Vec<RuleRow>,
    /// The users of the tenant who own servers.
    pub owners: BTreeSet<UserId>,
    /// What the groups of the tenant keep for their members.
    pub access: Arc<GroupAccess>,
    /// The servers that are left out, because groups name them and the people of this offering are in none.
    pub closed: BTreeSet<String>,
}

/// One server of an offering.
#[derive(Clone, PartialEq)]
pub struct Ingredient {
    pub entry: Arc<ServerEntry>,
    /// The tools that it offers; `None` if it was never listed.
    pub listed: Option<Arc<[Tool]>>,
    /// The tools as the tenant accepted them.
    pub accepted: Arc<[Tool]>,
    /// When the server began to offer these tools.
    pub since: Option<Timestamp>,
    pub settings: Vec<ToolSetting>,
}

/// The tools and rules that the sessions of one tenant are offered, or of one person of it.
pub struct ToolOffering {
    pub ingredients: Ingredients,
    pub toolbox: Toolbox,
    /// The tools that views may call; made at the first such call.
    app_toolbox: OnceLock<Toolbox>,
    pub definitions: Arc<[Tool]>,
    /// The definitions that are sent if all definitions would take too much of a window; made when first
    /// needed.
    deferred: OnceLock<Deferred>,
    /// The two offers with Sepal's own tools: all definitions at [`OwnTools::place`], the deferred ones four
    /// places higher. Made when first needed.
    with_own: [OnceLock<ToolOffer>; 8],
    /// The estimated tokens of the definitions that may be deferred; counted when first needed.
    deferrable_tokens: OnceLock<u64>,
    /// The results of [`ToolOffering::identity`] for each server with the image of the first call, because every call
    /// asks for one.
    identities: OnceLock<(String, BTreeMap<String, Digest>)>,
    /// The rules that decide about calls.
    pub rules: RuleSets,
    /// The reasons why tools are not offered, by server.
    pub problems: BTreeMap<String, Vec<String>>,
}

/// The tool definitions that a model is sent.
#[derive(Clone)]
pub struct ToolOffer {
    pub definitions: Arc<[Tool]>,
    /// The definitions for a vendor with a tool search of its own; `None` if no definition is deferred.
    pub searchable: Option<Arc<Searchable>>,
}

/// The tools of Sepal's own that a model is told of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnTools {
    /// The tools that read skills.
    pub skills: bool,
    /// The tool that reads on in shortened results.
    pub read_more: bool,
}

impl OwnTools {
    /// The tools of skills, and the one that reads on, as far as they are offered.
    pub fn new(skills: bool, read_more: bool) -> Self {
        Self { skills, read_more }
    }

    fn place(self) -> usize {
        usize::from(self.skills) * 2 + usize::from(self.read_more)
    }
}

impl ToolOffer {
    /// Returns this offer with Sepal's own tools after all others. `read_more` comes last, because it appears
    /// in the middle of a session: everything before it stays the same, byte for byte.
    fn with_own(&self, own: OwnTools) -> Self {
        let with = |tools: &Arc<[Tool]>| {
            let skills = own.skills.then(skills::definitions);
            let more = own.read_more.then(history::read_more_definition);
            let own = skills.into_iter().flatten().chain(more);
            tools.iter().cloned().chain(own).collect()
        };
        let searchable = self.searchable.as_ref().map(|searchable| {
            Arc::new(Searchable {
                told: with(&searchable.told),
                servers: searchable.servers.clone(),
            })
        });
        Self {
            definitions: with(&self.definitions),
            searchable,
        }
    }
}

impl ToolOffer {
    /// Returns this offer without the definitions of the tools that a provider refused. The model can still
    /// find and call them.
    #[must_use]
    pub fn without(&self, refused: &[&str]) -> Self {
        if refused.is_empty() {
            return self.clone();
        }
        let ways = deferred::ways_to(refused);
        let kept = |tool: &&Tool| !refused.contains(&tool.name.as_str());
        let with_ways = |tools: &Arc<[Tool]>| -> Arc<[Tool]> {
            let has = |name: &str| tools.iter().any(|tool| tool.name == name);
            let missing = ways.iter().filter(|way| !has(&way.name));
            tools.iter().filter(kept).chain(missing).cloned().collect()
        };
        let searchable = self.searchable.as_ref().map(|searchable| {
            let servers = searchable.servers.iter().map(|of| ServerTools {
                server: of.server.clone(),
                tools: of.tools.iter().filter(kept).cloned().collect(),
            });
            Arc::new(Searchable {
                told: with_ways(&searchable.told),
                servers: servers.filter(|of| !of.tools.is_empty()).collect(),
            })
        });
        Self {
            definitions: with_ways(&self.definitions),
            searchable,
        }
    }
}

/// Whose offering it is: of a tenant, or of one of its people who own servers, without the closed servers.
pub(crate) type OfferingKey = (TenantId, Option<UserId>, BTreeSet<String>);

/// The cache of offerings.
#[derive(Default)]
pub(crate) struct ToolOfferings {
    pub known: HashMap<OfferingKey, KnownOffering>,
    /// The number of invalidations: an offering that was read before the last one is not cached.
    pub age: u64,
    /// The last offering that was made for sessions whose tenant's offering was not read yet.
    bare: Option<Arc<ToolOffering>>,
}

/// An offering that was made before.
#[derive(Clone)]
pub(crate) struct KnownOffering {
    /// The time of the read that it was made of; `None` if that has to be read again.
    pub read_at: Option<Instant>,
    pub offering: Arc<ToolOffering>,
}

impl ToolOfferings {
    /// Returns the offering of a session whose tenant's offering was not read yet. It is cached, because each session
    /// needs it when it opens and compiling schemas is expensive.
    pub(crate) fn bare(&mut self, ingredients: Ingredients, rules: &Rules) -> Arc<ToolOffering> {
        let known = self.bare.as_ref();
        if let Some(known) = known.filter(|known| known.ingredients == ingredients) {
            return Arc::clone(known);
        }
        Arc::clone(
            self.bare
                .insert(Arc::new(ToolOffering::new(ingredients, rules))),
        )
    }
}

impl Ingredient {
    /// Returns the setting of a tool: enabled or not, and its effect. By default a tool is enabled and asks.
    pub fn setting(&self, tool: &str) -> (bool, PolicyEffect) {
        let setting = self.settings.iter().find(|it| it.tool.tool == tool);
        setting.map_or((true, PolicyEffect::Ask), |it| (it.is_enabled, it.effect))
    }

    /// Returns since when the tool differs from the definition that the tenant accepted; `None` if it does
    /// not.
    pub fn drift(&self, tool: &Tool) -> Option<Timestamp> {
        let accepted = self.accepted.iter().find(|known| known.name == tool.name)?;
        (!accepted.is_known_as(tool)).then(|| self.since.unwrap_or(Timestamp(0)))
    }

    pub(crate) fn is_on(&self, tool: &Tool) -> bool {
        is_offered(&self.entry.config, tool) && self.setting(&tool.name).0
    }

    /// Returns true if the model is told of the tool.
    fn offers(&self, tool: &Tool) -> bool {
        self.is_on(tool) && !tool.needs_tasks && !tool.is_app_only()
    }

    /// Returns true if views of the tool's server may call the tool, whether or not models are told of it.
    fn offers_to_apps(&self, tool: &Tool) -> bool {
        self.is_on(tool) && !tool.needs_tasks && tool.is_for_apps()
    }

    /// Returns the naming and trust of its tools.
    fn offer(&self, naming: Naming) -> Offer<'_> {
        let config = &self.entry.config;
        Offer {
            server: &self.entry.name,
            prefix: config.tool_prefix.as_deref().unwrap_or_default(),
            naming: match self.entry.source {
                // The tools of the session's own sandbox keep their plain names.
                Source::Bundled => Naming::Auto,
                Source::Settings | Source::Installation | Source::Tenant | Source::Person => naming,
            },
            is_trusted: self.entry.source == Source::Bundled || config.trusted,
        }
    }

    /// Returns a message for people about each enabled tool that is not offered because it needs tasks.
    fn needing_tasks(&self) -> Vec<String> {
        let listed = self.listed.iter().flat_map(|tools| tools.iter());
        let left_out = listed.filter(|tool| tool.needs_tasks && self.is_on(tool));
        left_out
            .map(|tool| {
                format!(
                    "tool `{}` needs tasks, which its server `{}` does not declare: it is not offered",
                    tool.name, self.entry.name
                )
            })
            .collect()
    }
}

impl ToolOffering {
    pub(crate) fn new(ingredients: Ingredients, base: &Rules) -> Self {
        let mut toolbox = Toolbox::default();
        let mut problems = BTreeMap::new();
        for server in &ingredients.servers {
            if !server.entry.config.enabled {
                continue;
            }
            let offered = server.listed.iter().flat_map(|tools| tools.iter());
            let offered: Vec<Tool> = offered
                .filter(|tool| server.offers(tool))
                .cloned()
                .collect();
            let mut left_out = server.needing_tasks();
            let unfit = toolbox.add(server.offer(ingredients.naming), &offered);
            left_out.extend(unfit.iter().map(ToString::to_string));
            if !left_out.is_empty() {
                problems.insert(server.entry.name.clone(), left_out);
            }
        }
        let definitions = toolbox.definitions().cloned().collect();
        let enabled = ingredients.servers.iter();
        let enabled = enabled.filter(|server| server.entry.config.enabled);
        let settings = enabled.flat_map(|server| &server.settings);
        let rules = RuleSets::new(
            base,
            settings.filter(|it| is_rule(it)),
            &ingredients.rules,
            &ingredients.access,
            &ingredients.closed,
        );
        Self {
            ingredients,
            toolbox,
            app_toolbox: OnceLock::new(),
            definitions,
            deferred: OnceLock::new(),
            with_own: Default::default(),
            deferrable_tokens: OnceLock::new(),
            identities: OnceLock::new(),
            rules,
            problems,
        }
    }

    /// Returns this offering with only the tools that a session's assistant leaves it, of these servers. The
    /// sandbox's own server stays, even without a tool, because the session's files are reached through it.
    #[must_use]
    pub fn narrowed(
        &self,
        assistant: Option<&SessionAssistant>,
        of: Option<&BTreeSet<String>>,
    ) -> Self {
        let is_of = |server: &String| of.is_none_or(|of| of.contains(server));
        let has_server = |server: &String| {
            is_of(server) && assistant.is_none_or(|assistant| assistant.allows_server(server))
        };
        let servers = self.ingredients.servers.iter().filter(|server| {
            server.entry.source == Source::Bundled || has_server(&server.entry.name)
        });
        let servers = servers.map(|server| {
            let is_kept = |tool: &&Tool| {
                let at = ToolRef {
                    server: server.entry.name.clone(),
                    tool: tool.name.clone(),
                };
                is_of(&at.server) && assistant.is_none_or(|assistant| assistant.allows_tool(&at))
            };
            Ingredient {
                listed: (server.listed.as_ref())
                    .map(|tools| tools.iter().filter(is_kept).cloned().collect()),
                ..server.clone()
            }
        });
        let ingredients = Ingredients {
            naming: self.ingredients.naming,
            servers: servers.collect(),
            rules: self.ingredients.rules.clone(),
            owners: self.ingredients.owners.clone(),
            access: Arc::clone(&self.ingredients.access),
            closed: self.ingredients.closed.clone(),
        };
        Self {
            // The same rules, not equal ones: whoever has seen them sees that they did not change.
            rules: self.rules.clone(),
            ..Self::new(ingredients, &Rules::default())
        }
    }

    /// Returns the tool that a view of its server may call, by the server's own name for it.
    pub fn find_for_apps(&self, at: &ToolRef) -> Option<&ToolboxTool> {
        let toolbox = self.app_toolbox.get_or_init(|| {
            let mut toolbox = Toolbox::default();
            let enabled = self.ingredients.servers.iter();
            for server in enabled.filter(|server| server.entry.config.enabled) {
                let listed = server.listed.iter().flat_map(|tools| tools.iter());
                let offered: Vec<Tool> = listed
                    .filter(|tool| server.offers_to_apps(tool))
                    .cloned()
                    .collect();
                // Problems with names are reported where models are offered the tools.
                toolbox.add(server.offer(self.ingredients.naming), &offered);
            }
            toolbox
        });
        toolbox.tools().find(|tool| tool.at == *at)
    }

    /// Returns the deferred definitions: all tools but the bundled server's can be searched instead of sent.
    pub fn deferred(&self) -> &Deferred {
        self.deferred.get_or_init(|| Deferred::new(&self.toolbox))
    }

    /// Returns the definitions for a model with a window of `window` tokens: all of them, or, if the servers'
    /// definitions take more than `percent` of the window, the bundled ones and the tools that find the
    /// others. The result does not depend on earlier searches, so that vendors' prompt caches stay valid.
    ///
    /// `own` adds tools of Sepal's own.
    pub fn offer_within(&self, window: u64, percent: u8, own: OwnTools) -> ToolOffer {
        let tokens = self.deferrable_tokens();
        let is_too_much =
            percent > 0 && tokens.saturating_mul(100) > window.saturating_mul(percent.into());
        let is_deferred = is_too_much && tokens > self.deferred().tokens;
        let offer = if is_deferred {
            ToolOffer {
                definitions: Arc::clone(&self.deferred().definitions),
                searchable: Some(Arc::clone(&self.deferred().searchable)),
            }
        } else {
            ToolOffer {
                definitions: Arc::clone(&self.definitions),
                searchable: None,
            }
        };
        if own == OwnTools::default() {
            return offer;
        }
        let place = own.place() + if is_deferred { 4 } else { 0 };
        match self.with_own.get(place) {
            Some(known) => known.get_or_init(|| offer.with_own(own)).clone(),
            None => offer.with_own(own),
        }
    }

    fn deferrable_tokens(&self) -> u64 {
        *self.deferrable_tokens.get_or_init(|| {
            let tools = self.toolbox.tools();
            let others = tools.filter(|tool| tool.at.server != BUNDLED);
            others.map(|tool| tokens::of_tool(&tool.tool)).sum()
        })
    }

    /// Logs a warning if the definitions are expensive because there are many.
    pub fn warn_of_cost(&self, tenant: &TenantId) {
        let tools = self.definitions.len();
        if tools > MANY_TOOLS {
            let tokens: u64 = self.definitions.iter().map(tokens::of_tool).sum();
            tracing::warn!(tenant.id = %tenant, tools, tokens,
                "{tools} tools are offered: their definitions cost about {tokens} tokens in every model request");
        }
    }

    /// Returns a server by its name.
    pub fn server(&self, name: &str) -> Option<&Ingredient> {
        let mut servers = self.ingredients.servers.iter();
        servers.find(|server| server.entry.name == name)
    }

    /// Returns the entry of a server that sessions may use.
    pub fn entry(&self, name: &str) -> Option<&Arc<ServerEntry>> {
        let server = self.server(name)?;
        server.entry.config.enabled.then_some(&server.entry)
    }

    /// Returns the entries of all servers that sessions may use.
    pub fn entries(&self) -> impl Iterator<Item = &Arc<ServerEntry>> {
        let servers = self.ingredients.servers.iter().map(|server| &server.entry);
        servers.filter(|entry| entry.config.enabled)
    }

    /// Returns all rules about the tenant's calls, including those of its people.
    pub fn listed_rules(&self) -> &[ListedRule] {
        self.rules.listed()
    }

    /// Returns the rules that apply in the sessions of a person, without those of the sessions.
    pub fn rules_for<'a>(&'a self, person: &'a UserId) -> impl Iterator<Item = &'a ListedRule> {
        let groups: BTreeSet<&str> = self.ingredients.access.of_person(person).collect();
        let listed = self.listed_rules().iter();
        listed.filter(move |it| it.applies_to(Some(person), &groups))
    }

    /// Returns true if a server is there, and only for members of groups of which the person of this offering
    /// is in none.
    pub fn is_closed(&self, server: &str) -> bool {
        self.ingredients.closed.contains(server)
    }

    /// Returns the server and the tool behind a name that models use.
    pub fn tool_of(&self, name: &str) -> Option<ToolRef> {
        Some(self.toolbox.find(name)?.at.clone())
    }

    /// Returns the hash of a tool's definition as it is offered now.
    pub fn definition(&self, server: &str, tool: &str) -> Option<String> {
        let mut tools = self.toolbox.tools();
        let tool = tools.find(|it| it.at.server == server && it.at.tool == tool)?;
        Some(tool.definition.as_str().to_owned())
    }

    /// Returns true if a tool that is offered now only reads, according to its server, and the server is
    /// trusted.
    pub fn only_reads(&self, server: &str, tool: &str) -> bool {
        let mut tools = self.toolbox.tools();
        let tool = tools.find(|it| it.at.server == server && it.at.tool == tool);
        tool.is_some_and(|it| it.is_trusted && it.tool.annotations.read_only_hint == Some(true))
    }

    /// Returns since when a tool differs from the definition that the tenant accepted; `None` if it does not.
    pub fn drift(&self, at: &ToolRef) -> Option<Timestamp> {
        let server = self.server(&at.server)?;
        let mut tools = server.listed.iter().flat_map(|tools| tools.iter());
        server.drift(tools.find(|tool| tool.name == at.tool)?)
    }

    /// Returns true if a connection that was made with the other offering's entry of a server is still valid for
    /// this offering's entry.
    pub fn connects_like(&self, other: &Self, name: &str) -> bool {
        match (self.entry(name), other.entry(name)) {
            (Some(now), Some(then)) => now.connects_like(then),
            (now, then) => now.is_none() && then.is_none(),
        }
    }

    /// Returns the images from which the sandboxes of the enabled servers start.
    pub fn images(&self) -> impl Iterator<Item = Image> {
        let servers = self.ingredients.servers.iter();
        let enabled = servers.filter(|server| server.entry.config.enabled);
        enabled.filter_map(|server| server.entry.image())
    }

    /// Returns the digest of everything that decides what a server's calls do; it is stable across restarts
    /// of the gateway.
    pub fn identity(&self, name: &str, image: &str) -> Option<Digest> {
        let work_out = |entry: &Arc<ServerEntry>| entry.definitions_key(image);
        let (of, known) = self.identities.get_or_init(|| {
            let all = self.entries();
            let all = all.map(|entry| (entry.name.clone(), work_out(entry)));
            (image.to_owned(), all.collect())
        });
        if of == image {
            return known.get(name).cloned();
        }
        self.entry(name).map(work_out)
    }
}
