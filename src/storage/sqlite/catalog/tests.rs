//! What lists and resumes cost, counted in the steps of SQLite's virtual machine, or in the rows that a server reads: no more in a
//! larger store.

use chrono::{DateTime, TimeDelta, Utc};

use super::super::connection::{Config, Database};
use super::binding;
use super::list::list;
use crate::catalog::{ResumeRequest, SessionFilter, SessionPage};
use crate::error::Result;

/// Returns a time so many seconds after 1970.
fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
}

/// Returns a database of this many sessions, one a second: every fourth of one owner, one in a thousand pinned, of another
/// source and another model. Their places in the indexes are up to 90 milliseconds before the time of the last message.
fn filled(sessions: i64) -> Result<Database> {
    let database = Database::open_in_memory(Config::default())?;
    database.write(|conn| {
        conn.run(
            "WITH RECURSIVE number (n) AS
                 (SELECT CAST(1 AS BIGINT) UNION ALL SELECT n + 1 FROM number WHERE n < ?1)
             INSERT INTO session
                    (id, owner, source, model, pinned, created_at, updated_at, last_message_at, listed_at)
             SELECT 'session ' || n, CASE WHEN n % 4 = 0 THEN 'ann' END,
                    CASE WHEN n % 1000 = 0 THEN 'telegram' ELSE 'mail' END,
                    CASE WHEN n % 1000 = 0 THEN 'small' ELSE 'large' END,
                    CASE WHEN n % 1000 = 0 THEN 1 ELSE 0 END,
                    n * 1000000, n * 1000000, n * 1000000, n * 1000000 - n % 90000
               FROM number
              ORDER BY n",
            sessions,
        )?;
        conn.command(
            "INSERT INTO binding (key, session, bound_at) SELECT 'key ' || key, key, created_at FROM session",
        )
    })?;
    Ok(database)
}

/// Returns how many steps a page of 20 sessions takes, and the page.
fn steps_of_list(database: &Database, filter: &SessionFilter) -> Result<(u64, SessionPage)> {
    // The second run has its statement prepared.
    database.steps_of_write(|conn| list(conn, filter, None, 20))?;
    database.steps_of_write(|conn| list(conn, filter, None, 20))
}

#[test]
fn a_page_takes_no_more_steps_of_100_000_sessions_than_of_1_000() -> Result<()> {
    let (small, large) = (filled(2_000)?, filled(100_000)?);
    let all = SessionFilter::default;
    let middle = |database: i64| Some(at(database / 2));
    for (name, filter, until) in [
        ("all", all(), false),
        ("an owner", SessionFilter::owned_by("ann"), false),
        ("the older half", all(), true),
        ("an owner's older half", SessionFilter::owned_by("ann"), true),
    ] {
        let of = |database: &Database, sessions: i64| {
            let until = middle(sessions).filter(|_| until);
            steps_of_list(database, &SessionFilter { until, ..filter.clone() })
        };
        let (few, page) = of(&small, 2_000)?;
        assert_eq!(page.sessions.len(), 20, "{name}");
        let (many, page) = of(&large, 100_000)?;
        assert_eq!(page.sessions.len(), 20, "{name}");
        // A row takes about 60 steps, and its preview 20.
        assert!(many < 20 * 100, "{name}: {many} steps for 20 sessions");
        assert!(many <= few + few / 10, "{name}: {many} steps instead of {few}");
    }
    Ok(())
}

/// A step takes about 20 ns.
#[test]
fn a_rare_source_model_or_pin_is_looked_for_in_the_index_alone() -> Result<()> {
    const SESSIONS: i64 = 100_000;
    let database = filled(SESSIONS)?;
    let text = |text: &str| Some(text.to_owned());
    let all = SessionFilter::default;
    for filter in [
        SessionFilter { source: text("telegram"), ..all() },
        SessionFilter { model: text("small"), ..all() },
        SessionFilter { is_pinned: Some(true), ..all() },
    ] {
        let (steps, page) = steps_of_list(&database, &filter)?;
        assert_eq!(page.sessions.len(), 20);
        // The 20 newest of 100 are in a fifth of the index.
        assert!(steps < 8 * (SESSIONS as u64) / 5, "{filter:?}: {steps} steps");
    }
    Ok(())
}

#[test]
fn a_later_page_takes_as_many_steps_as_the_first() -> Result<()> {
    let database = filled(100_000)?;
    let filter = SessionFilter::default();
    let (first, page) = steps_of_list(&database, &filter)?;
    let mut after = page.after;
    for _ in 0..200 {
        after = database.list_sessions(&filter, after.as_deref(), 100)?.after;
    }
    let (later, page) =
        database.steps_of_write(|conn| list(conn, &filter, after.as_deref(), 20))?;
    assert_eq!(page.sessions[0].info.id, "session 79980");
    assert!(later <= first + first / 10, "{later} steps instead of {first}");
    Ok(())
}

#[test]
fn a_resume_takes_no_more_steps_among_100_000_keys() -> Result<()> {
    let steps = |sessions: i64| -> Result<u64> {
        let database = filled(sessions)?;
        let request = ResumeRequest::new(format!("key {}", sessions / 2));
        database.steps_of_write(|conn| binding::find(conn, &request).map(drop))?;
        Ok(database.steps_of_write(|conn| binding::find(conn, &request).map(drop))?.0)
    };
    let (few, many) = (steps(1_000)?, steps(100_000)?);
    assert!(many <= few + few / 10 && many < 300, "{many} steps instead of {few}");
    Ok(())
}

/// A row may be listed up to 100 milliseconds early: the page has to look that much further, and no more.
#[test]
fn sessions_of_one_moment_are_listed_in_the_order_of_their_last_messages() -> Result<()> {
    let database = Database::open_in_memory(Config::default())?;
    database.write(|conn| {
        for (id, last, listed) in [
            ("late in the index", 1_099_999_i64, 1_000_000_i64),
            ("first in the index", 1_050_000, 1_050_000),
            ("the same time", 1_050_000, 1_040_000),
            ("before all", 900_000, 900_000),
        ] {
            conn.run(
                "INSERT INTO session (id, created_at, updated_at, last_message_at, listed_at)
                 VALUES (?1, 0, 0, ?2, ?3)",
                (id, last, listed),
            )?;
        }
        Ok(())
    })?;
    let ids = ["late in the index", "the same time", "first in the index", "before all"];
    for size in 1..=4 {
        let (mut listed, mut after) = (Vec::new(), None::<String>);
        loop {
            let page = database.list_sessions(&SessionFilter::default(), after.as_deref(), size)?;
            listed.extend(page.sessions.into_iter().map(|listed| listed.info.id.to_string()));
            after = page.after;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(listed, ids, "pages of {size}");
    }
    Ok(())
}
