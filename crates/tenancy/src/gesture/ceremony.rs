//! Runs the WebAuthn ceremonies as a relying party: makes challenges, remembers their state, and verifies
//! answers. Uses no store, and knows only the person that it is given.

use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use webauthn_rp::AuthenticatedCredential;
use webauthn_rp::bin::{Decode as _, Encode as _};
use webauthn_rp::request::auth::{
    AllowedCredentials, AuthenticationVerificationOptions, AuthenticatorAttachmentEnforcement,
    DiscoverableAuthenticationServerState, DiscoverableCredentialRequestOptions,
    NonDiscoverableAuthenticationServerState, NonDiscoverableCredentialRequestOptions,
};
use webauthn_rp::request::register::{
    CredProtect, PublicKeyCredentialCreationOptions, PublicKeyCredentialUserEntity,
    RegistrationServerState, RegistrationVerificationOptions, UserHandle, Username,
};
use webauthn_rp::request::{
    AsciiDomain, Credentials as _, PublicKeyCredentialDescriptor, RpId, UserVerificationRequirement,
};
use webauthn_rp::response::auth::{DiscoverableAuthentication, NonDiscoverableAuthentication};
use webauthn_rp::response::register::{CompressedPubKey, DynamicState, Registration, StaticState};
use webauthn_rp::response::{AuthTransports, CredentialId};

use super::LIFE_MS;
use sepal_core::domain::{Caller, TenantId, UserId};
use sepal_store::records::{OwnedPasskey, PasskeyRow};

/// Bytes of the handle by which authenticators know a person.
const HANDLE: usize = 32;

/// The time for which a browser waits for the person, in ms.
const LIFE: NonZeroU32 = match NonZeroU32::new(LIFE_MS) {
    Some(life) => life,
    None => NonZeroU32::MIN,
};

/// A stored public key.
type Key = CompressedPubKey<[u8; 32], [u8; 32], [u8; 48], Vec<u8>>;

/// The identity of an installation for browsers and authenticators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelyingParty {
    /// The host name that passkeys are bound to.
    pub id: String,
    /// The origins whose pages may use them, as browsers write them.
    pub origins: Vec<String>,
}

/// A challenge, for the browser and for the store.
pub(super) struct CeremonyChallenge {
    /// `publicKey` of `navigator.credentials`, as its JSON form.
    pub(super) options: Value,
    /// The server's state, for verifying the answer.
    pub(super) ceremony: String,
    /// The challenge as the browser returns it.
    pub(super) challenge: String,
}

/// A new passkey.
pub(super) struct NewPasskey {
    pub(super) id: String,
    pub(super) public_key: String,
    pub(super) counter: String,
    pub(super) transports: u8,
}

/// The reason an authenticator's answer is refused.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Wrong(String);

