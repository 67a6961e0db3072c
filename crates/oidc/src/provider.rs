//! Signs people in at one provider: sends browsers there, and turns the answers into claims.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use openidconnect::core::{
    CoreAuthDisplay, CoreAuthPrompt, CoreAuthenticationFlow, CoreClientAuthMethod,
    CoreErrorResponseType, CoreGenderClaim, CoreJsonWebKey, CoreJweContentEncryptionAlgorithm,
    CoreJwsSigningAlgorithm, CoreProviderMetadata, CoreRevocableToken, CoreRevocationErrorResponse,
    CoreTokenIntrospectionResponse, CoreTokenType,
};
use openidconnect::{
    AccessTokenHash, AdditionalClaims, AuthType, AuthenticationContextClass, AuthorizationCode,
    ClaimsVerificationError, Client as ProtocolClient, ClientId, ClientSecret, CsrfToken,
    DiscoveryError, EmptyExtraTokenFields, EndpointMaybeSet, EndpointNotSet, EndpointSet,
    HttpRequest, HttpResponse, IdToken, IdTokenClaims, IdTokenFields, IssuerUrl, Nonce,
    OAuth2TokenResponse as _, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RequestTokenError,
    Scope, SignatureVerificationError, StandardErrorResponse, StandardTokenResponse,
    TokenResponse as _, UserInfoClaims,
};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::Url;

use crate::error::chain;
use crate::http::{CallError, call};
use crate::logout::UncheckedToken;
use crate::{Error, LogoutToken, is_protected};
use sepal_core::domain::Timestamp;

/// The age above which metadata and keys are read again.
const MAX_AGE: Duration = Duration::from_hours(1);

/// Keys are read again at most this often because of a logout token, which anybody may send.
const REREAD_PAUSE: Duration = Duration::from_mins(1);

/// The signatures that are accepted: those of a key pair.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// The settings of a provider.
#[derive(Debug, Clone)]
pub struct ProviderSettings {
    /// The issuer's address.
    pub issuer: Url,
    pub client_id: String,
    pub client_secret: SecretString,
    /// The scopes to ask for; `openid` is always among them.
    pub scopes: Vec<String>,
    /// The claim with the groups, by its name, or by its path with dots.
    pub groups_claim: String,
    /// True if groups decide anything, so that they are asked for where the ID token lacks them.
    pub needs_groups: bool,
    /// True if the mail address decides anything.
    pub needs_email: bool,
}

/// The secrets of one sign-in.
#[derive(Debug, Clone)]
pub struct Secrets {
    pub state: SecretString,
    pub nonce: SecretString,
    /// The PKCE verifier.
    pub verifier: SecretString,
}

/// Options of an authorization request: how the provider has to check the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand<'a> {
    /// To sign them in, in its usual way.
    SignIn,
    /// To check anew who they are, even if they are signed in there.
    Anew {
        /// The ways of the check that count (`acr`), the best first; empty = any.
        acr_values: &'a [String],
    },
}

/// The answer with which a provider sends a browser back.
#[derive(Debug, Clone)]
pub struct Answer {
    pub code: SecretString,
    /// The issuer that answers (RFC 9207); `None` = the answer does not name it.
    pub issuer: Option<String>,
}

/// The claims of a provider about a person.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claims {
    pub issuer: String,
    pub subject: String,
    /// The session at the provider.
    pub sid: Option<String>,
    pub preferred_username: Option<String>,
    pub email: Option<String>,
    /// True if the provider vouches for the address.
    pub is_email_verified: bool,
    pub name: Option<String>,
    pub groups: Vec<String>,
    /// When the provider last checked who the person is, in seconds since 1970.
    pub auth_time_s: Option<i64>,
    /// The way of that check (Authentication Context Class Reference).
    pub acr: Option<String>,
}

/// One provider. Clones share what was read.
#[derive(Debug, Clone)]
pub struct Provider(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    settings: ProviderSettings,
    http: reqwest::Client,
    /// Held while it is read, so that it is read once.
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    metadata: Option<(Arc<CoreProviderMetadata>, Instant)>,
    /// The end of the last read, if it failed.
    failed: Option<(Error, Instant)>,
    /// When a logout token last made the keys be read again.
    reread_at: Option<Instant>,
}

