//! Where something goes, as far as rates and rules have to know it.

use countersign::ToolArgs;
use serde::{Deserialize, Serialize};

/// Country, region and postal code: enough for rates and rules, and no more than they need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToolArgs)]
pub struct Destination {
    /// Two letters, ISO 3166-1, such as DE.
    #[arg(example = "DE", pattern = "^[A-Za-z]{2}$")]
    pub country: String,
    /// State, province or region, where the country has them: CA for California.
    #[arg(max_length = 64)]
    pub region: Option<String>,
    /// Postal code, as people write it there.
    #[arg(max_length = 16, sensitive = "personal")]
    pub postal_code: Option<String>,
}

impl Destination {
    /// The country in capital letters.
    pub fn country(&self) -> String {
        self.country.to_ascii_uppercase()
    }

    /// The region in capital letters.
    pub fn region(&self) -> Option<String> {
        self.region.as_deref().map(str::trim).map(str::to_uppercase)
    }

    /// The same with country and region in capital letters, as answers carry it.
    pub fn normalized(&self) -> Self {
        Self {
            country: self.country(),
            region: self.region(),
            postal_code: self.postal_code.clone(),
        }
    }
}
