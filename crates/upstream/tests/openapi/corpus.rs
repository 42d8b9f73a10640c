//! Documents of others, all imported and some operations of each called. Beside the documents of this folder, those of the packages in
//! the variable `COUNTERSIGN_OPENAPI_CORPUS` are read (`cargo xtask corpus openapi`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use countersign::Catalog;
use countersign::catalog::{CatalogBuilder, Entry};
use countersign::dialect::{Dialect, ToolListOptions};
use countersign_upstream::manifest::BodyFormat;
use countersign_upstream::mcp::pins::Pins;
use countersign_upstream::openapi::{Import, Options, import};
use countersign_upstream::{Manifest, ToolEntry, Upstreams};

use crate::laws;
use crate::original::Original;
use crate::service::{Service, json};
use crate::trip::{Trip, World};

/// The variable with packages, separated by `;`. Each is a name, the least number of its documents, and its file or folder: `examples,60,/path`.
const VARIABLE: &str = "COUNTERSIGN_OPENAPI_CORPUS";

/// A definition that is a quarter of the 7.0 KB that another importer lists for one tool.
const MEDIAN_BYTES_MAX: usize = 7_000 / 4;

/// A corpus with so many documents is the whole one, of which more is asked.
const WHOLE_DOCUMENTS_MIN: usize = 2_600;

/// Good round trips of the whole corpus, and of a smaller one.
const WHOLE_TRIPS_MIN: usize = 1_000;
const TRIPS_MIN: usize = 40;

/// Documents of one origin.
struct Package {
    name: String,
    documents_min: usize,
    documents: Vec<PathBuf>,
}

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
    /// Draws of arguments that were no round trip, by their excuse.
    redraws: BTreeMap<&'static str, usize>,
    /// Good round trips of which none had arguments.
    empty: usize,
    special: BTreeMap<&'static str, usize>,
    no_arguments: Vec<String>,
    wrong: Vec<String>,
}

/// B15: documents import operation by operation, the requests are those that they describe, names are legal and stay, and the file that is
/// written says what was imported.
#[test]
fn documents_import_and_their_operations_are_called_as_they_say() {
    let mut all = Figures::default();
    let mut documents_min = 0;
    for package in packages() {
        let mut figures = Figures::default();
        for path in &package.documents {
            figures.document(path);
        }
        figures.show(&package.name);
        let Package {
            name,
            documents_min: least,
            ..
        } = &package;
        let found = figures.documents;
        assert!(found >= *least, "{name} has {found} documents, not {least}");
        documents_min += least;
        all.add(figures);
    }
    all.show("all");
    let trips_min = if documents_min >= WHOLE_DOCUMENTS_MIN {
        WHOLE_TRIPS_MIN
    } else {
        TRIPS_MIN
    };
    let (good, without) = (all.good, all.no_arguments.len());
    assert!(good >= trips_min, "{good} good round trips");
    assert_eq!(all.wrong, [""; 0]);
    assert!(
        without * 100 <= good + without,
        "{without} round trips without arguments"
    );
    assert!(all.failed.len() * 200 <= all.documents, "{:#?}", all.failed);
    assert!(percentile(&mut all.bytes, 50) <= MEDIAN_BYTES_MAX);
}

/// The documents of this folder, and the packages of the variable.
fn packages() -> Vec<Package> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openapi/documents");
    let more = std::env::var(VARIABLE).unwrap_or_default();
    let mut packages = vec![package("our own", 8, &own)];
    for text in more.split(';').filter(|it| !it.is_empty()) {
        let parts: Vec<&str> = text.splitn(3, ',').collect();
        let [name, least, path] = parts[..] else {
            panic!("{VARIABLE} has {text:?}, which is not NAME,NUMBER,PATH");
        };
        packages.push(package(name, least.parse().unwrap(), Path::new(path)));
    }
    packages
}

fn package(name: &str, documents_min: usize, path: &Path) -> Package {
    let mut documents = Vec::new();
    if path.is_dir() {
        gather(path, &mut documents);
    } else {
        documents.push(path.to_owned());
    }
    documents.sort();
    Package {
        name: name.to_owned(),
        documents_min: documents_min.max(1),
        documents,
    }
}

fn gather(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder);
    for entry in entries.unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            gather(&path, found);
        } else if path
            .extension()
            .is_some_and(|it| it == "json" || it == "yaml" || it == "yml")
            && name != "package.json"
            && name != "tsconfig.json"
        {
            found.push(path);
        }
    }
}

/// The value below which this part of a hundred lies.
fn percentile(numbers: &mut [usize], part: usize) -> usize {
    numbers.sort_unstable();
    let at = numbers.len() * part / 100;
    numbers.get(at).copied().unwrap_or(0)
}

