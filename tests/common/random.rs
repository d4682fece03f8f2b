//! Random cases: as many as the test asks for, or as the environment variable `PROPTEST_CASES` says.
#![allow(unreachable_pub, reason = "some programs have it as a module of their own")]

use std::fmt::Debug;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use talktree::Result;

/// Returns how many cases to run: a quarter on a server, where each verb waits for it some times.
pub fn cases(usual: u32) -> u32 {
    let usual = if cfg!(talktree_on_postgres) { usual.div_ceil(4) } else { usual };
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// Checks random cases; the error contains the smallest failing one.
pub fn check_all<T: Debug>(
    cases: u32,
    strategy: &impl Strategy<Value = T>,
    check: impl Fn(T) -> Result<()>,
) -> std::result::Result<(), String> {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config)
        .run(strategy, |case| check(case).map_err(|error| TestCaseError::fail(error.to_string())));
    result.map_err(|error| error.to_string())
}
