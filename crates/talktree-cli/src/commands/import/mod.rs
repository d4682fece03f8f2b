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
use crate::paint;
use crate::progress::Bar;

/// How many remarks on one file are told to people; JSON has all.
const MAX_REMARKS: usize = 3;

/// Import conversations: files, ZIP exports, or folders with any number of them
///
/// The format is told from the content. Importing again adds what is new, and nothing twice.
/// Folders are searched for *.jsonl, *.json and *.zip; `talktree import ~/.claude/projects` brings
/// everything that Claude Code keeps. `-` is stdin.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree import [OPTIONS] <PATHS>...")]
pub(crate) struct Args {
    /// What to import.
    #[arg(required = true)]
    paths: Vec<PathBuf>,

    /// The format, if it is not to be told from the content.
    #[arg(long, value_parser = formats())]
    format: Option<Format>,

    /// Import into this session; for a file that holds one conversation.
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// Refuse a file in which anything is wrong.
    #[arg(long)]
    strict: bool,

    /// Write nothing; tell what would be done.
    #[arg(long)]
    dry_run: bool,

    /// Keep each record as it came, in the metadata of its message.
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
    /// Whether it was found in a folder, where not every file is a conversation.
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
            tell(&format!("made a new store: {}", path.display()));
        }
    }
    done
}

/// Removes the store that was made for an import that brought nothing.
fn remove_store(path: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let mut file = path.as_os_str().to_owned();
        file.push(suffix);
        // What cannot be removed is an empty store: no harm, and the import's own error is told.
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
            // Of a store that fails, the next file will tell nothing new.
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
            paint::STRONG,
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
            tell(&format!("{failed} files were passed over"));
            Ok(())
        }
        _ => Err(Failure::Input(format!("{failed} of {} files were not imported", sources.len()))),
    }
}

/// Returns whether anything of a file could be used; an empty one is used up, too.
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

/// Opens the store, which is made if it is not there; a dry run makes none.
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
            // Before a store is made for nothing.
            return Err(Failure::Input(format!("{} is not there", path.display())));
        }
    }
    match sources.is_empty() {
        true => Err(Failure::NotFound("there is nothing to import".to_owned())),
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
    let mut file = File::open(path).map_err(cannot)?;
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
        // What cannot be read is the file here, not the store.
        error @ (Error::Io { .. } | Error::Json { .. }) => Failure::Input(error.to_string()),
        error => error.into(),
    })
}

fn write(context: &mut Context, report: &ImportReport) -> Result<()> {
    if context.is_json {
        return Ok(context.out.json(report)?);
    }
    context.out.line(&[
        (paint::STRONG, &report.path.to_string_lossy()),
        (paint::FAINT, &format!("  {}", report.format)),
    ])?;
    let known = match report.known {
        0 => String::new(),
        known => format!(", {known} known"),
    };
    context.out.line(&[(
        paint::PLAIN,
        &format!(
            "  {} records: {} kept, {} converted, {} dropped; {} new messages{known}",
            report.records, report.kept, report.converted, report.dropped, report.added
        ),
    )])?;
    if let [session] = &report.sessions[..] {
        context.out.line(&[(paint::PLAIN, "  session "), (paint::ID, session.as_str())])?;
    } else {
        context.out.line(&[(paint::PLAIN, &format!("  {} sessions", report.sessions.len()))])?;
    }
    let place = |line: Option<u64>| line.map_or_else(String::new, |line| format!(", line {line}"));
    for note in report.notes.iter().take(MAX_REMARKS) {
        tell(&format!("{}{}: {}", report.path.display(), place(note.line), note.why));
    }
    let more = report.notes.len().saturating_sub(MAX_REMARKS) as u64 + report.notes_left_out;
    if more > 0 {
        tell(&format!("{}: {more} more remarks; --json has them", report.path.display()));
    }
    Ok(())
}
