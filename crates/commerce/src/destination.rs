//! The destination of a shipment, in as much detail as rates and rules need.

use std::fmt;

use countersign::{CallContext, ToolArgs, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shipping::address;

/// Country, region and postal code: as much as rates and rules need.
#[derive(Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize, ToolArgs)]
pub struct Destination {
    /// Country: two letters, such as DE, or a well-known name.
    #[arg(example = "DE", min_length = 2, max_length = 64)]
    pub country: String,
    /// State or province, such as CA.
    #[arg(max_length = 64, sensitive = "personal")]
    pub region: Option<String>,
    /// Postal code.
    #[arg(max_length = 16, sensitive = "personal")]
    pub postal_code: Option<String>,
}

impl Destination {
    /// The country in capital letters.
    pub fn country(&self) -> String {
        self.country.to_ascii_uppercase()
    }

    /// The region in capital letters; `None` if it is empty.
    pub fn region(&self) -> Option<String> {
        said(self.region.as_deref()).map(str::to_uppercase)
    }

    /// The destination in normal form by the address rules: codes for country and region, the postal code as the
    /// country writes it. It is refused if these contradict each other. Every computation and answer uses this form.
    pub(crate) fn normal(&self, ctx: &CallContext) -> Result<Self, ToolError> {
        address::normal(ctx, self)
    }

    /// The destination with country and region in capital letters; without address rules no more can be normalized.
    pub(crate) fn normalized(&self) -> Self {
        Self {
            country: self.country(),
            region: self.region(),
            postal_code: said(self.postal_code.as_deref()).map(str::to_owned),
        }
    }
}

/// Shows the country only: the rest is personal.
impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Destination")
            .field("country", &self.country)
            .finish_non_exhaustive()
    }
}

/// The trimmed text; `None` if it is blank, so that a rule does not take blanks for an answer.
fn said(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_the_country_only() {
        let destination = Destination {
            country: "US".to_owned(),
            region: Some("CA".to_owned()),
            postal_code: Some("94105".to_owned()),
        };
        assert_eq!(
            format!("{destination:?}"),
            r#"Destination { country: "US", .. }"#
        );
    }
}
