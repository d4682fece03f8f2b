//! `talktree import`: conversations from the files of other programs.

mod all;
mod archive;
mod spool;

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use talktree::{Error, SessionId, Store};
use talktree_import::{Format, ImportOptions, ImportReport, Importer, conversation_files};

use self::archive::{Entry, Kind};
use self::spool::{Limit, spool};
use crate::input::{dangling, is_stdin, open_input};
use crate::prelude::*;
use crate::work::Bar;

/// The maximum number of notes on one file that are printed; JSON has all.
const MAX_NOTES: usize = 3;

/// Import conversations from files, ZIP exports or folders
///
/// The format is detected from the content. Importing a file again adds only new messages. Folders
/// are searched for *.jsonl, *.json, *.zip, *.zst, *.db and *.vscdb: `talktree import
/// ~/.claude/projects` imports all sessions of Claude Code. `-` is stdin. The store is created if it is missing.
///
/// With --all: from the places of the programs on this machine. Files that are as they were are passed over, and sessions that
/// were removed or erased since do not come back.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "talktree import [OPTIONS] <PATHS>...\n       talktree import [OPTIONS] --all"
)]
pub(crate) struct ImportArgs {
    /// The files and folders to import; not with --all.
    #[arg(required_unless_present = "all")]
    paths: Vec<PathBuf>,

    /// Import the conversations of all known programs on this machine.
    #[arg(long, conflicts_with_all = ["paths", "session", "format"])]
    all: bool,

    /// With --all: print where conversations are, and how many files are new; import nothing.
    #[arg(long, requires = "all")]
    list: bool,

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

    /// Replace what looks like a key or a token before it is stored, and count each kind.
    #[arg(long)]
    redact: bool,
}

fn formats() -> impl TypedValueParser<Value = Format> {
    let names = PossibleValuesParser::new(Format::ALL.map(Format::as_str));
    names.try_map(|name| name.parse::<Format>())
}

/// A file to import.
struct Source {
    path: PathBuf,
    /// Whether the user named it; not every file that is found in a folder is a conversation.
    is_named: bool,
}

