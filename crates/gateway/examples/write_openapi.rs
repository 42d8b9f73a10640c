//! Writes `docs/openapi.json`: the description of a server with the sample tools.

use countersign::Catalog;
use countersign::contract::ToolSpec;
use countersign::sample::{AddNote, Diagnostics, ListNotes, MemorySearch, Vat};
use countersign_gateway::http::openapi::document;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let catalog = Catalog::builder()
        .tool(MemorySearch::new([""; 0]))
        .tool(Diagnostics)
        .tool(AddNote)
        .tool(ListNotes)
        .tool(Vat)
        .build()?;
    let entries = catalog.list();
    let specs: Vec<&ToolSpec> = entries.iter().map(|entry| entry.spec()).collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    std::fs::write(path, format!("{:#}\n", document(&specs, None)))?;
    Ok(())
}
