//! Checks one credential many times, to measure the cost of a call's identity.
//!
//! `identity_cost KIND CHECKS`, where the kind is `key`, `eddsa`, `es256` or `rs256`. Run it under
//! `valgrind --tool=callgrind` with two numbers; the difference of the instructions, divided by that of the numbers, is
//! the cost of one check.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program for measuring"
)]

use std::sync::Arc;

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, RsaKeyPair,
};
use countersign::Principal;
use countersign::clock::{Clock, SystemClock};
use countersign::contract::{Actor, ActorType};
use countersign::ids::{IdSource, RandomIds};
use countersign::ledger::{MemoryStore, Store};
use countersign::vault::Vault;
use countersign_evidence::seal::MasterKey;
use countersign_gateway::identity::{ApiKeys, Identity, SCOPE_KEYS};
use countersign_gateway::policy::{LivePolicy, Policy};
use http::{HeaderMap, HeaderValue};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::json;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_else(|| "key".to_owned());
    let checks: u32 = arguments.next().map_or(1, |text| text.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let (identity, token) = match kind.as_str() {
            "key" => with_key().await,
            "eddsa" => with_token(Algorithm::EdDSA, folder.path()),
            "es256" => with_token(Algorithm::ES256, folder.path()),
            _ => with_token(Algorithm::RS256, folder.path()),
        };
        let mut headers = HeaderMap::new();
        let value = HeaderValue::try_from(format!("Bearer {token}")).unwrap();
        headers.insert("authorization", value);
        let mut proved = 0;
        for _ in 0..checks {
            proved += u32::from(identity.caller(&headers).await.is_ok());
        }
        println!("{kind}: {proved} of {checks}");
        assert_eq!(proved, checks);
    });
}

async fn with_key() -> (Identity, String) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let ids: Arc<dyn IdSource> = Arc::new(RandomIds::new(clock.clone()));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new().keeping_log());
    let kms = Arc::new(MasterKey::from_bytes(&[7; 32]));
    let vault = Vault::new(store.clone(), kms, clock.clone(), ids.clone());
    let keys = ApiKeys::new(store, Arc::new(vault), clock.clone(), ids);
    let operator = Actor {
        kind: ActorType::System,
        id: "operator/ann".to_owned(),
    };
    let operator = Principal::new(operator, "").scope(SCOPE_KEYS);
    let new = json!({"actor": {"type": "user", "id": "u_1"}, "scopes": ["notes:write"]});
    let new = serde_json::from_value(new).unwrap();
    let issued = keys.create(new, &operator).await.unwrap();
    let policy = Arc::new(LivePolicy::fixed(Policy::allow_all()));
    let identity = Identity::new(clock, policy).api_keys(keys);
    (identity, issued.token.to_string())
}

fn with_token(algorithm: Algorithm, folder: &std::path::Path) -> (Identity, String) {
    let key = signing_key(algorithm);
    let mut jwk = Jwk::from_encoding_key(&key, algorithm).unwrap();
    jwk.common.key_id = Some("k1".to_owned());
    let path = folder.join("keys.json");
    std::fs::write(&path, json!({"keys": [jwk]}).to_string()).unwrap();
    let policy = format!(
        "[[issuers]]\nissuer = \"https://login.example.com/\"\n\
         audience = \"https://tools.example.com\"\njwks_file = '{}'\n",
        path.display()
    );
    let policy = Arc::new(LivePolicy::fixed(Policy::parse(&policy).unwrap()));
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let claims = json!({
        "iss": "https://login.example.com/",
        "aud": "https://tools.example.com",
        "sub": "u_1",
        "scope": "tools:call notes:write",
        "exp": clock.now().as_second() + 300,
    });
    let mut header = Header::new(algorithm);
    header.kid = Some("k1".to_owned());
    let token = encode(&header, &claims, &key).unwrap();
    (Identity::new(clock, policy), token)
}

fn signing_key(algorithm: Algorithm) -> EncodingKey {
    let random = SystemRandom::new();
    match algorithm {
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
    }
}
