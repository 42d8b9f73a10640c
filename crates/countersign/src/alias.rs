//! A tool's name for providers, whose names may be shorter and have no dots.

use countersign_contract::ToolName;

/// Maximum length of a name that every provider accepts.
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

/// A text for a model: the names of tools in it become the names that the model knows.
///
/// # Example
///
/// ```
/// use countersign::alias::in_text;
///
/// let is_tool = |name: &str| name == "cart.create";
/// assert_eq!(in_text("Use cart.create; see reply.data.", is_tool), "Use cart_create; see reply.data.");
/// ```
pub fn in_text(text: &str, is_tool: impl Fn(&str) -> bool) -> String {
    let mut written = String::with_capacity(text.len());
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let mut rest = text;
    while let Some(start) = rest.find(is_name) {
        let (before, from) = rest.split_at(start);
        let end = from.find(|c| !is_name(c)).unwrap_or(from.len());
        let (word, behind) = from.split_at(end);
        let name = word.trim_end_matches(['.', '-']);
        written.push_str(before);
        match ToolName::new(name) {
            Ok(tool) if name.contains('.') && is_tool(name) => {
                written.push_str(&alias(&tool));
                written.push_str(word.get(name.len()..).unwrap_or_default());
            }
            Ok(_) | Err(_) => written.push_str(word),
        }
        rest = behind;
    }
    written.push_str(rest);
    written
}

/// FNV-1a folded to 32 bits: names are not secret, they only have to stay apart.
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
