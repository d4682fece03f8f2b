//! The import of one file from beginning to end: find the format, read, write, report.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::SystemTime;

use crate::report::ImportReport;
use chrono::{DateTime, SubsecRound, Utc};
use talktree::{Error, Progress, Result, Store};

use crate::ImportOptions;
use crate::draft::Origin;
use crate::fields::Fields;
use crate::formats::Format;
use crate::formats::database::{self, Found};
use crate::records::{Damage, ReadSeek, Record, Records};
use crate::sniff::{Sniffed, sniff};
use crate::work::Source;
use crate::write::{Queue, Writer};

/// How many bytes are read between two calls of `progress`.
const PROGRESS_STEP: u64 = 1 << 20;

/// Imports a file; sessions may wait in the queue, and its report with them.
pub(crate) fn import(
    store: &Store,
    queue: &mut Queue,
    path: &Path,
    source: &mut dyn ReadSeek,
    (options, is_live): (&ImportOptions, bool),
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    let io_error = |source| Error::Io { path: path.to_owned(), source };
    let refused = |line, why| Error::Import { path: path.to_owned(), line, why };
    #[cfg(feature = "zstd")]
    let mut unpacked = crate::unpack::unpack(source).map_err(io_error)?;
    #[cfg(feature = "zstd")]
    let source = match &mut unpacked {
        Some(file) => file as &mut dyn ReadSeek,
        None => source,
    };
    let mut lines;
    let source = match database::look(path, source).map_err(io_error)? {
        Found::Lines(found) => {
            lines = found;
            &mut lines
        }
        Found::Database(sign) => return Err(refused(None, Sniffed::of_database(sign).unknown())),
        Found::File => source,
    };
    let mut records = Records::open(source).map_err(io_error)?;
    let sniffed = sniff(&mut records).map_err(io_error)?;
    let format = options.format.or(sniffed.format());
    let format = format.ok_or_else(|| refused(None, sniffed.unknown()))?;
    if let Some(why) = sniffed.contradiction(format, &mut records).map_err(io_error)? {
        return Err(refused(None, why));
    }
    let watch = store.interrupt_handle();
    let check = || watch.check();
    // Reads the file; returns the report and the number of conversations.
    let mut run = |is_dry: bool| -> Result<(ImportReport, u64)> {
        let mut report = ImportReport::new(path, format.as_str());
        let mut writer = Writer {
            store,
            options,
            is_dry,
            is_live,
            check: &check,
            named: HashSet::new(),
            queue: &mut *queue,
            foreseen: HashMap::new(),
        };
        let file = (path, format);
        let read = read(file, &mut records, progress, &mut writer, &mut report);
        // What was read before the file failed is stored, as it would be in a longer file.
        let stored = match &read {
            Err(error) if is_of_file(error) => writer.queue.flush(store, &mut report),
            Ok(_) if options.is_strict => writer.queue.flush(store, &mut report),
            _ => Ok(()),
        };
        let read = stored.and(read);
        if read.is_err() {
            writer.queue.forget_current();
        }
        report.sort();
        match (read?, report.first_fault().filter(|_| options.is_strict)) {
            (_, Some(fault)) => Err(refused(fault.line, fault.why.clone())),
            (conversations, None) => Ok((report, conversations)),
        }
    };
    // Reasons to refuse the import are found before anything is written. A fault of the second reading is that of a file that was
    // changed since.
    if options.is_dry_run || options.is_strict || options.session.is_some() {
        let (report, conversations) = run(true)?;
        if options.session.is_some() && conversations > 1 {
            let why =
                format!("holds {conversations} conversations; a session can be given for one");
            return Err(refused(None, why));
        }
        if options.is_dry_run {
            queue.keep(report);
            return Ok(());
        }
    }
    let (report, _) = run(false)?;
    queue.keep(report);
    Ok(())
}

/// Reads the file once, and the records of conversations of several records a second time.
/// Returns the number of conversations.
fn read(
    (path, format): (&Path, Format),
    records: &mut Records<'_>,
    progress: &mut dyn FnMut(Progress),
    writer: &mut Writer<'_>,
    report: &mut ImportReport,
) -> Result<u64> {
    let io_error = |source| Error::Io { path: path.to_owned(), source };
    let file = path.to_string_lossy().into_owned();
    // `Utc::now` panics if the clock of the system shows a time before 1970.
    let now = DateTime::<Utc>::from(SystemTime::now()).trunc_subsecs(6);
    let mut reader = format.reader(Origin { file, keeps_source: writer.options.keeps_source, now });
    let (size, mut reported, mut conversations) = (records.size, 0, 0);

    records.rewind().map_err(io_error)?;
    while let Some(record) = records.next().map_err(io_error)? {
        (writer.check)()?;
        let (at, _) = records.place();
        if at >= reported + PROGRESS_STEP {
            reported = at;
            progress(Progress::new(reported, size));
        }
        let damage = match record {
            Err(damage) => damage,
            Ok(record) => match Fields::parse(&record.text) {
                Ok(fields) => {
                    if let Some(draft) = reader.read(&record, fields, report) {
                        conversations += 1;
                        let bytes = draft.bytes + record.text.len();
                        let place = records.place();
                        let mut source = Source { path, records: &mut *records, reader: &*reader };
                        writer.write(draft, bytes, &mut source, report)?;
                        records.go_to(place).map_err(io_error)?;
                    }
                    continue;
                }
                Err(error) => damage_of(record, &error),
            },
        };
        reader.pass_damaged(damage.line, &damage.text);
        report.records += 1;
        report.lose(damage.line, damage.why);
    }
    let drafts = reader.finish(report);
    report.note_times();
    conversations += drafts.len() as u64;
    let nodes: u64 = drafts.iter().map(|draft| draft.nodes.len() as u64).sum();
    let mut before = 0;
    for draft in drafts {
        before += draft.nodes.len() as u64;
        let mut source = Source { path, records: &mut *records, reader: &*reader };
        writer.write(draft, 0, &mut source, report)?;
        let share = size.saturating_mul(before) / nodes.max(1);
        progress(Progress::new(size + share, 2 * size));
    }
    let total = if nodes > 0 { 2 * size } else { size };
    progress(Progress::new(total, total));
    Ok(conversations)
}

fn damage_of(record: Record, error: &serde_json::Error) -> Damage {
    let why = match error.is_data() {
        true => "a record is a JSON object; this is none".to_owned(),
        // The parser counts lines from the start of the record, so only the column is useful if the
        // record is one line.
        false => format!("damaged JSON: {error}"),
    };
    Damage { line: record.line, why, text: record.text.into_bytes() }
}

/// Returns whether an error is about the file and not the store, so that the import may go on with the next file.
pub(crate) fn is_of_file(error: &Error) -> bool {
    matches!(error, Error::Io { .. } | Error::Import { .. } | Error::Json { .. })
}
