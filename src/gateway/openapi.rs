//! Builds the OpenAPI description of the REST door from its handlers (`/api/openapi.json`).

use std::sync::OnceLock;

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{
    Components, Content, ContentBuilder, Ref, RefOr, Response, ResponseBuilder, ServerBuilder,
};
use utoipa::{Modify, OpenApi};

use super::http;
use super::idempotency::takes_key;
use super::key_scopes;
use super::versioned::{TOOL, TOOLS, VERSIONED};

const JSON: &str = "application/json";
const PROBLEM: &str = "application/problem+json";

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Sepal",
        description = "A self-hosted, multi-tenant agent gateway: every tool call waits for a yes. \
            Errors are `application/problem+json`; times are RFC 3339; lists are `{ items, nextCursor }`.",
        contact(name = "Whoever operates this installation"),
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    modifiers(&Security),
    security(("key" = []), ("cookie" = [], "csrf" = [])),
    tags(
        (name = "auth", description = "Signing in and out"),
        (name = "sessions", description = "Sessions, their transcript, and the socket's commands by POST"),
        (name = "mcp", description = "MCP servers and their tools"),
        (name = "models", description = "Models"),
        (name = "providers", description = "Model providers"),
        (name = "usage", description = "What was used, and what it cost"),
        (name = "budgets", description = "What may be spent"),
        (name = "audit", description = "Who did what, in a chain that a stranger can verify"),
        (name = "rules", description = "Which calls run, ask or are refused"),
        (name = "skills", description = "Folders of instructions that models read when a task fits"),
        (name = "assistants", description = "What sessions are started with: instructions, models, tools, skills, rules and files"),
        (name = "tenants", description = "Tenants of the installation, for its administrators"),
        (name = "people", description = "People of a tenant, their roles and groups, invitations, and API keys"),
        (name = "notifications", description = "Who is told outside of the page when calls wait"),
        (name = "gestures", description = "Fresh gestures, by which a person shows that it is they who approve, and the passkeys that make them"),
        (name = "system", description = "What this installation runs on"),
        (name = "operation", description = "Signs of life"),
    ),
)]
struct Description;

struct Security;

impl Modify for Security {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let components = openapi.components.get_or_insert_default();
        let key = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("spl_…")
            .build();
        components.add_security_scheme("key", SecurityScheme::Http(key));
        let cookie = ApiKey::Cookie(ApiKeyValue::with_description(
            "sepal",
            "A browser's sign-in; `__Host-sepal` over https.",
        ));
        components.add_security_scheme("cookie", SecurityScheme::ApiKey(cookie));
        let csrf = ApiKey::Header(ApiKeyValue::with_description(
            "X-CSRF-Token",
            "`csrfToken` of `/api/auth/me`; needed beside the cookie on everything but GET.",
        ));
        components.add_security_scheme("csrf", SecurityScheme::ApiKey(csrf));
    }
}

/// The form of `Idempotency-Key`.
const KEY: &str = r#"^([!#-~]{1,255}|"[!#-~]{1,255}")$"#;
/// The form of `If-Match`.
const VERSION: &str = r#"^("[^"]+"|\*)$"#;

/// The paths that need no sign-in.
const OPEN: [&str; 6] = [
    "/healthz",
    "/readyz",
    "/api/auth/setup",
    "/api/auth/link",
    "/api/auth/login",
    "/api/shared/{word}",
];

/// The paths of health probes, which accept any host name and have no parameters.
const PROBES: [&str; 2] = ["/healthz", "/readyz"];

/// The meaning of each refusal, which is the same for every route.
const REFUSALS: [(&str, &str); 16] = [
    (
        "400",
        "The request is not valid; `errors` names the fields.",
    ),
    (
        "401",
        "Nobody is signed in, or the key or secret is not valid.",
    ),
    (
        "403",
        "The caller may not do this, or the request came by a foreign name or from a foreign page.",
    ),
    ("404", "There is no such thing for this caller."),
    ("408", "The request did not arrive in time."),
    (
        "409",
        "The present state stands against it; `code` says what.",
    ),
    (
        "412",
        "It was changed since it was read: it does not have the version in `If-Match`.",
    ),
    ("413", "The body is larger than the limit."),
    ("415", "The body is not `application/json`."),
    ("422", "The `Idempotency-Key` belongs to another request."),
    (
        "429",
        "Too many requests; `Retry-After` says how long to wait.",
    ),
    (
        "500",
        "An error of the gateway; `requestId` finds it in the log.",
    ),
    (
        "502",
        "Another server that the gateway asked answered badly.",
    ),
    (
        "503",
        "The store is away, or the gateway is stopping; the same may work later.",
    ),
    (
        "504",
        "Another server that the gateway asked did not answer in time.",
    ),
    ("405", "There is no such method at this address."),
];

