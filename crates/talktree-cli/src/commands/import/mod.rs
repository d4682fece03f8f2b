//! `talktree import`: conversations from the files of other programs.

mod archive;
mod walk;

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use talktree::import::ImportReport;
use talktree::{Error, SessionId, Store};
use talktree_import::{Format, ImportOptions, import_reader};

use crate::context::Context;
use crate::failure::{Failure, Result, tell};
use crate::input::open_input;
use crate::progress::Bar;
use crate::style;

/// The maximum number of notes on one file that are printed; JSON has all.
const MAX_NOTES: usize = 3;

/// Import conversations from files, ZIP exports or folders
///
/// The format is detected from the content. Importing a file again adds only new messages. Folders
/// are searched for *.jsonl, *.json and *.zip: `talktree import ~/.claude/projects` imports all
/// sessions of Claude Code. `-` is stdin. The store is created if it is missing.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree import [OPTIONS] <PATHS>...")]
pub(crate) struct Args {
    /// The files and folders to import.
    #[arg(required = true)]
    paths: Vec<PathBuf>,

    /// The format of the files [default: detected from the content].
    #[arg(long, value_parser = formats())]
    format: Option<Format>,

    /// Import into this session; only for a file with one conversation.
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// Refuse a file with damaged records; without this option they are reported and skipped.
    #[arg(long)]
    strict: bool,

    /// Write nothing; print what would be imported.
    #[arg(long)]
    dry_run: bool,

    /// Keep each original record in the metadata of its message.
    #[arg(long)]
    keep_source: bool,
}

fn formats() -> impl TypedValueParser<Value = Format> {
    let names = PossibleValuesParser::new(Format::ALL.map(Format::as_str));
    names.try_map(|name| name.parse::<Format>())
}

/// A file to import.
struct Source {
    path: PathBuf,
    /// Whether it was found in a folder; not every file in a folder is a conversation.
    is_found: bool,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let sources = sources(&args.paths)?;
    let path = context.store_path()?;
    let is_new = !args.dry_run && !path.exists();
    let store = open(&args, context)?;
    let done = import_all(&args, &sources, &store, context);
    if is_new {
        if done.is_err() && store.sessions().is_ok_and(|sessions| sessions.is_empty()) {
            drop(store);
            remove_store(&path);
        } else if !context.is_tour {
            tell(&format!("created a new store: {}", path.display()));
        }
    }
    done
}

/// Removes the new store of an import that added nothing.
fn remove_store(path: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let mut file = path.as_os_str().to_owned();
        file.push(suffix);
        // A store that cannot be removed is empty and does no harm; the error of the import is reported.
        let _ = std::fs::remove_file(file);
    }
}

fn import_all(args: &Args, sources: &[Source], store: &Store, context: &mut Context) -> Result<()> {
    let options = ImportOptions {
        format: args.format,
        session: args.session.as_deref().map(SessionId::from),
        is_strict: args.strict,
        is_dry_run: args.dry_run,
        keeps_source: args.keep_source,
    };
    let (mut total, mut failed) = (Total::default(), 0_usize);
    for source in sources {
        match import(store, source, &options) {
            Ok(reports) => {
                for report in &reports {
                    if brought_something(report) {
                        total.add(report);
                    }
                    write(context, report)?;
                }
                if !reports.iter().any(brought_something) {
                    failed += 1;
                    total.is_refused |= !source.is_found;
                }
            }
            // A store that fails would fail for the next file, too.
            Err(failure @ (Failure::Store(_) | Failure::Damaged(_) | Failure::Output(_))) => {
                return Err(failure);
            }
            Err(failure) => {
                failure.report();
                failed += 1;
                total.is_refused |= !source.is_found;
            }
        }
    }
    if sources.len() > 1 && !context.is_json {
        let verb = if args.dry_run { "would be imported" } else { "imported" };
        context.out.line(&[(
            style::STRONG,
            &format!(
                "{verb}: {} new messages, {} sessions, {} files",
                total.added,
                total.sessions.len(),
                total.files
            ),
        )])?;
    }
    match failed {
        0 => Ok(()),
        _ if total.files > 0 && !total.is_refused && !args.strict => {
            tell(&format!("skipped files: {failed}"));
            Ok(())
        }
        _ => Err(Failure::Input(format!("not imported: {failed} of {} files", sources.len()))),
    }
}

/// Returns whether the import used any record; an empty file counts as used.
fn brought_something(report: &ImportReport) -> bool {
    report.records == 0 || report.kept + report.converted > 0
}

