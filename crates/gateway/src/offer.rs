//! The part of the catalog that a caller is shown: profiles, the facade in place of a long list, and the size of answers.
//!
//! | file | what is in it |
//! |---|---|
//! | `profile` | the profile of a caller: which tools they are offered |
//! | `own` | the tools of the facade itself: `search_tools`, `describe_tool`, `call_tool`, and `fetch_rest` |
//! | `meant` | the call behind a call of `call_tool` |
//! | `search` | which tools a question finds |
//! | `answer` | the answers of the facade's own tools |
//! | `cut` | an answer cut to a size, and its other parts |
//! | `rest` | the handle of a cut answer, and who may use it |
//!
//! Nothing here decides about a call. A profile narrows the principal, and the executor decides by it; `call_tool` is taken apart before
//! the executor sees it, so that the call behind it goes the way of every call, under its own name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use countersign::catalog::Entry;
use countersign::contract::Digest;
use countersign::dialect::{Dialect, ToolListOptions};
use countersign::pattern::ToolPattern;
use countersign::{Catalog, Principal};
use tokio::sync::watch;

use crate::caller::Caller;

mod answer;
mod cut;
mod meant;
mod own;
mod profile;
mod rest;
mod search;

pub(crate) use answer::OwnCall;
pub(crate) use meant::{Behind, Meant, meant};
pub use own::Own;
pub use profile::Profile;
use search::Index;

/// The use of the facade.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Facade {
    /// For callers with a long list.
    #[default]
    Auto,
    /// For every caller.
    On,
    /// For no caller.
    Off,
}

/// The rules by which callers are shown tools and answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferRules {
    /// The use of the facade.
    pub facade: Facade,
    /// The most tools of a list; with more there is the facade.
    pub listed_tools_max: usize,
    /// The most tokens of a list, as [`estimate`](countersign::dialect::estimate) counts; with more there is the facade.
    pub listed_tokens_max: usize,
    /// Tools that are listed beside the facade.
    pub pinned: Vec<ToolPattern>,
    /// The most bytes of an answer; `None` if answers are whole.
    pub result_bytes_max: Option<usize>,
    /// Other sizes for some tools: the first that fits counts.
    pub result_rules: Vec<(ToolPattern, Option<usize>)>,
    /// The profiles: the first that fits a caller counts.
    pub profiles: Vec<Profile>,
}

impl Default for OfferRules {
    fn default() -> Self {
        Self {
            facade: Facade::Auto,
            listed_tools_max: 128,
            listed_tokens_max: 30_000,
            pinned: Vec::new(),
            result_bytes_max: None,
            result_rules: Vec::new(),
            profiles: Vec::new(),
        }
    }
}

/// The rules in force, and what was computed for them.
pub struct CatalogView {
    rules: ArcSwap<OfferRules>,
    revisions: watch::Sender<u64>,
    /// The tokens of each declaration, by its digest.
    tokens: Mutex<HashMap<Digest, usize>>,
    index: Index,
}

/// Maximum number of declarations that are remembered.
const REMEMBERED_MAX: usize = 16_384;

impl CatalogView {
    /// These rules are in force.
    pub fn new(rules: OfferRules) -> Self {
        Self {
            rules: ArcSwap::from_pointee(rules),
            revisions: watch::Sender::new(1),
            tokens: Mutex::default(),
            index: Index::default(),
        }
    }

    /// Puts other rules in force. Clients that listen get a notification that their list may have changed.
    pub fn replace(&self, rules: OfferRules) {
        if **self.rules.load() == rules {
            return;
        }
        self.rules.store(Arc::new(rules));
        self.revisions.send_modify(|revision| *revision += 1);
    }

