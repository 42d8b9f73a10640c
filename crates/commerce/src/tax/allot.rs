//! Divides an amount by weights so that the parts add up to it exactly.

use crate::money::Money;

/// The parts of `whole` by `weights`: each is rounded down, and the rest goes, one smallest unit each, to the largest
/// remainders; among equal ones to the first. If all weights are zero, they count the same.
pub(super) fn allot(whole: &Money, weights: &[i64]) -> Vec<Money> {
    let mut weights: Vec<i128> = weights.iter().map(|weight| (*weight).into()).collect();
    if weights.iter().all(|weight| *weight == 0) {
        weights.fill(1);
    }
    let total: i128 = weights.iter().sum();
    let amount = i128::from(whole.amount);
    let mut parts = Vec::with_capacity(weights.len());
    let mut remainders = Vec::with_capacity(weights.len());
    for (at, weight) in weights.iter().enumerate() {
        let product = amount * weight;
        parts.push(product / total);
        remainders.push((product % total, at));
    }
    let left = amount - parts.iter().sum::<i128>();
    remainders.sort_by_key(|(remainder, at)| (std::cmp::Reverse(*remainder), *at));
    for (_, at) in remainders
        .iter()
        .take(usize::try_from(left).unwrap_or_default())
    {
        if let Some(part) = parts.get_mut(*at) {
            *part += 1;
        }
    }
    // Each part lies between zero and the whole, which is a valid amount.
    parts
        .into_iter()
        .map(|part| Money::new(part as i64, &whole.currency))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up() {
        #[track_caller]
        fn check(whole: i64, weights: &[i64], expected: &[i64]) {
            let parts = allot(&Money::new(whole, "EUR"), weights);
            let parts: Vec<i64> = parts.iter().map(|part| part.amount).collect();
            assert_eq!(parts, expected);
            assert_eq!(parts.iter().sum::<i64>(), whole);
        }
        check(100, &[1, 1, 1], &[34, 33, 33]);
        check(100, &[1, 2, 2], &[20, 40, 40]);
        // 10 × 1/7 = 1.43, 10 × 2/7 = 2.86, 10 × 4/7 = 5.71: the two left go to the larger remainders.
        check(10, &[1, 2, 4], &[1, 3, 6]);
        check(5, &[0, 0], &[3, 2]);
        check(5, &[0, 7], &[0, 5]);
        check(0, &[3, 7], &[0, 0]);
        check((1 << 53) - 1, &[(1 << 53) - 1, 1], &[(1 << 53) - 2, 1]);
    }
}