#[derive(Default)]
struct Total {
    files: u64,
    added: u64,
    sessions: std::collections::BTreeSet<SessionId>,
    /// Whether a file that was named could not be imported.
    is_refused: bool,
}

impl Total {
    fn add(&mut self, report: &ImportReport) {
        self.files += 1;
        self.added += report.added;
        self.sessions.extend(report.sessions.iter().cloned());
    }
}

/// Opens the store and creates it if it is missing; a dry run creates none.
fn open(args: &Args, context: &Context) -> Result<Store> {
    match args.dry_run && !context.store_path()?.exists() {
        true => Ok(Store::open_in_memory()?),
        false => context.maker(),
    }
}

fn sources(paths: &[PathBuf]) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for path in paths {
        if path.is_dir() {
            let found = walk::files(path);
            if found.is_empty() {
                tell(&format!("{} holds no *.jsonl, *.json or *.zip", path.display()));
            }
            sources.extend(found.into_iter().map(|path| Source { path, is_found: true }));
        } else if path.exists() || is_stdin(path) {
            sources.push(Source { path: path.clone(), is_found: false });
        } else {
            // Checked first, so that no store is created for a missing file.
            return Err(Failure::Input(format!("{} does not exist", path.display())));
        }
    }
    match sources.is_empty() {
        true => Err(Failure::NotFound(
            "nothing to import: no *.jsonl, *.json or *.zip was found".to_owned(),
        )),
        false => Ok(sources),
    }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn import(store: &Store, source: &Source, options: &ImportOptions) -> Result<Vec<ImportReport>> {
    let path = &source.path;
    if is_stdin(path) {
        let file = archive::spool(&mut std::io::stdin().lock(), path)?;
        return Ok(vec![import_file(store, "stdin", file, options)?]);
    }
    let cannot = |error: std::io::Error| Failure::Input(format!("{}: {error}", path.display()));
    let mut file = open_input(path).map_err(cannot)?;
    let mut magic = Vec::new();
    file.by_ref().take(4).read_to_end(&mut magic).map_err(cannot)?;
    file.seek(SeekFrom::Start(0)).map_err(cannot)?;
    let name = path.to_string_lossy();
    if magic != archive::MAGIC {
        return Ok(vec![import_file(store, &name, file, options)?]);
    }
    let mut reports = Vec::new();
    archive::each_conversation(path, file, |entry, file| {
        reports.push(import_file(store, &format!("{name}/{entry}"), file, options)?);
        Ok(())
    })?;
    Ok(reports)
}

fn import_file(
    store: &Store,
    name: &str,
    file: File,
    options: &ImportOptions,
) -> Result<ImportReport> {
    let bar = Bar::of_bytes(name.rsplit('/').next().unwrap_or(name));
    let imported = import_reader(store, name, file, options, |progress| bar.show(progress));
    drop(bar);
    imported.map_err(|error| match error {
        // Here such an error is about the input file, not the store.
        error @ (Error::Io { .. } | Error::Json { .. }) => Failure::Input(error.to_string()),
        error => error.into(),
    })
}

fn write(context: &mut Context, report: &ImportReport) -> Result<()> {
    if context.is_json {
        return Ok(context.out.json(report)?);
    }
    context.out.line(&[
        (style::STRONG, &report.path.to_string_lossy()),
        (style::FAINT, &format!("  {}", report.format)),
    ])?;
    let known = match report.known {
        0 => String::new(),
        known => format!(", {known} known"),
    };
    context.out.line(&[(
        style::PLAIN,
        &format!(
            "  {} records: {} kept, {} converted, {} dropped; {} new messages{known}",
            report.records, report.kept, report.converted, report.dropped, report.added
        ),
    )])?;
    if let [session] = &report.sessions[..] {
        context.out.line(&[(style::PLAIN, "  session "), (style::ID, session.as_str())])?;
    } else {
        context.out.line(&[(style::PLAIN, &format!("  {} sessions", report.sessions.len()))])?;
    }
    let place = |line: Option<u64>| line.map_or_else(String::new, |line| format!(", line {line}"));
    for note in report.notes.iter().take(MAX_NOTES) {
        tell(&format!("{}{}: {}", report.path.display(), place(note.line), note.why));
    }
    let more = report.notes.len().saturating_sub(MAX_NOTES) as u64 + report.notes_left_out;
    if more > 0 {
        tell(&format!("{}: {more} more notes; --json prints all", report.path.display()));
    }
    Ok(())
}
