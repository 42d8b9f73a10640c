//! Statuses of HTTP as an error rule names them.

/// A range of statuses: `404`, `4xx` or `500-599`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statuses {
    first: u16,
    last: u16,
}

impl Statuses {
    /// Reads a range; `None` if the text is none.
    ///
    /// ```
    /// use countersign_upstream::manifest::Statuses;
    ///
    /// assert!(Statuses::parse("4xx").is_some_and(|it| it.contains(404)));
    /// assert!(Statuses::parse("4x").is_none());
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let status = |text: &str| {
            let status: u16 = text.trim().parse().ok()?;
            (100..=599).contains(&status).then_some(status)
        };
        if let Some(class) = text.strip_suffix("xx") {
            let first = class
                .parse::<u16>()
                .ok()
                .filter(|it| (1..=5).contains(it))?
                * 100;
            return Some(Self {
                first,
                last: first + 99,
            });
        }
        let (first, last) = match text.split_once('-') {
            Some((first, last)) => (status(first)?, status(last)?),
            None => (status(text)?, status(text)?),
        };
        (first <= last).then_some(Self { first, last })
    }

    /// True if the status is in the range.
    pub const fn contains(self, status: u16) -> bool {
        self.first <= status && status <= self.last
    }
}
