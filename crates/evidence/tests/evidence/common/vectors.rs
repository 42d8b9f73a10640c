//! The files of `docs/evidence-vectors/`, which every implementation of the formats has to reproduce.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_contract::{Digest, RequestId, canonical};
use countersign_evidence::bundle::{Bundle, Verdict};
use countersign_evidence::checkpoint::Checkpoint;
use countersign_evidence::note::SigningKey;
use countersign_evidence::seal::{
    DOMAIN_ARGUMENTS, DOMAIN_DATA, DOMAIN_RAW, DOMAIN_SHOWN, MasterKey, UserKey, commit, salt_of,
};
use countersign_evidence::tile::{TileId, TileMap, TilePath, TileWriter, encode_entries, width_at};
use countersign_evidence::tree::{self, Frontier, Hash};
use serde_json::{Value, json};

use super::cases;

/// One file: its path under the folder, and its text.
pub(crate) struct VectorFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Returns all files.
pub(crate) fn files() -> Vec<VectorFile> {
    let file = |path: &str, value: Value| {
        // Through the canonical text, so that the order of members is always the same.
        let text = canonical::to_string(&value).expect("vectors have a canonical form");
        let value: Value = serde_json::from_str(&text).expect("it was just written");
        VectorFile {
            path: path.to_owned(),
            text: format!("{value:#}\n"),
        }
    };
    let mut files = vec![
        file("canonical.json", canonical_texts()),
        file("commitments.json", commitments()),
        file("notes.json", notes()),
        file("seals.json", seals()),
        file("tiles.json", tiles()),
        file("tree.json", tree_vectors()),
        file("bundles.json", bundles()),
    ];
    files.extend(cases::all().into_iter().map(|case| VectorFile {
        path: format!("bundles/{}.json", case.name),
        text: case.bundle,
    }));
    files
}

/// The verdict and the unchecked aspects are those of the program; the findings are those of the case.
fn bundles() -> Value {
    let row = |case: cases::Case| {
        let finding = |(code, index): &(&str, Option<u64>)| json!({"code": code, "index": index});
        let key = case.key.as_ref().map(|key| key.parse().expect("a key"));
        let report = Bundle::parse(&case.bundle)
            .ok()
            .map(|bundle| bundle.verify(key.as_ref(), case.held.as_deref()));
        let verdict = report
            .as_ref()
            .map_or(Verdict::Invalid, |report| report.verdict);
        json!({
            "name": case.name,
            "bundle": format!("bundles/{}.json", case.name),
            "key": case.key,
            "held": case.held,
            "verdict": verdict,
            "not_checked": report.map(|report| report.not_checked),
            "findings": case.findings.iter().map(finding).collect::<Vec<_>>(),
        })
    };
    cases::all().into_iter().map(row).collect()
}

fn canonical_texts() -> Value {
    let nested = |levels| "[".repeat(levels) + &"]".repeat(levels);
    let (deepest, too_deep) = (nested(127), nested(128));
    let texts = [
        deepest.as_str(),
        r#" { "b" : [ 1.50, -0, 1E2, 1e21, 0.000001, 1e-7, 333333333.3333333 ] , "a" : null } "#,
        r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}"#,
        r#"["\u0000\u001f\"\\\/\b\f\n\r\t\u007f\u00e9\u2028"]"#,
        "9007199254740991",
        "5e-324",
        "1.7976931348623157e308",
    ];
    let refused = [
        too_deep.as_str(),
        r#"{"$serde_json::private::Number":"1"}"#,
        "1e20",
        "9007199254740992",
        "9007199254740992.0",
        "1e400",
        r#"{"a":1,"a":2}"#,
        r#""\ud800""#,
        "01",
        "[1,]",
        "NaN",
        "\u{feff}1",
        "",
    ];
    let row = |text: &str| json!({"text": text, "canonical": canonical::from_json_text(text).expect("it has one")});
    for text in refused {
        assert!(canonical::from_json_text(text).is_err(), "{text}");
    }
    json!({"texts": texts.map(row), "refused": refused})
}

