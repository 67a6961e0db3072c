//! The description of the REST door, made from the handlers (`/api/openapi.json`).

use axum::Router;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Content, RefOr};
use utoipa::{Modify, OpenApi};

use super::{GatewayState, http};

const JSON: &str = "application/json";

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Sepal",
        description = "A self-hosted, multi-tenant agent gateway: every tool call waits for a yes. \
            Errors are `application/problem+json`; times are RFC 3339; lists are `{ items, nextCursor }`.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    modifiers(&Security),
    security(("key" = []), ("cookie" = [], "csrf" = [])),
    tags(
        (name = "auth", description = "Signing in and out"),
        (name = "sessions", description = "Sessions, their transcript, and the socket's commands by POST"),
        (name = "mcp", description = "MCP servers and their tools"),
        (name = "models", description = "Models"),
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

/// What nobody has to sign in for.
const OPEN: [&str; 5] = [
    "/healthz",
    "/readyz",
    "/api/auth/setup",
    "/api/auth/link",
    "/api/auth/login",
];

/// Routes and their description.
pub(super) fn routes() -> (Router<GatewayState>, utoipa::openapi::OpenApi) {
    let (routes, mut description) = http::routes(Description::openapi()).split_for_parts();
    for (path, item) in &mut description.paths.paths {
        let methods = [
            &mut item.get,
            &mut item.post,
            &mut item.put,
            &mut item.patch,
            &mut item.delete,
        ];
        for operation in methods.into_iter().flatten() {
            if OPEN.contains(&path.as_str()) {
                operation.security = Some(Vec::new());
            }
            operation
                .responses
                .responses
                .values_mut()
                .for_each(name_problem);
        }
    }
    (routes, description)
}

/// Problem documents have a media type of their own, which the macros do not know.
fn name_problem(response: &mut RefOr<utoipa::openapi::Response>) {
    let RefOr::T(response) = response else { return };
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
        response
            .content
            .insert("application/problem+json".to_owned(), content);
    }
}

/// `docs/openapi.json`.
pub fn openapi_json() -> String {
    let (_, description) = routes();
    let mut text = description.to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}
