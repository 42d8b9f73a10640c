//! The effects that calls may have: a bound of a credential, or of an agent in a policy.

use std::fmt;

use countersign_contract::tool::Effect;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A set of effects, on the wire a list such as `["read"]`. It has at least one: a caller that may do nothing needs no
/// credential.
///
/// # Example
///
/// ```
/// use countersign::Effects;
/// use countersign::contract::tool::Effect;
///
/// let reads: Effects = serde_json::from_str(r#"["read"]"#)?;
/// assert!(reads.has(Effect::Read) && !reads.has(Effect::External));
/// assert!(reads.is_within(Effects::ALL) && !Effects::ALL.is_within(reads));
/// assert!(serde_json::from_str::<Effects>("[]").is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effects(u8);

impl Effects {
    /// Every effect: no bound.
    pub const ALL: Self = Self(0b111);

    /// The set of these effects; `None` if there are none.
    pub fn of(effects: impl IntoIterator<Item = Effect>) -> Option<Self> {
        let bits = effects
            .into_iter()
            .fold(0, |bits, effect| bits | bit(effect));
        (bits != 0).then_some(Self(bits))
    }

    /// True if a call may have this effect.
    pub const fn has(self, effect: Effect) -> bool {
        self.0 & bit(effect) != 0
    }

    /// True if another set has all of these.
    pub const fn is_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// The effects that are in both sets. There may be none: then nothing may be called.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Its members, in the order of their weight.
    pub fn iter(self) -> impl Iterator<Item = Effect> {
        Effect::ALL
            .into_iter()
            .filter(move |effect| self.has(*effect))
    }
}

impl Default for Effects {
    fn default() -> Self {
        Self::ALL
    }
}

/// Written as `read, write`.
impl fmt::Display for Effects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, effect) in self.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(f, "{comma}{}", effect.as_str())?;
        }
        Ok(())
    }
}

const fn bit(effect: Effect) -> u8 {
    match effect {
        Effect::Read => 0b001,
        Effect::Write => 0b010,
        Effect::External => 0b100,
    }
}

impl Serialize for Effects {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Effects {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let effects = Vec::<Effect>::deserialize(deserializer)?;
        Self::of(effects).ok_or_else(|| {
            D::Error::custom("effects names nothing: name some of read, write and external")
        })
    }
}
