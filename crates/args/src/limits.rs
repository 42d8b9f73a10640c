//! How much is read before it is refused, as data.

/// Bounds on what the binder reads. Each has a reason in `docs/binder.md`; none can be driven past
/// by an input.
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
    /// The longest raw text; at most [`Limits::SIZE_HARD_MAX`].
    pub raw_bytes_max: usize,
    /// How deep containers may nest, decoded ones included; at most [`Limits::DEPTH_HARD_MAX`].
    pub depth_max: usize,
    /// How many values there may be, those made by coercion included; at most
    /// [`Limits::SIZE_HARD_MAX`].
    pub nodes_max: usize,
    /// How many documents in one text are looked at.
    pub candidates_max: usize,
    /// How often a text inside the text is decoded.
    pub decode_nesting_max: usize,
    /// How far the reader looks ahead to tell a closing quote from an inner one.
    pub lookahead_bytes_max: usize,
    /// How often it does so in one text; what needs more is no text that a model wrote.
    pub lookaheads_max: usize,
    /// How many union branches are tried, as a multiple of the number of values.
    pub union_attempts_per_node_max: usize,
    /// How many issues are listed, the gravest at least; the rest is counted.
    pub issues_max: usize,
    /// How many digits a number may have.
    pub number_digits_max: usize,
    /// How many members an object may have.
    pub members_max: usize,
}

impl Limits {
    /// Validation and coercion go down the tree by recursion, so its depth has an end that no
    /// setting moves.
    pub const DEPTH_HARD_MAX: usize = 128;

    /// Places in a text and values are counted in 32 bits. Repairs may copy a text several times, so
    /// that the end no setting moves is well below.
    pub const SIZE_HARD_MAX: usize = 1 << 28;

    /// The value of a limit by the name that a refusal has for it.
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

    /// The gravest issue is always listed: what may run is decided by it.
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
