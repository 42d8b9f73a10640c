//! Files that a configuration includes.

use std::io;
use std::path::Path;

use countersign_config::{Document, Loaded, Mistakes};

const IMPORTED: &str = "\
[[upstream]]
name = 'crm'
base_url = 'https://crm.example'

[[tool]]
name = 'crm.get'
upstream = 'crm'
description = 'A customer.'
request = { method = 'GET', path = '/customers/{id}' }
parameters = [{ name = 'id' }]
";

fn read(own: &str, imported: &str) -> Result<Document, Mistakes> {
    let mut read = |path: &Path| match path.to_str() {
        Some("etc/api/crm.toml") => Ok(imported.to_owned()),
        Some(_) | None => Err(io::Error::other("there is none")),
    };
    Document::parse_with("etc/countersign.toml", own, &mut read)
}

/// B15: an imported file stays as it was written, and the configuration overrides it.
#[test]
fn entries_of_the_file_itself_count_before_those_of_included_files() {
    let own = "include = ['api/crm.toml']\n[[tool]]\nname = 'crm.get'\nttl_seconds = 7\n";
    let document = read(own, IMPORTED).unwrap();
    let loaded = Loaded::new(Some(document), Vec::new()).unwrap();
    let [tool] = &loaded.config().manifest().tools()[..] else {
        panic!("there is one tool");
    };
    assert_eq!(
        (tool.ttl_seconds, tool.upstream.as_deref()),
        (Some(7), Some("crm"))
    );
    let origins =
        ["tool[0].description", "tool[1].ttl_seconds"].map(|key| loaded.origin(key).to_string());
    assert_eq!(origins, ["etc/api/crm.toml:8", "etc/countersign.toml:4"]);
}

/// Issue 14, 1: a mistake has its file, its line and its key, in an included file too.
#[test]
fn a_mistake_is_told_at_its_own_file() {
    let check = |own: &str, imported: &str, expected: &str| {
        let wrong = read(own, imported).unwrap_err().to_string();
        assert_eq!(wrong, expected);
    };
    let own = "include = ['api/crm.toml']\n";
    check(
        "include = ['other.toml']\n",
        "",
        "etc/countersign.toml:1:12: include[0]: etc/other.toml cannot be read: there is none",
    );
    check(
        own,
        "[[tool]]\nnam = 'x'\n",
        "etc/api/crm.toml:1:1: tool[0].name: it is missing; expected a string\netc/api/crm.toml:2:1: tool[0].nam: there is no such key; did you mean tool[0].name?",
    );
    check(
        own,
        "include = ['x.toml']\n[shop]\nenabled = true\n",
        "etc/api/crm.toml:1:11: include: an included file has [[upstream]] and [[tool]] entries only\netc/api/crm.toml:2:1: shop: an included file has [[upstream]] and [[tool]] entries only",
    );
    // The override makes a mistake of an entry that was right by itself.
    let confirmed = format!("{own}[[tool]]\nname = 'crm.get'\nconfirm = 'always'\n");
    check(
        &confirmed,
        IMPORTED,
        "etc/api/crm.toml:5:1: tool[0].confirm: a read is not confirmed; declare the effect, or leave this out",
    );
    check(
        &format!("{own}[[upstream]]\nname = 'crm'\nbase_url = 'https://x.example'\n"),
        IMPORTED,
        "etc/countersign.toml:3:8: upstream[0].name: there is another upstream \"crm\"; rename one of them",
    );
}
