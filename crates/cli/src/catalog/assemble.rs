//! The tools of a configuration: the program's tools that it asks for, with its overrides, and the tools of its upstreams.
//!
//! Every fault is a mistake at its place in the file, so that a start, a reload and `countersign lint` report the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use countersign::DynTool;
use countersign::alias::alias;
use countersign::catalog::{self, Catalog};
use countersign::contract::ToolName;
use countersign_config::document::key_below;
use countersign_config::{Config, Loaded, Mistake, Mistakes};
use countersign_gateway::offer::Own;
use countersign_upstream::declare::Undeclared;
use countersign_upstream::http::{ServiceError, ToolFault};
use countersign_upstream::manifest::{Manifest, ToolEntry};
use countersign_upstream::mcp::pins::Pins;
use countersign_upstream::overridden::overridden;
use countersign_upstream::{Keep, Upstreams};

use crate::config::parts::binder_limits;

/// The tools of a configuration, ready to be called.
pub(crate) struct Assembled {
    pub(crate) tools: Vec<Arc<dyn DynTool>>,
    pub(crate) upstreams: Arc<Upstreams>,
}

/// The tools, to be looked at and not called: no secret is read.
pub(crate) fn declared(loaded: &Loaded) -> Result<Vec<Arc<dyn DynTool>>, Mistakes> {
    let manifest = loaded.config().manifest();
    let mut tools = of_program(loaded, &manifest)?;
    let pins = Pins::read(loaded.folder()).map_err(|error| whole(loaded, error))?;
    let declared = Upstreams::declared(&manifest, &pins, &tools);
    tools.extend(declared.map_err(|error| whole(loaded, error))?);
    Ok(tools)
}

/// The tools, to be called. Of the upstreams before, the new ones keep this.
pub(crate) fn ready(
    loaded: &Loaded,
    before: Option<(&Upstreams, Keep)>,
) -> Result<Assembled, Mistakes> {
    let manifest = loaded.config().manifest();
    let mut tools = of_program(loaded, &manifest)?;
    let missing = missing_secrets(loaded);
    if !missing.is_empty() {
        return Err(Mistakes(missing));
    }
    let upstreams = Upstreams::prepare_after(&manifest, loaded.folder(), before);
    let upstreams = upstreams.map_err(|error| {
        let name = upstream_of(&error);
        let place = manifest.upstream.iter().position(|it| it.name == name);
        let key = place.map_or_else(String::new, |place| format!("upstream[{place}]"));
        Mistakes(vec![loaded.mistake(&key, error.to_string())])
    })?;
    let own = upstreams.tools_beside(&tools);
    tools.extend(own.map_err(|error: ToolFault| whole(loaded, error))?);
    Ok(Assembled {
        tools,
        upstreams: Arc::new(upstreams),
    })
}

/// Builds a catalog of these tools. Fails if one of them conflicts with the others.
pub(crate) fn catalog(loaded: &Loaded, tools: Vec<Arc<dyn DynTool>>) -> Result<Catalog, Mistakes> {
    let mut builder = Catalog::builder().limits(binder_limits(&loaded.config().binder));
    for tool in tools {
        let name = tool.spec().name.as_str();
        if Own::named(name).is_some() || Own::named(&alias(&tool.spec().name)).is_some() {
            let key = entry_key(loaded.config(), name, ToolEntry::is_definition);
            let message = format!("{name} is a name of the facade, see docs/big-catalogs.md");
            let mut mistake = loaded.mistake(&format!("{key}.name"), message);
            mistake.expected = Some("another name, with shown_as".to_owned());
            return Err(Mistakes(vec![mistake]));
        }
        builder = builder.dyn_tool(tool);
    }
    builder.build().map_err(|error| refused(loaded, &error))
}

/// A tool that a catalog refuses, as a mistake at its entry.
pub(crate) fn refused(loaded: &Loaded, error: &catalog::Error) -> Mistakes {
    let key = name_of(error).map_or_else(String::new, |name| {
        let key = entry_key(loaded.config(), name.as_str(), ToolEntry::is_definition);
        format!("{key}.name")
    });
    Mistakes(vec![loaded.mistake(&key, error.to_string())])
}

/// Secrets of upstreams that cannot be read.
pub(crate) fn missing_secrets(loaded: &Loaded) -> Vec<Mistake> {
    let mut missing = Vec::new();
    for (place, upstream) in loaded.config().upstream.iter().enumerate() {
        for (steps, secret) in upstream.secrets() {
            if let Err(error) = secret.read(loaded.folder()) {
                let key = format!("upstream[{place}].{}", steps.join("."));
                missing.push(loaded.mistake(&key, error.to_string()));
            }
        }
    }
    missing
}

