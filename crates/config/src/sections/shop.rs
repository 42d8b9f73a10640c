//! `[shop]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::PageUrl;

/// The reference shop and the sample tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Shop {
    /// Offers the tools of the reference shop and the sample tools. Without a configuration file they are always
    /// offered.
    #[schemars(extend("x-live" = true))]
    pub enabled: bool,
    /// Address of the page on which a user continues with a draft order, such as
    /// `https://shop.example.com/orders/{id}`; `{id}` is replaced.
    #[schemars(extend("x-flag" = "--checkout-url"))]
    pub checkout_url: Option<PageUrl>,
}
