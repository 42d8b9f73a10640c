//! Ranking of chunks: BM25, the same for every store.
//!
//! A store finds the chunks; their scores are computed here. The databases' own ranks differ: that of SQLite counts the
//! chunks of all corpora together, that of PostgreSQL does not know how rare a word is.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::ledger::{TextChunk, TextHit};

/// BM25's k1: saturation of repeated words.
const SATURATION: f64 = 1.2;

/// BM25's b: weight of the chunk length.
const LENGTH: f64 = 0.75;

/// Statistics of a corpus for the words of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statistics {
    /// Number of chunks.
    pub chunks: u32,
    /// Total length of the chunks, as [`Corpus::words`](crate::ledger::Corpus::words) counts.
    pub words: u32,
    /// Number of chunks that contain each word of the question, in its order.
    pub chunks_with: Vec<u32>,
}

impl Statistics {
    /// Weight of each word of the question (inverse document frequency): the fewer chunks have it, the greater.
    pub fn rarity(&self) -> Vec<f64> {
        let chunks = f64::from(self.chunks);
        let rarity = self.chunks_with.iter().map(|with| {
            let with = f64::from(*with);
            (1.0 + (chunks - with + 0.5).max(0.0) / (with + 0.5)).ln()
        });
        rarity.collect()
    }
}

/// The best of the chunks that were found, by score and then by id, at most `limit`. Those without any of the
/// words are left out.
pub fn rank(
    question: &[String],
    statistics: &Statistics,
    found: impl IntoIterator<Item = TextChunk>,
    limit: usize,
) -> Vec<TextHit> {
    let weights = Weights::of(question, statistics);
    let mut hits: Vec<TextHit> = found
        .into_iter()
        .filter_map(|chunk| {
            let score = weights.score(&chunk.words)?;
            Some(TextHit {
                id: chunk.id,
                language: chunk.language,
                text: chunk.text,
                score,
            })
        })
        .collect();
    hits.sort_by(|a, b| (Reverse(a.score), &a.id).cmp(&(Reverse(b.score), &b.id)));
    hits.truncate(limit);
    hits
}

struct Weights<'q> {
    /// The place of each word in the question.
    places: HashMap<&'q str, usize>,
    /// The weight of each of them.
    rarity: Vec<f64>,
    length_mean: f64,
}

impl<'q> Weights<'q> {
    fn of(question: &'q [String], statistics: &Statistics) -> Self {
        let chunks = f64::from(statistics.chunks);
        let places = question.iter().enumerate();
        Self {
            places: places.map(|(at, word)| (word.as_str(), at)).collect(),
            rarity: statistics.rarity(),
            length_mean: (f64::from(statistics.words) / chunks.max(1.0)).max(1.0),
        }
    }

    /// The score in thousandths, at least one; `None` if the chunk has none of the words.
    fn score(&self, words: &str) -> Option<u32> {
        let mut counts = vec![0_u32; self.rarity.len()];
        let mut length = 0_u32;
        for word in words.split(' ') {
            length = length.saturating_add(counted(word));
            let place = self.places.get(word);
            if let Some(count) = place.and_then(|place| counts.get_mut(*place)) {
                *count += 1;
            }
        }
        if counts.iter().all(|count| *count == 0) {
            return None;
        }
        let burden = SATURATION * (1.0 - LENGTH + LENGTH * f64::from(length) / self.length_mean);
        let parts = counts.iter().zip(&self.rarity).map(|(count, rarity)| {
            let count = f64::from(*count);
            rarity * count * (SATURATION + 1.0) / (count + burden)
        });
        Some(thousandths(parts.sum()))
    }
}

/// Length of a text in words; in runs without spaces the pairs of characters are counted, not the single ones.
pub fn length(words: &str) -> u32 {
    let counted = words.split(' ').map(counted);
    counted.fold(0, u32::saturating_add)
}

fn counted(word: &str) -> u32 {
    let is_one_character = !word.is_ascii() && word.chars().nth(1).is_none();
    u32::from(!is_one_character)
}

/// Rounds a score, so that the last bit of a logarithm, which machines disagree about, decides nothing.
#[expect(
    clippy::cast_sign_loss,
    reason = "no part is below zero, and a cast stops at the largest number"
)]
fn thousandths(score: f64) -> u32 {
    ((score * 1_000.0).round() as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{indexed_words, question_words};

    #[test]
    fn rare_words_and_short_chunks_come_first() {
        let texts = [
            (
                "a",
                "duty and tax, and tax, and tax, with many more words about other things",
            ),
            ("b", "tax on batteries"),
            ("c", "tax"),
            ("d", "weather"),
        ];
        let chunks: Vec<TextChunk> = texts
            .iter()
            .map(|(id, text)| TextChunk::new(*id, "en", *text, &[]))
            .collect();
        let question = question_words("battery tax");
        let with = |word: &String| {
            let has = |chunk: &&TextChunk| chunk.words.split(' ').any(|own| own == word);
            u32::try_from(chunks.iter().filter(has).count()).unwrap()
        };
        let words = chunks.iter().map(|chunk| chunk.words.split(' ').count());
        let statistics = Statistics {
            chunks: 4,
            words: u32::try_from(words.sum::<usize>()).unwrap(),
            chunks_with: question.iter().map(with).collect(),
        };
        let hits = rank(&question, &statistics, chunks.clone(), 10);
        let found: Vec<(&str, u32)> = hits.iter().map(|hit| (&*hit.id, hit.score)).collect();
        // By hand: N 4, words 14+3+1+1 = 19, mean 4.75. tax in 3: ln(1 + 1.5/3.5) = 0.35667; battery in 1:
        // ln(1 + 3.5/1.5) = 1.20397. b: 3 words, burden 1.2 * (0.25 + 0.75 * 3/4.75) = 0.86842, factor
        // 2.2/1.86842 = 1.17746, times 1.56064 = 1.83759. c: burden 0.48947, 0.35667 * 2.2/1.48947 = 0.52682.
        // a: 14 words, burden 2.95263, 0.35667 * 3 * 2.2/5.95263 = 0.39546.
        assert_eq!(found, [("b", 1838), ("c", 527), ("a", 395)]);
        assert_eq!(indexed_words(&["tax on batteries"]), "tax on battery");
    }
}
