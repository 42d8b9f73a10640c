//! A key that signs tokens, and the time at which they are checked.

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, RsaKeyPair,
};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

/// 2026-11-16T12:00:00Z.
pub(crate) const NOW: i64 = 1_794_830_400;

/// A key that signs tokens.
pub(crate) struct Signer {
    pub(crate) id: &'static str,
    pub(crate) algorithm: Algorithm,
    pub(crate) key: EncodingKey,
}

impl Signer {
    pub(crate) fn new(id: &'static str, algorithm: Algorithm) -> Self {
        let random = SystemRandom::new();
        let key = match algorithm {
            Algorithm::EdDSA => {
                let der = Ed25519KeyPair::generate_pkcs8v1(&random).unwrap();
                EncodingKey::from_ed_der(der.as_ref())
            }
            Algorithm::ES256 => {
                let kind = &ECDSA_P256_SHA256_FIXED_SIGNING;
                let der = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
                EncodingKey::from_ec_der(der.as_ref())
            }
            _ => {
                let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
                let der = pair.as_der().unwrap();
                let der: &Pkcs8V1Der<'_> = &der;
                // The content of the PKCS #8 envelope, which has 26 bytes for a key of this size.
                EncodingKey::from_rsa_der(&der.as_ref()[26..])
            }
        };
        Self { id, algorithm, key }
    }

    pub(crate) fn public(&self) -> Value {
        let mut jwk = Jwk::from_encoding_key(&self.key, self.algorithm).unwrap();
        jwk.common.key_id = Some(self.id.to_owned());
        serde_json::to_value(jwk).unwrap()
    }

    pub(crate) fn header(&self) -> Header {
        let mut header = Header::new(self.algorithm);
        header.kid = Some(self.id.to_owned());
        header
    }

    /// Signs a token with the usual claims and these.
    pub(crate) fn token(&self, more: &Value) -> String {
        self.token_under(&self.header(), more)
    }

    pub(crate) fn token_under(&self, header: &Header, more: &Value) -> String {
        let mut claims = json!({
            "iss": "https://login.example.com/",
            "aud": "https://tools.example.com",
            "sub": "u_1",
            "scope": "tools:call notes:write",
            // The clock of these tests stands at 2026-11-16T12:00:00Z.
            "exp": NOW + 300,
        });
        for (name, value) in more.as_object().unwrap() {
            claims[name] = value.clone();
        }
        encode(header, &claims, &self.key).unwrap()
    }
}