/// The claims beside those that every provider has.
#[derive(Debug, Clone, Deserialize, Serialize)]
struct Others {
    #[serde(flatten)]
    all: Map<String, Value>,
}

impl AdditionalClaims for Others {}

/// A request on its way.
type RunningCall = Pin<Box<dyn Future<Output = Result<HttpResponse, CallError>> + Send>>;

type Fields = IdTokenFields<
    Others,
    EmptyExtraTokenFields,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJwsSigningAlgorithm,
>;

type CheckedIdToken =
    IdToken<Others, CoreGenderClaim, CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm>;

type Tokens = StandardTokenResponse<Fields, CoreTokenType>;

type OwnClient = ProtocolClient<
    Others,
    CoreAuthDisplay,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJsonWebKey,
    CoreAuthPrompt,
    StandardErrorResponse<CoreErrorResponseType>,
    Tokens,
    CoreTokenIntrospectionResponse,
    CoreRevocableToken,
    CoreRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

impl Provider {
    /// Makes a provider that is reached by `http`, which follows no redirects. Nothing is read yet.
    pub fn new(settings: ProviderSettings, http: reqwest::Client) -> Self {
        Self(Arc::new(Parts {
            settings,
            http,
            known: Mutex::default(),
        }))
    }

    /// The address of the provider to which a browser is sent.
    pub async fn authorization_url(
        &self,
        redirect: &Url,
        secrets: &Secrets,
        demand: Demand<'_>,
    ) -> Result<Url, Error> {
        let metadata = self.metadata().await?;
        let client = self.client(&metadata, redirect);
        let (state, nonce) = (secrets.state.clone(), secrets.nonce.clone());
        let scopes = self.0.settings.scopes.iter();
        let scopes = scopes.filter(|scope| *scope != "openid");
        let mut request = client
            .authorize_url(
                CoreAuthenticationFlow::AuthorizationCode,
                move || CsrfToken::new(state.expose_secret().to_owned()),
                move || Nonce::new(nonce.expose_secret().to_owned()),
            )
            .add_scopes(scopes.map(|scope| Scope::new(scope.clone())))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier(
                secrets,
            )));
        if let Demand::Anew { acr_values } = demand {
            request = request
                .add_prompt(CoreAuthPrompt::Login)
                .set_max_age(Duration::ZERO);
            for value in acr_values {
                let class = AuthenticationContextClass::new(value.clone());
                request = request.add_auth_context_value(class);
            }
        }
        let (url, _, _) = request.url();
        if is_protected(&url) {
            Ok(url)
        } else {
            let what = "its authorization endpoint is not an https address";
            Err(Error::Unavailable(what.to_owned()))
        }
    }

    /// Redeems the code of an answer, and checks the ID token.
    pub async fn redeem(
        &self,
        answer: &Answer,
        redirect: &Url,
        secrets: &Secrets,
    ) -> Result<Claims, Error> {
        let metadata = self.metadata().await?;
        let issuer = metadata.issuer().as_str();
        if answer.issuer.as_deref().is_some_and(|it| it != issuer) {
            return Err(Error::Token("another issuer answers".to_owned()));
        }
        let code = AuthorizationCode::new(answer.code.expose_secret().to_owned());
        let ask = self.ask();
        let client = self.client(&metadata, redirect);
        let request = client
            .exchange_code(code)
            .map_err(|error| Error::Unavailable(error.to_string()))?;
        let request = request.set_pkce_verifier(verifier(secrets));
        let tokens = request.request_async(&ask).await.map_err(refused)?;
        let token = tokens.id_token().ok_or_else(|| {
            Error::Token("the provider sent none: is it an OpenID provider?".to_owned())
        })?;
        let nonce = Nonce::new(secrets.nonce.expose_secret().to_owned());
        let claims = match check_id_token(&client, token, &nonce, &tokens) {
            Err(error) if may_be_new_key(&error) => {
                // The provider may have begun to use another key.
                let metadata = self.read_again().await?;
                let client = self.client(&metadata, redirect);
                check_id_token(&client, token, &nonce, &tokens)
            }
            checked => checked,
        };
        let claims = claims.map_err(|error| Error::Token(chain(&error)))?;
        let mut read = self.read(&claims);
        if self.lacks_something(&read) && metadata.userinfo_endpoint().is_some() {
            self.complete(&mut read, &client, &tokens, &claims).await?;
        }
        Ok(read)
    }

    /// Checks a logout token.
    pub async fn check_logout(&self, token: &str, now: Timestamp) -> Result<LogoutToken, Error> {
        let token = UncheckedToken::parse(token)?;
        let mut metadata = self.metadata().await?;
        let client_id = &self.0.settings.client_id;
        let checked = token.check(metadata.issuer().as_str(), client_id, now)?;
        let is_signed = |metadata: &CoreProviderMetadata| {
            token.is_signed_by(metadata.jwks().keys(), &ALGORITHMS)
        };
        if !is_signed(&metadata) && self.may_read_again().await {
            metadata = self.read_again().await?;
        }
        if is_signed(&metadata) {
            return Ok(checked);
        }
        Err(Error::Token(
            "its signature is of no key of the provider".to_owned(),
        ))
    }

    fn client(&self, metadata: &CoreProviderMetadata, redirect: &Url) -> OwnClient {
        let settings = &self.0.settings;
        let secret = ClientSecret::new(settings.client_secret.expose_secret().to_owned());
        let id = ClientId::new(settings.client_id.clone());
        let client = OwnClient::from_provider_metadata(metadata.clone(), id, Some(secret))
            .set_redirect_uri(RedirectUrl::from_url(redirect.clone()));
        let ways = metadata.token_endpoint_auth_methods_supported();
        let takes_only_post = ways.is_some_and(|ways| {
            !ways.contains(&CoreClientAuthMethod::ClientSecretBasic)
                && ways.contains(&CoreClientAuthMethod::ClientSecretPost)
        });
        if takes_only_post {
            client.set_auth_type(AuthType::RequestBody)
        } else {
            client
        }
    }

    /// The way on which the protocol library sends its requests.
    fn ask(&self) -> impl Fn(HttpRequest) -> RunningCall + use<> {
        let http = self.0.http.clone();
        move |request| -> RunningCall { Box::pin(call(http.clone(), request)) }
    }

    /// The provider's metadata with its keys, at most [`MAX_AGE`] old; older if it does not answer. Those who
    /// wait for a read share its outcome, or a provider that is silent would hold them up one after the other.
    async fn metadata(&self) -> Result<Arc<CoreProviderMetadata>, Error> {
        let came = Instant::now();
        let mut known = self.0.known.lock().await;
        let old = match &known.metadata {
            Some((metadata, read_at)) if read_at.elapsed() < MAX_AGE => {
                return Ok(Arc::clone(metadata));
            }
            Some((metadata, _)) => Some(Arc::clone(metadata)),
            None => None,
        };
        let failed = known.failed.as_ref().filter(|(_, at)| *at >= came);
        let error = match failed {
            Some((error, _)) => error.clone(),
            None => match self.discover().await {
                Ok(metadata) => {
                    known.metadata = Some((Arc::clone(&metadata), Instant::now()));
                    return Ok(metadata);
                }
                Err(error) => {
                    known.failed = Some((error.clone(), Instant::now()));
                    error
                }
            },
        };
        let Some(old) = old else {
            return Err(error);
        };
        tracing::warn!(%error, "The metadata of an OpenID provider is out of date");
        Ok(old)
    }

    /// Reads metadata and keys, whatever their age.
    async fn read_again(&self) -> Result<Arc<CoreProviderMetadata>, Error> {
        let mut known = self.0.known.lock().await;
        let metadata = self.discover().await?;
        known.metadata = Some((Arc::clone(&metadata), Instant::now()));
        Ok(metadata)
    }

    /// Returns true if a logout token may make the keys be read again now.
    async fn may_read_again(&self) -> bool {
        let mut known = self.0.known.lock().await;
        let may = known
            .reread_at
            .is_none_or(|at| at.elapsed() >= REREAD_PAUSE);
        if may {
            known.reread_at = Some(Instant::now());
        }
        may
    }

    async fn discover(&self) -> Result<Arc<CoreProviderMetadata>, Error> {
        let given = self.0.settings.issuer.as_str();
        let bare = given.trim_end_matches('/');
        let slashed = format!("{bare}/");
        // A slash at the end counts, but an address of a host alone gets one wherever it is parsed.
        let has_path = self.0.settings.issuer.path() != "/";
        let (first, second) = if has_path && given.ends_with('/') {
            (slashed.as_str(), bare)
        } else {
            (bare, slashed.as_str())
        };
        match self.discover_at(first).await {
            Err(DiscoveryError::Validation(_)) => self.discover_at(second).await,
            found => found,
        }
        .map(Arc::new)
        .map_err(|error| Error::Unavailable(chain(&error)))
    }

    async fn discover_at(
        &self,
        issuer: &str,
    ) -> Result<CoreProviderMetadata, DiscoveryError<CallError>> {
        let issuer = IssuerUrl::new(issuer.to_owned()).map_err(DiscoveryError::UrlParse)?;
        let ask = self.ask();
        CoreProviderMetadata::discover_async(issuer, &ask).await
    }

    fn read(&self, claims: &IdTokenClaims<Others, CoreGenderClaim>) -> Claims {
        let others = &claims.additional_claims().all;
        let name = claims.name().and_then(|name| name.get(None));
        Claims {
            issuer: claims.issuer().to_string(),
            subject: claims.subject().to_string(),
            sid: others.get("sid").and_then(Value::as_str).map(str::to_owned),
            preferred_username: claims.preferred_username().map(|it| it.to_string()),
            email: claims.email().map(|it| it.to_string()),
            is_email_verified: claims.email_verified() == Some(true),
            name: name.map(|it| it.to_string()),
            groups: groups(others, &self.0.settings.groups_claim),
            auth_time_s: claims.auth_time().map(|at| at.timestamp()),
            acr: claims.auth_context_ref().map(|it| it.to_string()),
        }
    }

    /// Returns true if this is the provider's issuer, with or without a slash at its end.
    pub fn is_issuer(&self, issuer: &str) -> bool {
        let own = self.0.settings.issuer.as_str();
        own.trim_end_matches('/') == issuer.trim_end_matches('/')
    }

    /// The origin of the issuer's address.
    pub fn origin(&self) -> String {
        self.0.settings.issuer.origin().ascii_serialization()
    }

    fn lacks_something(&self, read: &Claims) -> bool {
        let settings = &self.0.settings;
        let has_name = read.preferred_username.is_some() || read.email.is_some();
        !has_name
            || settings.needs_groups && read.groups.is_empty()
            || settings.needs_email && !read.is_email_verified
    }

    /// Asks for the claims that the ID token lacks.
    async fn complete(
        &self,
        read: &mut Claims,
        client: &OwnClient,
        tokens: &Tokens,
        claims: &IdTokenClaims<Others, CoreGenderClaim>,
    ) -> Result<(), Error> {
        let subject = Some(claims.subject().clone());
        let ask = self.ask();
        let more: UserInfoClaims<Others, CoreGenderClaim> = client
            .user_info(tokens.access_token().clone(), subject)
            .map_err(|error| Error::Unavailable(error.to_string()))?
            .request_async(&ask)
            .await
            .map_err(|error| Error::Unavailable(chain(&error)))?;
        if read.preferred_username.is_none() {
            read.preferred_username = more.preferred_username().map(|it| it.to_string());
        }
        if read.name.is_none() {
            let name = more.name().and_then(|name| name.get(None));
            read.name = name.map(|it| it.to_string());
        }
        let email = more.email().map(|it| it.to_string());
        if read.email.is_none() || read.email == email {
            read.email = email;
            read.is_email_verified |= more.email_verified() == Some(true);
        }
        if read.groups.is_empty() {
            let others = &more.additional_claims().all;
            read.groups = groups(others, &self.0.settings.groups_claim);
        }
        Ok(())
    }
}

