//! The routes of REST, whose description is made only when somebody reads it.
//!
//! `utoipa_axum`'s own router describes every handler while routes are put together: at each start that made
//! a tree of some megabytes for a text that most gateways are never asked for, by code that stayed in memory.

use axum::Router;
use axum::routing::MethodRouter;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use crate::gateway::GatewayState;

/// Describes the handlers of one address.
pub(in crate::gateway) type Describe = fn() -> UtoipaMethodRouter<GatewayState>;

/// Routes, and how each of them is described.
#[derive(Default)]
pub(in crate::gateway) struct ApiRouter {
    routes: Router<GatewayState>,
    pub(super) descriptions: Vec<Describe>,
}

impl ApiRouter {
    pub(in crate::gateway) fn new() -> Self {
        Self::default()
    }

    /// Adds what [`routes!`] made.
    pub(in crate::gateway) fn routes(
        mut self,
        (path, methods, describe): (String, MethodRouter<GatewayState>, Describe),
    ) -> Self {
        self.routes = self.routes.route(&path, methods);
        self.descriptions.push(describe);
        self
    }

    /// The routes of both.
    pub(in crate::gateway) fn merge(mut self, other: Self) -> Self {
        self.routes = self.routes.merge(other.routes);
        self.descriptions.extend(other.descriptions);
        self
    }

    /// The routes alone.
    pub(in crate::gateway) fn into_routes(self) -> Router<GatewayState> {
        self.routes
    }

    /// The description of all routes, added to one that says the rest.
    pub(in crate::gateway) fn describe(&self, rest: OpenApi) -> OpenApi {
        let all = self.descriptions.iter();
        all.fold(OpenApiRouter::with_openapi(rest), |router, describe| {
            router.routes(describe())
        })
        .into_openapi()
    }
}

/// Handlers of one address, annotated with `utoipa::path`, for [`ApiRouter::routes`].
macro_rules! routes {
    ($($handler:path),+ $(,)?) => {{
        let at = (String::new(), axum::routing::MethodRouter::new());
        $(let at = {
            use utoipa_axum::PathItemExt as _;
            let path = utoipa_axum::paste! { utoipa_axum::routes!(@path [path()] of $handler) };
            let on = utoipa_axum::paste! { utoipa_axum::routes!(@path [methods()] of $handler) };
            let on = on.iter().map(|method| method.to_method_filter());
            (path, on.fold(at.1, |methods, method| methods.on(method, $handler)))
        };)+
        let describe: $crate::gateway::api_router::Describe = || utoipa_axum::routes!($($handler),+);
        (at.0, at.1, describe)
    }};
}

pub(in crate::gateway) use routes;