/// The refusals of a request whose head cannot be parsed, before routing: status, component name, and
/// meaning. Every operation refers to them.
const OF_HEADS: [(&str, &str, &str); 2] = [
    ("414", "AddressTooLong", "The address is too long."),
    (
        "431",
        "HeadersTooLarge",
        "The headers are too many or too large.",
    ),
];

/// Builds the description of all REST routes.
fn description() -> utoipa::openapi::OpenApi {
    let mut description = http::routes().describe(Description::openapi());
    description.servers = Some(vec![ServerBuilder::new().url("/").build()]);
    // Removes the router's `*` of wildcard segments, which OpenAPI does not know.
    let paths = std::mem::take(&mut description.paths.paths).into_iter();
    let paths = paths.map(|(path, item)| (path.replace("{*", "{"), item));
    description.paths.paths = paths.collect();
    let mut components = description.components.take().unwrap_or_default();
    for (_, name, meaning) in OF_HEADS {
        let refusal = problem().description(meaning).build();
        components
            .responses
            .insert(name.to_owned(), RefOr::T(refusal));
    }
    for (path, item) in &mut description.paths.paths {
        let reads = [&mut item.get].into_iter().flatten();
        let is_versioned = VERSIONED.contains(&path.as_str()) || path == TOOLS;
        for operation in reads {
            complete(path, operation, &components, false);
            if is_versioned
                && let Some(RefOr::T(found)) = operation.responses.responses.get_mut("200")
            {
                let about = "Names what was read, for `If-Match`.";
                let tag = HeaderBuilder::new().description(Some(about)).build();
                found.headers.insert("ETag".to_owned(), RefOr::T(tag));
            }
        }
        let is_held = VERSIONED.contains(&path.as_str()) || path == TOOL;
        if let Some(post) = &mut item.post
            && !OPEN.contains(&path.as_str())
            && takes_key(path)
        {
            take_key(post);
        }
        name_scopes(path, item);
        // A session is deleted whatever its marks are.
        let is_delete_held = is_held && path != "/api/sessions/{id}";
        let writes = [
            (&mut item.post, is_held),
            (&mut item.put, is_held),
            (&mut item.patch, is_held),
            (&mut item.delete, is_delete_held),
        ];
        for (operation, is_held) in writes {
            if let Some(operation) = operation {
                add_refusals(operation, &["403"]);
                complete(path, operation, &components, is_held);
            }
        }
    }
    description.components = Some(components);
    description
}

/// Adds the parts of an operation that the macros cannot know: its security requirement, the refusals of the
/// layers around the handlers, and the description that OpenAPI requires for each response.
fn complete(path: &str, operation: &mut Operation, components: &Components, is_held: bool) {
    for (status, name, _) in OF_HEADS {
        let refusal = RefOr::Ref(Ref::from_response_name(name));
        let responses = &mut operation.responses.responses;
        responses.insert(status.to_owned(), refusal);
    }
    if OPEN.contains(&path) {
        operation.security = Some(Vec::new());
    } else {
        add_refusals(operation, &["401"]);
    }
    if !PROBES.contains(&path) {
        add_refusals(operation, &["403", "429", "500", "503"]);
    }
    if operation.request_body.is_some() {
        add_refusals(operation, &["400", "408", "413", "415"]);
    }
    if is_held {
        add_refusals(operation, &["412"]);
        let about =
            "The `ETag` of what was read: the change is made only if nothing has changed since.";
        operation
            .parameters
            .get_or_insert_default()
            .push(header("If-Match", VERSION, about));
    }
    let parameters = operation.parameters.iter().flatten();
    if parameters.clone().count() > 0 {
        add_refusals(operation, &["400"]);
    }
    if operation.description.is_none() {
        operation.description.clone_from(&operation.summary);
    }
    for parameter in operation.parameters.iter_mut().flatten() {
        let RefOr::T(parameter) = parameter else {
            continue;
        };
        if parameter.description.is_none() && parameter.parameter_in == ParameterIn::Path {
            parameter.description = Some(format!("The {} of the address.", parameter.name));
        }
    }
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else {
            continue;
        };
        name_problem(response);
        if response.description.is_empty() {
            response.description = describe(status, response, components);
        }
    }
}

