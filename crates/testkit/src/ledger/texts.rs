//! Texts: the hits, the same in every store, and versions that are there whole or not at all.

use std::sync::Arc;
use std::task::Poll;

use countersign::BoxFuture;
use countersign::contract::Digest;
use countersign::ledger::{
    Corpus, CorpusId, HITS_MAX, MemoryStore, Store, TextChunk, TextHit, TextQuery, Texts as _,
    VERSIONS_KEPT,
};

use super::{Checked, Fresh, build, race};

pub(super) async fn nothing_is_found_before_a_corpus_is_kept(fresh: &Fresh) -> Checked {
    let (store, corpus) = (&*fresh.store, shop());
    for question in ["battery", ""] {
        let found = store.search(&TextQuery::new(corpus.id(), question)).await?;
        assert_eq!(found, None, "{question:?}");
    }
    assert_eq!(store.chunk(corpus.id(), "post.en#1").await?, None);
    store.keep_corpus(&corpus).await?;
    let found = store.search(&TextQuery::new(corpus.id(), "")).await?;
    assert_eq!(found, Some(Vec::new()));
    Ok(())
}

/// Chinese words have two characters mostly, and some have one; English words have endings.
pub(super) async fn words_of_both_languages_are_found(fresh: &Fresh) -> Checked {
    let (store, corpus) = (&*fresh.store, shop());
    store.keep_corpus(&corpus).await?;
    for (question, expected) in [
        ("battery", &["post.en#1"][..]),
        ("BATTERIES!", &["post.en#1"]),
        ("how do I return shoes?", &["return.en#2", "return.en#1"]),
        ("电池", &["post.zh#1"]),
        ("税", &["tax.zh#1"]),
        ("ＤＤＰ", &["tax.zh#1", "tax.en#1"]),
        ("含电池的包裹怎么寄", &["post.zh#1"]),
        ("battery 电池", &["post.en#1", "post.zh#1"]),
        // No word has these two characters beside each other.
        ("池只", &["post.zh#1"]),
        ("电包", &[]),
        ("unicorn", &[]),
        // The words of a heading are those of the chunk.
        ("carrier", &["post.en#1"]),
    ] {
        let hits = search(store, corpus.id(), question).await?;
        let mut found = ids(&hits);
        let mut expected = expected.to_vec();
        assert_eq!(found.first(), expected.first(), "{question}: {found:?}");
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{question}");
    }
    Ok(())
}

pub(super) async fn a_language_can_be_asked_for(fresh: &Fresh) -> Checked {
    let (store, corpus) = (&*fresh.store, shop());
    store.keep_corpus(&corpus).await?;
    for (language, expected) in [
        ("en", &["tax.en#1"][..]),
        ("zh", &["tax.zh#1"]),
        ("e\0", &[]),
    ] {
        let query = TextQuery::new(corpus.id(), "DDP").language(language);
        let hits = store.search(&query).await?.expect("it is kept");
        assert_eq!(ids(&hits), expected, "{language}");
    }
    Ok(())
}

/// The same hits with the same scores in the same order, for every query.
pub(super) async fn hits_are_those_of_the_model(fresh: &Fresh) -> Checked {
    let (store, model) = (&*fresh.store, MemoryStore::new());
    let mut numbers = Numbers(1);
    let chunks = (0..150).map(|n| {
        let language = if n % 3 == 0 { "zh" } else { "en" };
        let text = numbers.sentence();
        TextChunk::new(format!("d{}#{}", n / 7, n % 7), language, text, &[])
    });
    let corpus = corpus("random", 1, chunks.collect());
    for (name, kept) in [("other", 1), ("random", 2)] {
        // What else is kept does not count.
        let chunk = TextChunk::new("d1#1", "en", "tax tax duty 关税", &[]);
        store
            .keep_corpus(&self::corpus(name, kept, vec![chunk]))
            .await?;
    }
    store.keep_corpus(&corpus).await?;
    model.keep_corpus(&corpus).await?;
    for n in 0..60 {
        let mut query = TextQuery::new(corpus.id(), &numbers.sentence()).limit(n);
        if n % 5 == 0 {
            query = query.language("zh");
        }
        let (found, expected) = (store.search(&query).await?, model.search(&query).await?);
        assert_eq!(found, expected, "{query:?}");
    }
    Ok(())
}

