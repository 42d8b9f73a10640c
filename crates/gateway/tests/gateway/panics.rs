//! Output of a panic on stderr.

use std::process::Command;

use countersign_gateway::telemetry::install_panic_hook;

/// Set in the process that is to panic.
const PANICS: &str = "COUNTERSIGN_TEST_PANICS";

/// A21: a tool's panic may quote its call, so stderr gets its place and not its message. It runs in a process
/// of its own, because a hook is global.
#[test]
fn a_panic_says_where_and_never_what() {
    if std::env::var_os(PANICS).is_some() {
        install_panic_hook();
        let thread = std::thread::Builder::new().name("tool".to_owned());
        let thread = thread.spawn(|| panic!("no such customer: Zacharias Quuxington"));
        assert!(thread.unwrap().join().is_err());
        return;
    }
    let run = |show: bool| {
        let name = "panics::a_panic_says_where_and_never_what";
        let mut child = Command::new(std::env::current_exe().unwrap());
        child
            .args([name, "--exact", "--nocapture"])
            .env(PANICS, "1");
        if show {
            child.env("COUNTERSIGN_SHOW_CAUSES", "1");
        }
        let done = child.output().unwrap();
        assert!(done.status.success());
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    let said = run(false);
    assert!(
        said.contains("a thread panicked: tool at ") && said.contains("panics.rs:"),
        "{said}"
    );
    assert!(!said.contains("Quuxington"), "{said}");
    assert!(run(true).contains("Quuxington"));
}
