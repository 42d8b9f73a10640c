//! Documents of others, all imported and some operations of each called. Beside the documents of this folder, those in the folders of
//! the variable `COUNTERSIGN_OPENAPI_CORPUS` are read (`cargo xtask corpus openapi`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use countersign_upstream::ToolEntry;
use countersign_upstream::manifest::BodyFormat;
use countersign_upstream::openapi::{DocumentError, Import, Options, import};

use crate::original::Original;
use crate::service::{Service, json};
use crate::trip::{Trip, World};

/// The variable with folders, separated by `:`.
const VARIABLE: &str = "COUNTERSIGN_OPENAPI_CORPUS";

/// A definition that is a quarter of the 7.0 KB that another importer lists for one tool.
const MEDIAN_BYTES_MAX: usize = 7_000 / 4;

/// The largest document whose operations are called: the independent reader copies all of its schemas for each check.
const TRIP_BYTES_MAX: usize = 2_000_000;

#[derive(Default)]
struct Figures {
    documents: usize,
    failed: Vec<String>,
    operations: usize,
    tools: usize,
    refused: BTreeMap<&'static str, usize>,
    examples: BTreeMap<&'static str, String>,
    bytes: Vec<usize>,
    import_time: Duration,
    good: usize,
    special: BTreeMap<&'static str, usize>,
    no_arguments: Vec<String>,
    wrong: Vec<String>,
}

/// B15: documents import operation by operation, and the requests are those that they describe.
#[tokio::test]
async fn documents_import_and_their_operations_are_called_as_they_say() {
    let service = Service::start(|_, _| json(200, "{}")).await;
    let mut figures = Figures::default();
    for path in documents() {
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        let started = Instant::now();
        let imported = import(&text, &Options::default());
        figures.import_time += started.elapsed();
        figures.document(&path, &imported);
        if let Ok(imported) = imported
            && text.len() <= TRIP_BYTES_MAX
            && let Ok(original) = Original::parse(&text)
        {
            figures.trips(&path, &imported, &original, &service).await;
        }
    }
    figures.show();
    assert!(
        figures.documents >= 8 && figures.good >= 40,
        "too few were looked at"
    );
    assert_eq!(figures.wrong, [""; 0]);
    assert!(
        figures.failed.len() * 200 <= figures.documents,
        "{:#?}",
        figures.failed
    );
    figures.bytes.sort_unstable();
    assert!(figures.bytes[figures.bytes.len() / 2] <= MEDIAN_BYTES_MAX);
}

fn documents() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openapi/documents");
    let more = std::env::var(VARIABLE).unwrap_or_default();
    let mut found = Vec::new();
    gather(&own, &mut found);
    for folder in more.split(':').filter(|it| !it.is_empty()) {
        let path = Path::new(folder);
        if path.is_dir() {
            gather(path, &mut found);
        } else {
            found.push(path.to_owned());
        }
    }
    found.sort();
    found
}

fn gather(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            gather(&path, found);
        } else if path
            .extension()
            .is_some_and(|it| it == "json" || it == "yaml")
            && name != "package.json"
            && name != "tsconfig.json"
        {
            found.push(path);
        }
    }
}

impl Figures {
    fn document(&mut self, path: &Path, imported: &Result<Import, DocumentError>) {
        self.documents += 1;
        let import = match imported {
            Ok(import) => import,
            Err(error) => return self.failed.push(format!("{}: {error}", path.display())),
        };
        self.operations += import.report.operations;
        self.tools += import.manifest.tool.len();
        for refused in &import.report.refused {
            let kind = refused.reason.kind();
            *self.refused.entry(kind).or_default() += 1;
            let place = format!(
                "{}:{} {}: {}",
                path.display(),
                refused.line,
                refused.operation,
                refused.reason
            );
            self.examples.entry(kind).or_insert(place);
        }
        for entry in &import.manifest.tool {
            self.bytes.push(listed_bytes(entry));
        }
    }