pub(super) async fn chunks_are_read_back(fresh: &Fresh) -> Checked {
    let (store, corpus) = (&*fresh.store, shop());
    store.keep_corpus(&corpus).await?;
    for chunk in corpus.chunks() {
        let found = store.chunk(corpus.id(), &chunk.id).await?;
        assert_eq!(found.as_ref(), Some(chunk));
    }
    for unknown in [
        "",
        "post.en#9",
        "post.en#1\0",
        "'; DROP TABLE text_chunk; --",
    ] {
        assert_eq!(store.chunk(corpus.id(), unknown).await?, None, "{unknown}");
    }
    Ok(())
}

/// Whatever is asked, it is a question and nothing else.
pub(super) async fn hostile_questions_are_only_questions(fresh: &Fresh) -> Checked {
    let (store, corpus) = (&*fresh.store, shop());
    store.keep_corpus(&corpus).await?;
    let long = "battery ".repeat(1_300);
    let many = "锂电池可以邮寄吗".repeat(500);
    let other = (0..2_000_u32)
        .filter_map(char::from_u32)
        .collect::<String>();
    for question in [
        "\"",
        "'",
        "''",
        "\\",
        "*",
        "batter*",
        "^battery",
        "NEAR(battery post, 2)",
        "battery AND",
        "battery NOT post",
        "OR",
        "words : battery",
        "corpus : c1",
        "-battery",
        "(battery",
        "{a b} : c",
        "battery & !post",
        "'battery' <-> 'post'",
        "battery:*",
        "a | b",
        "\0",
        "bat\0tery",
        "",
        " \t\n",
        "%",
        "_",
        "$1",
        "?1",
        "; DROP TABLE text_corpus",
        "\u{202e}\u{feff}",
        "👩‍👩‍👧",
        "e\u{301}",
        &long,
        &many,
        &other,
    ] {
        let hits = search(store, corpus.id(), question).await?;
        assert!(hits.len() <= corpus.chunks().len(), "{question:?}");
    }
    // And what a question is about is still found behind all that.
    let hits = search(store, corpus.id(), "\"battery* OR (NEAR").await?;
    assert_eq!(ids(&hits), ["post.en#1"]);
    assert_eq!(
        ids(&search(store, corpus.id(), &long).await?),
        ["post.en#1"]
    );
    assert_eq!(
        ids(&search(store, corpus.id(), &many).await?),
        ["post.zh#1"]
    );
    Ok(())
}

pub(super) async fn hits_are_bounded(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let chunks = (0..HITS_MAX + 50).map(|n| TextChunk::new(format!("{n:04}"), "en", "tax", &[]));
    let corpus = corpus("many", 1, chunks.collect());
    store.keep_corpus(&corpus).await?;
    for (limit, expected) in [(0, 0), (1, 1), (7, 7), (usize::MAX, HITS_MAX)] {
        let query = TextQuery::new(corpus.id(), "tax").limit(limit);
        let hits = store.search(&query).await?.expect("it is kept");
        assert_eq!(hits.len(), expected);
        // All are worth the same, so they come by their names.
        assert!(hits.is_sorted_by_key(|hit| hit.id.clone()));
    }
    Ok(())
}

/// A corpus that is larger than a store writes, removes or reads in one go. Chunks with the rare word of a query are found even if very
/// many chunks have its common word.
pub(super) async fn a_large_corpus_is_kept_and_searched(fresh: &Fresh) -> Checked {
    const CHUNKS: usize = 1_100;
    let store = &*fresh.store;
    let large = |version: usize| {
        let chunks = (0..CHUNKS).map(|n| {
            let text = match n {
                700 => "tax on one zebra, and much more about other things".to_owned(),
                n => format!("tax tax tax duty tax n{n}"),
            };
            TextChunk::new(format!("{n:04}"), "en", text, &[])
        });
        corpus("large", version, chunks.collect())
    };
    // Enough versions for the first of them to be removed.
    for version in 1..=VERSIONS_KEPT + 1 {
        store.keep_corpus(&large(version)).await?;
    }
    let gone = store.search(&TextQuery::new(large(1).id(), "tax")).await?;
    assert_eq!(gone, None);
    let newest = large(VERSIONS_KEPT + 1);
    let hits = search(store, newest.id(), "tax duty zebra").await?;
    assert_eq!(hits.first().map(|hit| &*hit.id), Some("0700"));
    assert_eq!(hits.len(), 10);
    for n in [0, 199, 200, 499, 500, 1_099] {
        let hits = search(store, newest.id(), &format!("n{n}")).await?;
        assert_eq!(ids(&hits), [format!("{n:04}")]);
    }
    Ok(())
}