impl Figures {
    fn document(&mut self, path: &Path) {
        self.documents += 1;
        let started = Instant::now();
        let read = std::fs::read_to_string(path).map_err(|error| error.to_string());
        let imported = read.and_then(|text| {
            let import = import(&text, &Options::default()).map_err(|error| error.to_string())?;
            Ok((text, import))
        });
        self.import_time += started.elapsed();
        let (text, import) = match imported {
            Ok(imported) => imported,
            Err(error) => return self.failed.push(format!("{}: {error}", path.display())),
        };
        self.report(path, &import);
        let broken = laws::broken(&text, &import).into_iter();
        self.wrong
            .extend(broken.map(|why| format!("{}: {why}", path.display())));
        match Original::parse(&text) {
            Ok(original) => {
                // The service of a document and its connections end with the runtime.
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build();
                runtime
                    .unwrap()
                    .block_on(self.trips(path, &import, &original));
            }
            Err(why) => self.wrong.push(format!("{}: {why}", path.display())),
        }
    }

    fn report(&mut self, path: &Path, import: &Import) {
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
        self.bytes.extend(listed_bytes(&import.manifest));
    }

    async fn trips(&mut self, path: &Path, import: &Import, original: &Original) {
        let is_own = path.starts_with(env!("CARGO_MANIFEST_DIR"));
        let chosen = if is_own {
            import.manifest.tool.iter().collect()
        } else {
            chosen(&import.manifest.tool)
        };
        let service = Service::start(|_, _| json(200, "{}")).await;
        let world = World::new(&import.manifest, &chosen, &service);
        for entry in chosen {
            let told = |why: &str| {
                let why: String = why.chars().take(1_500).collect();
                format!("{} {}: {why}", path.display(), entry.name)
            };
            let notes = import.report.tools.iter().find(|it| it.name == entry.name);
            let notes = notes.map_or(&[][..], |it| &it.notes);
            let trips = world.trips(entry, notes, original).await;
            add(&mut self.redraws, trips.redraws);
            match trips.trip {
                Trip::Good => {
                    self.good += 1;
                    self.empty += usize::from(!trips.has_arguments);
                    for kind in kinds(entry) {
                        *self.special.entry(kind).or_default() += 1;
                    }
                }
                Trip::NoArguments(why) => self.no_arguments.push(told(&why)),
                Trip::Wrong(why) => self.wrong.push(told(&why)),
            }
        }
    }

    /// Adds the figures of a package.
    fn add(&mut self, package: Self) {
        self.documents += package.documents;
        self.failed.extend(package.failed);
        self.operations += package.operations;
        self.tools += package.tools;
        add(&mut self.refused, package.refused);
        self.bytes.extend(package.bytes);
        self.import_time += package.import_time;
        self.good += package.good;
        add(&mut self.redraws, package.redraws);
        self.empty += package.empty;
        add(&mut self.special, package.special);
        self.no_arguments.extend(package.no_arguments);
        self.wrong.extend(package.wrong);
    }

