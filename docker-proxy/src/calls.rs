//! Carries out the allowed calls.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, combinators::BoxBody};
use hyper::{
    Request, Response, StatusCode,
    body::Incoming,
    header::{CONNECTION, CONTENT_TYPE, HeaderValue, UPGRADE},
    upgrade,
};
use serde_json::{Value, json};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    answer,
    attach::{Seat, copy_streams},
    engine::{Engine, Question},
    filter::filter,
    name::{self, ContainerName},
    owned::{self, Volume},
    quota::{Place, Quota},
    refusal::Refusal,
    request::{self, Query},
    route::{self, Call},
    settings::Settings,
    template,
};

/// A response to the client.
pub(crate) type Answer = Response<BoxBody<Bytes, hyper::Error>>;

/// The state that all calls share.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) settings: Settings,
    pub(crate) engine: Arc<Engine>,
    pub(crate) containers: Arc<Quota>,
    pub(crate) volumes: Arc<Quota>,
    /// Requests to create something that the engine has not answered.
    pub(crate) making: TaskTracker,
    /// The running streams.
    pub(crate) streams: TaskTracker,
    pub(crate) shutdown: CancellationToken,
    /// The name in `--listen`, which requests have to name as their host; `None` for a socket, which no page
    /// in a browser can reach.
    pub(crate) host: Option<String>,
}

/// A request for an allowed call, checked except for its body.
struct CheckedRequest {
    call: Call,
    /// The name in the path; empty if there is none.
    name: String,
    query: Query,
    request: Request<Incoming>,
}

impl CheckedRequest {
    fn read(request: Request<Incoming>, host: Option<&str>) -> Result<Self, Refusal> {
        let headers = request.headers();
        request::check_sender(headers)?;
        if let Some(host) = host {
            request::check_host(headers, host)?;
        }
        let path = request::path(request.uri())?;
        let (route, name) = route::find(request.method(), path)?;
        if route.call == Call::ContainerAttach {
            if !request::wants_stream(headers) {
                let text = "attaching needs `Connection: Upgrade` and `Upgrade: tcp`";
                return Err(Refusal::Malformed(text.to_owned()));
            }
        } else {
            request::without_upgrade(headers)?;
        }
        if !route.has_body() {
            request::without_body(headers)?;
        }
        Ok(Self {
            call: route.call,
            name: name.unwrap_or_default().to_owned(),
            query: Query::parse(request.uri(), route.query)?,
            request,
        })
    }
}

impl Door {
    /// Carries out a request, if it is allowed.
    pub(crate) async fn carry_out(&self, request: Request<Incoming>) -> Result<Answer, Refusal> {
        let asked = CheckedRequest::read(request, self.host.as_deref())?;
        match asked.call {
            Call::Ping => self.ping().await,
            Call::Health => Ok(self.health().await),
            Call::Version => self.version().await,
            Call::Info => {
                let about = self.engine.ask(&Question::get("/info")).await?;
                Ok(json(StatusCode::OK, &answer::info(&about)))
            }
            Call::ImageInspect => self.image(&asked.name).await,
            Call::ContainerCreate => self.create(asked).await,
            Call::ContainerList => self.list(&asked.query).await,
            Call::ContainerInspect => {
                let found = self.own(&asked.name).await?;
                Ok(json(StatusCode::OK, &answer::inspected(&found.about)))
            }
            Call::ContainerAttach => self.attach(asked).await,
            Call::ContainerStart => self.order(&asked.name, "start").await,
            Call::ContainerPause => self.order(&asked.name, "pause").await,
            Call::ContainerUnpause => self.order(&asked.name, "unpause").await,
            Call::ContainerWait => self.wait(&asked).await,
            Call::ContainerRemove => self.remove(&asked).await,
            Call::VolumeCreate => self.create_volume(asked).await,
            Call::VolumeList => self.volumes(&asked.query).await,
            Call::VolumeRemove => self.remove_volume(&asked.name).await,
        }
    }

    async fn own(&self, name: &str) -> Result<owned::OwnContainer, Refusal> {
        owned::container(&self.engine, &self.settings.label, name).await
    }

    /// Lets the engine do something with our own container that needs no further parameters.
    async fn order(&self, name: &str, what: &str) -> Result<Answer, Refusal> {
        let id = self.own(name).await?.id;
        let question = Question::post(format!("/containers/{id}/{what}"));
        self.engine.tell(&question).await.map(empty)
    }

    async fn ping(&self) -> Result<Answer, Refusal> {
        self.engine.tell(&Question::get("/_ping")).await?;
        let mut told = Response::new(full("OK"));
        let version = format!("1.{}", self.engine.version().await?);
        if let Ok(version) = HeaderValue::try_from(version) {
            told.headers_mut().insert("Api-Version", version);
        }
        Ok(told)
    }

