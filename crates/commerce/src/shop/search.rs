//! Search in the shop, in English and Chinese: words and pairs of characters with weights, no more than a shop of
//! some thousand offers needs. Whole numbers only, so that the same query gives the same order everywhere.

use std::collections::{BTreeMap, HashMap, HashSet};

use countersign::text;

use super::{Offer, categories, path_of};

/// The index of the shop's words.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    /// The positions of offers by word, each with the word's weight there.
    found: HashMap<String, Vec<(usize, u64)>>,
    /// The word as the shop writes it, by its stem, for people.
    written: HashMap<String, String>,
    offers: usize,
}

/// The result of a query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hits {
    /// The positions of offers with their scores, the best first, then in the order of the shop.
    pub(crate) offers: Vec<(usize, u64)>,
    /// Words that no offer has, and the words that were taken instead, as they are written.
    pub(crate) corrected: Vec<(String, String)>,
}

const TITLE: u64 = 8;
const NAMED: u64 = 5;
const DESCRIBED: u64 = 2;

/// Words that say nothing about goods, besides the general stop words.
const EMPTY_WORDS: &[&str] = &["buy", "need", "some", "want"];

impl Index {
    /// Indexes all texts of the offers.
    pub(crate) fn of(offers: &[Offer]) -> Self {
        let mut index = Self {
            offers: offers.len(),
            ..Self::default()
        };
        for (at, offer) in offers.iter().enumerate() {
            for (word, (weight, written)) in weights(offer) {
                index.written.entry(word.clone()).or_insert(written);
                index.found.entry(word).or_default().push((at, weight));
            }
        }
        index
    }

    /// The offers that have at least half of the words of a query; all words count more than some, rare ones more than
    /// common ones, titles more than descriptions.
    pub(crate) fn search(&self, query: &str) -> Hits {
        let mut hits = Hits::default();
        let asked = self.asked(query, &mut hits.corrected);
        let mut scores: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
        for alternatives in &asked {
            for (at, score) in self.best_of(alternatives) {
                let (sum, matched) = scores.entry(at).or_default();
                *sum = sum.saturating_add(score);
                *matched += 1;
            }
        }
        let count = u64::try_from(asked.len()).unwrap_or(u64::MAX).max(1);
        let enough = scores
            .into_iter()
            .filter(|(_, (_, matched))| matched * 2 >= count);
        let weighed = enough.map(|(at, (sum, matched))| (at, sum.saturating_mul(matched) / count));
        hits.offers = weighed.collect();
        hits.offers.sort_by(|(_, left), (_, right)| right.cmp(left));
        hits
    }

    /// The words that count for each word of a query: itself, or joined with its neighbour (`smart watch`), or the
    /// nearest one if it is unknown.
    fn asked(&self, query: &str, corrected: &mut Vec<(String, String)>) -> Vec<Vec<String>> {
        let mut keys = text::question_words(query);
        let says_something = |word: &String| !EMPTY_WORDS.contains(&word.as_str());
        if keys.iter().any(says_something) {
            keys.retain(says_something);
        }
        let mut asked = Vec::new();
        for (at, word) in keys.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|at| keys.get(at));
            let joined = [
                before.map(|before| format!("{before}{word}")),
                keys.get(at + 1).map(|after| format!("{word}{after}")),
            ];
            let known = joined.into_iter().flatten();
            let mut alternatives: Vec<String> =
                known.filter(|word| self.found.contains_key(word)).collect();
            if self.found.contains_key(word) {
                alternatives.push(word.clone());
            } else if alternatives.is_empty()
                && let Some(near) = self.nearest(word)
            {
                let mut asked = words(query).into_iter().filter(|(key, _)| key == word);
                let asked = asked
                    .next()
                    .map_or_else(|| word.clone(), |(_, written)| written);
                let taken = self.written.get(near).map_or(near, String::as_str);
                corrected.push((asked, taken.to_owned()));
                alternatives.push(near.to_owned());
            }
            asked.push(alternatives);
        }
        asked
    }

    fn best_of(&self, alternatives: &[String]) -> BTreeMap<usize, u64> {
        let mut best: BTreeMap<usize, u64> = BTreeMap::new();
        for word in alternatives {
            let found = self.found.get(word).map_or(&[][..], Vec::as_slice);
            let rarity = u64::from((self.offers / found.len().max(1)).max(1).ilog2()) + 1;
            for (at, weight) in found {
                let score = best.entry(*at).or_default();
                *score = (*score).max(weight * rarity);
            }
        }
        best
    }

    /// The most similar word of the shop; `None` if it differs by more than a slip or two.
    fn nearest(&self, word: &str) -> Option<&str> {
        let length = word.chars().count();
        if length < 4 || !word.chars().all(|letter| letter.is_ascii_alphabetic()) {
            return None;
        }
        let slips_max = if length < 8 { 1 } else { 2 };
        let near = self.found.keys().filter_map(|known| {
            let differs = known.chars().count().abs_diff(length);
            let slips = (differs <= slips_max).then(|| strsim::osa_distance(word, known))?;
            (slips <= slips_max).then_some((slips, known))
        });
        near.min().map(|(_, known)| known.as_str())
    }
}

/// The words of an offer, each with its weight and its first spelling.
fn weights(offer: &Offer) -> BTreeMap<String, (u64, String)> {
    let mut weights: BTreeMap<String, (u64, String)> = BTreeMap::new();
    let names = [
        offer.brand.clone(),
        categories_of(offer),
        offer.keywords.join(" · "),
    ];
    let texts = [(&offer.title.en, TITLE), (&offer.title.zh, TITLE)]
        .into_iter()
        .chain(names.iter().map(|name| (name, NAMED)))
        .chain([&offer.description.en, &offer.description.zh].map(|text| (text, DESCRIBED)));
    for (text, weight) in texts {
        let words = words(text);
        let joined = words.windows(2).filter_map(|pair| match pair {
            [(left, first), (right, second)] if left.is_ascii() && right.is_ascii() => {
                Some((format!("{left}{right}"), format!("{first}{second}")))
            }
            _ => None,
        });
        let joined: Vec<_> = joined.collect();
        let mut seen = HashSet::new();
        for (word, written) in words.into_iter().chain(joined) {
            if seen.insert(word.clone()) {
                weights.entry(word).or_insert((0, written)).0 += weight;
            }
        }
    }
    let skus = offer.variants.iter().map(|variant| &variant.sku);
    for name in skus.chain([&offer.offer_id]) {
        for (word, written) in words(name) {
            weights.entry(word).or_insert((TITLE, written));
        }
    }
    weights
}

/// The path of an offer's category, and the names of all categories on it.
fn categories_of(offer: &Offer) -> String {
    let mut texts = vec![offer.category.replace(['/', '_'], " ")];
    for path in path_of(&offer.category) {
        let name = categories().get(path);
        texts.extend(name.map(|name| format!("{} · {}", name.en, name.zh)));
    }
    texts.join(" · ")
}

/// The words of a text: the stem by which full text finds them everywhere, and the written form.
fn words(text: &str) -> Vec<(String, String)> {
    let words = text::words(text).into_iter();
    let written = |start, end| text.get(start..end).unwrap_or_default().to_lowercase();
    words
        .map(|word| (word.text, written(word.start, word.end)))
        .collect()
}
