//! What the sessions of one tenant, or of one person of it, are offered: tools, rules, and where each of them runs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::deferred::Deferred;
use super::entry::{BUNDLED, ServerEntry, Source};
use super::rule_sets::{ListedRule, RuleSets, is_rule};
use crate::domain::{Digest, TenantId, Timestamp, Tool, ToolRef, UserId};
use crate::history;
use crate::llm::tokens;
use crate::llm::tool_search::Searchable;
use crate::mcp::{Naming, Offer, Toolbox, ToolboxTool, is_offered};
use crate::sandbox::Image;
use crate::session::{PolicyEffect, Rules};
use crate::skills;
use crate::store::records::{RuleRow, ToolSetting};

/// More tools than these are worth a word: each definition is sent with each request.
const MANY_TOOLS: usize = 100;

/// What a view is made of; equal ones give equal views.
#[derive(PartialEq)]
pub(crate) struct Ingredients {
    pub(crate) naming: Naming,
    pub(crate) servers: Vec<Ingredient>,
    /// What was decided about calls beforehand, by the tenant and its people.
    pub(crate) rules: Vec<RuleRow>,
    /// Who of the tenant has servers for themselves alone.
    pub(crate) owners: BTreeSet<UserId>,
}

/// One server of it.
#[derive(Clone, PartialEq)]
pub(crate) struct Ingredient {
    pub(crate) entry: Arc<ServerEntry>,
    /// What it offers; `None` if it was never listed.
    pub(crate) listed: Option<Arc<[Tool]>>,
    /// What the tenant said yes to.
    pub(crate) accepted: Arc<[Tool]>,
    /// Since when it offers that.
    pub(crate) since: Option<Timestamp>,
    pub(crate) settings: Vec<ToolSetting>,
}

/// What the sessions of one tenant are offered, or of one person of it.
pub struct View {
    pub(crate) ingredients: Ingredients,
    pub(crate) toolbox: Toolbox,
    /// What views may call; made when the first of them does.
    app_toolbox: OnceLock<Toolbox>,
    pub(crate) definitions: Arc<[Tool]>,
    /// What is sent instead where those take too much of a window; made when it is first needed.
    deferred: OnceLock<Deferred>,
    /// Each of the two with tools of Sepal's own: [`OwnTools::place`] and four more for the second; made
    /// when it is first needed.
    with_own: [OnceLock<ToolOffer>; 8],
    /// What the definitions take that may be searched, estimated; counted when it is first needed.
    deferrable_tokens: OnceLock<u64>,
    /// What [`View::identity`] says of each server with that image: every call asks for it.
    identities: OnceLock<(String, BTreeMap<String, Digest>)>,
    /// What decides about calls.
    pub(crate) rules: RuleSets,
    /// Why tools are not offered, by server.
    pub(crate) problems: BTreeMap<String, Vec<String>>,
}

/// What a model is told of the tools.
#[derive(Clone)]
pub(crate) struct ToolOffer {
    pub(crate) definitions: Arc<[Tool]>,
    /// What a vendor that searches by itself is told instead; none = no definition is held back.
    pub(crate) searchable: Option<Arc<Searchable>>,
}

/// Which tools of Sepal's own a model is told of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OwnTools {
    /// Those that read skills.
    pub(crate) skills: bool,
    /// The one that reads shortened results on.
    pub(crate) read_more: bool,
}

impl OwnTools {
    pub(crate) fn new(skills: bool, read_more: bool) -> Self {
        Self { skills, read_more }
    }

    fn place(self) -> usize {
        usize::from(self.skills) * 2 + usize::from(self.read_more)
    }
}

impl ToolOffer {
    /// The same with tools of Sepal's own behind all others, the one last that comes in the middle of a
    /// session: what is before it stays the same, byte for byte.
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

/// What tenants are offered, as it was last looked up.
#[derive(Default)]
pub(crate) struct Views {
    pub(crate) known: HashMap<(TenantId, Option<UserId>), (Instant, Arc<View>)>,
    /// How often everything was forgotten: what was read before the last time is not kept.
    pub(crate) age: u64,
    /// The last one for sessions of whose tenant nothing was known.
    bare: Option<Arc<View>>,
}

impl Views {
    /// What sessions are offered while nothing is known of their tenant. Each asks for it when it is
    /// opened, and compiling schemas is dear: it is made once.
    pub(crate) fn bare(&mut self, ingredients: Ingredients, rules: &Rules) -> Arc<View> {
        let known = self.bare.as_ref();
        if let Some(known) = known.filter(|known| known.ingredients == ingredients) {
            return Arc::clone(known);
        }
        Arc::clone(self.bare.insert(Arc::new(View::new(ingredients, rules))))
    }
}

impl Ingredient {
    /// What was decided about a tool; without a word it is on and asks.
    pub(crate) fn setting(&self, tool: &str) -> (bool, PolicyEffect) {
        let setting = self.settings.iter().find(|it| it.tool.tool == tool);
        setting.map_or((true, PolicyEffect::Ask), |it| (it.is_enabled, it.effect))
    }

    /// Since when the tool is another than the one that the tenant said yes to.
    pub(crate) fn drift(&self, tool: &Tool) -> Option<Timestamp> {
        let accepted = self.accepted.iter().find(|known| known.name == tool.name)?;
        (!accepted.is_known_as(tool)).then(|| self.since.unwrap_or(Timestamp(0)))
    }

    pub(crate) fn is_on(&self, tool: &Tool) -> bool {
        is_offered(&self.entry.config, tool) && self.setting(&tool.name).0
    }

    /// Whether the model is told of a tool.
    fn offers(&self, tool: &Tool) -> bool {
        self.is_on(tool) && !tool.needs_tasks && !tool.is_app_only()
    }

