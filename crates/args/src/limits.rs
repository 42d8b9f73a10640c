//! Limits on the binder's input and work.

/// Bounds on what the binder reads. Each has a reason in `docs/binder.md`; no input can exceed one.
///
/// # Example
///
/// ```
/// use countersign_args::Limits;
///
/// let small = Limits { raw_bytes_max: 4 * 1024, ..Limits::default() };
/// assert_eq!(small.depth_max, 64);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum length of the raw text; at most [`Limits::SIZE_HARD_MAX`].
    pub raw_bytes_max: usize,
    /// Maximum nesting of containers, decoded ones included; at most [`Limits::DEPTH_HARD_MAX`].
    pub depth_max: usize,
    /// Maximum number of values, those made by coercion included; at most [`Limits::SIZE_HARD_MAX`].
    pub nodes_max: usize,
    /// Maximum number of documents that are tried in one text.
    pub candidates_max: usize,
    /// Maximum nesting of strings that are decoded inside the text.
    pub decode_nesting_max: usize,
    /// Maximum distance that the reader looks ahead to tell a closing quote from an inner one.
    pub lookahead_bytes_max: usize,
    /// Maximum number of such look-aheads in one text; no model writes a text that needs more.
    pub lookaheads_max: usize,
    /// Maximum number of union branches that are tried, as a multiple of the number of values.
    pub union_attempts_per_node_max: usize,
    /// Maximum number of issues that are listed, at least the gravest; the rest is counted.
    pub issues_max: usize,
    /// Maximum number of digits of a number.
    pub number_digits_max: usize,
    /// Maximum number of members of an object.
    pub members_max: usize,
}

impl Limits {
    /// Upper bound of `depth_max`, whatever is configured: validation and coercion recurse down the tree.
    pub const DEPTH_HARD_MAX: usize = 128;

    /// Upper bound of the sizes, whatever is configured. Offsets and values are counted in 32 bits, and repairs
    /// may copy a text several times, so that the bound is well below that.
    pub const SIZE_HARD_MAX: usize = 1 << 28;

    /// Returns the value of a limit by the name that refusals use.
    pub(crate) fn named(&self, name: &str) -> Option<usize> {
        Some(match name {
            "raw_bytes_max" => self.raw_bytes(),
            "depth_max" => self.depth(),
            "nodes_max" => self.nodes(),
            "candidates_max" => self.candidates_max,
            "lookaheads_max" => self.lookaheads_max,
            "number_digits_max" => self.number_digits_max,
            "members_max" => self.members_max,
            _ => return None,
        })
    }

    pub(crate) fn raw_bytes(&self) -> usize {
        self.raw_bytes_max.min(Self::SIZE_HARD_MAX)
    }

    pub(crate) fn nodes(&self) -> usize {
        self.nodes_max.min(Self::SIZE_HARD_MAX)
    }

    /// Number of issues to list, at least one: the gravest issue decides what may run, so it is always listed.
    pub(crate) fn issues(&self) -> usize {
        self.issues_max.max(1)
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth_max.min(Self::DEPTH_HARD_MAX)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            raw_bytes_max: 256 * 1024,
            depth_max: 64,
            nodes_max: 50_000,
            candidates_max: 16,
            decode_nesting_max: 2,
            lookahead_bytes_max: 96,
            lookaheads_max: 100_000,
            union_attempts_per_node_max: 8,
            issues_max: 64,
            number_digits_max: 400,
            members_max: 10_000,
        }
    }
}
