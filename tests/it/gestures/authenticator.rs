//! An authenticator in software: it makes passkeys and answers challenges as WebAuthn says, and lies
//! where a test tells it to.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The person is there and was verified.
const PRESENT_AND_VERIFIED: u8 = 0x05;
const HAS_CREDENTIAL: u8 = 0x40;

/// One passkey.
pub(crate) struct Authenticator {
    key: SigningKey,
    id: [u8; 16],
    /// What it says its signature counter is.
    pub(crate) count: u32,
    /// The page that asks, as the browser sees it.
    pub(super) origin: String,
    /// The name that the browser lets it answer for.
    pub(super) rp_id: String,
    /// Whether the person was verified.
    pub(super) verifies: bool,
    /// The handle of its person, which it tells who signs in by it.
    pub(super) handle: Value,
}

impl Authenticator {
    /// A passkey that will be made for the page of that origin.
    pub(crate) fn at(origin: &str) -> Self {
        Self {
            key: SigningKey::from_slice(&rand::random::<[u8; 32]>()).unwrap(),
            id: rand::random(),
            count: 1,
            origin: origin.to_owned(),
            rp_id: "localhost".to_owned(),
            verifies: true,
            handle: Value::Null,
        }
    }

    /// What `navigator.credentials.create` gives.
    pub(crate) fn create(&mut self, options: &Value) -> Value {
        self.handle = options["user"]["id"].clone();
        assert_eq!(options["authenticatorSelection"]["residentKey"], "required");
        assert_eq!(options["rp"]["id"], "localhost", "{options}");
        let selection = &options["authenticatorSelection"];
        assert_eq!(selection["userVerification"], "required", "{options}");
        let mut data = self.data(HAS_CREDENTIAL);
        data.extend([0; 16]);
        data.extend([0, 16]);
        data.extend(self.id);
        // COSE: an EC2 key for ES256 on P-256.
        data.extend([0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20]);
        let point = self.key.verifying_key().to_encoded_point(false);
        data.extend(point.x().unwrap());
        data.extend([0x22, 0x58, 0x20]);
        data.extend(point.y().unwrap());
        // CBOR: `{ fmt: "none", attStmt: {}, authData: … }`.
        let mut object = b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58".to_vec();
        object.push(u8::try_from(data.len()).unwrap());
        object.extend(data);
        let client = self.client_data("webauthn.create", options);
        self.credential(&json!({
            "clientDataJSON": text(&client), "attestationObject": text(&object), "transports": ["internal"],
        }))
    }

    /// What `navigator.credentials.get` gives.
    pub(crate) fn get(&self, options: &Value) -> Value {
        self.answer(options, &Value::Null)
    }

    /// The same where nobody is named: it offers what it keeps for the page, and says whose it is.
    pub(super) fn get_of_anybody(&self, options: &Value) -> Value {
        let allowed = options.get("allowCredentials").and_then(Value::as_array);
        assert!(allowed.is_none_or(Vec::is_empty), "{options}");
        assert_eq!(options["rpId"], "localhost", "{options}");
        self.answer(options, &self.handle)
    }

    fn answer(&self, options: &Value, handle: &Value) -> Value {
        assert_eq!(options["userVerification"], "required", "{options}");
        let data = self.data(0);
        let client = self.client_data("webauthn.get", options);
        let mut signed = data.clone();
        signed.extend(Sha256::digest(&client));
        let signature: Signature = self.key.sign(&signed);
        self.credential(&json!({
            "clientDataJSON": text(&client), "authenticatorData": text(&data),
            "signature": text(signature.to_der().as_bytes()), "userHandle": handle,
        }))
    }

    fn data(&self, flags: u8) -> Vec<u8> {
        let mut data = Sha256::digest(&self.rp_id).to_vec();
        let verified = if self.verifies {
            PRESENT_AND_VERIFIED
        } else {
            0x01
        };
        data.push(flags | verified);
        data.extend(self.count.to_be_bytes());
        data
    }

    fn client_data(&self, kind: &str, options: &Value) -> Vec<u8> {
        let challenge = options["challenge"].as_str().unwrap();
        let data = format!(
            r#"{{"type":"{kind}","challenge":"{challenge}","origin":"{}","crossOrigin":false}}"#,
            self.origin
        );
        data.into_bytes()
    }

    fn credential(&self, response: &Value) -> Value {
        json!({
            "id": text(&self.id), "rawId": text(&self.id), "type": "public-key", "response": response,
            "clientExtensionResults": {}, "authenticatorAttachment": "platform",
        })
    }
}

fn text(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