    /// Whether views of its server may call a tool. Models need not be told of it.
    fn offers_to_apps(&self, tool: &Tool) -> bool {
        self.is_on(tool) && !tool.needs_tasks && tool.is_for_apps()
    }

    /// How its tools are named.
    fn offer(&self, naming: Naming) -> Offer<'_> {
        let config = &self.entry.config;
        Offer {
            server: &self.entry.name,
            prefix: config.tool_prefix.as_deref().unwrap_or_default(),
            naming: match self.entry.source {
                // The session's own tools keep their plain names.
                Source::Bundled => Naming::Auto,
                Source::Settings | Source::Installation | Source::Tenant | Source::Person => naming,
            },
            is_trusted: self.entry.source == Source::Bundled || config.trusted,
        }
    }

    /// The tools that the model would be told of if it could begin tasks, in words for people.
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

impl View {
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
        let rules = RuleSets::new(base, settings.filter(|it| is_rule(it)), &ingredients.rules);
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

    /// The tool that a view of its server may call by the server's own name for it.
    pub(crate) fn find_for_apps(&self, at: &ToolRef) -> Option<&ToolboxTool> {
        let toolbox = self.app_toolbox.get_or_init(|| {
            let mut toolbox = Toolbox::default();
            let enabled = self.ingredients.servers.iter();
            for server in enabled.filter(|server| server.entry.config.enabled) {
                let listed = server.listed.iter().flat_map(|tools| tools.iter());
                let offered: Vec<Tool> = listed
                    .filter(|tool| server.offers_to_apps(tool))
                    .cloned()
                    .collect();
                // Those that a name is not free for are told of where models are offered them.
                toolbox.add(server.offer(self.ingredients.naming), &offered);
            }
            toolbox
        });
        toolbox.tools().find(|tool| tool.at == *at)
    }

    /// The tools whose definitions may be searched instead of sent: all but the bundled server's.
    pub(crate) fn deferred(&self) -> &Deferred {
        self.deferred.get_or_init(|| Deferred::new(&self.toolbox))
    }

    /// What a model is told that reads `window` tokens: all definitions, or, where those of the servers
    /// take more than `percent` of it, the bundled ones and how to find the others. The same from turn
    /// to turn, whatever was found, so that what a vendor has cached stays right.
    ///
    /// With them, the tools of Sepal's own.
    pub(crate) fn offer_within(&self, window: u64, percent: u8, own: OwnTools) -> ToolOffer {
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

    /// Tells the log what so many tools cost.
    pub(crate) fn warn_of_cost(&self, tenant: &TenantId) {
        let tools = self.definitions.len();
        if tools > MANY_TOOLS {
            let tokens: u64 = self.definitions.iter().map(tokens::of_tool).sum();
            tracing::warn!(tenant.id = %tenant, tools, tokens,
                "{tools} tools are offered: their definitions cost about {tokens} tokens in every model request");
        }
    }

    /// A server by its name.
    pub(crate) fn server(&self, name: &str) -> Option<&Ingredient> {
        let mut servers = self.ingredients.servers.iter();
        servers.find(|server| server.entry.name == name)
    }

    /// The entry of a server that sessions may use.
    pub(crate) fn entry(&self, name: &str) -> Option<&Arc<ServerEntry>> {
        let server = self.server(name)?;
        server.entry.config.enabled.then_some(&server.entry)
    }

    /// The entries of all servers that sessions may use.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Arc<ServerEntry>> {
        let servers = self.ingredients.servers.iter().map(|server| &server.entry);
        servers.filter(|entry| entry.config.enabled)
    }

    /// All rules about the tenant's calls, those of its people too.
    pub(crate) fn listed_rules(&self) -> &[ListedRule] {
        self.rules.listed()
    }

    /// Where the tool lives that models know by that name.
    pub(crate) fn tool_of(&self, name: &str) -> Option<ToolRef> {
        Some(self.toolbox.find(name)?.at.clone())
    }

    /// The hash of a tool's definition as it is offered now.
    pub(crate) fn definition(&self, server: &str, tool: &str) -> Option<String> {
        let mut tools = self.toolbox.tools();
        let tool = tools.find(|it| it.at.server == server && it.at.tool == tool)?;
        Some(tool.definition.as_str().to_owned())
    }

    /// Whether a tool that is offered now only reads, by the word of a server that is trusted.
    pub(crate) fn only_reads(&self, server: &str, tool: &str) -> bool {
        let mut tools = self.toolbox.tools();
        let tool = tools.find(|it| it.at.server == server && it.at.tool == tool);
        tool.is_some_and(|it| it.is_trusted && it.tool.annotations.read_only_hint == Some(true))
    }

    /// Since when a tool is another than the one that the tenant said yes to.
    pub(crate) fn drift(&self, at: &ToolRef) -> Option<Timestamp> {
        let server = self.server(&at.server)?;
        let mut tools = server.listed.iter().flat_map(|tools| tools.iter());
        server.drift(tools.find(|tool| tool.name == at.tool)?)
    }

    /// Whether a connection that was made for a server of the other view is right for this one.
    pub(crate) fn connects_like(&self, other: &Self, name: &str) -> bool {
        match (self.entry(name), other.entry(name)) {
            (Some(now), Some(then)) => now.connects_like(then),
            (now, then) => now.is_none() && then.is_none(),
        }
    }

    /// What the places of the servers that sessions may use are started from.
    pub(crate) fn images(&self) -> impl Iterator<Item = Image> {
        let servers = self.ingredients.servers.iter();
        let enabled = servers.filter(|server| server.entry.config.enabled);
        enabled.filter_map(|server| server.entry.image())
    }

    /// What decides what a server's calls do; the same in every life of the program.
    pub(crate) fn identity(&self, name: &str, image: &str) -> Option<Digest> {
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
