//! The user as a caller sees them: profile, addresses, and where they are not readable.

use std::sync::Arc;

use countersign::ids::RandomIds;
use countersign::ledger::{Log, MemoryStore};
use countersign::sequencer::{LastStop, Sequencer, Tick};
use countersign_evidence::note::SigningKey;
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use countersign_testkit::patience::until;
use insta::assert_json_snapshot;
use serde_json::{Value, json};

use crate::world::{World, check_error, clock, ok};

const ADD: &str = "identity.add_or_update_address";
const LIST: &str = "identity.get_user_addresses";
const PROFILE: &str = "identity.get_user_profile";

fn berlin() -> Value {
    json!({
        "recipient": "Erika Mustermann",
        "lines": ["Heidestraße 17"],
        "city": "Berlin",
        "postal_code": "10557",
        "country": "DE",
    })
}

fn san_francisco() -> Value {
    json!({
        "recipient": "Ada Example",
        "lines": ["1 Market Street"],
        "city": "San Francisco",
        "region": "CA",
        "postal_code": "94105",
        "country": "US",
    })
}

/// An address of a user who has none yet, as a model may write it: checked, in normal form, the default one.
#[tokio::test]
async fn the_first_address_is_the_default_one() {
    let world = World::new();
    let address = json!({
        "name": "Erika Mustermann",
        "street": "Heidestraße 17",
        "city": "Berlin",
        "zip": "D-10557",
        "country": "Germany",
    });
    let arguments = json!({"address": address, "label": "home"});
    let envelope = json!({"locale": "de-DE", "currency": "EUR", "timezone": "Europe/Berlin"});
    let reply = world.call_as("u_1", ADD, arguments, envelope).await;
    let mut kept = ok(&reply).clone();
    let address_id = kept["address_id"].take();
    assert_json_snapshot!(kept, @r#"
    {
      "address": {
        "city": "Berlin",
        "country": "DE",
        "lines": [
          "Heidestraße 17"
        ],
        "postal_code": "10557",
        "recipient": "Erika Mustermann"
      },
      "address_id": null,
      "destination": {
        "country": "DE",
        "postal_code": "10557",
        "region": null
      },
      "formatted": [
        "Erika Mustermann",
        "Heidestraße 17",
        "10557 Berlin",
        "GERMANY"
      ],
      "is_default": true,
      "is_new": true,
      "label": "home",
      "updated_at": "2026-11-16T12:00:00Z",
      "version": 1
    }
    "#);
    let warnings = reply["warnings"].as_array().unwrap();
    let codes: Vec<&Value> = warnings.iter().map(|warning| &warning["code"]).collect();
    assert_eq!(
        codes,
        [
            "KEY_ALIAS",
            "KEY_ALIAS",
            "SCALAR_WRAPPED",
            "KEY_ALIAS",
            "COUNTRY_TO_CODE",
            "POSTAL_CODE_REWRITTEN"
        ]
    );
    // Data that came with the address is still known in a call that does not give it.
    let profile = world.call(PROFILE, json!({})).await;
    let mut profile = ok(&profile).clone();
    assert_eq!(profile["default_address_id"].take(), address_id);
    assert_json_snapshot!(profile, @r#"
    {
      "created_at": "2026-11-16T12:00:00Z",
      "currency": "EUR",
      "default_address_id": null,
      "default_destination": {
        "country": "DE",
        "postal_code": "10557",
        "region": null
      },
      "locale": "de-DE",
      "timezone": "Europe/Berlin",
      "user_id": "u_1"
    }
    "#);
}

/// Unknown fields are absent.
#[tokio::test]
async fn nobody_knows_a_new_user() {
    let world = World::new();
    let profile = world.call(PROFILE, json!({})).await;
    assert_eq!(*ok(&profile), json!({"user_id": "u_1"}));
    let addresses = world.call(LIST, json!({})).await;
    assert_eq!(*ok(&addresses), json!({"addresses": []}));
}

/// A change increments the version, a repeat changes nothing, and a change there and back again counts as two.
#[tokio::test]
async fn an_address_changes_by_its_id() {
    let world = World::new();
    let added = world.call(ADD, json!({"address": berlin()})).await;
    let address_id = ok(&added)["address_id"].as_str().unwrap().to_owned();
    assert!(address_id.starts_with("addr_"), "{address_id}");
    let change = |address: Value| {
        let arguments = json!({"address_id": address_id, "address": address});
        world.call(ADD, arguments)
    };
    for (address, version, postal_code) in [
        (berlin(), 1, "10557"),
        (san_francisco(), 2, "94105"),
        (san_francisco(), 2, "94105"),
        (berlin(), 3, "10557"),
    ] {
        let reply = change(address).await;
        let kept = ok(&reply);
        assert_eq!(kept["version"], version);
        assert_eq!(kept["destination"]["postal_code"], postal_code);
    }
    let arguments = json!({"address_id": address_id, "version": 2, "address": san_francisco()});
    let stale = world.call(ADD, arguments).await;
    let details = json!({"reason": "version", "field": "/version", "current_version": 3});
    check_error(&stale, "CONFLICT", &details);
}

/// The default changes when another address is made the default, and is listed first.
#[tokio::test]
async fn another_address_becomes_the_default_one() {
    let world = World::new();
    let first = world.call(ADD, json!({"address": berlin()})).await;
    let second = world.call(ADD, json!({"address": san_francisco()})).await;
    assert_eq!(ok(&first)["is_default"], true);
    assert_eq!(ok(&second)["is_default"], false);
    let arguments = json!({"address": san_francisco(), "is_default": true});
    let again = world.call(ADD, arguments).await;
    assert_eq!(ok(&again)["is_default"], true);
    assert_eq!(ok(&again)["is_new"], false, "it is not kept twice");
    assert_eq!(ok(&again)["address_id"], ok(&second)["address_id"]);
    let listed = world.call(LIST, json!({})).await;
    let listed = ok(&listed)["addresses"].as_array().unwrap();
    let ids: Vec<&Value> = listed
        .iter()
        .map(|address| &address["address_id"])
        .collect();
    assert_eq!(ids, [&ok(&second)["address_id"], &ok(&first)["address_id"]]);
    let profile = world.call(PROFILE, json!({})).await;
    let expected = json!({"country": "US", "region": "CA", "postal_code": "94105"});
    assert_eq!(ok(&profile)["default_destination"], expected);
}

/// A4, A5: a dry run shows the address and stores nothing; a key makes one address of two calls.
#[tokio::test]
async fn dry_runs_and_keys() {
    let world = World::new();
    let arguments = json!({"address": berlin()});
    let dry = world
        .call_as("u_1", ADD, arguments.clone(), json!({"dry_run": true}))
        .await;
    assert_eq!(ok(&dry)["is_new"], true);
    let listed = world.call(LIST, json!({})).await;
    assert_eq!(*ok(&listed), json!({"addresses": []}));
    let keyed = json!({"idempotency_key": "k1"});
    let first = world
        .call_as("u_1", ADD, arguments.clone(), keyed.clone())
        .await;
    let again = world.call_as("u_1", ADD, arguments, keyed).await;
    assert_eq!(ok(&first), ok(&again));
    assert_eq!(ok(&again)["is_new"], true, "the first answer once more");
}

/// Another user's address is answered exactly like a missing one.
#[tokio::test]
async fn addresses_are_of_their_user() {
    let world = World::new();
    let added = world.call(ADD, json!({"address": berlin()})).await;
    let theirs = ok(&added)["address_id"].clone();
    let mut errors = Vec::new();
    for address_id in [theirs, json!("addr_none")] {
        let arguments = json!({"address_id": address_id, "address": berlin()});
        let reply = world.call_as("u_2", ADD, arguments, json!({})).await;
        check_error(&reply, "NOT_FOUND", &json!({"field": "/address_id"}));
        errors.push(reply["error"].clone());
    }
    assert_eq!(errors[0], errors[1]);
    let listed = world.call_as("u_2", LIST, json!({}), json!({})).await;
    assert_eq!(*ok(&listed), json!({"addresses": []}));
}

/// The number of addresses is bounded: fifty, and not one more.
#[tokio::test]
async fn the_fifty_first_address_is_refused() {
    // Ids that count from one are not fifty different ones in sixteen letters.
    let clock = clock();
    let store = MemoryStore::with_clock(clock.clone());
    let ids = Arc::new(RandomIds::new(clock.clone()));
    let world = World::on(Arc::new(store), clock, |builder| builder.ids(ids));
    let add = |house: u32| {
        let mut address = berlin();
        address["lines"] = json!([format!("Heidestraße {house}")]);
        world.call(ADD, json!({"address": address}))
    };
    for house in 1..=50 {
        ok(&add(house).await);
    }
    check_error(
        &add(51).await,
        "INVALID_ARGUMENT",
        &json!({"field": "/address"}),
    );
    assert_eq!(
        ok(&add(50).await)["is_new"],
        false,
        "a known one is still known"
    );
}

/// Parallel calls have the effect of calls in sequence: one address, and it is the default one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ten_parallel_adds_of_one_address_are_one() {
    let world = Arc::new(World::new());
    let adds = (0..10).map(|_| {
        let world = world.clone();
        tokio::spawn(async move { world.call(ADD, json!({"address": berlin()})).await })
    });
    let mut news = 0;
    for add in adds.collect::<Vec<_>>() {
        let reply = add.await.unwrap();
        news += usize::from(ok(&reply)["is_new"] == true);
        assert_eq!(ok(&reply)["is_default"], true);
    }
    assert_eq!(news, 1);
    let listed = world.call(LIST, json!({})).await;
    assert_eq!(ok(&listed)["addresses"].as_array().unwrap().len(), 1);
}

/// A21, A22: an address passes through the tools in every way, well and badly written; then the database and the log
/// are searched for it, byte for byte. It is in the replies, so there was something to find.
#[tokio::test]
async fn no_address_is_readable_in_what_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.db");
    let store = Arc::new(SqliteStore::open(file, SqliteOptions::default()).unwrap());
    let world = World::on(store.clone(), clock(), |builder| builder);
    let good = json!({
        "recipient": "Wilhelmina Raritätová", "lines": ["Quellnymphenweg 7788"], "city": "Oberunterhausen",
        "postal_code": "D-98765", "phone": "+49 171 5550199", "country": "DE",
    });
    let mut bad = good.clone();
    bad["postal_code"] = json!("98765-4321-77");
    bad["phone"] = json!("Quellnymphenfon");
    let destination = json!({"country": "DE", "region": "Raritätsland", "postal_code": "98765"});
    let items = json!([{"sku": "SKU-0002-01"}]);
    let calls = [
        ("shipping.validate_address", json!({"address": good})),
        ("shipping.validate_address", json!({"address": bad})),
        (ADD, json!({"address": good, "label": "Quellnymphenheim"})),
        (ADD, json!({"address": bad})),
        (ADD, json!({"address": "Quellnymphenweg 7788"})),
        (LIST, json!({})),
        (PROFILE, json!({})),
        (
            "shipping.quote_options",
            json!({"items": items, "destination": destination}),
        ),
    ];
    let mut replies = String::new();
    for (tool, arguments) in calls {
        replies.push_str(&world.call(tool, arguments).await.to_string());
    }
    let key = SigningKey::from_seed("example.com/log", &[7; 32]).unwrap();
    let sequencer = Sequencer::builder(store.clone(), key);
    let mut sequencer = sequencer.start(LastStop::default()).await.unwrap();
    until(async || !matches!(sequencer.tick().await.unwrap(), Tick::Grown { .. })).await;
    let size = store.head().await.unwrap().size;
    let leaves = store.leaves(0, size as usize).await.unwrap();
    let mut kept: Vec<u8> = leaves.into_iter().flat_map(|leaf| leaf.bytes).collect();
    let leaf_bytes = kept.len();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        kept.extend(std::fs::read(entry.unwrap().path()).unwrap());
    }
    let is_in =
        |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|at| at == text.as_bytes());
    for tool in ["shipping.validate_address", ADD, "shipping.quote_options"] {
        assert!(is_in(&kept[..leaf_bytes], tool), "{tool} is recorded");
    }
    for personal in [
        "Wilhelmina",
        "Quellnymphen",
        "Oberunterhausen",
        "98765",
        "5550199",
    ] {
        assert!(!is_in(&kept, personal), "{personal} is readable");
    }
    for answered in ["Wilhelmina", "Quellnymphenweg", "98765"] {
        assert!(replies.contains(answered), "{answered} was never answered");
    }
}