/// The tools of the program that the configuration asks for, with its overrides, after a look at all its entries beside them.
fn of_program(loaded: &Loaded, manifest: &Manifest) -> Result<Vec<Arc<dyn DynTool>>, Mistakes> {
    let all = super::program().map_err(|error| whole(loaded, error))?;
    let all: BTreeMap<String, Arc<dyn DynTool>> = all
        .list()
        .iter()
        .map(|entry| (entry.name().to_string(), entry.tool().clone()))
        .collect();
    let is_on = loaded.config().shop.enabled;
    let checked = loaded.check_beside(|name| is_on && all.contains_key(name));
    if let Err(Mistakes(mut mistakes)) = checked {
        for mistake in &mut mistakes {
            let name = named_by(loaded.config(), &mistake.key);
            if !is_on && name.is_some_and(|name| all.contains_key(name)) {
                "this is a tool of the shop, and shop.enabled is false"
                    .clone_into(&mut mistake.message);
                mistake.expected = Some(SHOP_EXPECTED.to_owned());
            }
        }
        return Err(Mistakes(mistakes));
    }
    let program = if is_on { all } else { BTreeMap::new() };
    with_overrides(loaded, manifest, program)
}

const SHOP_EXPECTED: &str = "[shop] enabled = true, or the upstream of a tool of your own";

/// The tool of the entry that a key such as `tool[2].name` belongs to.
fn named_by<'c>(config: &'c Config, key: &str) -> Option<&'c str> {
    let place = key.strip_prefix("tool[")?.strip_suffix("].name")?;
    let entry = config.tool.get(place.parse::<usize>().ok()?)?;
    Some(&entry.name)
}

/// The program's tools, with the configuration's overrides.
fn with_overrides(
    loaded: &Loaded,
    manifest: &Manifest,
    mut program: BTreeMap<String, Arc<dyn DynTool>>,
) -> Result<Vec<Arc<dyn DynTool>>, Mistakes> {
    let mut mistakes = Vec::new();
    for entry in manifest.overrides() {
        let Some(tool) = program.remove(&entry.name) else {
            continue;
        };
        mistakes.extend(of_its_code(loaded, &entry));
        if entry.enabled == Some(false) {
            continue;
        }
        match overridden(tool, &entry) {
            Ok(tool) => drop(program.insert(entry.name, tool)),
            Err(error) => {
                let config = loaded.config();
                let key = match &error {
                    Undeclared::Argument { argument, .. } => {
                        let says = |own: &ToolEntry| own.arguments.contains_key(argument);
                        let key = entry_key(config, &entry.name, says);
                        key_below(&format!("{key}.arguments"), argument)
                    }
                    Undeclared::Name(_) => {
                        format!("{}.name", entry_key(config, &entry.name, |_| true))
                    }
                };
                mistakes.push(loaded.mistake(&key, error.to_string()));
            }
        }
    }
    if !mistakes.is_empty() {
        return Err(Mistakes(mistakes));
    }
    Ok(program.into_values().collect())
}

/// Settings of an entry about a tool of the program that belong to its code: they would be ignored.
fn of_its_code(loaded: &Loaded, entry: &ToolEntry) -> Vec<Mistake> {
    let said = [
        ("request", entry.request.is_some()),
        ("input", entry.input.is_some()),
        ("parameters", entry.parameters.is_some()),
        ("output", entry.output.is_some()),
        ("response", entry.response.is_some()),
        ("pagination", entry.pagination.is_some()),
        ("errors", entry.errors.is_some()),
        ("reconcile", entry.reconcile.is_some()),
        ("effect", entry.effect.is_some()),
        ("recovery", entry.recovery.is_some()),
        ("dry_run", entry.dry_run.is_some()),
        ("version", entry.version.is_some()),
    ];
    let key = entry_key(loaded.config(), &entry.name, |_| true);
    let mistake = |(name, _): (&str, bool)| {
        let message = "this cannot be set for a built-in tool";
        loaded.mistake(&format!("{key}.{name}"), message)
    };
    let said = said.into_iter().filter(|(_, is_said)| *is_said);
    said.map(mistake).collect()
}

/// The key of the first entry of this name that is meant.
pub(crate) fn entry_key(
    config: &Config,
    name: &str,
    is_meant: impl Fn(&ToolEntry) -> bool,
) -> String {
    let is_it = |entry: &ToolEntry| entry.name == name && is_meant(entry);
    let place = config.tool.iter().position(is_it);
    place.map_or_else(|| "tool".to_owned(), |place| format!("tool[{place}]"))
}

fn whole(loaded: &Loaded, error: impl std::fmt::Display) -> Mistakes {
    Mistakes(vec![loaded.mistake("tool", error.to_string())])
}

fn upstream_of(error: &ServiceError) -> &str {
    match error {
        ServiceError::Secret { upstream, .. }
        | ServiceError::WeakIdentity { upstream }
        | ServiceError::Address { upstream, .. }
        | ServiceError::Private { upstream, .. }
        | ServiceError::Network { upstream, .. }
        | ServiceError::Pins { upstream, .. }
        | ServiceError::Certificates { upstream, .. }
        | ServiceError::Client { upstream, .. } => upstream,
    }
}

fn name_of(error: &catalog::Error) -> Option<&ToolName> {
    match error {
        catalog::Error::Name(_) | catalog::Error::Unknown { .. } => None,
        catalog::Error::Duplicate { name }
        | catalog::Error::AliasTaken { name, .. }
        | catalog::Error::Schema { name, .. }
        | catalog::Error::Canonical { name, .. }
        | catalog::Error::TakesMoney { name }
        | catalog::Error::SoundsLikePayment { name }
        | catalog::Error::Terms { name, .. }
        | catalog::Error::KeyFields { name, .. }
        | catalog::Error::Narrowing { name, .. } => Some(name),
    }
}