    fn show(&mut self, name: &str) {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let memory = status
            .lines()
            .find(|it| it.starts_with("VmHWM"))
            .unwrap_or_default();
        println!(
            "=== {name}: documents {}, not imported {}",
            self.documents,
            self.failed.len()
        );
        println!(
            "operations {}, tools {}, refused {:?}",
            self.operations, self.tools, self.refused
        );
        println!(
            "import {:.1} s; {memory} of this test so far",
            self.import_time.as_secs_f64()
        );
        println!(
            "bytes of a definition: median {}, 90 % {}, 99 % {}",
            percentile(&mut self.bytes, 50),
            percentile(&mut self.bytes, 90),
            percentile(&mut self.bytes, 99)
        );
        println!(
            "operations called: good {}, of these {} without arguments; wrong {}, none drawn {}; among them {:?}",
            self.good,
            self.empty,
            self.wrong.len(),
            self.no_arguments.len(),
            self.special
        );
        println!("draws that were drawn again: {:?}", self.redraws);
        // Those of all packages were shown with their package.
        if name == "all" {
            return;
        }
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

/// Adds counts.
fn add(all: &mut BTreeMap<&'static str, usize>, more: BTreeMap<&'static str, usize>) {
    for (kind, count) in more {
        *all.entry(kind).or_default() += count;
    }
}

/// The bytes of each definition, as the gateway lists it over MCP.
fn listed_bytes(manifest: &Manifest) -> Vec<usize> {
    let tools = Upstreams::declared(manifest, &Pins::default(), &[]).unwrap();
    let catalog = tools
        .into_iter()
        .fold(Catalog::builder(), CatalogBuilder::dyn_tool);
    let catalog = catalog.build().unwrap();
    let is_tool = |name: &str| catalog.get(name).is_some();
    let bytes = |entry: &Arc<Entry>| {
        let options = ToolListOptions::default();
        let list = Dialect::Mcp.tools_among(&[entry.spec()], &is_tool, &options);
        list.unwrap().json[0].to_string().len()
    };
    catalog.list().iter().map(bytes).collect()
}

/// Operations of a document: the first, one of the middle, one of each forty, and up to three with a form, parts, a style or a place of
/// their own.
fn chosen(tools: &[ToolEntry]) -> Vec<&ToolEntry> {
    let mut chosen: Vec<&ToolEntry> = Vec::new();
    let special = tools.iter().filter(|it| !kinds(it).is_empty()).take(3);
    for entry in tools
        .iter()
        .step_by(40)
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

/// B15: a tool that takes more than the document says is found, although some of its calls are good.
#[tokio::test]
async fn a_tool_that_is_wrong_at_times_is_found() {
    let text = r#"{
        "openapi": "3.0.3", "info": {"title": "Lists"}, "servers": [{"url": "https://lists.example"}],
        "paths": {"/list": {"get": {"operationId": "list", "parameters": [
            {"name": "limit", "in": "query", "required": true, "schema": {"type": "integer", "minimum": 1, "maximum": 10}}
        ]}}}
    }"#;
    let original = Original::parse(text).unwrap();
    let trip = async |changed: Option<(&str, serde_json::Value)>| {
        let mut import = import(text, &Options::default()).unwrap();
        let entry = &mut import.manifest.tool[0];
        let limit = &mut entry.input.as_mut().unwrap()["properties"]["limit"];
        if let Some((keyword, value)) = changed {
            limit[keyword] = value;
        }
        let service = Service::start(|_, _| json(200, "{}")).await;
        let world = World::new(&import.manifest, &[&import.manifest.tool[0]], &service);
        let trips = world.trips(&import.manifest.tool[0], &[], &original).await;
        trips.trip
    };
    assert_eq!(trip(None).await, Trip::Good);
    let looser = trip(Some(("maximum", 40.into()))).await;
    assert!(matches!(looser, Trip::Wrong(_)), "{looser:?}");
}

/// B15: a note about one rule of a tool excuses that rule at that place, and nothing else of the tool.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one table of differences")]
async fn a_note_excuses_nothing_else() {
    let ahead = r#"{"type": "string", "pattern": "^(?=[ab])[a-z]$"}"#;
    let plain = r#"{"type": "string", "pattern": "^[a-z]$"}"#;
    let text = format!(
        r#"{{
        "openapi": "3.0.3", "info": {{"title": "Notes"}}, "servers": [{{"url": "https://notes.example"}}],
        "paths": {{"/set": {{"post": {{"operationId": "set", "requestBody": {{"required": true, "content": {{"application/json": {{"schema": {{
            "type": "object", "required": ["one", "two", "inner"], "properties": {{
                "one": {ahead}, "two": {plain}, "inner": {{
                    "type": "object", "required": ["one", "count"],
                    "properties": {{"one": {ahead}, "count": {{"type": "integer", "minimum": 1, "maximum": 9}}}}
                }}
            }}
        }}}}}}}}}}}}}}
    }}"#
    );
    let original = Original::parse(&text).unwrap();
    let trip = async |change: &dyn Fn(&mut serde_json::Value), notes: &[&str]| {
        let mut import = import(&text, &Options::default()).unwrap();
        let told: Vec<&str> = import.report.tools[0]
            .notes
            .iter()
            .map(String::as_str)
            .collect();
        let mut pointers: Vec<&str> = told.iter().filter_map(|it| it.split(' ').next()).collect();
        pointers.sort_unstable();
        assert_eq!(
            pointers,
            [
                "/properties/inner/properties/one/pattern",
                "/properties/one/pattern"
            ]
        );
        let notes: Vec<String> = notes
            .iter()
            .map(|it| format!("{it} is not checked: x"))
            .collect();
        let entry = &mut import.manifest.tool[0];
        let mut input = serde_json::Value::Object(entry.input.take().unwrap());
        change(&mut input);
        entry.input = input.as_object().cloned();
        let service = Service::start(|_, _| json(200, "{}")).await;
        let world = World::new(&import.manifest, &[&import.manifest.tool[0]], &service);
        let trips = world
            .trips(&import.manifest.tool[0], &notes, &original)
            .await;
        trips.trip
    };
    let both = [
        "/properties/inner/properties/one/pattern",
        "/properties/one/pattern",
    ];
    let nothing = |_: &mut serde_json::Value| ();
    // Most draws break the noted patterns, and are drawn again.
    let noted = trip(&nothing, &both).await;
    assert!(!matches!(noted, Trip::Wrong(_)), "{noted:?}");
    // Another pattern, another place, and another rule are no part of the notes.
    for (change, notes) in [
        (None, &both[..1]),
        (None, &both[1..]),
        (None, &["/properties/two/pattern"][..]),
        (None, &["/properties/one/type"][..]),
        (Some(("/properties/two", "pattern")), &both[..]),
        (
            Some(("/properties/inner/properties/count", "maximum")),
            &both[..],
        ),
    ] {
        let changed = |input: &mut serde_json::Value| {
            if let Some((place, keyword)) = change {
                let schema = input.pointer_mut(place).unwrap().as_object_mut().unwrap();
                schema.remove(keyword).unwrap();
            }
        };
        let wrong = trip(&changed, notes).await;
        assert!(
            matches!(wrong, Trip::Wrong(_)),
            "{change:?} {notes:?}: {wrong:?}"
        );
    }
}
