//! Lists a server's resources, templates and prompts, page by page. A list that is too long, or whose pages
//! never end, is cut, and the cut is reported as a problem.

use std::collections::BTreeSet;

use rmcp::RoleClient;
use rmcp::model::{PaginatedRequestParams, ServerCapabilities};
use rmcp::service::{Peer, ServiceError};

use crate::connection::Connection;
use crate::error::Error;
use crate::mask::Cleaner;
use crate::tools::content;
use crate::tools::listing::left_out;
use sepal_core::domain::{
    PromptArgument, PromptOffer, ResourceLink, ResourceTemplate, ServerOffer,
};

/// The most resources, templates or prompts of one server.
const MAX_ITEMS: usize = 1_000;
/// The most pages of one list.
const MAX_PAGES: usize = 50;
/// The most arguments of one prompt.
const MAX_ARGUMENTS: usize = 50;

/// Requests the lists that the server declares, and no others.
pub(super) async fn list(connection: &Connection) -> ServerOffer {
    let Some(info) = connection.peer().peer_info() else {
        return ServerOffer::default();
    };
    let declared: &ServerCapabilities = &info.capabilities;
    let mut offer = ServerOffer {
        can_subscribe: declared
            .resources
            .as_ref()
            .is_some_and(|resources| resources.subscribe == Some(true)),
        can_complete: declared.completions.is_some(),
        problems: connection.tool_problems().clone(),
        ..ServerOffer::default()
    };
    if declared.resources.is_some() {
        (offer.resources, offer.templates) = (
            resources(connection, &mut offer.problems).await,
            templates(connection, &mut offer.problems).await,
        );
    }
    if declared.prompts.is_some() {
        offer.prompts = prompts(connection, &mut offer.problems).await;
    }
    offer
}

/// One page of a list.
struct Page<T> {
    items: Vec<T>,
    left_out: Vec<String>,
    next: Option<String>,
}

/// Reads all pages of one list.
async fn pages<T>(
    connection: &Connection,
    what: &str,
    problems: &mut Vec<String>,
    ask: impl AsyncFn(&Peer<RoleClient>, PaginatedRequestParams) -> Result<Page<T>, ServiceError>,
) -> Vec<T> {
    let mut items = Vec::new();
    let mut page = PaginatedRequestParams::default();
    let mut cursors = BTreeSet::new();
    for _ in 0..MAX_PAGES {
        let listed = match ask(connection.peer(), page).await {
            Ok(listed) => listed,
            Err(error) => {
                let error: Error = connection.failed(&error);
                let error = error.cleaned(connection.cleaner());
                problems.push(format!("its {what} were not all listed: {error}"));
                return items;
            }
        };
        items.extend(listed.items);
        let cleaner = connection.cleaner();
        problems.extend(listed.left_out.iter().map(|it| cleaner.clean(it)));
        let Some(cursor) = listed.next else {
            return items;
        };
        // The server repeats a page.
        if items.len() > MAX_ITEMS || !cursors.insert(cursor.clone()) {
            break;
        }
        page = PaginatedRequestParams::default().with_cursor(Some(cursor));
    }
    items.truncate(MAX_ITEMS);
    problems.push(format!(
        "its list of {what} does not end; the first {} are shown",
        items.len()
    ));
    items
}

async fn resources(connection: &Connection, problems: &mut Vec<String>) -> Vec<ResourceLink> {
    let ask = async |peer: &Peer<RoleClient>, page| {
        let listed = peer.list_resources(Some(page)).await?;
        Ok(Page {
            items: listed.resources,
            left_out: left_out(listed.meta.as_ref()),
            next: listed.next_cursor,
        })
    };
    let listed = pages(connection, "resources", problems, ask).await;
    let cleaner = connection.cleaner();
    let listed = listed.iter().filter(|it| is_usable(&it.uri, cleaner));
    let mut found: Vec<ResourceLink> = Vec::new();
    for resource in listed {
        if found.len() < MAX_ITEMS && found.iter().all(|known| known.uri != resource.uri) {
            found.push(content::link(resource, cleaner));
        }
    }
    found
}

async fn templates(connection: &Connection, problems: &mut Vec<String>) -> Vec<ResourceTemplate> {
    let ask = async |peer: &Peer<RoleClient>, page| {
        let listed = peer.list_resource_templates(Some(page)).await?;
        Ok(Page {
            items: listed.resource_templates,
            left_out: left_out(listed.meta.as_ref()),
            next: listed.next_cursor,
        })
    };
    // Servers without templates often do not know the method.
    let mut refused = Vec::new();
    let listed = pages(connection, "templates", &mut refused, ask).await;
    if !listed.is_empty() {
        problems.append(&mut refused);
    }
    let cleaner = connection.cleaner();
    let listed = listed.into_iter().take(MAX_ITEMS);
    let listed = listed.filter(|it| is_usable(&it.uri_template, cleaner));
    let told = listed.map(|template| ResourceTemplate {
        uri_template: template.uri_template,
        name: content::short(&template.name, cleaner),
        title: content::maybe_short(template.title.as_deref(), cleaner),
        description: content::description(template.description.as_deref(), cleaner),
        mime_type: content::maybe_short(template.mime_type.as_deref(), cleaner),
    });
    told.collect()
}

async fn prompts(connection: &Connection, problems: &mut Vec<String>) -> Vec<PromptOffer> {
    let ask = async |peer: &Peer<RoleClient>, page| {
        let listed = peer.list_prompts(Some(page)).await?;
        Ok(Page {
            items: listed.prompts,
            left_out: left_out(listed.meta.as_ref()),
            next: listed.next_cursor,
        })
    };
    let listed = pages(connection, "prompts", problems, ask).await;
    let cleaner = connection.cleaner();
    let mut found: Vec<PromptOffer> = Vec::new();
    for prompt in listed.into_iter().take(MAX_ITEMS) {
        let is_new = found.iter().all(|known| known.name != prompt.name);
        if !is_new || !is_usable(&prompt.name, cleaner) {
            continue;
        }
        let arguments = prompt.arguments.unwrap_or_default().into_iter();
        let arguments = arguments.filter(|it| is_usable(&it.name, cleaner));
        found.push(PromptOffer {
            name: prompt.name,
            title: content::maybe_short(prompt.title.as_deref(), cleaner),
            description: content::description(prompt.description.as_deref(), cleaner),
            arguments: arguments
                .take(MAX_ARGUMENTS)
                .map(|argument| PromptArgument {
                    name: argument.name,
                    title: content::maybe_short(argument.title.as_deref(), cleaner),
                    description: content::description(argument.description.as_deref(), cleaner),
                    required: argument.required == Some(true),
                })
                .collect(),
        });
    }
    found
}

/// Returns true if the name or address can be sent back unchanged: it is not empty, not too long, and
/// contains no secret.
fn is_usable(name: &str, cleaner: &Cleaner) -> bool {
    !name.is_empty() && name.len() <= content::MAX_URI && cleaner.clean(name) == name
}
