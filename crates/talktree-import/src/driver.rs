//! One import from beginning to end: find the format, read, write, report.

use std::collections::HashSet;
use std::path::Path;

use chrono::{SubsecRound, Utc};
use talktree::import::{ImportReport, JsonlOptions};
use talktree::{Error, InterruptWatch, Progress, Result, Store};

use crate::ImportOptions;
use crate::draft::Reader;
use crate::fields::Fields;
use crate::formats::Format;
use crate::records::{Damage, ReadSeek, Records};
use crate::sniff::sniff;
use crate::write::Writer;

/// How many bytes are read between two calls of `progress`.
const PROGRESS_STEP: u64 = 1 << 20;

/// Imports a file.
pub(crate) fn import(
    store: &Store,
    path: &Path,
    source: &mut dyn ReadSeek,
    options: &ImportOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<ImportReport> {
    let io_error = |source| Error::Io { path: path.to_owned(), source };
    let refused = |line, why| Error::Import { path: path.to_owned(), line, why };
    let mut records = Records::open(source).map_err(io_error)?;
    let sniffed = sniff(&mut records).map_err(io_error)?;
    let format = options.format.or(sniffed.format);
    let format = format.ok_or_else(|| refused(None, sniffed.unknown()))?;
    if let Some(why) = sniffed.contradiction(format, &mut records).map_err(io_error)? {
        return Err(refused(None, why));
    }
    if format == Format::Own {
        drop(records);
        let ImportOptions { session, is_strict, is_dry_run, .. } = options.clone();
        let options = JsonlOptions { session, is_strict, is_dry_run };
        return store.import_jsonl(path, source, &options, progress);
    }
    let watch = store.interrupt_handle().watch();
    let mut run = Run { store, path, options, format, records: &mut records, progress, watch };
    // Reasons to refuse the import are found before anything is written.
    if options.is_dry_run || options.is_strict || options.session.is_some() {
        let (report, conversations) = run.run(true)?;
        if let Some(fault) = report.first_fault().filter(|_| options.is_strict) {
            return Err(refused(fault.line, fault.why.clone()));
        }
        if options.session.is_some() && conversations > 1 {
            let why =
                format!("holds {conversations} conversations; a session can be given for one");
            return Err(refused(None, why));
        }
        if options.is_dry_run {
            return Ok(report);
        }
    }
    let (report, _) = run.run(false)?;
    // The first reading had no fault, so the file was changed since.
    match report.first_fault().filter(|_| options.is_strict) {
        Some(fault) => Err(refused(fault.line, fault.why.clone())),
        None => Ok(report),
    }
}

struct Run<'a, 'b> {
    store: &'a Store,
    path: &'a Path,
    options: &'a ImportOptions,
    format: Format,
    records: &'a mut Records<'b>,
    progress: &'a mut dyn FnMut(Progress),
    watch: InterruptWatch,
}

impl Run<'_, '_> {
    /// Reads the file once, and the records of conversations of several records a second time.
    /// Returns the report and the number of conversations.
    fn run(&mut self, is_dry: bool) -> Result<(ImportReport, u64)> {
        let path = self.path.to_owned();
        let io_error = |source| Error::Io { path: path.clone(), source };
        let mut report = ImportReport::new(self.path, self.format.as_str());
        let Some(mut reader) = self.reader() else { return Ok((report, 0)) };
        let watch = self.watch.clone();
        let check = || watch.check();
        let mut writer = Writer {
            store: self.store,
            options: self.options,
            is_dry,
            check: &check,
            named: HashSet::new(),
        };
        let (size, mut told, mut conversations) = (self.records.size(), 0, 0);

        self.records.rewind().map_err(io_error)?;
        while let Some(record) = self.records.next().map_err(io_error)? {
            watch.check()?;
            if self.records.position() >= told + PROGRESS_STEP {
                told = self.records.position();
                (self.progress)(Progress::new(told, size));
            }
            let damage = match record {
                Err(damage) => damage,
                Ok(record) => match Fields::parse(&record.text) {
                    Ok(fields) => {
                        if let Some(draft) = reader.read(&record, fields, &mut report) {
                            conversations += 1;
                            let mut hear = |_, _| {};
                            writer
                                .write(draft, self.records, &*reader, &mut report, &mut hear)
                                .map_err(|error| at_path(error, &path))?;
                        }
                        continue;
                    }
                    Err(error) => damage_of(record.line, &error),
                },
            };
            report.records += 1;
            report.lose(damage.line, damage.why);
        }
        let drafts = reader.finish(&mut report);
        conversations += drafts.len() as u64;
        let nodes: u64 = drafts.iter().map(|draft| draft.nodes.len() as u64).sum();
        let mut before = 0;
        for draft in drafts {
            let count = draft.nodes.len() as u64;
            let mut hear = |done: u64, _| {
                let share = size.saturating_mul(before + done) / nodes.max(1);
                (self.progress)(Progress::new(size + share, 2 * size));
            };
            writer
                .write(draft, self.records, &*reader, &mut report, &mut hear)
                .map_err(|error| at_path(error, &path))?;
            before += count;
        }
        let total = if nodes > 0 { 2 * size } else { size };
        (self.progress)(Progress::new(total, total));
        Ok((report, conversations))
    }

    fn reader(&self) -> Option<Box<dyn Reader>> {
        let file = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.format.reader(file, self.options.keeps_source, Utc::now().trunc_subsecs(6))
    }
}

fn damage_of(line: u64, error: &serde_json::Error) -> Damage {
    let why = match error.is_data() {
        true => "a record is a JSON object; this is none".to_owned(),
        // The parser counts lines from the start of the record, so only the column is useful if the
        // record is one line.
        false => format!("damaged JSON: {error}"),
    };
    Damage { line, why }
}

/// Adds the path to an error of the second reading.
fn at_path(error: Error, path: &Path) -> Error {
    match error {
        Error::Io { source, .. } => Error::Io { path: path.to_owned(), source },
        other => other,
    }
}