    async fn health(&self) -> Answer {
        let engine = self.engine.tell(&Question::get("/_ping")).await;
        let (status, said) = match engine {
            Ok(_) => (StatusCode::OK, "ok".to_owned()),
            Err(refusal) => (StatusCode::SERVICE_UNAVAILABLE, refusal.to_string()),
        };
        let version = env!("CARGO_PKG_VERSION");
        json(
            status,
            &json!({ "proxy": "ok", "version": version, "engine": said }),
        )
    }

    async fn version(&self) -> Result<Answer, Refusal> {
        let about = self.engine.ask(&Question::get("/version")).await?;
        let minor = self.engine.version().await?;
        Ok(json(StatusCode::OK, &answer::version(&about, minor)))
    }

    async fn image(&self, image: &str) -> Result<Answer, Refusal> {
        if !self.settings.allows_image(image) {
            let remedy = "the proxy does not allow it (`--image`, `--allow-image`)";
            return Err(Refusal::field(image, remedy));
        }
        let question = Question::get(format!("/images/{image}/json"));
        let about = self.engine.ask(&question).await?;
        Ok(json(StatusCode::OK, &answer::image(&about)))
    }

    async fn create(&self, asked: CheckedRequest) -> Result<Answer, Refusal> {
        let name = asked.query.get("name").and_then(ContainerName::parse);
        let name = name.ok_or_else(|| {
            let remedy = "containers are called `sepal-sb-sbx_<32 hexadecimal digits>`";
            Refusal::field("?name", remedy)
        })?;
        let body = request::body(asked.request).await?;
        let made = template::container(&name, &body, &self.settings)?;
        for volume in &made.volumes {
            self.has_volume(volume).await?;
        }
        let listed = async {
            let listed = self.own_containers("1", None).await?;
            let names = listed.iter().filter_map(owned::container_name);
            Ok(names.collect())
        };
        let place = self.containers.admit(&name.name, listed).await?;
        let question = Question::post("/containers/create").with("name", &name.name);
        let told = self.make(place, question, made.body).await;
        if matches!(&told, Err(Refusal::Engine { status, .. }) if *status == StatusCode::CONFLICT) {
            // Sepal removes its own container and tries again; a foreign one would stay forever.
            let label = &self.settings.label;
            owned::not_foreign_container(&self.engine, label, &name.name).await?;
        }
        Ok(json(StatusCode::CREATED, &answer::created(&told?)))
    }

    async fn list(&self, query: &Query) -> Result<Answer, Refusal> {
        let all = if query.is_set("all") { "1" } else { "0" };
        let own = self.own_containers(all, query.get("filters")).await?;
        let own: Vec<Value> = own.iter().map(answer::listed).collect();
        Ok(json(StatusCode::OK, &Value::Array(own)))
    }

    /// Returns our own containers in the engine's list.
    async fn own_containers(&self, all: &str, asked: Option<&str>) -> Result<Vec<Value>, Refusal> {
        let label = &self.settings.label;
        let question = Question::get("/containers/json")
            .with("all", all)
            .with("filters", filter(asked, label)?);
        let mut listed = self.engine.ask(&question).await?;
        let listed = listed.as_array_mut().map(std::mem::take);
        let mut listed = listed.unwrap_or_default();
        // Filtered again, in case an engine reads the filter differently.
        listed.retain(|it| owned::has_label(it.get("Labels"), label));
        Ok(listed)
    }

    /// Lets the engine create something. Runs to completion even if the client is gone, because the created
    /// object has to keep its place in the quota.
    async fn make(
        &self,
        place: Place,
        question: Question<'static>,
        body: Value,
    ) -> Result<Value, Refusal> {
        let engine = Arc::clone(&self.engine);
        let making = self.making.spawn(async move {
            let told = engine.ask(&question.body(&body)).await;
            drop(place);
            told
        });
        let made = making.await;
        made.unwrap_or_else(|error| Err(Refusal::Odd(error.to_string())))
    }

