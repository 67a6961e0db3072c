//! Runs questions as tasks (extension `io.modelcontextprotocol/tasks`, SEP-2663): the client gets a handle
//! immediately, and polls the task's state. A task is its session, so it outlives the client, the connection
//! and the gateway, and any gateway can answer for it. Clients without tasks that cannot be asked during a
//! call use rounds instead.

mod inputs;
mod rounds;
mod watched;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::ErrorData;
use rmcp::model::{CreateTaskResult, DetailedTask, InputResponses, Task, TaskPayload, TaskStatus};
use serde_json::{Value, json};

pub(super) use self::rounds::Round;
use self::watched::{TaskDoor, WatchedState, WatchedTask};
use super::asking::{Asking, result};
use super::notices::Notices;
use super::question::{Ending, Question, QuestionText, begin, is_question};
use crate::agent::{QueueState, SessionSubscription};
use crate::domain::{Caller, Code, SessionId, SessionKey, Share, TurnId};
use crate::session::{Command, Refusal};
use crate::store::clock::now;

/// The suggested poll interval of clients, in ms.
const POLL_INTERVAL_MS: u64 = 1_000;
/// The turn that a question begins.
const FIRST: TurnId = TurnId(1);

/// The tasks that this gateway follows.
#[derive(Clone, Default)]
pub(super) struct Tasks {
    /// The followed tasks by session. The lock is never held across an await.
    watched: Arc<Mutex<HashMap<SessionKey, Arc<WatchedTask>>>>,
}

/// The client of a task.
#[derive(Clone)]
pub(super) struct TaskClient {
    pub(super) caller: Caller,
    /// True if the client can show a form to the person.
    pub(super) has_forms: bool,
}

impl Tasks {
    /// Begins a question, which continues when the client disconnects.
    pub(super) async fn create(
        &self,
        asking: &Asking,
        client: TaskClient,
        asked: QuestionText,
    ) -> Result<CreateTaskResult, Refusal> {
        let (key, watched) = self.begin(asking, &client, asked, None).await?;
        let seen = watched.seen(&asking.life.stop).await;
        // `tasks/get` reports the state in full, so only the handle is returned here.
        Ok(CreateTaskResult::new(task(&key, &seen)))
    }

    /// Begins a question and follows it. `notices` notifies the client if it waits for the answer.
    async fn begin(
        &self,
        asking: &Asking,
        client: &TaskClient,
        asked: QuestionText,
        notices: Option<Arc<Notices>>,
    ) -> Result<(SessionKey, Arc<WatchedTask>), Refusal> {
        let share = asking.share(&client.caller)?;
        let (key, joined) = begin(&asking.sessions, &client.caller, asked).await?;
        let watched = Arc::new(WatchedTask::default());
        watched.notify(notices);
        self.all().insert(key.clone(), Arc::clone(&watched));
        let door = TaskDoor::new(&watched, client.has_forms);
        let caller = client.caller.clone();
        self.follow(asking, caller, share, &key, joined, door);
        Ok((key, watched))
    }

    /// Returns the state of a task, with its pending requests for input.
    pub(super) async fn get(
        &self,
        asking: &Asking,
        client: TaskClient,
        id: &str,
    ) -> Result<DetailedTask, ErrorData> {
        let (key, joined) = self.find(asking, &client.caller, id).await?;
        let queue = joined.view.queue.clone();
        let watched = self.watch(asking, &client, &key, joined)?;
        let seen = watched.seen(&asking.life.stop).await;
        let task = task(&key, &seen);
        let payload = match seen.ending {
            Some(Ok(Ending::Cancelled)) => TaskPayload::Cancelled,
            Some(Err(refusal)) => return Err(refused(&refusal)),
            // Also a turn that failed: it is a result of the tool with `isError`.
            Some(Ok(ending)) => match serde_json::to_value(result(Ok(ending))) {
                Ok(Value::Object(result)) => TaskPayload::Completed { result },
                Ok(_) | Err(_) => return Err(ErrorData::internal_error("no result", None)),
            },
            None => {
                let asked = asked(asking, &client, &watched, &queue);
                if asked.is_empty() {
                    TaskPayload::Working
                } else {
                    TaskPayload::InputRequired {
                        input_requests: inputs::requests(asked),
                    }
                }
            }
        };
        Ok(DetailedTask::new(task, payload))
    }

    /// Accepts responses of the person at the client. Responses without a pending request are ignored, as
    /// the extension requires. If one response cannot be read, all of them are refused.
    pub(super) async fn update(
        &self,
        asking: &Asking,
        client: TaskClient,
        id: &str,
        answers: InputResponses,
    ) -> Result<(), ErrorData> {
        let (key, joined) = self.find(asking, &client.caller, id).await?;
        let queue = joined.view.queue.clone();
        let watched = self.watch(asking, &client, &key, joined)?;
        take(asking, &client, &key, &watched, &queue, answers).await
    }

    /// Stops a task; a task that has ended stays unchanged.
    pub(super) async fn cancel(
        &self,
        asking: &Asking,
        caller: &Caller,
        id: &str,
    ) -> Result<(), ErrorData> {
        let (key, _) = self.find(asking, caller, id).await?;
        let stop = Command::Stop {
            turn: Some(FIRST),
            said_so_far: None,
            thought_so_far: None,
            spent: Vec::new(),
        };
        let told = asking.sessions.submit(&key, caller, stop.into());
        told.await.map_err(|refusal| refused(&refusal))?;
        Ok(())
    }