/// Adds the scope that an API key needs for each operation. Not as a scope of the security requirement, which only
/// OAuth has.
fn name_scopes(path: &str, item: &mut PathItem) {
    let operations = [
        ("GET", &mut item.get),
        ("POST", &mut item.post),
        ("PUT", &mut item.put),
        ("PATCH", &mut item.patch),
        ("DELETE", &mut item.delete),
    ];
    for (method, operation) in operations {
        if let (Some(operation), Some(need)) = (operation, key_scopes::need(method, path)) {
            let scope = Extensions::builder().add("x-key-scope", need.as_str());
            operation.extensions = Some(scope.build());
        }
    }
}

/// Returns the content of `docs/key-scopes.md`.
pub fn key_scopes_page() -> String {
    key_scopes::page(operation_id)
}

/// Returns the id of an operation.
fn operation_id(method: &str, path: &str) -> Option<String> {
    static DESCRIBED: OnceLock<serde_json::Value> = OnceLock::new();
    let described = DESCRIBED.get_or_init(value);
    let operation = described.get("paths")?.get(path)?;
    let id = operation.get(method.to_lowercase())?.get("operationId")?;
    id.as_str().map(ToOwned::to_owned)
}

/// Adds what `Idempotency-Key` does to an operation that takes JSON.
fn take_key(operation: &mut Operation) {
    if let Some(RefOr::T(body)) = &operation.request_body
        && !body.content.contains_key(JSON)
    {
        return;
    }
    add_refusals(operation, &["400", "409", "422"]);
    let about = "A key of the client's own, such as a UUID, of at most 255 characters. The same request with \
                 the same key is answered as the first time for a day, and does nothing more.";
    operation
        .parameters
        .get_or_insert_default()
        .push(header("Idempotency-Key", KEY, about));
}

fn header(name: &str, pattern: &str, about: &str) -> RefOr<Parameter> {
    let text = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(pattern))
        .build();
    let header = ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .description(Some(about))
        .schema(Some(text))
        .build();
    RefOr::T(header)
}

fn add_refusals(operation: &mut Operation, statuses: &[&str]) {
    for status in statuses {
        let responses = &mut operation.responses.responses;
        responses
            .entry((*status).to_owned())
            .or_insert_with(|| RefOr::T(problem().build()));
    }
}

/// Builds a response that is a problem document.
fn problem() -> ResponseBuilder {
    let schema = RefOr::Ref(Ref::from_schema_name("Problem"));
    let content = ContentBuilder::new().schema(Some(schema)).build();
    ResponseBuilder::new().content(PROBLEM, content)
}

/// Returns the description of a response: from [`REFUSALS`] for a problem document, otherwise from the
/// schema of its body.
fn describe(status: &str, response: &Response, components: &Components) -> String {
    if let Some((_, text)) = REFUSALS.iter().find(|(known, _)| *known == status)
        && response.content.contains_key(PROBLEM)
    {
        return (*text).to_owned();
    }
    let content = response.content.values().next();
    let schema = content.and_then(|content| match content {
        RefOr::T(Content {
            schema: Some(RefOr::Ref(schema)),
            ..
        }) => {
            let name = schema.ref_location.rsplit('/').next()?;
            let schema = serde_json::to_value(components.schemas.get(name)?).ok()?;
            Some(schema.get("description")?.as_str()?.to_owned())
        }
        RefOr::T(_) | RefOr::Ref(_) => None,
    });
    schema.unwrap_or_else(|| "It is done; there is nothing to say about it.".to_owned())
}

