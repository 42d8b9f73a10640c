//! The options of every part of the program, made from the configuration.
//!
//! Each function takes a section apart without `..` and writes the options without `..`: a setting that nothing reads,
//! and an option that nothing sets, do not compile.

use countersign::Effects;
use countersign::approve;
use countersign::ledger::Binding;
use countersign::pattern::ToolPattern;
use countersign::retention::RetentionPlan;
use countersign_args::Limits;
use countersign_config::sections::{
    Approvals, Binder, CatalogView, Facade, LogFormat, Mcp, Postgres, Profile, Results, Retention,
    Semconv, Server, Shop, Sqlite, Telemetry,
};
use countersign_config::value::NamePattern;
use countersign_config::{Config, value};
use countersign_gateway::Settings;
use countersign_gateway::offer::{self, OfferRules};
use countersign_gateway::telemetry::{self, Convention};
use countersign_store::postgres::PostgresOptions;
use countersign_store::sqlite::SqliteOptions;

/// The bounds of a server. Its address and who may come in without a credential are looked at by `serve` itself.
pub(crate) fn settings(config: &Config) -> Settings {
    let Server {
        listen: _,
        public_url,
        allow_anonymous_loopback: _,
        body_bytes_max,
        arriving_bytes_max,
        head_bytes_max,
        connections_max,
        connections_per_peer_max,
        requests_per_caller_max,
        calls_max,
        calls_per_caller_max,
        waiting_calls_max,
        waiting_calls_per_caller_max,
        threads,
        read_timeout,
        body_bytes_per_second_min,
        body_grace,
        store_figures_interval,
        drain_notice,
        drain,
    } = &config.server;
    let Mcp {
        sessions_max,
        streams_max,
        streams_per_caller_max,
        conformance,
    } = &config.mcp;
    let Shop {
        enabled: _,
        checkout_url,
    } = &config.shop;
    Settings {
        public_url: public_url.as_ref().map(ToString::to_string),
        approvals_url: config.approvals.url.as_ref().map(ToString::to_string),
        checkout_url: checkout_url.as_ref().map(ToString::to_string),
        body_bytes_max: *body_bytes_max,
        arriving_bytes_max: *arriving_bytes_max,
        head_bytes_max: *head_bytes_max,
        connections_max: *connections_max,
        connections_per_peer_max: *connections_per_peer_max,
        requests_per_caller_max: *requests_per_caller_max,
        calls_max: *calls_max,
        calls_per_caller_max: *calls_per_caller_max,
        waiting_calls_max: *waiting_calls_max,
        waiting_calls_per_caller_max: *waiting_calls_per_caller_max,
        mcp_sessions_max: *sessions_max,
        mcp_streams_max: *streams_max,
        mcp_streams_per_caller_max: *streams_per_caller_max,
        conformance: *conformance,
        threads: threads.unwrap_or_else(processors),
        read_timeout: read_timeout.duration(),
        body_bytes_per_second_min: *body_bytes_per_second_min,
        body_grace: body_grace.duration(),
        store_figures_interval: store_figures_interval.duration(),
        drain_notice: drain_notice.duration(),
        drain: drain.duration(),
        offers: offer_rules(config),
    }
}

/// Number of processors of the machine.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The tools and answers that callers are shown.
pub(crate) fn offer_rules(config: &Config) -> OfferRules {
    let CatalogView {
        facade,
        listed_tools_max,
        listed_tokens_max,
        pinned,
    } = &config.catalog;
    let Results { bytes_max, rules } = &config.results;
    let rules = rules.iter().filter_map(|rule| {
        let tool = ToolPattern::new(rule.tool.as_str()).ok()?;
        Some((tool, rule.bytes_max))
    });
    OfferRules {
        facade: facade_of(*facade),
        listed_tools_max: *listed_tools_max,
        listed_tokens_max: *listed_tokens_max,
        pinned: patterns(pinned),
        result_bytes_max: *bytes_max,
        result_rules: rules.collect(),
        profiles: config.profile.iter().map(profile).collect(),
    }
}

fn profile(profile: &Profile) -> offer::Profile {
    let Profile {
        name,
        keys,
        agents,
        scopes,
        clients,
        tools,
        effects,
        facade,
        listed_tools_max,
        listed_tokens_max,
        pinned,
        result_bytes_max,
    } = profile;
    offer::Profile {
        name: name.clone(),
        keys: keys.clone(),
        agents: agents.clone(),
        scopes: scopes.clone(),
        clients: clients.clone(),
        tools: patterns(tools),
        effects: Effects::of(effects.iter().copied()).unwrap_or_default(),
        facade: facade.map(facade_of),
        listed_tools_max: *listed_tools_max,
        listed_tokens_max: *listed_tokens_max,
        pinned: pinned.as_deref().map(patterns),
        result_bytes_max: *result_bytes_max,
    }
}

