//! The description of the REST door, made from the handlers (`/api/openapi.json`).

use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

use super::http;

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

/// Routes and their description.
pub(super) fn routes() -> (axum::Router<super::GatewayState>, utoipa::openapi::OpenApi) {
    let (routes, mut description) = http::routes(Description::openapi()).split_for_parts();
    // Open to everybody: their security requirement is none.
    for path in [
        "/healthz",
        "/readyz",
        "/api/auth/setup",
        "/api/auth/link",
        "/api/auth/login",
    ] {
        if let Some(item) = description.paths.paths.get_mut(path) {
            for operation in [&mut item.get, &mut item.post].into_iter().flatten() {
                operation.security = Some(Vec::new());
            }
        }
    }
    (routes, description)
}

/// `docs/openapi.json`.
pub fn openapi_json() -> String {
    let (_, description) = routes();
    let mut text = description.to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}
