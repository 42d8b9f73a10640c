//! Two issuers that the policy names, and an unknown one.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, crypto};
use serde_json::{Value, json};

use crate::signer::Signer;
use crate::world::NOW;

pub(crate) const HOME: &str = "https://home.example/";
pub(crate) const CORP: &str = "https://corp.example/";
pub(crate) const AUDIENCE: &str = "https://tools.example.com";

pub(crate) struct Issuers {
    pub(crate) home: Signer,
    /// Another key of the same issuer.
    pub(crate) home_es: Signer,
    pub(crate) corp: Signer,
    /// An unknown key under the id of one of the issuer's keys.
    pub(crate) stranger: Signer,
}

impl Issuers {
    /// Creates the issuers, with their public keys in this folder.
    pub(crate) fn in_folder(folder: &Path) -> Self {
        let issuers = Self {
            home: Signer::new("home", Algorithm::EdDSA),
            home_es: Signer::new("home-es", Algorithm::ES256),
            corp: Signer::new("corp", Algorithm::EdDSA),
            stranger: Signer::new("home", Algorithm::EdDSA),
        };
        let (home, home_es) = (issuers.home.public(), issuers.home_es.public());
        for (name, keys) in [
            ("home", vec![home, home_es]),
            ("corp", vec![issuers.corp.public()]),
        ] {
            std::fs::write(folder.join(name), json!({"keys": keys}).to_string()).unwrap();
        }
        issuers
    }

    /// Returns their sections of the policy.
    pub(crate) fn rules(folder: &Path) -> String {
        let entry = |name: &str, issuer: &str, more: &str| {
            let file = folder.join(name);
            format!(
                "[[issuers]]\nissuer = \"{issuer}\"\naudience = \"{AUDIENCE}\"\nrealm = \"{name}\"\n\
                 tokens_without_client_are_users = true\nuser_clients = [\"console\"]\n\
                 token_life_max = \"1h\"\njwks_file = '{}'\n{more}\n",
                file.display()
            )
        };
        let grants = "grants = [\"calls:read\", \"keys:manage\", \"approvals:answer\"]";
        let backend = "acts_for_others_scope = \"users:any\"";
        entry("home", HOME, grants) + &entry("corp", CORP, backend)
    }

    pub(crate) fn by_home(&self, more: &Value) -> String {
        self.home.token(&claims(HOME, more))
    }

    pub(crate) fn by_corp(&self, more: &Value) -> String {
        self.corp.token(&claims(CORP, more))
    }
}

/// Returns the claims of a valid token of an issuer, with these members in it.
pub(crate) fn claims(issuer: &str, more: &Value) -> Value {
    let mut claims = json!({
        "iss": issuer, "aud": AUDIENCE, "sub": "ann", "scope": "notes:write", "exp": NOW + 300,
    });
    for (name, value) in more.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims
}

/// Signs exactly these texts as a token.
pub(crate) fn signed(signer: &Signer, header: &str, claims: &str) -> String {
    let message = unsigned(header, claims);
    let signature = crypto::sign(message.as_bytes(), &signer.key, signer.algorithm).unwrap();
    format!("{message}.{signature}")
}

/// The first two parts of a token.
pub(crate) fn unsigned(header: &str, claims: &str) -> String {
    let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!("{}.{}", encode(header), encode(claims))
}