    async fn attach(&self, mut asked: CheckedRequest) -> Result<Answer, Refusal> {
        let id = self.own(&asked.name).await?.id;
        let mut question = Question::post(format!("/containers/{id}/attach"));
        for stream in ["stream", "stdin", "stdout", "stderr"] {
            if !asked.query.is_set(stream) {
                let remedy = "all of `stream`, `stdin`, `stdout` and `stderr` have to be `true`";
                return Err(Refusal::field(format!("?{stream}"), remedy));
            }
            question = question.with(stream, "1");
        }
        let engine = self.engine.stream(&question).await?;
        // The stream outlives its connection, and keeps the connection's permit until its end.
        let seat = asked.request.extensions_mut().remove::<Seat>();
        let client = upgrade::on(&mut asked.request);
        let copying = copy_streams(client, engine, self.shutdown.clone());
        self.streams.spawn(async move {
            copying.await;
            drop(seat);
        });
        let mut told = empty(StatusCode::SWITCHING_PROTOCOLS);
        let headers = told.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("tcp"));
        let raw = HeaderValue::from_static("application/vnd.docker.raw-stream");
        headers.insert(CONTENT_TYPE, raw);
        Ok(told)
    }

    async fn wait(&self, asked: &CheckedRequest) -> Result<Answer, Refusal> {
        let condition = asked.query.get("condition").filter(|it| !it.is_empty());
        let condition = condition.unwrap_or("not-running");
        if !["not-running", "next-exit", "removed"].contains(&condition) {
            let remedy = "it may be `not-running`, `next-exit` or `removed`";
            return Err(Refusal::field("?condition", remedy));
        }
        let id = self.own(&asked.name).await?.id;
        let question =
            Question::post(format!("/containers/{id}/wait")).with("condition", condition);
        let ended = self.engine.follow(&question).await?;
        let mut told = Response::new(ended.into_body().boxed());
        is_json(&mut told);
        Ok(told)
    }

    async fn remove(&self, asked: &CheckedRequest) -> Result<Answer, Refusal> {
        let id = self.own(&asked.name).await?.id;
        let force = if asked.query.is_set("force") {
            "1"
        } else {
            "0"
        };
        let question = Question::new(hyper::Method::DELETE, format!("/containers/{id}"))
            .with("force", force)
            // Only anonymous volumes are removed, which an image may declare and nobody would find again.
            .with("v", "1");
        self.engine.tell(&question).await.map(empty)
    }

    /// Refuses a foreign volume, and a missing one: the engine would create it regardless of `--max-volumes`.
    async fn has_volume(&self, name: &str) -> Result<(), Refusal> {
        match owned::volume(&self.engine, &self.settings.label, name).await? {
            Volume::Own => Ok(()),
            Volume::Missing => Err(Refusal::Missing {
                kind: "volume",
                name: name.to_owned(),
            }),
            Volume::Foreign => Err(foreign_volume(name)),
        }
    }

    async fn create_volume(&self, asked: CheckedRequest) -> Result<Answer, Refusal> {
        let body = request::body(asked.request).await?;
        let (name, made) = template::volume(&body, &self.settings)?;
        let question = Question::post("/volumes/create");
        let label = &self.settings.label;
        let about = match owned::volume(&self.engine, label, &name).await? {
            Volume::Foreign => return Err(foreign_volume(&name)),
            // The engine returns the existing volume.
            Volume::Own => self.engine.ask(&question.body(&made)).await?,
            Volume::Missing => {
                let listed = async {
                    let listed = self.own_volumes(None).await?;
                    let names = listed.iter().filter_map(owned::volume_name);
                    Ok(names.collect())
                };
                let place = self.volumes.admit(&name, listed).await?;
                self.make(place, question, made).await?
            }
        };
        // The engine returns an existing volume of that name, whatever it is.
        if !owned::is_own_volume(&about, &self.settings.label) {
            return Err(foreign_volume(&name));
        }
        Ok(json(StatusCode::CREATED, &answer::volume(&about)))
    }

    async fn volumes(&self, query: &Query) -> Result<Answer, Refusal> {
        let own = self.own_volumes(query.get("filters")).await?;
        let own: Vec<Value> = own.iter().map(answer::volume).collect();
        Ok(json(
            StatusCode::OK,
            &json!({ "Volumes": own, "Warnings": [] }),
        ))
    }

    /// Returns our own volumes in the engine's list.
    async fn own_volumes(&self, asked: Option<&str>) -> Result<Vec<Value>, Refusal> {
        let label = &self.settings.label;
        let question = Question::get("/volumes").with("filters", filter(asked, label)?);
        let mut listed = self.engine.ask(&question).await?;
        let listed = listed.get_mut("Volumes").and_then(Value::as_array_mut);
        let mut listed = listed.map(std::mem::take).unwrap_or_default();
        listed.retain(|it| owned::is_own_volume(it, label));
        Ok(listed)
    }

    async fn remove_volume(&self, name: &str) -> Result<Answer, Refusal> {
        let found = match name::sandbox_of_volume(name) {
            Some(_) => owned::volume(&self.engine, &self.settings.label, name).await?,
            None => Volume::Missing,
        };
        if found != Volume::Own {
            return Err(Refusal::Missing {
                kind: "volume",
                name: name.to_owned(),
            });
        }
        let question = Question::new(hyper::Method::DELETE, format!("/volumes/{name}"));
        self.engine.tell(&question).await.map(empty)
    }
}

fn foreign_volume(name: &str) -> Refusal {
    Refusal::Foreign {
        kind: "volume",
        name: name.to_owned(),
    }
}

fn full(text: impl Into<Bytes>) -> BoxBody<Bytes, hyper::Error> {
    Full::new(text.into())
        .map_err(|never| match never {})
        .boxed()
}

fn empty(status: StatusCode) -> Answer {
    let mut told = Response::new(full(""));
    *told.status_mut() = status;
    told
}

fn is_json(told: &mut Answer) {
    let json = HeaderValue::from_static("application/json");
    told.headers_mut().insert(CONTENT_TYPE, json);
}

/// Builds a JSON response.
pub(crate) fn json(status: StatusCode, value: &Value) -> Answer {
    let mut told = Response::new(full(value.to_string()));
    *told.status_mut() = status;
    is_json(&mut told);
    told
}