fn verifier(secrets: &Secrets) -> PkceCodeVerifier {
    PkceCodeVerifier::new(secrets.verifier.expose_secret().to_owned())
}

/// Checks signature, issuer, audience, nonce and time of an ID token, and that it belongs to the access token.
fn check_id_token(
    client: &OwnClient,
    token: &CheckedIdToken,
    nonce: &Nonce,
    tokens: &Tokens,
) -> Result<IdTokenClaims<Others, CoreGenderClaim>, ClaimsVerificationError> {
    let checks = client.id_token_verifier().set_allowed_algs(ALGORITHMS);
    let claims = token.claims(&checks, nonce)?;
    if let Some(expected) = claims.access_token_hash() {
        let signature = ClaimsVerificationError::SignatureVerification;
        let algorithm = token.signing_alg().map_err(signature)?;
        let key = token.signing_key(&checks).map_err(signature)?;
        let found = AccessTokenHash::from_token(tokens.access_token(), algorithm, key);
        if found.ok().as_ref() != Some(expected) {
            let what = "the access token is of another sign-in";
            return Err(ClaimsVerificationError::Other(what.to_owned()));
        }
    }
    Ok(claims.clone())
}

/// Returns true if a signature could fit a key that the provider did not have before.
fn may_be_new_key(error: &ClaimsVerificationError) -> bool {
    let ClaimsVerificationError::SignatureVerification(error) = error else {
        return false;
    };
    matches!(
        error,
        SignatureVerificationError::NoMatchingKey
            | SignatureVerificationError::AmbiguousKeyId(_)
            | SignatureVerificationError::CryptoError(_)
    )
}

