//! Corpora in memory: every chunk is looked at.

use std::collections::{HashMap, HashSet};
use std::future::ready;
use std::sync::Arc;

use super::MemoryStore;
use crate::BoxFuture;
use crate::ledger::{Corpus, CorpusId, Error, TextChunk, TextHit, TextQuery, Texts, VERSIONS_KEPT};
use crate::text::{Statistics, rank};

impl Texts for MemoryStore {
    fn keep_corpus<'a>(&'a self, corpus: &'a Arc<Corpus>) -> BoxFuture<'a, Result<(), Error>> {
        let mut inner = self.lock();
        if !inner.corpora.iter().any(|kept| kept.id() == corpus.id()) {
            inner.corpora.push(corpus.clone());
            let name = &corpus.id().name;
            let of_name = |kept: &Arc<Corpus>| kept.id().name == *name;
            let count = inner.corpora.iter().filter(|kept| of_name(kept)).count();
            if count > VERSIONS_KEPT {
                let oldest = inner.corpora.iter().position(of_name);
                oldest.map(|oldest| inner.corpora.remove(oldest));
            }
        }
        Box::pin(ready(Ok(())))
    }

    fn search<'a>(
        &'a self,
        query: &'a TextQuery,
    ) -> BoxFuture<'a, Result<Option<Vec<TextHit>>, Error>> {
        let corpus = self.corpus(query.corpus());
        Box::pin(ready(Ok(corpus.map(|corpus| search(&corpus, query)))))
    }

    fn chunk<'a>(
        &'a self,
        corpus: &'a CorpusId,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<TextChunk>, Error>> {
        let chunk = self.corpus(corpus).and_then(|corpus| {
            let mut chunks = corpus.chunks().iter();
            chunks.find(|chunk| chunk.id == id).cloned()
        });
        Box::pin(ready(Ok(chunk)))
    }
}

impl MemoryStore {
    fn corpus(&self, id: &CorpusId) -> Option<Arc<Corpus>> {
        let inner = self.lock();
        inner.corpora.iter().find(|kept| kept.id() == id).cloned()
    }
}

fn search(corpus: &Corpus, query: &TextQuery) -> Vec<TextHit> {
    let places = query.words().iter().enumerate();
    let places: HashMap<&str, usize> = places.map(|(at, word)| (word.as_str(), at)).collect();
    let mut chunks_with = vec![0_u32; query.words().len()];
    for chunk in corpus.chunks() {
        let has: HashSet<usize> = chunk
            .words
            .split(' ')
            .filter_map(|word| places.get(word).copied())
            .collect();
        for at in has {
            if let Some(count) = chunks_with.get_mut(at) {
                *count += 1;
            }
        }
    }
    let statistics = Statistics {
        chunks: u32::try_from(corpus.chunks().len()).unwrap_or(u32::MAX),
        words: corpus.words(),
        chunks_with,
    };
    let wanted = corpus.chunks().iter().filter(|chunk| {
        let language = query.wanted_language();
        language.is_none_or(|language| chunk.language == language)
    });
    rank(
        query.words(),
        &statistics,
        wanted.cloned(),
        query.hits_max(),
    )
}
