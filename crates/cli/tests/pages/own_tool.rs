//! The section "put your own tool behind it" of both READMEs is run as it stands.

use crate::page;
use crate::shell::{FAILED, Shell};

/// A title of the section, in each language.
const PAGES: [(&str, &str); 2] = [
    ("README.md", "## Put your own tool behind it\n"),
    ("README.zh-CN.md", "## 接入您自己的工具\n"),
];

/// P1, P2: a reader who pastes the section has a Python function behind the gateway, and is asked before it runs.
#[test]
fn the_own_tool_of_the_readmes_runs() {
    for (name, title) in PAGES {
        let readme = page::read(name);
        let (_, section) = readme.split_once(title).unwrap();
        let (section, _) = section.split_once("\n## ").unwrap();
        run(name, section);
    }
}

fn run(name: &str, section: &str) {
    let mut shell = Shell::start();
    let checkout = shell.folder().join("checkout");
    let sdk = "sdk/python/countersign_tool.py";
    std::fs::create_dir_all(checkout.join("sdk/python")).unwrap();
    std::fs::copy(page::root().join(sdk), checkout.join(sdk)).unwrap();
    shell.run("cd checkout");
    let mut replies = Vec::new();
    for (kind, text) in page::blocks(section) {
        match kind {
            "python" => shell.write("app.py", &text),
            "sh" => {
                for command in text.lines() {
                    let output = run_line(&mut shell, command);
                    assert!(!output.contains(FAILED), "{name}: {command}\n{output}");
                    if command.starts_with("curl ") {
                        replies.push(output);
                    }
                }
            }
            other => panic!("nothing is done with a block of {other:?}"),
        }
    }
    let [reply] = replies.as_slice() else {
        panic!("{name} has one call, not {}", replies.len());
    };
    assert!(
        reply.contains("\"NEEDS_USER_CONFIRMATION\""),
        "{name}: {reply}"
    );

    // The question is answered, and the function runs with the arguments of the page.
    let id = reply.split('"').find(|part| part.starts_with("ap_"));
    let approved = shell.run(&format!("countersign approvals approve {}", id.unwrap()));
    let approved = approved.join("\n");
    assert!(approved.contains("approved: "), "{name}: {approved}");
    let call = section.lines().find(|line| line.starts_with("curl "));
    let reply = shell.run(call.unwrap()).concat();
    let data = "\"data\":{\"quantity\":2,\"sku\":\"SKU-1\"}";
    assert!(reply.contains(data), "{name}: {reply}");
}

/// Runs a line of the page. `a & b` starts both: a reader leaves `b` in the foreground and opens another terminal.
fn run_line(shell: &mut Shell, line: &str) -> String {
    match line.split_once(" & ") {
        Some((first, second)) => {
            shell.start_program(first);
            shell.start_program(second);
            String::new()
        }
        None => shell.run(&format!("{line} || echo '{FAILED}'")).join("\n"),
    }
}