pub(super) async fn a_version_is_kept_once_and_never_changes(fresh: &Fresh) -> Checked {
    let (store, first) = (&*fresh.store, shop());
    store.keep_corpus(&first).await?;
    let before = search(store, first.id(), "tax return battery").await?;
    let chunk = TextChunk::new("new#1", "en", "tax return battery", &[]);
    let forged = corpus("shop", 1, vec![chunk]);
    assert_eq!(forged.id(), first.id());
    for again in [&first, &forged] {
        fresh.handle(1).keep_corpus(again).await?;
        let after = search(store, first.id(), "tax return battery").await?;
        assert_eq!(after, before);
    }
    Ok(())
}

/// Processes of another release each find their own version; the oldest one goes.
pub(super) async fn the_newest_versions_stay(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let version = |n: usize| {
        let text = format!("tax in release{n}");
        corpus(
            "shop",
            n,
            vec![TextChunk::new(format!("d{n}#1"), "en", text, &[])],
        )
    };
    let other = corpus("other", 1, vec![TextChunk::new("o#1", "en", "tax", &[])]);
    store.keep_corpus(&other).await?;
    for newest in 1..=VERSIONS_KEPT + 2 {
        store.keep_corpus(&version(newest)).await?;
        for n in 1..=newest {
            let query = TextQuery::new(version(n).id(), "tax");
            let found = store.search(&query).await?;
            let found = found.map(|hits| hits.into_iter().map(|hit| hit.id).collect::<Vec<_>>());
            let expected = (n + VERSIONS_KEPT > newest).then(|| vec![format!("d{n}#1")]);
            assert_eq!(found, expected, "{n} of {newest}");
            let chunk = store.chunk(version(n).id(), &format!("d{n}#1")).await?;
            assert_eq!(chunk.is_some(), expected.is_some(), "{n} of {newest}");
        }
    }
    assert_eq!(ids(&search(store, other.id(), "tax").await?), ["o#1"]);
    // One that was dropped may come back.
    store.keep_corpus(&version(1)).await?;
    assert_eq!(ids(&search(store, version(1).id(), "tax").await?), ["d1#1"]);
    Ok(())
}

/// A reader sees all of a version or nothing of it, while versions come and go.
pub(super) async fn racing_keepers_and_readers_see_whole_versions(fresh: &Fresh) -> Checked {
    const CHUNKS: usize = 40;
    let versions: Vec<Arc<Corpus>> = (1..=VERSIONS_KEPT + 1)
        .map(|version| {
            let chunks = (0..CHUNKS).map(|n| TextChunk::new(format!("{n}"), "en", "tax", &[]));
            corpus("shop", version, chunks.collect())
        })
        .collect();
    let counts = race(16, |n| {
        let (store, versions) = (fresh.handle(n), versions.clone());
        async move {
            let mut counts = Vec::new();
            for (step, corpus) in versions.iter().cycle().skip(n / 2).take(6).enumerate() {
                if (n + step) % 2 == 0 {
                    store.keep_corpus(corpus).await?;
                }
                let query = TextQuery::new(corpus.id(), "tax").limit(CHUNKS);
                let found = store.search(&query).await?;
                counts.extend(found.map(|hits| hits.len()));
            }
            Ok(counts)
        }
    })
    .await?;
    let counts: Vec<usize> = counts.into_iter().flatten().collect();
    assert!(!counts.is_empty());
    assert!(counts.iter().all(|count| *count == CHUNKS), "{counts:?}");
    Ok(())
}