fn commitments() -> Value {
    let row = |(domain, text): (&str, &str)| {
        let payload_salt = Digest::of_bytes(text.as_bytes()).0;
        let salt = salt_of(&payload_salt, domain);
        json!({
            "domain": domain,
            "payload_salt": hex(&payload_salt),
            "salt": hex(&salt),
            "text": text,
            "commitment": commit(domain, &salt, text.as_bytes()),
        })
    };
    let texts = [
        (DOMAIN_ARGUMENTS, r#"{"sku":"A-1"}"#),
        (DOMAIN_DATA, r#"{"sku":"A-1"}"#),
        (DOMAIN_DATA, "null"),
        (DOMAIN_DATA, r#""für Ünal""#),
        (DOMAIN_ARGUMENTS, r#"{"n":1000000000000000000001}"#),
        (DOMAIN_RAW, "{sku: 'A-1',}"),
        (DOMAIN_SHOWN, r#"{"summary":"2 of A-1"}"#),
    ];
    texts.map(row).into_iter().collect()
}

fn notes() -> Value {
    let row = |(seed, name, text): (u8, &str, String)| {
        let key = SigningKey::from_seed(name, &[seed; 32]).expect("valid");
        json!({
            "seed": hex(&[seed; 32]),
            "key": key.verifying_key().to_string(),
            "text": text,
            "note": key.sign(&text).expect("valid"),
        })
    };
    let mut extended = Checkpoint::new("log.example.com", 70_000, [255; 32]);
    extended.extensions.push("an extension".to_owned());
    let checkpoint = Checkpoint::new("log.example.com", 0, tree::empty_root());
    let texts = [
        (1, "log.example.com", checkpoint.to_string()),
        (2, "log.example.com", extended.to_string()),
        (3, "grüße.example", "two\n\nparagraphs\n".to_owned()),
    ];
    texts.map(row).into_iter().collect()
}

fn seals() -> Value {
    let user = |secret: u8| {
        let key = UserKey::from_bytes(&[secret; 32]);
        let seal = |(nonce, aad, plain): (u8, &str, &str)| {
            json!({
                "nonce": hex(&[nonce; 12]),
                "aad": aad,
                "plain": plain,
                "sealed": hex(&key.seal([nonce; 12], aad.as_bytes(), plain.as_bytes())),
            })
        };
        let seals = [
            (1, "payload\0user-1\0ev_1", "what was said"),
            (2, "", ""),
            (3, "ev_2", &"0123456789abcdef".repeat(3)),
        ];
        json!({
            "secret": hex(&[secret; 32]),
            "subject": {"user-1": key.subject("user-1")},
            "fingerprint": {"bytes": hex(&key.fingerprint(b"bytes"))},
            "index": {"value": hex(&key.index(b"value"))},
            "key_digest": {"key": hex(&key.key_digest("key"))},
            "chosen": {"what": "jti", "name": "token-1", "text": key.chosen("jti", "token-1")},
            "request_id": {"erika.1": key.request_id(&RequestId::new("erika.1").expect("valid"))},
            "downstream_key": {"tool": "order.create", "key": "key", "text": key.downstream_key("order.create", "key")},
            "seals": seals.map(seal),
        })
    };
    let master = MasterKey::from_bytes(&[9; 32]);
    json!({
        "users": [user(1), user(2)],
        "masters": [{
            "secret": hex(&[9; 32]),
            "id": master.id(),
            "context": "user\u{0}user-1",
            "nonce": hex(&[4; 12]),
            "user_secret": hex(&[1; 32]),
            "wrapped": hex(&master.wrap([4; 12], b"user\0user-1", &UserKey::from_bytes(&[1; 32]))),
        }],
    })
}

/// A tree whose leaf number n is the decimal text of n.
fn tiles() -> Value {
    const SIZE: u64 = 70_000;
    let leaves: Vec<Hash> = (0..SIZE)
        .map(|n| tree::leaf_hash(n.to_string().as_bytes()))
        .collect();
    let mut writer = TileWriter::new();
    let rows: TileMap = writer.append(&leaves).into_iter().collect();
    let row = |(level, index): (u8, u64)| {
        let id = TileId { level, index };
        let width = width_at(id, SIZE);
        json!({
            "path": TilePath::hashes(id, width).to_string(),
            "level": level,
            "index": index,
            "width": width,
            "digest": Digest::of_bytes(&rows[&id]),
        })
    };
    let path = |path: TilePath| json!({"path": path.to_string(), "index": path.index, "width": path.width});
    let entries = ["", "a", "{\"v\":1}"];
    let shown = [(0, 0), (0, 272), (0, 273), (1, 0), (1, 1), (2, 0)];
    let bundles = [TilePath::entries(0, 256), TilePath::entries(1_234_067, 5)];
    json!({
        "size": SIZE,
        "root": hex(&writer.frontier().root()),
        "tiles": shown.map(row),
        "entries": {"entries": entries, "bytes": hex(&encode_entries(&entries).expect("they fit"))},
        "entry_paths": bundles.map(path),
    })
}

fn tree_vectors() -> Value {
    let leaves: [&[u8]; 8] = [
        b"",
        b"\x00",
        b"\x10",
        b"\x20\x21",
        b"01",
        b"@ABC",
        b"PQRSTUVW",
        b"`abcdefghijklmno",
    ];
    let hashes = leaves.map(tree::leaf_hash);
    let rows: TileMap = TileWriter::new().append(&hashes).into_iter().collect();
    let mut frontier = Frontier::new();
    let mut roots = vec![hex(&frontier.root())];
    for hash in hashes {
        frontier.push(hash);
        roots.push(hex(&frontier.root()));
    }
    let base64 = |proof: Vec<Hash>| -> Vec<String> {
        proof.iter().map(|hash| STANDARD.encode(hash)).collect()
    };
    let (mut inclusion, mut consistency) = (Vec::new(), Vec::new());
    for size in 1..=8_u64 {
        for index in 0..size {
            let proof = tree::inclusion_proof(index, size, &rows).expect("it is there");
            inclusion.push(json!({"index": index, "size": size, "proof": base64(proof)}));
        }
        for old in 0..=size {
            let proof = tree::consistency_proof(old, size, &rows).expect("it has grown");
            consistency.push(json!({"old": old, "new": size, "proof": base64(proof)}));
        }
    }
    json!({
        "leaves": leaves.map(hex),
        "leaf_hashes": hashes.map(|hash| hex(&hash)),
        "roots": roots,
        "inclusion": inclusion,
        "consistency": consistency,
    })
}

fn hex(bytes: &[u8]) -> String {
    let digits = |byte: &u8| [byte >> 4, byte & 15].map(|n| char::from_digit(n.into(), 16));
    bytes.iter().flat_map(digits).flatten().collect()
}