    async fn trips(
        &mut self,
        path: &Path,
        import: &Import,
        original: &Original,
        service: &Service,
    ) {
        let is_own = path.starts_with(env!("CARGO_MANIFEST_DIR"));
        let chosen = if is_own {
            import.manifest.tool.iter().collect()
        } else {
            chosen(&import.manifest.tool)
        };
        let world = World::new(&import.manifest, &chosen, service);
        for entry in chosen {
            let told = |why: &str| {
                let why: String = why.chars().take(1_500).collect();
                format!("{} {}: {why}", path.display(), entry.name)
            };
            match world.trip(entry, original).await {
                Trip::Good => {
                    self.good += 1;
                    for kind in kinds(entry) {
                        *self.special.entry(kind).or_default() += 1;
                    }
                }
                Trip::NoArguments(why) => self.no_arguments.push(told(&why)),
                Trip::Wrong(why) => self.wrong.push(told(&why)),
            }
        }
    }

    fn show(&self) {
        let mut bytes = self.bytes.clone();
        bytes.sort_unstable();
        let at = |part: usize| bytes.get(bytes.len() * part / 100).copied().unwrap_or(0);
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let memory = status
            .lines()
            .find(|it| it.starts_with("VmHWM"))
            .unwrap_or_default();
        println!(
            "documents {}, not imported {}",
            self.documents,
            self.failed.len()
        );
        println!(
            "operations {}, tools {}, refused {:?}",
            self.operations, self.tools, self.refused
        );
        println!("import {:.1} s, {memory}", self.import_time.as_secs_f64());
        println!(
            "bytes of a definition: median {}, 90 % {}, 99 % {}",
            at(50),
            at(90),
            at(99)
        );
        println!(
            "round trips: good {}, wrong {}, no arguments {}; among them {:?}",
            self.good,
            self.wrong.len(),
            self.no_arguments.len(),
            self.special
        );
        for line in self
            .failed
            .iter()
            .chain(self.examples.values())
            .chain(self.no_arguments.iter().take(30))
        {
            println!("  {}", line.chars().take(400).collect::<String>());
        }
        for line in self.wrong.iter().take(60) {
            println!("WRONG {line}");
        }
    }
}

/// The bytes of a definition as MCP lists it: name, title, description and schema.
fn listed_bytes(entry: &ToolEntry) -> usize {
    let listed = serde_json::json!({
        "name": entry.name, "title": entry.title, "description": entry.description, "inputSchema": entry.input,
    });
    listed.to_string().len()
}

/// Operations of a document: the first, one of the middle, and up to three with a form, parts, a style or a place of their own.
fn chosen(tools: &[ToolEntry]) -> Vec<&ToolEntry> {
    let mut chosen: Vec<&ToolEntry> = Vec::new();
    let special = tools.iter().filter(|it| !kinds(it).is_empty()).take(3);
    for entry in tools
        .first()
        .into_iter()
        .chain(tools.get(tools.len() / 2))
        .chain(special)
    {
        if !chosen.iter().any(|it| it.name == entry.name) {
            chosen.push(entry);
        }
    }
    chosen
}

/// Lists the special features of a request.
fn kinds(entry: &ToolEntry) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    match entry.request.as_ref().and_then(|it| it.body) {
        Some(BodyFormat::Form) => kinds.push("form"),
        Some(BodyFormat::Multipart) => kinds.push("multipart"),
        Some(BodyFormat::Text) => kinds.push("text"),
        Some(BodyFormat::Bytes) => kinds.push("bytes"),
        Some(BodyFormat::Json) | None => {}
    }
    for argument in entry.arguments.values() {
        use countersign_upstream::manifest::{Place, Style};
        match argument.style {
            Some(Style::DeepObject) => kinds.push("deepObject"),
            Some(_) => kinds.push("another style"),
            None if argument.as_json == Some(true) => kinds.push("as JSON"),
            None if argument.explode.is_some() => kinds.push("explode"),
            None if argument.place == Some(Place::Cookie) => kinds.push("cookie"),
            None if argument.preset.is_some() => kinds.push("preset"),
            None => {}
        }
    }
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}
