//! Small sets of names that every member of every call is compared with.

/// A set of names. Almost no name of a call is in one, so most are told apart by one bit.
#[derive(Debug)]
pub(crate) struct Names {
    all: &'static [&'static str],
    bits: u64,
}

impl Names {
    pub(crate) const fn new(all: &'static [&'static str]) -> Self {
        let mut bits = 0;
        let mut rest = all;
        while let [name, more @ ..] = rest {
            bits |= bit(name.as_bytes());
            rest = more;
        }
        Self { all, bits }
    }

    /// True if a name is in the set.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.bits & bit(name.as_bytes()) != 0 && self.all.contains(&name)
    }
}

/// Returns the bit of a name, by its length and its ends.
pub(crate) const fn bit(name: &[u8]) -> u64 {
    let mixed = match name {
        [] => 0,
        [first, .., last] => name.len() * 7 + *first as usize * 3 + *last as usize,
        [only] => 7 + *only as usize * 4,
    };
    1 << (mixed % 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_its_names_and_no_others() {
        const SET: Names = Names::new(&["arguments", "a", "", "параметры"]);
        for name in ["arguments", "a", "", "параметры"] {
            assert!(SET.has(name), "{name:?}");
        }
        // The second has the bit of `arguments`.
        for name in ["b", "axxxxxxxs", "Arguments", "argument"] {
            assert!(!SET.has(name), "{name:?}");
        }
    }
}
