//! The verifier that is one HTML file, in a real browser, from a file and without a network.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use countersign_evidence::bundle::{Bundle, Verdict};
use countersign_evidence::note::VerifyingKey;
use countersign_evidence::page::{VERIFIER, VERIFIER_NAME};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::browser::Browser;

/// A browser that has the page open, as a file, and no network.
pub(crate) struct Offline {
    pub(crate) browser: Browser,
}

impl Offline {
    pub(crate) fn open(page: &Path) -> Self {
        let browser = Browser::start((900, 1000), false);
        browser.devtools("Network.enable", &json!({}));
        browser.devtools(
            "Network.emulateNetworkConditions",
            &json!({"offline": true, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}),
        );
        browser.requests();
        browser.open(&format!("file://{}", page.display()));
        browser.until("document.querySelector('#file')");
        Self { browser }
    }

    /// Gives the page a bundle, as a person does, and returns the report that it shows.
    pub(crate) fn check(&self, bundle: &Path, key: &str, held: &str) -> Value {
        let fill = format!(
            "(() => {{ document.querySelector('#out').replaceChildren(); \
             document.querySelector('#key').value = {}; document.querySelector('#held').value = {}; \
             document.querySelector('#file').value = ''; }})()",
            json!(key),
            json!(held)
        );
        self.browser.eval(&fill);
        self.browser.attach("#file", bundle);
        self.browser.until("document.querySelector('#report')");
        let report = self
            .browser
            .eval("document.querySelector('#report').textContent");
        let report: Value = serde_json::from_str(report.as_str().unwrap()).unwrap();
        let verdict = self
            .browser
            .eval("document.querySelector('#verdict').dataset.verdict");
        assert_eq!(
            verdict, report["verdict"],
            "the page says what the report says"
        );
        report
    }

    /// Nothing was asked for but the page itself, and the browser complains of nothing.
    pub(crate) fn assert_silent(&self) {
        let requests = self.browser.requests();
        let outside = requests.iter().filter(|url| !url.starts_with("file://"));
        assert_eq!(outside.count(), 0, "{requests:?}");
        assert_eq!(requests.len(), 1, "{requests:?}");
        assert_eq!(self.browser.complaints(), [""; 0]);
    }
}

fn page() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join(VERIFIER_NAME);
    std::fs::write(&page, VERIFIER).unwrap();
    (folder, page)
}

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/evidence-vectors")
}

fn read(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(vectors().join(name)).unwrap()).unwrap()
}

/// A22: the page has the verdict, the faults with their records and the list of what was not checked of every vector, as the
/// command has. It is offline, asks for nothing, and the browser complains of nothing.
#[test]
fn the_page_agrees_on_every_vector() {
    let (_folder, page) = page();
    let offline = Offline::open(&page);
    let rows = read("bundles.json");
    let rows = rows.as_array().unwrap();
    let mut verdicts = [0; 3];
    for row in rows {
        let name = &row["name"];
        let bundle = vectors().join(row["bundle"].as_str().unwrap());
        let text = |member: &str| row[member].as_str().unwrap_or_default();
        let report = offline.check(&bundle, text("key"), text("held"));
        assert_eq!(report["verdict"], row["verdict"], "{name}: {report}");
        assert_eq!(report["not_checked"], row["not_checked"], "{name}");
        let found = report["findings"].as_array().unwrap().iter();
        let found: Vec<Value> = found
            .map(|one| json!({"code": one["code"], "index": one["index"]}))
            .collect();
        assert_eq!(json!(found), row["findings"], "{name}");
        let open = "document.querySelectorAll('#open [data-open]').length";
        let listed = row["not_checked"].as_array().map_or(0, Vec::len);
        assert_eq!(offline.browser.eval(open), json!(listed), "{name}");
        let verdict = ["valid", "consistent", "invalid"];
        let at = verdict.iter().position(|one| row["verdict"] == *one);
        verdicts[at.unwrap()] += 1;
    }
    assert!(verdicts.iter().sum::<usize>() >= 110 && verdicts.iter().all(|count| *count > 0));
    offline.assert_silent();
}

