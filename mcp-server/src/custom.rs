//! What the gateway asks beside tools, for people and for itself: how requests are read and answered.

use std::sync::Arc;

use rmcp::{
    ErrorData,
    model::{CustomRequest, CustomResult, ErrorCode},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    failure::Failure,
    files::{
        Workspace,
        checkpoints::{self, Scans},
        people::{self, Uploads},
    },
};

/// What people do with files through the gateway. No tools: a model never reads of it.
const LIST_FOLDER: &str = "sepal/listFolder";
const READ_FILE: &str = "sepal/readFile";
const PUT_FILE: &str = "sepal/putFile";
const REMOVE_FILE: &str = "sepal/removeFile";

/// How the gateway remembers states of the workspace and brings them back. No tools either.
const SCAN_WORKSPACE: &str = "sepal/scanWorkspace";
const READ_CONTENTS: &str = "sepal/readContents";
const RESTORE_FILES: &str = "sepal/restoreFiles";

/// What a person does with files, and what is remembered of them.
pub(crate) async fn people(
    request: &CustomRequest,
    workspace: Arc<Workspace>,
    uploads: &Arc<Uploads>,
    scans: &Arc<Scans>,
) -> Result<CustomResult, ErrorData> {
    match request.method.as_str() {
        LIST_FOLDER => {
            let asked = params(request)?;
            answer(move || Ok(people::answer(people::list_folder(&workspace, &asked)))).await
        }
        READ_FILE => {
            let asked = params(request)?;
            answer(move || Ok(people::answer(people::read_file(&workspace, &asked)))).await
        }
        PUT_FILE => {
            let (part, uploads) = (params(request)?, Arc::clone(uploads));
            let put = move || people::put_file(&workspace, &uploads, &part);
            answer(move || Ok(people::answer(put()))).await
        }
        REMOVE_FILE => {
            let asked = params(request)?;
            answer(move || Ok(people::answer(people::remove_file(&workspace, &asked)))).await
        }
        _ => checkpoint(request, workspace, scans).await,
    }
}

/// What the gateway asks around calls and around people's changes.
async fn checkpoint(
    request: &CustomRequest,
    workspace: Arc<Workspace>,
    scans: &Arc<Scans>,
) -> Result<CustomResult, ErrorData> {
    match request.method.as_str() {
        SCAN_WORKSPACE => {
            let (asked, scans) = (params(request)?, Arc::clone(scans));
            let scan = move || checkpoints::scan_workspace(&workspace, &scans, &asked);
            answer(move || Ok(people::answer(scan()))).await
        }
        READ_CONTENTS => {
            let asked = params(request)?;
            answer(move || Ok(checkpoints::read_contents(&workspace, &asked))).await
        }
        RESTORE_FILES => {
            let asked = params(request)?;
            answer(move || Ok(checkpoints::restore_files(&workspace, &asked))).await
        }
        unknown => Err(ErrorData::new(
            ErrorCode::METHOD_NOT_FOUND,
            unknown.to_owned(),
            None,
        )),
    }
}

/// The parameters of a request.
pub(crate) fn params<P: DeserializeOwned>(request: &CustomRequest) -> Result<P, ErrorData> {
    let invalid = |text: String| ErrorData::invalid_params(text, None);
    request
        .params_as()
        .map_err(|error| invalid(error.to_string()))?
        .ok_or_else(|| invalid("there are no parameters".to_owned()))
}

/// What the gateway asked for, done where blocking is allowed.
pub(crate) async fn answer<T: Serialize + Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<CustomResult, ErrorData> {
    let internal = |text: String| ErrorData::internal_error(text, None);
    #[expect(
        clippy::disallowed_methods,
        reason = "the server of one sandbox, whose limits hold whatever it does"
    )]
    let working = tokio::task::spawn_blocking(work);
    let done = working
        .await
        .map_err(|error| internal(error.to_string()))?
        .map_err(|failure| ErrorData::invalid_params(failure.to_string(), None))?;
    let done = serde_json::to_value(done).map_err(|error| internal(error.to_string()))?;
    Ok(CustomResult::new(done))
}
