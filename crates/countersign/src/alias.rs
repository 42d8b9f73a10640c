//! A tool's name in front of a provider, whose names may be shorter and have no dots.

use countersign_contract::ToolName;

/// The longest name that every provider takes.
pub const ALIAS_LENGTH_MAX: usize = 48;

/// The provider's name of a tool: `^[A-Za-z][A-Za-z0-9_-]{0,47}$`.
///
/// Dots become `_`. A longer name is cut and ends in a checksum of the whole, so that two long names
/// with the same beginning stay apart. The same name always gives the same alias; two names that
/// meet in one alias are refused when the second is registered.
///
/// # Example
///
/// ```
/// use countersign::alias::alias;
/// use countersign::contract::ToolName;
///
/// assert_eq!(alias(&ToolName::new("memory.search")?), "memory_search");
/// # Ok::<(), countersign::contract::id::InvalidId>(())
/// ```
pub fn alias(name: &ToolName) -> String {
    let mut alias = name.as_str().replace('.', "_");
    if alias.len() > ALIAS_LENGTH_MAX {
        let checksum = format!("_{:08x}", checksum(name.as_str()));
        alias.truncate(ALIAS_LENGTH_MAX - checksum.len());
        alias.push_str(&checksum);
    }
    alias
}

/// FNV-1a folded to 32 bits: names are no secret, they only have to stay apart.
fn checksum(text: &str) -> u32 {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 32) as u32 ^ hash as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: &str) {
        assert_eq!(alias(&ToolName::new(name).unwrap()), expected);
    }

    #[test]
    fn aliases_fit_every_provider() {
        check("a", "a");
        check("pricing.get_realtime_quote", "pricing_get_realtime_quote");
        check("a.b-c.D_e", "a_b-c_D_e");
        let long = format!("tool.{}", "x".repeat(100));
        let other = format!("{long}y");
        let [long, other] = [long, other].map(|name| alias(&ToolName::new(name).unwrap()));
        assert_eq!((long.len(), other.len()), (48, 48));
        assert_ne!(long, other);
        assert!(
            long.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
        );
    }
}
