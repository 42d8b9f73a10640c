//! Connections: TLS as the URL says, timeouts for everything, and no state left behind by a broken connection.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{
    Client, Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::{Config, NoTls, SimpleQueryMessage};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::failure::{Failure, OpenError};
use super::guard::Guard;
use super::options::PostgresOptions;

mod ssl_mode;

/// The server ends a transaction that was idle for this long: its owner is gone.
const ABANDONED: Duration = Duration::from_secs(15);

/// Timeout for connecting to one of several servers.
const HOST_LIMIT: Duration = Duration::from_secs(1);

/// Creates the pool; its connections have the store's timeouts set, and lead to a server that may be written to.
pub(super) fn pool(options: &PostgresOptions, guard: &Guard) -> Result<Pool, OpenError> {
    let needed = options.lanes + 2;
    if options.connections_max < needed {
        let found = options.connections_max;
        return Err(OpenError::Connections { found, needed });
    }
    let config = config(options)?;
    let hosts = u32::try_from(config.get_hosts().len() + 1).unwrap_or(u32::MAX);
    let manager_config = ManagerConfig {
        recycling_method: RecyclingMethod::Fast,
    };
    let manager = if config.get_ssl_mode() == SslMode::Disable {
        Manager::from_config(config, NoTls, manager_config)
    } else {
        Manager::from_config(config, tls(options)?, manager_config)
    };
    let limits = session_limits(options);
    let checked = guard.clone();
    let set_limits = Hook::async_fn(move |client: &mut deadpool_postgres::ClientWrapper, _| {
        let (limits, guard) = (limits.clone(), checked.clone());
        Box::pin(async move {
            let set = client.batch_execute(&limits).await;
            set.map_err(HookError::Backend)?;
            guard.check(client).await.map_err(|failure| match failure {
                Failure::Database(error) => HookError::Backend(error),
                failure => HookError::message(failure.to_string()),
            })
        })
    });
    let guard = guard.clone();
    let is_fit = Hook::sync_fn(move |_: &mut deadpool_postgres::ClientWrapper, _| {
        if guard.is_broken() {
            return Err(HookError::message("the server has to be looked at again"));
        }
        Ok(())
    });
    let pool = Pool::builder(manager)
        .max_size(options.connections_max)
        .wait_timeout(Some(options.acquire_timeout))
        .create_timeout(Some(options.connect_timeout.max(HOST_LIMIT * hosts)))
        .recycle_timeout(Some(options.connect_timeout))
        .runtime(Runtime::Tokio1)
        .post_create(set_limits)
        .pre_recycle(is_fit)
        .build();
    Ok(pool.expect("it has a runtime for its timeouts"))
}

/// Number of times that two connections are looked at.
const SHARED_TRIES: usize = 5;

/// True if two connections use one session of the server, or one of them uses several. An idle connection has its own, unless a pooler has lent it to
/// the other one.
pub(super) async fn share_session(one: &Client, other: &Client) -> Result<bool, Failure> {
    const SESSION: &str = "SELECT pg_backend_pid()";
    let session = async |client: &Client, sql: &str| {
        let messages = client.simple_query(sql).await?;
        let row = messages.into_iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        Ok::<_, Failure>(row)
    };
    let own = session(one, SESSION).await?;
    // A pooler with several free sessions may lend another one the first time.
    for _ in 0..SHARED_TRIES {
        let idle = session(one, SESSION).await?;
        let busy = session(other, &format!("BEGIN; {SESSION}")).await?;
        other.batch_execute("ROLLBACK").await?;
        if idle != own || idle == busy {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Waits for a future. Returns [`Failure::Silent`] if it takes longer than the limit.
pub(super) async fn limited<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Failure> {
    within(limit, async { Ok(work.await?) }).await
}

/// Same as [`limited`], for work of several statements.
pub(super) async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
        Err(Failure::Silent {
            limit_ms: limit.as_millis(),
        })
    })
}

fn config(options: &PostgresOptions) -> Result<Config, OpenError> {
    let mut url = options.url.clone();
    let mode = ssl_mode::place(&url);
    // Certificates and host names are always verified, so `verify-full` is treated as `require`.
    if let Some(place) = mode.clone()
        && url.get(place.clone()) == Some("verify-full")
    {
        url.replace_range(place, "require");
    }
    let mut config: Config = url.parse().map_err(OpenError::Url)?;
    if mode.is_none() {
        let is_local = config.get_hosts().iter().all(is_loopback);
        config.ssl_mode(if is_local {
            SslMode::Disable
        } else {
            SslMode::Require
        });
    }
    if config.get_application_name().is_none() {
        config.application_name("countersign");
    }
    // Of several servers, only the one that takes writes is the store.
    if config.get_hosts().len() > 1 {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        // One that is gone must not use up the time of the others.
        config.connect_timeout(options.connect_timeout.min(HOST_LIMIT));
    } else {
        config.connect_timeout(options.connect_timeout);
    }
    // Detects a server that has silently gone away while its answer is awaited.
    config.tcp_user_timeout(options.statement_timeout * 2);
    config.keepalives_idle(Duration::from_secs(30));
    Ok(config)
}