/// The groups in a claim: a list of texts, or one text.
fn groups(claims: &Map<String, Value>, name: &str) -> Vec<String> {
    let found = claims.get(name).or_else(|| {
        let mut steps = name.split('.');
        let first = claims.get(steps.next()?)?;
        steps.try_fold(first, |value, step| value.get(step))
    });
    let texts = |items: &[Value]| {
        let items = items.iter().filter_map(Value::as_str);
        items.map(str::to_owned).collect()
    };
    match found {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(items)) => texts(items),
        Some(_) | None => Vec::new(),
    }
}

type ExchangeError = RequestTokenError<CallError, StandardErrorResponse<CoreErrorResponseType>>;

fn refused(error: ExchangeError) -> Error {
    match error {
        RequestTokenError::ServerResponse(response) => {
            let text = response.to_string();
            if matches!(response.error(), CoreErrorResponseType::InvalidGrant) {
                Error::CodeRefused(text)
            } else {
                Error::ClientRefused(text)
            }
        }
        // Not the body, which may hold tokens.
        RequestTokenError::Parse(error, _) => Error::Unavailable(chain(&error)),
        RequestTokenError::Request(error) => Error::Unavailable(chain(&error)),
        RequestTokenError::Other(text) => Error::Unavailable(text),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;
    use serde_json::json;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    use super::{Provider, ProviderSettings, groups};
    use crate::Error;

    #[tokio::test]
    async fn those_who_wait_for_a_provider_share_its_failure() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let serving = async move {
            loop {
                let (mut client, _) = listener.accept().await.unwrap();
                counted.fetch_add(1, Ordering::Relaxed);
                let answer = b"HTTP/1.1 503 Away\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                client.write_all(answer).await.unwrap();
            }
        };
        let settings = ProviderSettings {
            issuer: issuer.parse().unwrap(),
            client_id: "sepal".to_owned(),
            client_secret: "secret".into(),
            scopes: Vec::new(),
            groups_claim: "groups".to_owned(),
            needs_groups: false,
            needs_email: false,
        };
        let provider = Provider::new(
            settings,
            sepal_net::client(&sepal_net::Settings::default()).unwrap(),
        );
        let failures = tokio::select! {
            failures = join_all((0..5).map(|_| provider.metadata())) => failures,
            () = serving => unreachable!("it serves for ever"),
        };
        let is_away = |it: &Result<_, Error>| matches!(it, Err(Error::Unavailable(_)));
        assert!(failures.iter().all(is_away), "{failures:?}");
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn groups_are_read_by_name_or_by_path() {
        let claims = json!({
            "groups": ["a", 1, "b"],
            "https://acme.test/roles": ["c"],
            "realm_access": { "roles": ["d"] },
            "role": "e",
        });
        let claims = claims.as_object().unwrap();
        for (name, expected) in [
            ("groups", &["a", "b"][..]),
            ("https://acme.test/roles", &["c"]),
            ("realm_access.roles", &["d"]),
            ("role", &["e"]),
            ("realm_access", &[]),
            ("realm_access.x.y", &[]),
            ("none", &[]),
        ] {
            assert_eq!(groups(claims, name), expected, "{name}");
        }
    }
}
