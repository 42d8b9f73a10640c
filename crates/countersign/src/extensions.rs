//! A typed map of values that the embedding program gives to its tools (B12, the call's environment).

use std::any::{Any, TypeId};
use std::fmt;

/// A map with at most one value a type; an empty one costs nothing.
///
/// # Example
///
/// ```
/// use countersign::extensions::Extensions;
///
/// struct Tenant(&'static str);
///
/// let mut extensions = Extensions::new();
/// extensions.insert(Tenant("acme"));
/// assert_eq!(extensions.get::<Tenant>().map(|tenant| tenant.0), Some("acme"));
/// ```
#[derive(Default)]
pub struct Extensions {
    // A call carries a handful, so a scan is faster than a hash.
    values: Vec<(TypeId, Box<dyn Any + Send + Sync>)>,
}

impl Extensions {
    /// An empty map.
    pub const fn new() -> Self {
        Self { values: Vec::new() }
    }

    /// Inserts a value, and returns the one of the same type that it replaces.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) -> Option<T> {
        let id = TypeId::of::<T>();
        let old = self.values.iter().position(|(other, _)| *other == id);
        let old = old.map(|place| self.values.swap_remove(place));
        self.values.push((id, Box::new(value)));
        old.and_then(|(_, value)| value.downcast().ok().map(|value| *value))
    }

    /// The value of this type.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        let id = TypeId::of::<T>();
        let (_, value) = self.values.iter().find(|(other, _)| *other == id)?;
        value.downcast_ref()
    }
}

impl fmt::Debug for Extensions {
    /// Shows only the number of values: a value may hold a credential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Extensions({})", self.values.len())
    }
}