fn is_loopback(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            let address = name.parse::<std::net::IpAddr>();
            name == "localhost" || address.is_ok_and(|address| address.is_loopback())
        }
        Host::Unix(_) => true,
    }
}

/// Builds the session settings. The statements rely on this isolation level, whatever the server's default is. A commit
/// is answered when it is on the disk, whatever the server's default is or becomes; a stronger default stays. Every row is
/// found by an index, also while the server has no statistics yet: it would read whole tables until it has them.
fn session_limits(options: &PostgresOptions) -> String {
    let durable = if options.accepts_lossy_server {
        ""
    } else {
        "SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit')
             WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false);"
    };
    format!(
        "{durable}
         SET default_transaction_isolation = 'read committed';
         SET enable_seqscan = off;
         SET statement_timeout = {};
         SET lock_timeout = {};
         SET idle_in_transaction_session_timeout = {};
         SET TIME ZONE 'UTC'",
        options.statement_timeout.as_millis(),
        options.lock_timeout.as_millis(),
        ABANDONED.as_millis(),
    )
}

fn tls(options: &PostgresOptions) -> Result<MakeRustlsConnect, OpenError> {
    let mut roots = RootCertStore::empty();
    match &options.ca_file {
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(path) => {
            let unreadable = |source: Box<dyn std::error::Error + Send + Sync>| {
                let path = path.display().to_string();
                OpenError::Certificates { path, source }
            };
            let found = CertificateDer::pem_file_iter(path);
            for certificate in found.map_err(|error| unreadable(error.into()))? {
                let certificate = certificate.map_err(|error| unreadable(error.into()))?;
                let added = roots.add(certificate);
                added.map_err(|error| unreadable(error.into()))?;
            }
            if roots.is_empty() {
                return Err(unreadable("it is empty".into()));
            }
        }
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_is_required_unless_the_url_says_otherwise_or_the_server_is_here() {
        let mode = |url: &str| {
            let config = config(&PostgresOptions::new(url)).unwrap();
            format!("{:?}", config.get_ssl_mode())
        };
        for (url, expected) in [
            ("postgres://a@127.0.0.1/b", "Disable"),
            ("postgres://a@localhost:5433/b", "Disable"),
            ("postgres://a@[::1]/b", "Disable"),
            ("host=/run/postgresql user=a", "Disable"),
            ("postgres://a@127.0.0.1/b?sslmode=require", "Require"),
            ("postgres://a@127.0.0.1,db.example.com/b", "Require"),
            ("postgres://a@db.example.com/b", "Require"),
            ("postgres://a@db.example.com/b?sslmode=disable", "Disable"),
            ("postgres://a@db.example.com/b?sslmode=prefer", "Prefer"),
            (
                "postgres://a@db.example.com/b?sslmode=verify-full",
                "Require",
            ),
            // U14: text inside a password is not a setting.
            ("postgres://a:sslmode=disable@db.example.com/b", "Require"),
            ("postgres://a:sslmode=verify-full@127.0.0.1/b", "Disable"),
            (
                "host=db.example.com user=a password='sslmode=disable'",
                "Require",
            ),
        ] {
            assert_eq!(mode(url), expected, "{url}");
        }
    }

    #[test]
    fn a_server_that_is_gone_leaves_time_for_the_others() {
        let limit = |url: &str| {
            let config = config(&PostgresOptions::new(url)).unwrap();
            config.get_connect_timeout().copied()
        };
        let (one, many) = (
            "postgres://a@127.0.0.1/b",
            "postgres://a@127.0.0.1,127.0.0.2/b",
        );
        assert_eq!(limit(one), Some(Duration::from_secs(5)));
        assert_eq!(limit(many), Some(HOST_LIMIT));
    }

    #[test]
    fn a_file_without_certificates_is_refused() {
        let options = PostgresOptions::new("postgres://a@b/c").ca_file("/dev/null");
        let refused = tls(&options).err().unwrap().to_string();
        assert_eq!(refused, "/dev/null has no readable certificates");
    }
}