impl Wrong {
    fn of(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// Makes a challenge for a new passkey of a person who already has `known`.
pub(super) fn ask_registration(
    party: &RelyingParty,
    caller: &Caller,
    known: &[PasskeyRow],
) -> Result<CeremonyChallenge, Wrong> {
    let rp_id = rp_id(party)?;
    let handle = handle(&caller.tenant.id, &caller.user.id)?;
    let name = Username::try_from(caller.user.name.as_str()).map_err(Wrong::of)?;
    let user = PublicKeyCredentialUserEntity {
        name,
        id: &handle,
        display_name: None,
    };
    let known = known.iter().map(descriptor).collect::<Result<_, _>>()?;
    let mut options = PublicKeyCredentialCreationOptions::passkey(&rp_id, user, known);
    options.timeout = LIFE;
    options.extensions.cred_protect = CredProtect::None;
    let (server, client) = options.start_ceremony().map_err(Wrong::of)?;
    asked(
        serde_json::to_value(&client),
        &server.encode().map_err(Wrong::of)?,
    )
}

/// Verifies that an authenticator made the requested passkey.
pub(super) fn check_registration(
    party: &RelyingParty,
    ceremony: &str,
    answer: &Value,
) -> Result<NewPasskey, Wrong> {
    let server = RegistrationServerState::<HANDLE>::decode(&bytes(ceremony)?);
    let answer = serde_json::to_vec(answer).map_err(Wrong::of)?;
    let answer = Registration::from_json_relaxed(&answer).map_err(Wrong::of)?;
    let origins: Vec<&str> = party.origins.iter().map(String::as_str).collect();
    let options = RegistrationVerificationOptions::<&str, &str> {
        allowed_origins: &origins,
        error_on_unsolicited_extensions: false,
        ..RegistrationVerificationOptions::default()
    };
    let made = server
        .map_err(Wrong::of)?
        .verify(&rp_id(party)?, &answer, &options)
        .map_err(Wrong::of)?;
    let public_key = made.static_state().encode().map_err(Wrong::of)?;
    let counter = made.dynamic_state().encode().map_err(Wrong::of)?;
    Ok(NewPasskey {
        id: text(made.id().as_ref()),
        public_key: text(&public_key),
        counter: text(&counter),
        transports: made.transports().encode().map_err(Wrong::of)?,
    })
}

/// Makes a challenge for a gesture with one of these passkeys.
pub(super) fn ask_assertion(
    party: &RelyingParty,
    usable: &[PasskeyRow],
) -> Result<CeremonyChallenge, Wrong> {
    let rp_id = rp_id(party)?;
    let mut allowed = AllowedCredentials::with_capacity(usable.len());
    for row in usable {
        allowed.push(descriptor(row)?.into());
    }
    let options = NonDiscoverableCredentialRequestOptions::second_factor(&rp_id, allowed);
    let mut options = options.map_err(Wrong::of)?;
    options.options().user_verification = UserVerificationRequirement::Required;
    options.options().timeout = LIFE;
    let (server, client) = options.start_ceremony().map_err(Wrong::of)?;
    asked(
        serde_json::to_value(&client),
        &server.encode().map_err(Wrong::of)?,
    )
}

/// Makes a challenge for a browser in which somebody signs in: any passkey that it keeps for this party may answer.
pub(super) fn ask_sign_in(party: &RelyingParty) -> Result<CeremonyChallenge, Wrong> {
    let rp_id = rp_id(party)?;
    let mut options = DiscoverableCredentialRequestOptions::passkey(&rp_id);
    options.0.timeout = LIFE;
    let (server, client) = options.start_ceremony().map_err(Wrong::of)?;
    asked(
        serde_json::to_value(&client),
        &server.encode().map_err(Wrong::of)?,
    )
}

/// Verifies that a passkey of this person answered the challenge. Returns the new value of its counter.
pub(super) fn check_assertion(
    party: &RelyingParty,
    caller: &Caller,
    ceremony: &str,
    answer: &Value,
    row: &PasskeyRow,
) -> Result<String, Wrong> {
    let server = NonDiscoverableAuthenticationServerState::decode(&bytes(ceremony)?);
    let server = server.map_err(Wrong::of)?;
    let answer = serde_json::to_vec(answer).map_err(Wrong::of)?;
    let answer = NonDiscoverableAuthentication::<HANDLE>::from_json_relaxed(&answer);
    let answer = answer.map_err(Wrong::of)?;
    let stored = StoredPasskey::of(&caller.tenant.id, &caller.user.id, row)?;
    let mut known = stored.credential()?;
    let origins: Vec<&str> = party.origins.iter().map(String::as_str).collect();
    server
        .verify(&rp_id(party)?, &answer, &mut known, &verification(&origins))
        .map_err(Wrong::of)?;
    let counter = known.dynamic_state().encode().map_err(Wrong::of)?;
    Ok(text(&counter))
}

/// The same for a challenge of [`ask_sign_in`]: the answer has to name the person by their handle.
pub(super) fn check_sign_in(
    party: &RelyingParty,
    owned: &OwnedPasskey,
    ceremony: &str,
    answer: &Value,
) -> Result<String, Wrong> {
    // The library panics over an answer without a handle.
    let handle = answer.pointer("/response/userHandle");
    if handle.and_then(Value::as_str).is_none_or(str::is_empty) {
        return Err(Wrong("the answer names nobody".to_owned()));
    }
    let server = DiscoverableAuthenticationServerState::decode(&bytes(ceremony)?);
    let server = server.map_err(Wrong::of)?;
    let answer = serde_json::to_vec(answer).map_err(Wrong::of)?;
    let answer = DiscoverableAuthentication::<HANDLE>::from_json_relaxed(&answer);
    let answer = answer.map_err(Wrong::of)?;
    let stored = StoredPasskey::of(&owned.tenant, &owned.user, &owned.row)?;
    let mut known = stored.credential()?;
    let origins: Vec<&str> = party.origins.iter().map(String::as_str).collect();
    server
        .verify(&rp_id(party)?, &answer, &mut known, &verification(&origins))
        .map_err(Wrong::of)?;
    let counter = known.dynamic_state().encode().map_err(Wrong::of)?;
    Ok(text(&counter))
}

/// A stored passkey, read.
struct StoredPasskey {
    handle: UserHandle<HANDLE>,
    id: Vec<u8>,
    public_key: Vec<u8>,
    counter: [u8; 7],
}

impl StoredPasskey {
    fn of(tenant: &TenantId, user: &UserId, row: &PasskeyRow) -> Result<Self, Wrong> {
        let counter = bytes(&row.counter)?.try_into();
        Ok(Self {
            handle: handle(tenant, user)?,
            id: bytes(&row.id)?,
            public_key: bytes(&row.public_key)?,
            counter: counter.map_err(|_| Wrong("the kept counter is damaged".to_owned()))?,
        })
    }

    fn credential(&self) -> Result<AuthenticatedCredential<'_, '_, HANDLE, Key>, Wrong> {
        let id = CredentialId::<&[u8]>::decode(&self.id).map_err(Wrong::of)?;
        let fixed = StaticState::<Key>::decode(&self.public_key).map_err(Wrong::of)?;
        let moving = DynamicState::decode(self.counter).map_err(Wrong::of)?;
        AuthenticatedCredential::new(id, &self.handle, fixed, moving).map_err(Wrong::of)
    }
}

fn verification<'a>(
    origins: &'a [&'a str],
) -> AuthenticationVerificationOptions<'a, 'a, &'a str, &'a str> {
    AuthenticationVerificationOptions {
        allowed_origins: origins,
        error_on_unsolicited_extensions: false,
        auth_attachment_enforcement: AuthenticatorAttachmentEnforcement::Ignore(false),
        update_uv: true,
        ..AuthenticationVerificationOptions::default()
    }
}

