//! Search in the shop, in English and Chinese: words and pairs of characters with weights, no more than a shop of
//! some thousand offers needs. Whole numbers only, so that the same query gives the same order everywhere.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Offer, categories, path_of};

/// Where each word of the shop is found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    /// By word: the places of offers, each with the word's weight there.
    found: HashMap<String, Vec<(usize, u64)>>,
    offers: usize,
}

/// What a query finds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hits {
    /// Places of offers with their scores, the best first, then in the order of the shop.
    pub(crate) offers: Vec<(usize, u64)>,
    /// Words that nothing has, and the words that were taken instead.
    pub(crate) corrected: Vec<(String, String)>,
}

const TITLE: u64 = 8;
const NAMED: u64 = 5;
const DESCRIBED: u64 = 2;

/// Words that say nothing about a thing.
const EMPTY_WORDS: &[&str] = &[
    "a", "an", "and", "at", "buy", "by", "for", "from", "i", "in", "is", "it", "me", "my", "need",
    "of", "on", "or", "some", "the", "to", "want", "with", "的", "了", "和", "我", "想", "买",
];

impl Index {
    /// Reads all texts of the offers.
    pub(crate) fn of(offers: &[Offer]) -> Self {
        let mut index = Self {
            found: HashMap::new(),
            offers: offers.len(),
        };
        for (at, offer) in offers.iter().enumerate() {
            for (word, weight) in weights(offer) {
                index.found.entry(word).or_default().push((at, weight));
            }
        }
        index
    }

    /// The offers that have at least half of the words of a query; all words count more than some, rare ones more
    /// than common ones, titles more than descriptions.
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

    /// For each word of a query the words that count for it: itself, or joined with its neighbour (`smart watch`), or
    /// the nearest one where it is unknown.
    fn asked(&self, query: &str, corrected: &mut Vec<(String, String)>) -> Vec<Vec<String>> {
        let mut words = words(query);
        let says_something = |word: &String| !EMPTY_WORDS.contains(&word.as_str());
        if words.iter().any(says_something) {
            words.retain(says_something);
        }
        // Pairs of characters are enough where there are any.
        if words.iter().any(|word| is_pair(word)) {
            words.retain(|word| !is_single(word));
        }
        let mut asked = Vec::new();
        let mut seen = HashSet::new();
        for (at, word) in words.iter().enumerate() {
            if !seen.insert(word) {
                continue;
            }
            let before = at.checked_sub(1).and_then(|at| words.get(at));
            let joined = [
                before.map(|before| format!("{before}{word}")),
                words.get(at + 1).map(|after| format!("{word}{after}")),
            ];
            let known = joined.into_iter().flatten();
            let mut alternatives: Vec<String> =
                known.filter(|word| self.found.contains_key(word)).collect();
            if self.found.contains_key(word) {
                alternatives.push(word.clone());
            } else if alternatives.is_empty()
                && let Some(near) = self.nearest(word)
            {
                corrected.push((word.clone(), near.to_owned()));
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

    /// The word of the shop that differs least, where it differs by a slip or two.
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

/// The words of an offer with their weights.
fn weights(offer: &Offer) -> HashMap<String, u64> {
    let mut weights: HashMap<String, u64> = HashMap::new();
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
            [left, right] if left.is_ascii() && right.is_ascii() => Some(format!("{left}{right}")),
            _ => None,
        });
        let all: HashSet<String> = joined.chain(words.iter().cloned()).collect();
        for word in all {
            *weights.entry(word).or_default() += weight;
        }
    }
    let skus = offer.variants.iter().map(|variant| &variant.sku);
    for name in skus.chain([&offer.offer_id]) {
        for word in words(name) {
            weights.entry(word).or_insert(TITLE);
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

/// The words of a text: of letters and digits in small letters and without the s of a plural, of Chinese and
/// Japanese characters every one and every pair.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut last_ideograph: Option<char> = None;
    let letters: Vec<char> = text.chars().collect();
    for (at, &letter) in letters.iter().enumerate() {
        let is_ideograph = is_ideograph(letter);
        if letter.is_alphanumeric() && !is_ideograph {
            word.extend(letter.to_lowercase());
            last_ideograph = None;
            continue;
        }
        let next_is_digit = letters.get(at + 1).is_some_and(char::is_ascii_digit);
        if letter == ',' && next_is_digit && word.ends_with(|last: char| last.is_ascii_digit()) {
            continue;
        }
        flush(&mut word, &mut words);
        if !is_ideograph {
            last_ideograph = None;
            continue;
        }
        words.push(letter.to_string());
        if let Some(before) = last_ideograph {
            words.push([before, letter].iter().collect());
        }
        last_ideograph = Some(letter);
    }
    flush(&mut word, &mut words);
    words
}

fn flush(word: &mut String, words: &mut Vec<String>) {
    if !word.is_empty() {
        words.push(singular(word));
        word.clear();
    }
}

/// Without the s of a plural, well enough that both forms of a word meet.
fn singular(word: &str) -> String {
    if let Some(stem) = word.strip_suffix("ies").filter(|stem| stem.len() > 2) {
        return format!("{stem}y");
    }
    let hissing = ["ches", "shes", "xes", "sses"];
    if hissing.iter().any(|end| word.ends_with(end)) {
        return word.trim_end_matches("es").to_owned();
    }
    let stem = word
        .strip_suffix('s')
        .filter(|stem| stem.len() > 2 && !stem.ends_with(['s', 'u', 'i']));
    stem.unwrap_or(word).to_owned()
}

fn is_ideograph(letter: char) -> bool {
    matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

fn is_single(word: &str) -> bool {
    word.chars().count() == 1 && word.chars().all(is_ideograph)
}

fn is_pair(word: &str) -> bool {
    word.chars().count() == 2 && word.chars().all(is_ideograph)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_as_words_and_pairs() {
        #[track_caller]
        fn check(text: &str, expected: &[&str]) {
            assert_eq!(words(text), expected);
        }
        check("20,000 mAh Power Banks", &["20000", "mah", "power", "bank"]);
        check(
            "移动电源",
            &["移", "动", "移动", "电", "动电", "源", "电源"],
        );
        check("海港 T 恤", &["海", "港", "海港", "t", "恤"]);
        check(
            "watches, berries, glass, lens",
            &["watch", "berry", "glass", "len"],
        );
        check("", &[]);
    }
}
