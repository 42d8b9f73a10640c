//! A wait that never ends makes a test fail.

use std::process::Command;
use std::time::Duration;

use countersign_testkit::patience::Watchdog;

/// The test runs itself once more as a process that hangs.
#[test]
fn a_process_that_hangs_is_ended() {
    const HANGS: &str = "COUNTERSIGN_TEST_HANGS";
    if std::env::var_os(HANGS).is_some() {
        let _watchdog = Watchdog::after(Duration::from_millis(1));
        loop {
            std::thread::park();
        }
    }
    let ended = Command::new(std::env::current_exe().unwrap())
        .args(["a_process_that_hangs_is_ended", "--exact", "--nocapture"])
        .env(HANGS, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success(), "{said}");
    assert!(said.contains("did not end within 1ms"), "{said}");
}

#[cfg(feature = "ledger")]
mod waits {
    use countersign_testkit::patience::{until, within};

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "nothing happened within 120s")]
    async fn an_event_that_never_comes_is_a_failure() {
        within(std::future::pending::<()>()).await;
    }

    #[tokio::test]
    async fn what_happens_is_waited_for() {
        assert_eq!(within(async { 7 }).await, 7);
        let mut asked = 0;
        until(async || {
            asked += 1;
            asked == 3
        })
        .await;
        assert_eq!(asked, 3);
    }
}