/// Returns the challenge that a browser's answer is for.
pub(super) fn challenge_of(answer: &Value) -> Option<String> {
    let data = answer.pointer("/response/clientDataJSON")?.as_str()?;
    let data: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(data).ok()?).ok()?;
    Some(data.get("challenge")?.as_str()?.to_owned())
}

/// Returns the id of the passkey that answers.
pub(super) fn passkey_of(answer: &Value) -> Option<&str> {
    answer.get("id")?.as_str()
}

fn asked(options: serde_json::Result<Value>, ceremony: &[u8]) -> Result<CeremonyChallenge, Wrong> {
    let options = options.map_err(Wrong::of)?;
    let challenge = options.get("challenge").and_then(Value::as_str);
    let challenge = challenge.ok_or_else(|| Wrong("no challenge".to_owned()))?;
    Ok(CeremonyChallenge {
        challenge: challenge.to_owned(),
        ceremony: text(ceremony),
        options,
    })
}

fn descriptor(row: &PasskeyRow) -> Result<PublicKeyCredentialDescriptor<Vec<u8>>, Wrong> {
    Ok(PublicKeyCredentialDescriptor {
        id: CredentialId::<Vec<u8>>::decode(bytes(&row.id)?).map_err(Wrong::of)?,
        transports: AuthTransports::decode(row.transports).map_err(Wrong::of)?,
    })
}

fn rp_id(party: &RelyingParty) -> Result<RpId, Wrong> {
    let domain = AsciiDomain::try_from(party.id.clone());
    Ok(RpId::Domain(domain.map_err(Wrong::of)?))
}

/// Returns the handle of a person, which never changes and reveals nothing about them.
fn handle(tenant: &TenantId, user: &UserId) -> Result<UserHandle<HANDLE>, Wrong> {
    let mut hash = Sha256::new_with_prefix(b"sepal passkey handle\0");
    hash.update(tenant.as_str().as_bytes());
    hash.update(user.as_str().as_bytes());
    UserHandle::decode(hash.finalize().into()).map_err(Wrong::of)
}

fn text(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn bytes(text: &str) -> Result<Vec<u8>, Wrong> {
    URL_SAFE_NO_PAD.decode(text).map_err(Wrong::of)
}
