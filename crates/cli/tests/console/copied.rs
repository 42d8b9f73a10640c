//! The copies of a call in Rust. They stand in `copied/*.rs.in`, word for word, and are compiled here.

use std::error::Error;
use std::sync::OnceLock;

/// Address of the server in the files.
const WRITTEN: &str = "http://127.0.0.1:8787";

/// Address of the server of this test.
static ADDRESS: OnceLock<String> = OnceLock::new();

/// The crate that the copies name, with the address of the server of this test.
mod reqwest {
    pub(super) struct Client(&'static str);

    impl Client {
        pub(super) fn new() -> Self {
            Self(super::ADDRESS.get().unwrap())
        }

        pub(super) fn post(&self, url: &str) -> ::reqwest::RequestBuilder {
            let client = ::reqwest::Client::builder().no_proxy().build().unwrap();
            client.post(url.replace(super::WRITTEN, self.0))
        }
    }
}

async fn open() -> Result<serde_json::Value, Box<dyn Error>> {
    Ok(include!("copied/open.rs.in"))
}

/// The same with a credential. The variable of the credential is another process's, so this is compiled and not run.
async fn with_key() -> Result<serde_json::Value, Box<dyn Error>> {
    Ok(include!("copied/with_key.rs.in"))
}

/// Reply to the copy that a page shows, after it was compared with the one that is compiled.
pub(crate) fn run(copy: &str, address: &str) -> serde_json::Value {
    compare(copy, include_str!("copied/open.rs.in"), address);
    ADDRESS.set(address.to_owned()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(open()).unwrap()
}

/// Compares the copy of a page that asks for a credential with the one that is compiled.
pub(crate) fn compare_with_key(copy: &str, address: &str) {
    drop(with_key());
    compare(copy, include_str!("copied/with_key.rs.in"), address);
}

/// A file is a copy in a block whose value is the reply.
fn compare(copy: &str, file: &str, address: &str) {
    let expected = file.strip_prefix("{\n").unwrap();
    let expected = expected.strip_suffix("\nreply\n}\n").unwrap();
    assert_eq!(
        copy.replace(address, WRITTEN),
        expected,
        "the page copies other Rust than crates/cli/tests/console/copied has"
    );
}