pub(crate) fn run(args: ImportArgs, context: &mut Context) -> Result<()> {
    let options = ImportOptions {
        format: args.format,
        session: args.session.as_deref().map(SessionId::from),
        is_strict: args.strict,
        is_dry_run: args.dry_run,
        keeps_source: args.keep_source,
        is_redacted: args.redact,
    };
    if args.all {
        return all::run(&args, options, context);
    }
    let (sources, total) = sources(&args.paths)?;
    let path = context.store_path()?;
    let is_new = !args.dry_run && context.is_missing()?;
    let store = open(&args, context)?;
    let (importer, printer) = (Importer::new(&store, options), Printer::new(&store));
    let done = Import { args: &args, importer, total, printer }.run(&sources, context);
    if is_new {
        if done.is_err() && store.sessions().is_ok_and(|sessions| sessions.is_empty()) {
            drop(store);
            remove_store(&path);
        } else if !context.is_tour {
            tell(&format!("created a new store: {}", shown(&path)));
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

/// An import of several files.
struct Import<'a> {
    args: &'a ImportArgs,
    importer: Importer<'a>,
    total: Total,
    printer: Printer<'a>,
}

impl Import<'_> {
    fn run(mut self, sources: &[Source], context: &mut Context) -> Result<()> {
        for source in sources {
            let imported = self.read(source);
            // What is stored already is reported, also if the store fails now.
            let reports = self.importer.take_reports();
            self.total.report(reports, &mut self.printer, context)?;
            imported?;
        }
        let Self { args, importer, mut total, mut printer } = self;
        total.report(importer.finish()?, &mut printer, context)?;
        if sources.len() > 1 && !context.is_json {
            put!(context.out; STRONG &total.sum(args))?;
        }
        match total.failed {
            0 => Ok(()),
            failed if total.files > 0 && !total.is_refused && !args.strict => {
                tell(&format!("skipped files: {failed}"));
                Ok(())
            }
            _ => Err(total.failure()),
        }
    }

    /// Reads a file, or the entries of an archive. A file that fails is reported; the error is one of the store.
    fn read(&mut self, Source { path, is_named }: &Source) -> Result<()> {
        let name = path.to_string_lossy();
        let file = match open_file(path) {
            Ok((file, true)) => file,
            other => return self.file(&name, other.map(|(file, _)| file), *is_named),
        };
        let mut passed_over = Vec::new();
        let read = archive::each_conversation(path, file, |Entry { name: entry, kind, file }| {
            let name = format!("{name}/{entry}");
            match file {
                Ok(file) if kind == Kind::Beside => match self.add(&name, file) {
                    // Settings or feedback, in no format that is known. The fault that makes a strict import refuse a file has a line.
                    Err(Error::Import { line: None, .. }) if self.args.session.is_none() => {
                        passed_over.push(one_line(&entry));
                        Ok(())
                    }
                    added => {
                        self.total.tried += 1;
                        self.settle(added.map_err(failure_of), *is_named)
                    }
                },
                // Not every JSON file of an archive is a conversation. One that is damaged may be one.
                file => {
                    let is_wanted = kind == Kind::Conversations || file.is_err();
                    self.file(&name, file, *is_named && is_wanted)
                }
            }
        });
        if !passed_over.is_empty() {
            let names = passed_over.join(", ");
            tell(&format!("{}: no conversations are recognised in {names}", shown(path)));
        }
        match read {
            Err(failure @ Failure::Input(_)) => self.file(&name, Err(failure), *is_named),
            done => done,
        }
    }

    fn file(&mut self, name: &str, file: Result<File>, is_named: bool) -> Result<()> {
        self.total.tried += 1;
        if is_named {
            self.total.named.insert(PathBuf::from(name));
        }
        let added = file.and_then(|file| self.add(name, file).map_err(failure_of));
        self.settle(added, is_named)
    }

    /// Reports why a file cannot be imported. The error is one of the store.
    fn settle(&mut self, added: Result<()>, is_named: bool) -> Result<()> {
        use Failure::{Damaged, Output, Stopped, Store};
        match added {
            Ok(()) => Ok(()),
            // A store that fails would fail for the next file, too.
            Err(failure @ (Store(_) | Damaged(_) | Output(_) | Stopped(_))) => Err(failure),
            Err(failure) => {
                failure.report();
                self.total.fail(is_named);
                Ok(())
            }
        }
    }

    /// Adds a file to the import, with a progress bar.
    fn add(&mut self, name: &str, file: File) -> talktree::Result<()> {
        let bar = Bar::of_bytes(name.rsplit('/').next().unwrap_or(name));
        self.importer.add(name, file, |progress| bar.show(progress))
    }
}

/// Returns whether the import used any record; an empty file counts as used.
fn brought_something(report: &ImportReport) -> bool {
    let is_any_left = report.erased.is_empty() || report.erased.len() < report.sessions.len();
    // In talktree's own format the lines before and after the messages are converted, also if every message is left out.
    // An export of a store without messages has no fault.
    let is_lost = report.format == Format::Own.as_str()
        && report.added + report.known == 0
        && report.first_fault().is_some()
        && (report.dropped > 0 || report.sessions.is_empty());
    report.records == 0 || report.kept > 0 || report.converted > 0 && is_any_left && !is_lost
}

#[derive(Default)]
struct Total {
    files: u64,
    added: u64,
    sessions: std::collections::BTreeSet<SessionId>,
    /// How many files were read, those of archives included.
    tried: usize,
    /// How many of these could not be imported.
    failed: usize,
    /// Whether one that could not be imported was named by the user, not found in a folder.
    is_refused: bool,
    /// The files that were named by the user.
    named: std::collections::BTreeSet<PathBuf>,
    /// Whether only the reports with new messages or notes are printed.
    is_brief: bool,
}

impl Total {
    fn add(&mut self, report: &ImportReport) {
        self.files += 1;
        self.added += report.added;
        self.sessions.extend(report.sessions.iter().cloned());
    }

    fn sum(&self, args: &ImportArgs) -> String {
        let verb = if args.dry_run { "would be imported" } else { "imported" };
        let (added, sessions, files) = (self.added, self.sessions.len(), self.files);
        format!("{verb}: {added} new messages, {sessions} sessions, {files} files")
    }

    fn fail(&mut self, is_named: bool) {
        self.failed += 1;
        self.is_refused |= is_named;
    }

    /// Prints the reports of the files that are stored to the end.
    fn report(
        &mut self,
        reports: Vec<ImportReport>,
        printer: &mut Printer<'_>,
        context: &mut Context,
    ) -> Result<()> {
        for report in &reports {
            match brought_something(report) {
                true => self.add(report),
                false => self.fail(self.named.contains(&report.path)),
            }
            if self.is_brief && report.added == 0 && report.notes.is_empty() {
                continue;
            }
            match printer.write(context, report) {
                // As with `| head`: the reader has seen enough, but the import was asked for as a whole.
                Err(Failure::Output(error)) if error.kind() == ErrorKind::BrokenPipe => {
                    context.out = Output::nowhere();
                }
                written => written?,
            }
        }
        Ok(())
    }

    fn failure(&self) -> Failure {
        Failure::Input(format!("not imported: {} of {} files", self.failed, self.tried))
    }
}

/// Opens the store and creates it if it is missing; a dry run creates none.
fn open(args: &ImportArgs, context: &Context) -> Result<Store> {
    match args.dry_run && context.is_missing()? {
        true => Ok(Store::open_in_memory()?),
        false => context.maker(),
    }
}

/// Returns the files to import, and a total that counts the folders and files that cannot be read.
fn sources(paths: &[PathBuf]) -> Result<(Vec<Source>, Total)> {
    let (mut sources, mut total) = (Vec::new(), Total::default());
    for path in paths {
        if path.is_dir() {
            let failed = total.failed;
            let found = conversation_files(path, |unreadable, error| {
                total.tried += 1;
                total.fail(unreadable == path.as_path());
                tell(&format!("{}: {error}", shown(unreadable)));
            });
            if found.is_empty() && total.failed == failed {
                tell(&format!(
                    "{} holds no *.jsonl, *.json, *.zip, *.zst, *.db or *.vscdb",
                    shown(path)
                ));
            }
            sources.extend(found.into_iter().map(|path| Source { path, is_named: false }));
        } else if path.exists() || is_stdin(path) {
            sources.push(Source { path: path.clone(), is_named: true });
        } else {
            // Checked first, so that no store is created for a missing file.
            let name = shown(path);
            let why = dangling(path).map(|why| format!("{name}: {why}"));
            return Err(Failure::Input(why.unwrap_or_else(|| format!("{name} does not exist"))));
        }
    }
    match (sources.is_empty(), total.failed) {
        (true, 0) => Err(Failure::NotFound(
            "nothing to import: no *.jsonl, *.json, *.zip, *.zst, *.db or *.vscdb was found"
                .to_owned(),
        )),
        (true, _) => Err(total.failure()),
        (false, _) => Ok((sources, total)),
    }
}

/// Opens a file, or copies a stream to one; returns whether it is an archive.
fn open_file(path: &Path) -> Result<(File, bool)> {
    let cannot = |error: std::io::Error| Failure::Input(format!("{}: {error}", shown(path)));
    let copied = |stream: &mut dyn Read| spool(stream, &Limit::of_stream()).map(|(file, _)| file);
    let mut file = match is_stdin(path) {
        true => copied(&mut std::io::stdin().lock()).map_err(cannot)?,
        false => {
            let mut file = open_input(path).map_err(cannot)?;
            match file.metadata().map_err(cannot)?.is_file() {
                true => file,
                // A pipe or a device.
                false => copied(&mut file).map_err(cannot)?,
            }
        }
    };
    let mut magic = Vec::new();
    file.by_ref().take(4).read_to_end(&mut magic).map_err(cannot)?;
    file.seek(SeekFrom::Start(0)).map_err(cannot)?;
    Ok((file, magic == archive::MAGIC))
}

fn failure_of(error: Error) -> Failure {
    match error {
        // Here such an error is about the input file, not the store.
        error @ (Error::Io { .. } | Error::Json { .. }) => Failure::Input(error.to_string()),
        error => error.into(),
    }
}

/// Prints the reports of files.
pub(super) struct Printer<'a> {
    store: &'a Store,
    /// Read once: there may be as many files as sessions.
    short: Option<ShortIds>,
}