/// A22: the page and the command come to the same verdict on bundles with one byte changed, left out or doubled, and canonical
/// JSON is the same for every text of the vectors: no number passes through a double that cannot hold it.
#[test]
fn the_page_agrees_on_altered_bundles_and_canonical_texts() {
    let (_folder, page) = page();
    let offline = Offline::open(&page);
    let rows = read("bundles.json");
    let mut cases = Vec::new();
    for (name, step) in [
        ("held-grown", 7),
        ("v2-valid-large-integer", 5),
        ("v2-valid-raw-opened", 5),
    ] {
        let rows = rows.as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        let sound = std::fs::read(vectors().join(row["bundle"].as_str().unwrap())).unwrap();
        let key: Option<VerifyingKey> = row["key"].as_str().map(|key| key.parse().unwrap());
        let mut altered = alterations(&sound, step);
        altered.extend(lists(&sound));
        for altered in altered {
            let report = Bundle::parse(&altered).ok();
            let report = report.map(|bundle| bundle.verify(key.as_ref(), row["held"].as_str()));
            let verdict = report.map_or(Verdict::Invalid, |report| report.verdict);
            let file = BASE64_STANDARD.encode(&altered);
            cases.push(
                json!({"file": file, "key": row["key"], "held": row["held"], "verdict": verdict}),
            );
        }
    }
    assert!(cases.len() > 1_500, "{}", cases.len());
    for some in cases.chunks(200) {
        let script = format!(
            "(async () => {{ const wrong = []; for (const one of {}) {{ \
             const bytes = Uint8Array.from(atob(one.file), letter => letter.charCodeAt(0)); \
             const key = one.key ? await parseKey(one.key) : null; \
             const report = await verify(bytes, key, one.held); \
             if (report.verdict !== one.verdict) wrong.push([one.file, report, one.verdict]); }} return wrong; }})()",
            json!(some)
        );
        assert_eq!(offline.browser.eval(&script), json!([]));
    }
    let texts = read("canonical.json");
    let script = format!(
        "(() => {{ const all = {texts}; const wrong = all.texts.filter(one => canonical(readJson(one.text)) !== one.canonical); \
         const read = all.refused.filter(text => {{ try {{ readJson(text); return true; }} catch {{ return false; }} }}); \
         return {{wrong, read, texts: all.texts.length, refused: all.refused.length}}; }})()"
    );
    let found = offline.browser.eval(&script);
    assert_eq!((&found["wrong"], &found["read"]), (&json!([]), &json!([])));
    assert!(
        found["texts"].as_u64() > Some(5) && found["refused"].as_u64() > Some(5),
        "{found}"
    );
}

/// The bundle with a list in the place of each object that it has, one at a time: some readers take it for the object.
fn lists(bundle: &[u8]) -> Vec<Vec<u8>> {
    let bundle: Value = serde_json::from_slice(bundle).unwrap();
    let places = [
        (
            "/records/0",
            &["index", "leaf", "proof", "payload", "opened"][..],
        ),
        ("/records/0/opened", &["arguments", "data", "raw", "shown"]),
        ("/records/0/opened/arguments", &["salt", "value", "text"]),
        ("/earlier", &["checkpoint", "proof"]),
    ];
    let listed = places.iter().filter_map(|(place, members)| {
        let mut altered = bundle.clone();
        let object = altered.pointer_mut(place)?;
        *object = members.iter().map(|name| object[*name].clone()).collect();
        Some(altered.to_string().into_bytes())
    });
    listed.collect()
}

/// What is altered: a byte flipped, left out, or written twice.
fn alterations(bundle: &[u8], step: usize) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for at in (0..bundle.len()).step_by(step) {
        let mut flipped = bundle.to_vec();
        flipped[at] ^= [0x01, 0x20, 0x02, 0x10][at % 4];
        all.push(flipped);
        let (before, after) = bundle.split_at(at);
        match at % 16 {
            0 => all.push([before, &after[1..]].concat()),
            1 => all.push([before, &after[..1], after].concat()),
            _ => {}
        }
    }
    all
}

/// A person uses it: a dropped file, a key that isn't one, the language.
#[test]
fn a_person_drops_a_bundle() {
    let (_folder, page) = page();
    let offline = Offline::open(&page);
    let browser = &offline.browser;
    let bundle = std::fs::read(vectors().join("bundles/v2-valid-opened.json")).unwrap();
    let drop = format!(
        "(() => {{ const data = new DataTransfer(); \
         data.items.add(new File([Uint8Array.from(atob('{}'), letter => letter.charCodeAt(0))], 'bundle.json')); \
         document.querySelector('#drop').dispatchEvent(new DragEvent('drop', {{dataTransfer: data, bubbles: true, cancelable: true}})); }})()",
        BASE64_STANDARD.encode(bundle)
    );
    browser.eval(&drop);
    browser.until("document.querySelector('#verdict')?.dataset.verdict === 'consistent'");
    browser.until("document.querySelector('#open').innerText.includes('no public key was given')");
    browser.write("#key", "not a key");
    browser.until("document.querySelector('#stop')?.innerText.includes(\"isn't a public key\")");
    assert_eq!(
        browser.eval("document.querySelector('#verdict')"),
        Value::Null,
        "no verdict stays"
    );
    let rows = read("bundles.json");
    let row = rows
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["name"] == "v2-valid-opened");
    browser.write("#key", row.unwrap()["key"].as_str().unwrap());
    browser.until("document.querySelector('#verdict')?.dataset.verdict === 'valid'");
    browser.click("#zh");
    browser.until("document.querySelector('#verdict').innerText === '有效'");
    assert_eq!(browser.eval("document.documentElement.lang"), json!("zh"));
    let widths = browser.eval("[document.documentElement.scrollWidth, innerWidth]");
    assert!(widths[0].as_u64() <= widths[1].as_u64(), "{widths}");
    offline.assert_silent();
}
