//! The budgets: what each kind of work costs beside its floor, measured in the same run.
//!
//! `cargo bench --bench budgets` prints the table; `-- --quick` takes smaller stores, `-- --only
//! NAME` the rows of one name, `-- --plot FOLDER` draws cost against size instead.

mod append;
mod append_all;
mod auto_compaction;
mod catalog;
mod cold_read;
mod compacted_history;
mod context;
mod erasure;
mod floor;
mod fork;
mod growth;
mod import;
mod indexing;
mod many_compactions;
mod measure;
mod memory;
mod messages;
mod open;
mod plot;
mod raw_history;
mod retention;
mod search;
mod size;
mod stores;
mod streaming_updates;
mod table;
mod transcripts;
mod worst_trees;
mod writers;

use stores::Stores;
use table::Table;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// What all rows share.
pub(crate) struct Bench {
    table: Table,
    stores: Stores,
    /// Messages in the largest store.
    million: usize,
    /// Sessions in the `cold` row.
    sessions: usize,
}

/// Measures and prints one or more rows.
type Row = fn(&mut Bench) -> Result<()>;

const HELP: &str = "\
Measures what each kind of work costs beside its floor, in one run: about two minutes.

Usage: cargo bench --bench budgets -- [OPTIONS]

      --quick        Take smaller stores: 100 000 messages instead of 1 000 000
      --only NAME    Measure the rows of one name
      --plot FOLDER  Draw cost against size into FOLDER instead
      --help         Print this";

/// The rows by name, in the order in which they are printed.
const ROWS: &[(&str, Row)] = &[
    ("append", append::run),
    ("writers", writers::run),
    ("append-all", append_all::run),
    ("auto-compaction", auto_compaction::run),
    ("raw", raw_history::run),
    ("compacted", compacted_history::run),
    ("flat", compacted_history::flat),
    ("growth", growth::run),
    ("fork", fork::run),
    ("worst", worst_trees::run),
    ("search", search::session),
    ("index", indexing::run),
    ("size", size::run),
    ("memory", memory::run),
    ("cold", cold_read::run),
    ("compactions", many_compactions::run),
    ("update", streaming_updates::run),
    ("import", import::run),
    ("search-store", search::store),
    ("prompt", context::prompt),
    ("knowledge", context::knowledge),
    ("catalog", catalog::run),
    ("retention", retention::run),
    ("erasure", erasure::run),
    ("transcripts", transcripts::run),
    // Last, because it closes the largest store.
    ("open", open::run),
];

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|arg| arg == "--help") {
        println!("{HELP}\n\nNames: {}", names());
        return Ok(());
    }
    let value = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1).map(String::as_str)
    };
    if let Some(work) = value("--child") {
        return memory::child(work, &args);
    }
    let is_quick = args.iter().any(|arg| arg == "--quick");
    let mut bench = Bench {
        table: Table::default(),
        stores: Stores::new()?,
        million: if is_quick { 100_000 } else { 1_000_000 },
        sessions: if is_quick { 1_000 } else { 10_000 },
    };
    if let Some(folder) = value("--plot") {
        return plot::draw(&mut bench, folder.as_ref());
    }
    let only = value("--only");
    if let Some(name) = only.filter(|name| ROWS.iter().all(|row| row.0 != *name)) {
        return Err(format!("no row {name:?}; there are {}", names()).into());
    }
    bench.table.head();
    for (name, rows) in ROWS {
        if only.is_none_or(|only| only == *name) {
            rows(&mut bench)?;
        }
    }
    bench.table.foot();
    Ok(())
}

fn names() -> String {
    ROWS.iter().map(|row| row.0).collect::<Vec<_>>().join(", ")
}

/// Returns 1000 as `1k`, 1000000 as `1M`.
fn short(count: usize) -> String {
    match count {
        1_000_000.. if count.is_multiple_of(1_000_000) => format!("{}M", count / 1_000_000),
        1_000.. if count.is_multiple_of(1_000) => format!("{}k", count / 1_000),
        _ => count.to_string(),
    }
}
