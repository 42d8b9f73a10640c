//! The knowledge base: whole replies, valid citations, and the same answers from every store.

use std::collections::HashMap;
use std::sync::Arc;

use countersign::contract::Digest;
use countersign::ids::SequentialIds;
use countersign::ledger::{MemoryStore, Store};
use countersign::replay::{Replayer, RulesAt, Verdict};
use countersign::text::words;
use countersign::vault::Vault;
use countersign::{Catalog, Principal};
use countersign_commerce::knowledge::{Citation, Library, verify};
use countersign_commerce::rulebook::RuleFiles;
use countersign_evidence::seal::MasterKey;
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use countersign_testkit::faulty::FaultyStore;
use countersign_testkit::postgres::shared_postgres;
use insta::assert_json_snapshot;
use proptest::prelude::{ProptestConfig, proptest};
use serde_json::{Value, json};

use crate::world::{World, check_error, clock, evidence, ok};

const SEARCH: &str = "knowledge.search";
const GET_CHUNK: &str = "knowledge.get_chunk";

/// Two documents with the same content, written out here so that every number of a reply can be counted by hand.
const POST_EN: &str = "<!-- id: post.en; language: en; date: 2026-11-16; title: Post; source: us -->\n\
    # Post\n\nParcels travel by road.\n\n## Batteries\n\nA power bank is a lithium battery. Not by air.\n";
const POST_ZH: &str = "<!-- id: post.zh; language: zh; date: 2026-11-16; title: 邮寄; source: 我们 -->\n\
    # 邮寄\n\n包裹走陆运。\n\n## 电池\n\n移动电源（power bank）属于锂电池，不能空运。\n";

fn small() -> Library {
    library(&[("post.en.md", POST_EN), ("post.zh.md", POST_ZH)])
}

fn library(files: &[(&str, &str)]) -> Library {
    let files = files.iter();
    let files = files.map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    Library::of(files).unwrap()
}

/// A shop with this knowledge base.
fn knowing(library: &Library) -> World {
    let clock = clock();
    let store = MemoryStore::with_clock(clock.clone()).keeping_log();
    over(Arc::new(store), library)
}

fn over(store: Arc<dyn Store>, library: &Library) -> World {
    let files = RuleFiles::embedded().unwrap().knowledge(library.clone());
    let rules = files.rules().unwrap();
    World::on(store, clock(), |builder| builder.rules(rules))
}

