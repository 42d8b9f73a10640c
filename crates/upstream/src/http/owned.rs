//! Names in a request that belong to the operator: presets, fixed members and the credential. Nothing of a caller is written under one
//! of them, because each service has its own way to read two values of one name.

use std::collections::BTreeSet;

use countersign::ToolError;
use percent_encoding::percent_decode_str;

use super::plan::pointer;
use crate::manifest::{
    ArgumentEntry, Auth, Place, RequestEntry, ToolEntry, Upstream, Way, default_place,
};
use crate::words::Say;

/// The part of a request that has names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Path,
    Query,
    Header,
    Cookie,
    Body,
}

/// The operator's names, each in the form in which names are compared.
#[derive(Debug, Default)]
pub(super) struct Owned {
    names: BTreeSet<(Part, String)>,
}

impl Owned {
    /// The names that the declaration of a tool sets. `path` has the names in the template of the path.
    pub(super) fn of(request: &RequestEntry, entry: &ToolEntry, path: &BTreeSet<String>) -> Self {
        let mut owned = Self::default();
        for name in request.query.keys() {
            owned.add(Part::Query, name);
        }
        for (name, value) in &request.headers {
            owned.add_header(name, value);
        }
        let hidden = |(_, own): &(&String, &ArgumentEntry)| own.is_hidden();
        for (key, own) in entry.arguments.iter().filter(hidden) {
            let way = Way::of(key);
            // Members inside an argument are kept apart where they are set.
            let Some(name) = way.argument() else { continue };
            let place = own
                .place
                .unwrap_or_else(|| default_place(name, request, path));
            let wire = own.name.as_deref().unwrap_or(name);
            match place {
                Place::Path => owned.add(Part::Path, wire),
                Place::Query => owned.add(Part::Query, wire),
                Place::Header => owned.add(Part::Header, wire),
                Place::Cookie => owned.add(Part::Cookie, wire),
                Place::Body => owned.add(Part::Body, wire),
                Place::WholeBody => {}
            }
        }
        owned
    }

    /// Adds the names that an upstream sets in every request: its headers and its credential.
    pub(super) fn add_upstream(&mut self, upstream: &Upstream) {
        for (name, value) in &upstream.headers {
            self.add_header(name, value);
        }
        for auth in &upstream.auth {
            match auth {
                Auth::Query { name, .. } => self.add(Part::Query, name),
                Auth::Cookie { name, .. } => self.add(Part::Cookie, name),
                // A header of the credential replaces the one of an argument.
                Auth::Bearer { .. }
                | Auth::Header { .. }
                | Auth::Basic { .. }
                | Auth::ClientCredentials(_)
                | Auth::TokenExchange(_)
                | Auth::UserToken { .. } => {}
            }
        }
    }

    fn add(&mut self, part: Part, name: &str) {
        self.names.insert((part, compared(name)));
    }

    fn add_header(&mut self, name: &str, value: &str) {
        if name.eq_ignore_ascii_case("cookie") {
            for name in cookie_names(value) {
                self.add(Part::Cookie, name);
            }
        } else {
            self.add(Part::Header, name);
        }
    }

    /// Refuses a value of the argument that would be written under a name of the operator's. `wire` is the argument's own name in the
    /// request; any other is that of a member.
    pub(super) fn check<'n>(
        &self,
        part: Part,
        argument: &str,
        wire: &str,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<(), ToolError> {
        for name in names {
            let own = compared(name);
            let is_taken = |(at, taken): &(Part, String)| *at == part && meet(taken, &own);
            if !self.names.iter().any(is_taken) {
                continue;
            }
            let is_own = name
                .strip_prefix(wire)
                .is_some_and(|it| it.is_empty() || it.starts_with('['));
            let place = if is_own {
                pointer(argument)
            } else {
                format!("{}{}", pointer(argument), pointer(name))
            };
            let refusal = Say::OwnedName {
                argument: argument.to_owned(),
                name: name.to_owned(),
            };
            let hint = Say::LeaveOut {
                name: name.to_owned(),
            };
            return Err(ToolError::invalid(place, refusal)
                .hint(hint)
                .without_effect());
        }
        Ok(())
    }

    /// The same, for the escaped pairs of a query, a form or cookies.
    pub(super) fn check_pairs(
        &self,
        part: Part,
        argument: &str,
        wire: &str,
        pairs: &[(String, String)],
    ) -> Result<(), ToolError> {
        for (name, _) in pairs {
            let name = percent_decode_str(name).decode_utf8_lossy();
            self.check(part, argument, wire, [&*name])?;
        }
        Ok(())
    }
}

/// The names in the text of a `Cookie` header.
pub(super) fn cookie_names(text: &str) -> impl Iterator<Item = &str> {
    let pairs = text.split([';', ',']);
    let names = pairs.map(|pair| pair.split('=').next().unwrap_or(pair).trim());
    names.filter(|name| !name.is_empty())
}

/// True if a service may read both as the name of one member.
pub(crate) fn is_same_name(one: &str, other: &str) -> bool {
    meet(&compared(one), &compared(other))
}

/// A name in the form in which names are compared: services ignore case, and some read `tenant.id` as `tenant_id`.
fn compared(name: &str) -> String {
    let name = name.trim().to_lowercase();
    name.replace(['.', ' '], "_")
}

/// True if a service may read both names as one: they are equal, or one is a member of the other, as `tenant[0]` is of `tenant`.
fn meet(one: &str, other: &str) -> bool {
    let is_in = |inner: &str, outer: &str| {
        let rest = inner.strip_prefix(outer);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
    };
    is_in(one, other) || is_in(other, one)
}