    /// Finds the session of a task that the caller may see.
    async fn find(
        &self,
        asking: &Asking,
        caller: &Caller,
        id: &str,
    ) -> Result<(SessionKey, SessionSubscription), ErrorData> {
        let session = SessionId::parse(id).ok_or_else(unknown)?;
        let tenant = caller.tenant.id.clone();
        let key = SessionKey { tenant, session };
        let joined = asking.sessions.join(&key, caller).await;
        let joined = joined.map_err(|refusal| refused(&refusal))?;
        let is_known = self.all().contains_key(&key);
        if !is_known {
            let is_question = is_question(&asking.sessions, &key, caller).await;
            if !is_question.map_err(|refusal| refused(&refusal))? {
                return Err(unknown());
            }
        }
        Ok((key, joined))
    }

    /// Follows a task on this gateway unless it is followed already: another gateway may have begun it.
    fn watch(
        &self,
        asking: &Asking,
        client: &TaskClient,
        key: &SessionKey,
        joined: SessionSubscription,
    ) -> Result<Arc<WatchedTask>, ErrorData> {
        if let Some(watched) = self.all().get(key) {
            return Ok(Arc::clone(watched));
        }
        let share = asking.share(&client.caller);
        let share = share.map_err(|refusal| refused(&refusal))?;
        let mut all = self.all();
        if let Some(watched) = all.get(key) {
            return Ok(Arc::clone(watched));
        }
        let watched = Arc::new(WatchedTask::default());
        all.insert(key.clone(), Arc::clone(&watched));
        drop(all);
        let door = TaskDoor::new(&watched, client.has_forms);
        let caller = client.caller.clone();
        self.follow(asking, caller, share, key, joined, door);
        Ok(watched)
    }

    /// Follows a task in the background until its turn ends or this gateway stops. In the latter case the
    /// session continues on another gateway or later, which follows the task when a client polls it.
    fn follow(
        &self,
        asking: &Asking,
        caller: Caller,
        share: Share,
        key: &SessionKey,
        joined: SessionSubscription,
        door: TaskDoor,
    ) {
        let (tasks, key) = (self.clone(), key.clone());
        let (sessions, exposure) = (asking.sessions.clone(), Arc::clone(&asking.exposure));
        let stop = asking.life.stop.clone();
        asking.life.tasks.spawn(async move {
            let question = Question {
                sessions: &sessions,
                caller: &caller,
                ways: &exposure.approval,
                has_page: exposure.has_page,
                limit: exposure.turn_limit,
                stop: door.stop(),
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                ended = question.follow(&key, joined, &door) => door.end(ended),
            }
            tasks.all().remove(&key);
            drop(share);
        });
    }

    fn all(&self) -> MutexGuard<'_, HashMap<SessionKey, Arc<WatchedTask>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Accepts responses to the task's pending requests for input.
async fn take(
    asking: &Asking,
    client: &TaskClient,
    key: &SessionKey,
    watched: &WatchedTask,
    queue: &QueueState,
    answers: InputResponses,
) -> Result<(), ErrorData> {
    if watched.seen(&asking.life.stop).await.ending.is_some() {
        // Requests that wait in the session now belong to another turn.
        return Ok(());
    }
    let asked = asked(asking, client, watched, queue);
    let read = inputs::read(&asked, &client.caller, answers);
    for (name, said) in read.map_err(|text| ErrorData::invalid_params(text, None))? {
        match said {
            Some(said) => {
                let told = asking.sessions.submit(key, &client.caller, said).await;
                told.map_err(|refusal| refused(&refusal))?;
            }
            None => watched.put_away(name),
        }
    }
    Ok(())
}

/// Returns the requests that the person at the client may be asked now.
fn asked(
    asking: &Asking,
    client: &TaskClient,
    watched: &WatchedTask,
    queue: &QueueState,
) -> Vec<inputs::PersonInput> {
    if !client.has_forms {
        return Vec::new();
    }
    let mut asked = inputs::asked(&asking.exposure, &client.caller, queue);
    asked.retain(|asked| !watched.is_put_away(&asked.name));
    asked
}

fn task(key: &SessionKey, seen: &WatchedState) -> Task {
    let created_at = seen.created_at.unwrap_or_else(now);
    let updated_at = seen.updated_at.unwrap_or(created_at);
    let id = key.session.to_string();
    let (created_at, updated_at) = (created_at.to_rfc3339(), updated_at.to_rfc3339());
    let mut task = Task::new(id, TaskStatus::Working, created_at, updated_at)
        .with_poll_interval_ms(POLL_INTERVAL_MS);
    // The task has no `ttlMs`: a session exists until a person deletes it.
    task.status_message.clone_from(&seen.said);
    task
}

fn unknown() -> ErrorData {
    let text = "there is no such task, or it is another person's, or its session was deleted";
    ErrorData::invalid_params(text, None)
}

fn refused(refusal: &Refusal) -> ErrorData {
    if refusal.code == Code::SessionNotFound {
        return unknown();
    }
    let data = json!({ "code": refusal.code.as_str() });
    ErrorData::invalid_request(refusal.message.clone(), Some(data))
}