/// Gives problem documents their own media type, which the macros do not know.
fn name_problem(response: &mut Response) {
    let is_problem = |content: &RefOr<Content>| {
        let RefOr::T(Content {
            schema: Some(RefOr::Ref(schema)),
            ..
        }) = content
        else {
            return false;
        };
        schema.ref_location.ends_with("/Problem")
    };
    if response.content.get(JSON).is_some_and(is_problem)
        && let Some(content) = response.content.shift_remove(JSON)
    {
        response.content.insert(PROBLEM.to_owned(), content);
    }
}

/// Answers `GET /api/openapi.json` with the description, which is built at the first request and cached.
pub(super) async fn read_description() -> impl IntoResponse {
    static TEXT: OnceLock<String> = OnceLock::new();
    let text = TEXT.get_or_init(|| description().to_json().unwrap_or_default());
    ([(CONTENT_TYPE, JSON)], text.as_str())
}

/// Returns the description as a value.
pub(super) fn value() -> serde_json::Value {
    serde_json::to_value(description()).unwrap_or_default()
}

/// Returns the content of `docs/openapi.json`.
pub fn openapi_json() -> String {
    let mut text = description().to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::value;
    use crate::domain::KeyScope;
    use crate::gateway::http;
    use crate::gateway::key_scopes::{FOR_SOME_SESSIONS, Need, OPERATIONS, need};
    use crate::gateway::wire::COMMANDS;

    /// [`routes!`](crate::gateway::api_router::routes) serves all handlers of one call at the path of the
    /// last one.
    #[test]
    fn handlers_that_are_added_together_have_one_address() {
        for describe in http::routes().descriptions {
            let (_, described, _) = describe();
            let paths: Vec<&String> = described.paths.keys().collect();
            assert_eq!(paths.len(), 1, "{paths:?}");
        }
    }

    /// Every operation of the description that shows a credential, by method and path.
    fn described() -> BTreeSet<(String, String)> {
        let api = value();
        let mut all = BTreeSet::new();
        for (path, methods) in api["paths"].as_object().unwrap() {
            for (method, about) in methods.as_object().unwrap() {
                // Only what needs no sign-in says so itself.
                let is_open = about["security"].is_array();
                if !is_open {
                    all.insert((method.to_uppercase(), path.clone()));
                }
            }
        }
        all
    }

    #[test]
    fn every_operation_has_one_row() {
        let described = described();
        let rows = OPERATIONS.iter();
        let rows = rows.map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned()));
        let known: BTreeSet<_> = rows.collect();
        assert_eq!(known.len(), OPERATIONS.len(), "one row each");
        let missing: Vec<_> = described.difference(&known).collect();
        let gone: Vec<_> = known.difference(&described).collect();
        assert!(
            missing.is_empty() && gone.is_empty(),
            "without a row: {missing:?}; rows of nothing: {gone:?}"
        );
        for (method, path) in FOR_SOME_SESSIONS {
            assert!(need(method, path).is_some(), "{method} {path}");
        }
    }

    #[test]
    fn a_command_needs_what_its_operation_needs() {
        let api = value();
        for spec in COMMANDS {
            let mut found = None;
            for (path, methods) in api["paths"].as_object().unwrap() {
                for (method, about) in methods.as_object().unwrap() {
                    if about["operationId"] == spec.operation {
                        found = need(&method.to_uppercase(), path);
                    }
                }
            }
            assert_eq!(found, Some(Need::Scope(spec.scope)), "{}", spec.name);
        }
    }

    #[test]
    fn only_who_one_is_needs_nothing() {
        let free: Vec<&str> = OPERATIONS
            .iter()
            .filter(|(.., need)| *need == Need::Nothing)
            .map(|(_, path, _)| *path)
            .collect();
        let expected = [
            "/api/auth/invitation",
            "/api/auth/invitation/read",
            "/api/auth/logout",
            "/api/auth/me",
        ];
        assert_eq!(free, expected);
        assert_eq!(
            need("POST", "/api/keys"),
            Some(Need::Scope(KeyScope::Administer))
        );
        assert_eq!(need("POST", "/api/nothing"), None);
    }
}