/// A task that keeps a corpus may be dropped at any moment, as a call is at its deadline. Then the corpus is there whole or not at all, and
/// changes by others meanwhile count at once and stay.
pub(super) async fn a_keeper_that_is_dropped_leaves_nothing_behind(fresh: &Fresh) -> Checked {
    // In several portions, for every store.
    const CHUNKS: usize = 1_100;
    // More than a store has connections.
    const OTHERS: usize = 8;
    const POINTS_MAX: usize = 1_000;
    let (store, other) = (&*fresh.store, fresh.handle(1));
    let chunks = (0..CHUNKS).map(|n| TextChunk::new(format!("{n:04}"), "en", "tax", &[]));
    let corpus = corpus("shop", 1, chunks.collect());
    let mut claims = Vec::new();
    let mut is_kept = false;
    for point in 1..=POINTS_MAX {
        is_kept = finished_by(point, store.keep_corpus(&corpus))
            .await
            .transpose()?
            .is_some();
        for n in 0..OTHERS {
            let scope = build::scope(&format!("{point}-{n}"));
            claims.push(build::claimed(store, &build::request(&scope)).await?);
            // Whatever a connection was in the middle of, each does something.
            let query = TextQuery::new(corpus.id(), "tax").limit(HITS_MAX);
            if let Some(hits) = store.search(&query).await? {
                assert_eq!(hits.len(), HITS_MAX, "dropped at {point}");
            }
            for id in ["0000", "1099"] {
                let is_there = store.chunk(corpus.id(), id).await?.is_some();
                let is_whole = store.search(&query).await?.is_some();
                assert!(is_whole || !is_there, "dropped at {point}");
            }
        }
        if is_kept {
            break;
        }
    }
    assert!(is_kept, "it is kept when nobody drops it");
    for claim in &claims {
        assert!(
            other.lookup(&claim.scope).await?.is_some(),
            "{:?} counts for everybody",
            claim.scope
        );
    }
    let query = TextQuery::new(corpus.id(), "tax").limit(HITS_MAX);
    let hits = other.search(&query).await?;
    assert_eq!(hits.map(|hits| hits.len()), Some(HITS_MAX));
    Ok(())
}

/// Polls a future this number of times and drops it; `None` if it has not finished by then.
async fn finished_by<T>(polls: usize, mut future: BoxFuture<'_, T>) -> Option<T> {
    let mut done = 0;
    std::future::poll_fn(|context| {
        done += 1;
        match future.as_mut().poll(context) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending if done >= polls => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// A small shop in both languages.
fn shop() -> Arc<Corpus> {
    let chunks = [
        (
            "post.en#1",
            "en",
            "Batteries in the post travel by road only.",
            "Carriers",
        ),
        (
            "post.zh#1",
            "zh",
            "含锂电池只能走陆运，不能空运。",
            "承运商",
        ),
        (
            "return.en#1",
            "en",
            "Anything can be returned within thirty days.",
            "",
        ),
        ("return.en#2", "en", "Shoes: return them unworn.", ""),
        (
            "tax.en#1",
            "en",
            "DDP means that duties are in the price of the order already.",
            "",
        ),
        ("tax.zh#1", "zh", "DDP：税费已含。", ""),
    ];
    let chunks =
        chunks.map(|(id, language, text, heading)| TextChunk::new(id, language, text, &[heading]));
    corpus("shop", 1, chunks.to_vec())
}

fn corpus(name: &str, version: usize, chunks: Vec<TextChunk>) -> Arc<Corpus> {
    let version = Digest::of_bytes(&version.to_be_bytes());
    Arc::new(Corpus::new(name, version, chunks).expect("texts that fit"))
}

async fn search(
    store: &dyn Store,
    corpus: &CorpusId,
    question: &str,
) -> Result<Vec<TextHit>, super::Error> {
    let found = store.search(&TextQuery::new(corpus, question)).await?;
    Ok(found.expect("it is kept"))
}

fn ids(hits: &[TextHit]) -> Vec<&str> {
    hits.iter().map(|hit| hit.id.as_str()).collect()
}

/// Generator of the same texts in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn sentence(&mut self) -> String {
        const WORDS: [&str; 20] = [
            "tax",
            "duties",
            "shipping",
            "returned",
            "battery",
            "the",
            "of",
            "leather",
            "DDP",
            "café",
            "关税",
            "电池",
            "退货",
            "运费",
            "税",
            "保修期",
            "naïve",
            "un3481",
            "20,000",
            "ship's",
        ];
        let count = 1 + self.below(12);
        let words: Vec<&str> = (0..count)
            .map(|_| {
                WORDS
                    .get(self.below(WORDS.len()))
                    .copied()
                    .unwrap_or_default()
            })
            .collect();
        words.join(if self.below(4) == 0 { "" } else { " " })
    }
}