fn facade_of(facade: Facade) -> offer::Facade {
    match facade {
        Facade::Auto => offer::Facade::Auto,
        Facade::On => offer::Facade::On,
        Facade::Off => offer::Facade::Off,
    }
}

/// A pattern of the file has been checked when the file was read, by the very rule of the type.
fn patterns(patterns: &[NamePattern]) -> Vec<ToolPattern> {
    let patterns = patterns.iter().map(|it| ToolPattern::new(it.as_str()));
    patterns.filter_map(Result::ok).collect()
}

/// The bounds of questions to users. Their page is one of the [`settings`].
pub(crate) fn approval_limits(approvals: &Approvals) -> approve::Limits {
    let Approvals {
        url: _,
        valid_for,
        pending_max,
        wait_max,
        waiting_max,
        waiting_per_user_max,
        cool_down,
    } = approvals;
    approve::Limits {
        valid_for: valid_for.duration(),
        pending_max: *pending_max,
        wait_max: wait_max.duration(),
        waiting_max: *waiting_max,
        waiting_per_user_max: *waiting_per_user_max,
        cool_down: cool_down.duration(),
    }
}

/// The limits on the arguments of a call.
pub(crate) fn binder_limits(binder: &Binder) -> Limits {
    let Binder {
        raw_bytes_max,
        depth_max,
        nodes_max,
        candidates_max,
        decode_nesting_max,
        lookahead_bytes_max,
        lookaheads_max,
        union_attempts_per_node_max,
        issues_max,
        number_digits_max,
        members_max,
    } = binder;
    Limits {
        raw_bytes_max: *raw_bytes_max,
        depth_max: *depth_max,
        nodes_max: *nodes_max,
        candidates_max: *candidates_max,
        decode_nesting_max: *decode_nesting_max,
        lookahead_bytes_max: *lookahead_bytes_max,
        lookaheads_max: *lookaheads_max,
        union_attempts_per_node_max: *union_attempts_per_node_max,
        issues_max: *issues_max,
        number_digits_max: *number_digits_max,
        members_max: *members_max,
    }
}

/// Retention of payloads, by class.
pub(crate) fn retention_plan(retention: &Retention) -> RetentionPlan {
    let Retention {
        short,
        standard,
        long,
    } = retention;
    RetentionPlan {
        short: short.duration(),
        standard: standard.duration(),
        long: long.duration(),
    }
}

/// A store in a file.
pub(crate) fn sqlite_options(sqlite: &Sqlite, binding: Binding) -> SqliteOptions {
    let Sqlite {
        disk_free_bytes_min,
        jobs_waiting_max,
        drafts_waiting_max,
        readers,
        cache_bytes,
    } = sqlite;
    SqliteOptions {
        clock: SqliteOptions::default().clock,
        disk_free_bytes_min: *disk_free_bytes_min,
        jobs_waiting_max: *jobs_waiting_max,
        drafts_waiting_max: *drafts_waiting_max,
        readers: *readers,
        cache_bytes: *cache_bytes,
        binding: Some(binding),
    }
}

/// A store in PostgreSQL.
pub(crate) fn postgres_options(postgres: &Postgres, address: &str) -> PostgresOptions {
    let Postgres {
        ca_file,
        connections_max,
        lanes,
        batch_max,
        queue_max,
        connect_timeout,
        acquire_timeout,
        statement_timeout,
        lock_timeout,
        doubt_limit,
        accept_lossy_server,
    } = postgres;
    let mut options = PostgresOptions::new(address)
        .connections_max(*connections_max)
        .lanes(*lanes)
        .batch_max(*batch_max)
        .queue_max(*queue_max)
        .connect_timeout(connect_timeout.duration())
        .acquire_timeout(acquire_timeout.duration())
        .statement_timeout(statement_timeout.duration())
        .lock_timeout(lock_timeout.duration())
        .doubt_limit(doubt_limit.duration());
    if let Some(path) = ca_file {
        options = options.ca_file(path);
    }
    if *accept_lossy_server {
        options = options.accept_lossy_server();
    }
    options
}

/// Logs and traces. A program that reads the output gets the log as JSON, unless the configuration says otherwise.
pub(crate) fn telemetry_options(
    telemetry: &Telemetry,
    is_for_programs: bool,
) -> telemetry::Options {
    let Telemetry {
        log,
        log_format,
        otlp,
        sample,
        genai_semconv,
    } = telemetry;
    telemetry::Options {
        log: log.clone(),
        log_format: match log_format {
            Some(LogFormat::Json) => telemetry::LogFormat::Json,
            None if is_for_programs => telemetry::LogFormat::Json,
            Some(LogFormat::Text) | None => telemetry::LogFormat::Text,
        },
        otlp: otlp.as_ref().map(value::WebUrl::to_string),
        convention: match genai_semconv {
            Semconv::V1_37 => Convention::V1_37,
            Semconv::V1_41 => Convention::V1_41,
            Semconv::Off => Convention::Off,
        },
        sample_ratio: *sample,
    }
}

#[cfg(test)]
mod tests;
