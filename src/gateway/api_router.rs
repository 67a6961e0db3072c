//! Collects the REST routes, and builds their OpenAPI description only on request.
//!
//! `utoipa_axum`'s own router describes every handler while the routes are put together: at each start, this
//! built a tree of several megabytes, which stayed in memory, for a text that most gateways are never asked
//! for.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;
use axum::routing::MethodRouter;
use futures::future::BoxFuture;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use crate::gateway::GatewayState;

/// Builds the description of the handlers of one path.
pub(in crate::gateway) type Describe = fn() -> UtoipaMethodRouter<GatewayState>;

/// A handler of any function, as one type.
///
/// Axum wraps a handler in some ten generic layers. For each of them the compiler proves anew that the future
/// of the function and everything in [`GatewayState`] may move between threads. One layer type for each
/// function made that more than half of the time to compile this crate.
#[derive(Clone)]
pub(in crate::gateway) struct AnyHandler(
    Arc<dyn Fn(Request, GatewayState) -> BoxFuture<'static, Response> + Send + Sync>,
);

impl AnyHandler {
    /// Forgets the type of `handler`.
    pub(in crate::gateway) fn new<T: 'static>(handler: impl Handler<T, GatewayState>) -> Self {
        Self(Arc::new(move |request, state| {
            Box::pin(handler.clone().call(request, state))
        }))
    }
}

impl Handler<Self, GatewayState> for AnyHandler {
    type Future = BoxFuture<'static, Response>;

    fn call(self, request: Request, state: GatewayState) -> Self::Future {
        (self.0)(request, state)
    }
}

/// Routes, with the functions that describe them.
#[derive(Default)]
pub(in crate::gateway) struct ApiRouter {
    routes: Router<GatewayState>,
    pub(super) descriptions: Vec<Describe>,
}

impl ApiRouter {
    pub(in crate::gateway) fn new() -> Self {
        Self::default()
    }

    /// Adds the routes that [`routes!`] built.
    pub(in crate::gateway) fn routes(
        mut self,
        (path, methods, describe): (String, MethodRouter<GatewayState>, Describe),
    ) -> Self {
        self.routes = self.routes.route(&path, methods);
        self.descriptions.push(describe);
        self
    }

    /// Returns the routes of both routers.
    pub(in crate::gateway) fn merge(mut self, other: Self) -> Self {
        self.routes = self.routes.merge(other.routes);
        self.descriptions.extend(other.descriptions);
        self
    }

    /// Returns the routes without their descriptions.
    pub(in crate::gateway) fn into_routes(self) -> Router<GatewayState> {
        self.routes
    }

    /// Adds the descriptions of all routes to `rest`.
    pub(in crate::gateway) fn describe(&self, rest: OpenApi) -> OpenApi {
        let all = self.descriptions.iter();
        all.fold(OpenApiRouter::with_openapi(rest), |router, describe| {
            router.routes(describe())
        })
        .into_openapi()
    }
}

/// Bundles the handlers of one path, annotated with `utoipa::path`, for [`ApiRouter::routes`].
macro_rules! routes {
    ($($handler:path),+ $(,)?) => {{
        let at = (String::new(), axum::routing::MethodRouter::new());
        $(let at = {
            use utoipa_axum::PathItemExt as _;
            let path = utoipa_axum::paste! { utoipa_axum::routes!(@path [path()] of $handler) };
            let on = utoipa_axum::paste! { utoipa_axum::routes!(@path [methods()] of $handler) };
            let on = on.iter().map(|method| method.to_method_filter());
            let handler = $crate::gateway::api_router::AnyHandler::new($handler);
            (path, on.fold(at.1, |methods, method| methods.on(method, handler.clone())))
        };)+
        let describe: $crate::gateway::api_router::Describe = || {
            let mut schemas = Vec::new();
            let mut paths = utoipa::openapi::path::Paths::new();
            $(
                let (path, operation, methods) = utoipa_axum::routes!(@resolve_types $handler : schemas);
                paths.add_path_operation(&path, methods, operation);
            )+
            (schemas, paths, axum::routing::MethodRouter::new())
        };
        (at.0, at.1, describe)
    }};
}

pub(in crate::gateway) use routes;