/// A14, A15: a search in English, with its citation; the record names the version of the texts and the document.
#[tokio::test]
async fn an_english_question() {
    let world = knowing(&small());
    let query = json!({"query": "Which batteries go by air?", "limit": "1"});
    assert_json_snapshot!(world.call(SEARCH, query).await, @r###"
    {
      "data": {
        "corpus": {
          "name": "knowledge",
          "version": "sha256:2a5e4a70237f4491c4733907b67b816306c2c9dbcb250b2422d86930c3e6128e"
        },
        "hits": [
          {
            "chunk_id": "post.en#2",
            "citation": {
              "chunk_digest": "sha256:e4ff702d940b0286025d5e5e4a26422af1f21d489a7fc6fd6f629f552a377ef1",
              "document_digest": "sha256:f1166a5c9b86c0398a9850f0eb6177c94b2c5958ef1ae3e56cd7c0f795cd2b5e",
              "end": 171,
              "start": 111
            },
            "document_id": "post.en",
            "heading": "Batteries",
            "language": "en",
            "score": 3859,
            "snippet": "## Batteries\n\nA power bank is a lithium battery. Not by air.",
            "title": "Post"
          }
        ]
      },
      "evidence": {
        "snapshot_id": "ev_1",
        "sources": [
          {
            "hash": "sha256:989ddd4c7bdd0fba385075fcfb2d7f675a7f2264fd18c532f74e02474c208151",
            "name": "knowledge.search",
            "ts": "2026-11-16T12:00:00Z",
            "type": "tool"
          },
          {
            "hash": "sha256:2a5e4a70237f4491c4733907b67b816306c2c9dbcb250b2422d86930c3e6128e",
            "name": "knowledge",
            "ts": "2026-11-16T12:00:00Z",
            "type": "rule_set"
          },
          {
            "hash": "sha256:f1166a5c9b86c0398a9850f0eb6177c94b2c5958ef1ae3e56cd7c0f795cd2b5e",
            "name": "post.en",
            "ts": "2026-11-16T12:00:00Z",
            "type": "document"
          }
        ]
      },
      "ok": true,
      "request_id": "req_1",
      "warnings": [
        {
          "after": 1,
          "before": "\"1\"",
          "code": "TEXT_TO_INTEGER",
          "message": "a string was read as the integer it spells",
          "path": "/limit",
          "severity": "retyped",
          "span": [
            9,
            12
          ]
        }
      ]
    }
    "###);
}

/// A word of two characters, as most Chinese words are.
#[tokio::test]
async fn a_chinese_word_of_two_characters() {
    let world = knowing(&small());
    let reply = world.call(SEARCH, json!({"query": "电池"})).await;
    assert_json_snapshot!(ok(&reply)["hits"], @r###"
    [
      {
        "chunk_id": "post.zh#2",
        "citation": {
          "chunk_digest": "sha256:f586fd602441ccc9fcb17c96e8416e96db680fbb7e67f92fbac429c31e822180",
          "document_digest": "sha256:58b2fd17cd593f27fff4d4d934879b41437dcf944b4e60712cc85d73ceeb3424",
          "end": 186,
          "start": 114
        },
        "document_id": "post.zh",
        "heading": "电池",
        "language": "zh",
        "score": 2148,
        "snippet": "## 电池\n\n移动电源（power bank）属于锂电池，不能空运。",
        "title": "邮寄"
      }
    ]
    "###);
    // The citation is of the bytes that it names, counted in the file and not in characters.
    let citation: Citation =
        serde_json::from_value(reply["data"]["hits"][0]["citation"].clone()).unwrap();
    let cited = verify(&citation, POST_ZH.as_bytes());
    assert_eq!(
        cited,
        Ok("## 电池\n\n移动电源（power bank）属于锂电池，不能空运。")
    );
}

/// Words of both languages find texts of both; the language of the request comes first, a requested language stays
/// alone.
#[tokio::test]
async fn a_mixed_question() {
    let world = knowing(&small());
    let ids = async |locale: Option<&str>, arguments: Value| {
        let envelope = json!({"locale": locale});
        let reply = world.call_as("u_1", SEARCH, arguments, envelope).await;
        let hits = ok(&reply)["hits"].as_array().unwrap().iter();
        let ids: Vec<String> = hits
            .map(|hit| hit["chunk_id"].as_str().unwrap().to_owned())
            .collect();
        ids
    };
    let query = json!({"query": "power bank"});
    assert_eq!(ids(None, query.clone()).await, ["post.en#2", "post.zh#2"]);
    assert_eq!(
        ids(Some("fr"), query.clone()).await,
        ["post.en#2", "post.zh#2"]
    );
    assert_eq!(
        ids(Some("zh-Hans-CN"), query).await,
        ["post.zh#2", "post.en#2"]
    );
    let query = json!({"query": "锂电池 battery", "limit": 2});
    assert_eq!(
        ids(None, query).await,
        ["post.zh#2", "post.en#2"],
        "asked in Chinese"
    );
    let query = json!({"query": "power bank 移动电源", "language": "en-GB"});
    assert_eq!(ids(Some("zh"), query).await, ["post.en#2"]);

    let query = json!({"query": "power bank", "language": "fr"});
    let reply = world.call(SEARCH, query).await;
    let details = json!({"field": "/language", "hint": "one of en, zh; or leave it out"});
    check_error(&reply, "INVALID_ARGUMENT", &details);
}

#[tokio::test]
async fn nothing_is_found() {
    let world = knowing(&small());
    let envelope = json!({"locale": "zh-CN"});
    let reply = world
        .call_as("u_1", SEARCH, json!({"query": "unicorn 独角兽"}), envelope)
        .await;
    assert_eq!(ok(&reply)["hits"], json!([]));
    assert_json_snapshot!(reply["warnings"], @r###"
    [
      {
        "code": "NOTHING_FOUND",
        "message": "没有文档包含这些词；请换个说法，或换一种语言再查"
      }
    ]
    "###);
    let reply = world.call(SEARCH, json!({"query": "?!"})).await;
    assert_eq!(reply["warnings"][0]["code"], "NOTHING_FOUND");
    let reply = world.call(SEARCH, json!({"query": ""})).await;
    check_error(&reply, "INVALID_ARGUMENT", &json!({"field": "/query"}));
}

#[tokio::test]
async fn a_part_is_read() {
    let world = knowing(&small());
    let reply = world
        .call(GET_CHUNK, json!({"chunk_id": "post.en#2"}))
        .await;
    assert_json_snapshot!(ok(&reply), @r###"
    {
      "chunk_id": "post.en#2",
      "citation": {
        "chunk_digest": "sha256:e4ff702d940b0286025d5e5e4a26422af1f21d489a7fc6fd6f629f552a377ef1",
        "document_digest": "sha256:f1166a5c9b86c0398a9850f0eb6177c94b2c5958ef1ae3e56cd7c0f795cd2b5e",
        "end": 171,
        "start": 111
      },
      "corpus": {
        "name": "knowledge",
        "version": "sha256:2a5e4a70237f4491c4733907b67b816306c2c9dbcb250b2422d86930c3e6128e"
      },
      "date": "2026-11-16",
      "document_id": "post.en",
      "heading": "Batteries",
      "language": "en",
      "previous_chunk_id": "post.en#1",
      "source": "us",
      "text": "## Batteries\n\nA power bank is a lithium battery. Not by air.",
      "title": "Post"
    }
    "###);
}

/// A document that has changed since it was cited is not read as if it had not.
#[tokio::test]
async fn a_document_that_moved_is_a_conflict() {
    let world = knowing(&small());
    let reply = world
        .call(GET_CHUNK, json!({"chunk_id": "post.en#2"}))
        .await;
    let digest = ok(&reply)["citation"]["document_digest"].clone();
    let arguments = json!({"chunk_id": "post.en#2", "expected_document_digest": digest});
    ok(&world.call(GET_CHUNK, arguments.clone()).await);

    let edited = POST_EN.replace("Not by air", "Never by air");
    let world = knowing(&library(&[
        ("post.en.md", &edited),
        ("post.zh.md", POST_ZH),
    ]));
    let details = json!({
        "reason": "version",
        "field": "/expected_document_digest",
        "expected_document_digest": digest,
        "document_digest": Digest::of_bytes(edited.as_bytes()).to_string(),
        "hint": "call knowledge.search again and cite what it finds now",
    });
    check_error(
        &world.call(GET_CHUNK, arguments).await,
        "CONFLICT",
        &details,
    );
}

#[tokio::test]
async fn a_name_that_is_unknown_has_a_nearest_one() {
    let world = World::new();
    let check = async |chunk_id: &str, details: Value| {
        let reply = world.call(GET_CHUNK, json!({"chunk_id": chunk_id})).await;
        check_error(&reply, "NOT_FOUND", &details);
    };
    let hint = "did you mean \"batteries.en#1\"? knowledge.search finds chunk_ids";
    let nearest = json!(["batteries.en#1", "batteries.zh#1"]);
    check(
        "battery.en#1",
        json!({"field": "/chunk_id", "nearest": nearest, "hint": hint}),
    )
    .await;
    let hint = "shipping.zh has the parts shipping.zh#1 to shipping.zh#7";
    check(
        "shipping.zh#99",
        json!({"field": "/chunk_id", "hint": hint}),
    )
    .await;
    check("shipping.zh", json!({"hint": hint})).await;
    check("qqqq", json!({"hint": "knowledge.search finds chunk_ids"})).await;
}

/// A14: if the text in the store differs from the document, there is no answer.
#[tokio::test]
async fn a_text_that_somebody_has_changed_is_not_cited() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(clock()).keeping_log());
    let never =
        |_, _| -> countersign::BoxFuture<'static, bool> { Box::pin(std::future::ready(false)) };
    let tampered = FaultyStore::new(store, never)
        .changing_texts(|text| *text = text.replace("Not by air", "By air"));
    let world = over(Arc::new(tampered), &small());
    let details = json!({"source": "gateway", "retryable": false});
    let reply = world.call(SEARCH, json!({"query": "lithium"})).await;
    check_error(&reply, "UPSTREAM_ERROR", &details);
    assert_eq!(reply["data"], Value::Null);
    let reply = world
        .call(GET_CHUNK, json!({"chunk_id": "post.en#2"}))
        .await;
    check_error(&reply, "UPSTREAM_ERROR", &details);
    // The other part is as it was.
    ok(&world
        .call(GET_CHUNK, json!({"chunk_id": "post.en#1"}))
        .await);
}

/// Questions as people ask them, and the document that answers.
#[tokio::test]
async fn questions_are_answered() {
    let world = World::new();
    let mut wrong = Vec::new();
    for (question, expected) in [
        ("can I send a power bank by air mail", "batteries.en"),
        ("锂电池可以邮寄吗", "batteries.zh"),
        ("充电宝", "batteries.zh"),
        ("how are duties and VAT computed", "duties.en"),
        ("关税怎么计算", "duties.zh"),
        ("difference between DDP and DAP", "incoterms.en"),
        ("完税后交货", "incoterms.zh"),
        ("how do I return shoes and get a refund", "returns.en"),
        ("七天无理由退货", "returns.zh"),
        ("what is an HS code", "customs.en"),
        ("报关单怎么填", "customs.zh"),
        ("shoe size EU 42", "sizes.en"),
        ("尺码", "sizes.zh"),
        ("how long is the price locked", "orders.en"),
        ("锁价多久", "orders.zh"),
        ("should I tell the agent my card number", "payment.en"),
        ("银行卡号", "payment.zh"),
        ("delete my personal data", "privacy.en"),
        ("怎么被遗忘", "privacy.zh"),
        ("verify the signed root of the tree", "evidence.en"),
        ("怎么核验", "evidence.zh"),
        ("wash a down jacket", "care.en"),
        ("紫砂壶怎么洗", "care.zh"),
        ("may I send a knife to somebody under 18", "prohibited.en"),
        ("象牙", "prohibited.zh"),
        ("warranty for things bought abroad", "warranty.en"),
        ("保修期", "warranty.zh"),
        ("volumetric weight", "shipping.en"),
        ("体积重量", "shipping.zh"),
        ("postal code Hong Kong", "addresses.en"),
        ("dry run", "agent.en"),
        ("试运行", "agent.zh"),
    ] {
        let arguments = json!({"query": question, "limit": 3});
        let reply = world.call(SEARCH, arguments).await;
        let best = ok(&reply)["hits"][0]["document_id"].clone();
        if best != expected {
            wrong.push(format!("{question}: {best}, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Each chunk is found by the rarest of its own words, and its citation is valid with the file alone.
#[tokio::test]
async fn every_part_is_found_by_its_own_words() {
    let library = Library::embedded().unwrap();
    let world = World::new();
    let mut chunks_with: HashMap<String, usize> = HashMap::new();
    let parts = || {
        let documents = library.documents().iter();
        documents.flat_map(|document| document.chunks().iter().map(move |chunk| (document, chunk)))
    };
    let own_words = |text: &str| {
        let mut own: Vec<String> = words(text).into_iter().map(|word| word.text).collect();
        own.sort();
        own.dedup();
        own
    };
    for (document, chunk) in parts() {
        for word in own_words(document.text_of(chunk)) {
            *chunks_with.entry(word).or_default() += 1;
        }
    }
    for (document, chunk) in parts() {
        let mut own = own_words(document.text_of(chunk));
        // A pair or a word: a single character is asked for only where it stands alone.
        own.retain(|word| word.chars().count() > 1);
        own.sort_by_key(|word| (chunks_with[word], word.clone()));
        let rarest = own[..3].join(" ");
        let arguments = json!({"query": rarest, "language": document.language, "limit": 3});
        let reply = world.call(SEARCH, arguments).await;
        let hits = ok(&reply)["hits"].as_array().unwrap();
        let found = hits.iter().find(|hit| hit["chunk_id"] == chunk.id);
        let found = found.unwrap_or_else(|| panic!("{}: {rarest} found {hits:#?}", chunk.id));
        check_citation(&library, found);
    }
}

/// Checks a citation with the file and nothing else.
#[track_caller]
fn check_citation(library: &Library, hit: &Value) {
    let citation: Citation = serde_json::from_value(hit["citation"].clone()).unwrap();
    let document = library
        .document(hit["document_id"].as_str().unwrap())
        .unwrap();
    let text = verify(&citation, document.text().as_bytes()).unwrap();
    assert!(text.contains(hit["snippet"].as_str().unwrap()));
    assert!(!hit["snippet"].as_str().unwrap().is_empty());
}

/// Every question gets an answer, and every citation in it is valid.
#[test]
fn any_question_gets_citations_that_hold() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (library, world) = (Library::embedded().unwrap(), World::new());
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(48)
    };
    let question = "(\\PC|[a-z\"'*():^%\\-&|!<>\\\\ \u{0}]|tax |battery |关税|电池|NEAR|OR ){1,60}";
    let cited = std::cell::Cell::new(0);
    proptest!(config, |(question in question, limit in 1..=20_u32)| {
        let reply = runtime.block_on(world.call(SEARCH, json!({"query": question, "limit": limit})));
        let hits = ok(&reply)["hits"].as_array().unwrap().clone();
        assert!(hits.len() <= limit as usize);
        assert!(hits.is_sorted_by_key(|hit| std::cmp::Reverse(hit["score"].as_u64())));
        for hit in &hits {
            check_citation(&library, hit);
        }
        cited.set(cited.get() + hits.len());
    });
    assert!(cited.get() > 50, "{} citations in all", cited.get());
}

/// The same answers, digit for digit, from memory, SQLite and PostgreSQL.
#[tokio::test(flavor = "multi_thread")]
async fn every_store_gives_the_same_answer() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite =
        SqliteStore::open(folder.path().join("shop.db"), SqliteOptions::default()).unwrap();
    let url = shared_postgres().fresh_database();
    let postgres = PostgresStore::open(PostgresOptions::new(url).connections_max(4))
        .await
        .unwrap();
    let library = Library::embedded().unwrap();
    let model = knowing(&library);
    let worlds = [
        ("sqlite", over(Arc::new(sqlite), &library)),
        ("postgres", over(Arc::new(postgres), &library)),
    ];
    for (question, locale) in [
        ("how are duties and VAT computed", None),
        ("关税", Some("en-US")),
        ("税", None),
        ("DDP 税费", Some("zh-CN")),
        ("lithium 锂电池 UN 3481", Some("zh-CN")),
        ("the", None),
        ("刀具 knives", Some("en-GB")),
        ("return 退货 14 days", None),
        ("unicorn", Some("zh-CN")),
    ] {
        let arguments = json!({"query": question, "limit": 20});
        let envelope = json!({"locale": locale});
        let expected = model.call_as("u_1", SEARCH, arguments.clone(), envelope.clone());
        let expected = expected.await;
        for (name, world) in &worlds {
            let found = world.call_as("u_1", SEARCH, arguments.clone(), envelope.clone());
            assert_eq!(ok(&found.await), ok(&expected), "{name}: {question}");
        }
    }
    let arguments = json!({"chunk_id": "batteries.zh#3"});
    let expected = model.call(GET_CHUNK, arguments.clone()).await;
    for (name, world) in &worlds {
        let found = world.call(GET_CHUNK, arguments.clone()).await;
        assert_eq!(ok(&found), ok(&expected), "{name}");
    }
}

/// A16: an old answer can be computed again with the texts of its day; with those of today it shows the changes.
#[tokio::test]
async fn an_answer_can_be_computed_again() {
    let (store, clock) = (
        Arc::new(MemoryStore::with_clock(clock()).keeping_log()),
        clock(),
    );
    let world = over(store.clone(), &small());
    let id = evidence(&world.call(SEARCH, json!({"query": "battery"})).await)
        .parse()
        .unwrap();

    let ids = Arc::new(SequentialIds::new());
    let vault = Vault::new(
        store.clone(),
        Arc::new(MasterKey::from_bytes(&[7; 32])),
        clock,
        ids,
    );
    let auditor = Principal::user("auditor").scope("evidence:open");
    let replayer = Replayer::new(store, Arc::new(vault), auditor).unwrap();
    let catalog = countersign_commerce::tools(Catalog::builder())
        .build()
        .unwrap();
    let edited = POST_EN.replace("Not by air", "Never by air");
    let edited = library(&[("post.en.md", &edited), ("post.zh.md", POST_ZH)]);
    let files = RuleFiles::embedded().unwrap().knowledge(small());
    let rules = files.knowledge(edited).rules().unwrap();
    let then = replayer.local(catalog.clone(), rules.clone(), RulesAt::Recorded);
    assert_eq!(
        replayer.replay(&id, &then).await.unwrap().verdict,
        Verdict::Identical
    );
    let now = replayer.local(catalog, rules, RulesAt::InForce);
    let Verdict::Drift(differences) = replayer.replay(&id, &now).await.unwrap().verdict else {
        panic!("the document has changed");
    };
    assert!(
        differences
            .iter()
            .any(|difference| difference.path.ends_with("/document_digest"))
    );
}

/// A15: the version of the texts is the digest of the rule set, as of every rule set that is no file, so that a keeper
/// of it can check it.
#[test]
fn the_version_is_the_digest_of_the_rule_set() {
    let files = RuleFiles::embedded().unwrap();
    let embedded = files.rules().unwrap().current("knowledge").unwrap();
    assert_eq!(embedded.version, Library::embedded().unwrap().version());
    assert_eq!(
        embedded.version,
        Digest::of_canonical(&embedded.data).unwrap()
    );
    let small = small();
    let rules = files.knowledge(small.clone()).rules().unwrap();
    assert_eq!(rules.current("knowledge").unwrap().version, small.version());
    assert!(rules.version("knowledge", embedded.version).is_some());
}

/// Operators bring their own texts; each document is identified by the digest of its file.
#[tokio::test]
async fn a_folder_is_a_library() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("post.zh.md"), POST_ZH).unwrap();
    std::fs::write(path("post.en.md"), POST_EN).unwrap();
    std::fs::write(path("notes.txt"), "not a text of the library").unwrap();
    let library = Library::folder(folder.path()).unwrap();
    assert_eq!(library, small());
    let digest = library.document("post.zh").unwrap().digest();
    assert_eq!(digest, Digest::of_bytes(POST_ZH.as_bytes()));
    let reply = knowing(&library)
        .call(SEARCH, json!({"query": "lithium"}))
        .await;
    assert_eq!(
        ok(&reply)["corpus"]["version"],
        library.version().to_string()
    );

    std::fs::write(path("again.md"), POST_EN).unwrap();
    let refused = Library::folder(folder.path()).unwrap_err().to_string();
    assert_eq!(refused, "there are two documents with the id \"post.en\"");
    std::fs::write(path("again.md"), "# No front line").unwrap();
    let refused = Library::folder(folder.path()).unwrap_err().to_string();
    assert!(
        refused.starts_with("the document again.md cannot be used: its first line"),
        "{refused}"
    );
    let empty = tempfile::tempdir().unwrap();
    let refused = Library::folder(empty.path()).unwrap_err().to_string();
    assert!(refused.starts_with("there are 0 documents"), "{refused}");
}