    /// The revision of the rules, for those who wait for the next.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.revisions.subscribe()
    }

    /// The offer to a caller.
    pub(crate) fn of(
        &self,
        principal: &Principal,
        label: Option<&str>,
        client: Option<&str>,
    ) -> Offer {
        let rules = self.rules.load_full();
        let fits = |profile: &Profile| profile.fits(principal, label, client);
        let profile = rules.profiles.iter().position(fits);
        Offer {
            rules,
            profile,
            asked: None,
        }
    }

    /// True if some profile asks for the label of an API key.
    pub(crate) fn asks_for_keys(&self) -> bool {
        let rules = self.rules.load();
        rules.profiles.iter().any(|it| !it.keys.is_empty())
    }

    /// The tokens of the declaration of one tool, as an MCP client is sent it.
    pub(crate) fn tokens_of(&self, catalog: &Catalog, entry: &Entry) -> usize {
        let mut known = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tokens) = known.get(&entry.digest()) {
            return *tokens;
        }
        let is_tool = |name: &str| catalog.get(name).is_some();
        let options = ToolListOptions::default();
        let list = Dialect::Mcp.tools_among(&[entry.spec()], &is_tool, &options);
        let tokens = list.map_or(0, |list| list.tokens);
        if known.len() >= REMEMBERED_MAX {
            known.clear();
        }
        known.insert(entry.digest(), tokens);
        tokens
    }

    /// The list of a caller who may call these tools.
    pub(crate) fn listed(
        &self,
        catalog: &Catalog,
        offer: &Offer,
        allowed: Vec<Arc<Entry>>,
    ) -> Listed {
        let has_facade = match offer.facade() {
            Facade::On => true,
            Facade::Off => false,
            Facade::Auto => self.is_too_long(catalog, offer, &allowed),
        };
        if !has_facade {
            let own = offer.cuts().then_some(Own::FetchRest);
            return Listed {
                entries: allowed,
                own: own.into_iter().collect(),
            };
        }
        let mut entries = allowed;
        entries.retain(|entry| offer.pins(entry));
        let facade = [Own::SearchTools, Own::DescribeTool, Own::CallTool];
        let rest = offer.cuts().then_some(Own::FetchRest);
        Listed {
            entries,
            own: facade.into_iter().chain(rest).collect(),
        }
    }

    fn is_too_long(&self, catalog: &Catalog, offer: &Offer, allowed: &[Arc<Entry>]) -> bool {
        if allowed.len() > offer.listed_tools_max() {
            return true;
        }
        let mut left = offer.listed_tokens_max();
        allowed.iter().any(|entry| {
            let tokens = self.tokens_of(catalog, entry);
            let is_beyond = tokens > left;
            left = left.saturating_sub(tokens);
            is_beyond
        })
    }
}

/// A list of tools for one caller.
pub(crate) struct Listed {
    /// Tools of the catalog, in the order of their names.
    pub(crate) entries: Vec<Arc<Entry>>,
    /// The facade's own tools.
    pub(crate) own: Vec<Own>,
}

/// The offer to one caller: the rules, and the profile among them that fits.
#[derive(Debug, Clone)]
pub(crate) struct Offer {
    rules: Arc<OfferRules>,
    profile: Option<usize>,
    /// The use of the facade that a request asks for.
    asked: Option<Facade>,
}

impl Offer {
    fn profile(&self) -> Option<&Profile> {
        self.rules.profiles.get(self.profile?)
    }

    /// The caller, who may call no more than they are offered.
    pub(crate) fn narrow(&self, caller: Caller) -> Caller {
        match self.profile().and_then(|it| it.narrow(&caller.principal)) {
            None => caller,
            Some(principal) => Caller {
                principal: Arc::new(principal),
                ..caller
            },
        }
    }

    /// The same offer with another use of the facade.
    pub(crate) fn with_facade(mut self, facade: Facade) -> Self {
        self.asked = Some(facade);
        self
    }

    /// The use of the facade for this caller.
    pub(crate) fn facade(&self) -> Facade {
        let of_profile = self.profile().and_then(|profile| profile.facade);
        self.asked.or(of_profile).unwrap_or(self.rules.facade)
    }

    fn listed_tools_max(&self) -> usize {
        let of_profile = self.profile().and_then(|it| it.listed_tools_max);
        of_profile.unwrap_or(self.rules.listed_tools_max)
    }

    fn listed_tokens_max(&self) -> usize {
        let of_profile = self.profile().and_then(|it| it.listed_tokens_max);
        of_profile.unwrap_or(self.rules.listed_tokens_max)
    }

    fn pins(&self, entry: &Entry) -> bool {
        let of_profile = self.profile().and_then(|it| it.pinned.as_ref());
        let pinned = of_profile.unwrap_or(&self.rules.pinned);
        pinned.iter().any(|pattern| pattern.matches(entry.name()))
    }

    /// True if some answers may be cut.
    pub(crate) fn cuts(&self) -> bool {
        let rules = &self.rules;
        rules.result_bytes_max.is_some()
            || rules.result_rules.iter().any(|(_, most)| most.is_some())
            || self
                .profile()
                .is_some_and(|it| it.result_bytes_max.is_some())
    }

    /// The most bytes of an answer of this tool; `None` if it is whole.
    pub(crate) fn result_bytes_max(&self, entry: &Entry) -> Option<usize> {
        let mut rules = self.rules.result_rules.iter();
        let rule = rules.find(|(pattern, _)| pattern.matches(entry.name()));
        let of_tool = rule.map_or(self.rules.result_bytes_max, |(_, most)| *most);
        let of_profile = self.profile().and_then(|it| it.result_bytes_max);
        of_tool.into_iter().chain(of_profile).min()
    }
}