impl<'a> Printer<'a> {
    pub(super) fn new(store: &'a Store) -> Self {
        Self { store, short: None }
    }

    pub(super) fn write(&mut self, context: &mut Context, report: &ImportReport) -> Result<()> {
        if context.is_json {
            return Ok(context.out.json(report)?);
        }
        let out = &mut context.out;
        let ImportReport { path, format, records, kept, converted, dropped, added, .. } = report;
        put!(out; STRONG &path.to_string_lossy(), FAINT &format!("  {format}"))?;
        let known = match report.known {
            0 => String::new(),
            known => format!(", {known} known"),
        };
        let counts =
            format!("  {records} records: {kept} kept, {converted} converted, {dropped} dropped");
        put!(out; PLAIN &counts, PLAIN &format!("; {added} new messages{known}"))?;
        if let [session] = &report.sessions[..] {
            let short = match &mut self.short {
                Some(short) => short,
                none => none.insert(ShortIds::of_sessions(self.store)?),
            };
            put!(out; PLAIN "  session ", ID short.of(session.as_str()))?;
        } else {
            put!(out; PLAIN &format!("  {} sessions", report.sessions.len()))?;
        }
        if !report.erased.is_empty() {
            let count = plural(report.erased.len() as u64, "session");
            let line = format!("  {count} left out: erased, and must not be imported again");
            put!(out; PLAIN &line)?;
        }
        if !report.redacted.is_empty() {
            let kinds = report.redacted.iter().map(|(kind, count)| format!("{kind} ({count})"));
            put!(out; PLAIN &format!("  redacted: {}", kinds.collect::<Vec<_>>().join(", ")))?;
        }
        let file = shown(path);
        for note in report.notes.iter().take(MAX_NOTES) {
            let place = note.line.map_or_else(String::new, |line| format!(", line {line}"));
            tell(&format!("{file}{place}: {}", note.why));
        }
        let more = report.notes.len().saturating_sub(MAX_NOTES) as u64 + report.notes_left_out;
        if more > 0 {
            tell(&format!("{file}: {more} more notes; --json prints all"));
        }
        Ok(())
    }
}
