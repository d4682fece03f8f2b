//! One import from beginning to end: the lines of a file, its exports, their sessions.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use uuid::Uuid;

use super::boundary::Boundary;
use super::incoming::Incoming;
use super::lines::{Lines, ReadSeek};
use super::look_ahead::look_ahead;
use super::record::{self, Kind, Record};
use super::report::ImportReport;
use super::whole::{Gathered, Queue, Start};
use super::{FORMAT, JsonlOptions};
use crate::error::{Error, Result};
use crate::export::{Counts, FORMAT_VERSION, chain};
use crate::id::{SessionId, check_name};
use crate::report::Progress;
use crate::store::Store;

/// How many bytes are read between two calls of `progress`.
const PROGRESS_STEP: u64 = 1 << 20;

pub(super) fn import(
    store: &Store,
    path: &Path,
    source: &mut dyn ReadSeek,
    options: &JsonlOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<ImportReport> {
    let watch = store.interrupt_handle().watch();
    let check = || watch.check();
    let mut run = |source: &mut dyn ReadSeek, is_dry: bool| {
        Driver::open(store, path, source, options, is_dry, &check, progress)?.run()
    };
    let refused = |line, why| Error::Import { path: path.to_owned(), line, why };
    // Reasons to refuse the import are found before anything is written.
    if options.is_dry_run || options.is_strict || options.session.is_some() {
        let (report, sessions) = run(source, true)?;
        if let Some(fault) = report.first_fault().filter(|_| options.is_strict) {
            return Err(refused(fault.line, fault.why.clone()));
        }
        if options.session.is_some() && sessions > 1 {
            let why = format!("holds {sessions} conversations; a session can be given for one");
            return Err(refused(None, why));
        }
        if options.is_dry_run {
            return Ok(report);
        }
    }
    run(source, false).map(|(report, _)| report)
}

/// Where in an export a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// Before a header.
    Outside,
    Inside,
    /// Inside an export of a version that this build does not know.
    Newer,
}

struct Driver<'a> {
    store: &'a Store,
    path: &'a Path,
    options: &'a JsonlOptions,
    is_dry: bool,
    check: &'a dyn Fn() -> Result<()>,
    progress: &'a mut dyn FnMut(Progress),
    lines: Lines<'a>,
    report: ImportReport,
    position: Position,
    /// The version of the export being read.
    version: u32,
    /// The counts of the export so far.
    counts: Counts,
    checksum: Uuid,
    /// Whether a line could not be read; then the checksum cannot match.
    is_damaged: bool,
    /// The session being read: one that is stored step by step, or one that is gathered to wait for others.
    session: Option<Incoming>,
    gathered: Option<Gathered>,
    /// Decides which records are of that session.
    boundary: Boundary,
    queue: Queue,
    /// The sessions of the report.
    named: HashSet<SessionId>,
    sessions: u64,
}

impl<'a> Driver<'a> {
    fn open(
        store: &'a Store,
        path: &'a Path,
        source: &'a mut dyn ReadSeek,
        options: &'a JsonlOptions,
        is_dry: bool,
        check: &'a dyn Fn() -> Result<()>,
        progress: &'a mut dyn FnMut(Progress),
    ) -> Result<Self> {
        let failed = |source| Error::Io { path: path.to_owned(), source };
        Ok(Self {
            store,
            path,
            options,
            is_dry,
            check,
            progress,
            lines: Lines::open(source).map_err(failed)?,
            report: ImportReport::new(path, FORMAT),
            position: Position::Outside,
            version: FORMAT_VERSION,
            counts: Counts::default(),
            checksum: Uuid::nil(),
            is_damaged: false,
            session: None,
            gathered: None,
            boundary: Boundary::default(),
            queue: Queue::default(),
            named: HashSet::new(),
            sessions: 0,
        })
    }

    /// Reads the file; returns the report and how many sessions it holds.
    fn run(mut self) -> Result<(ImportReport, u64)> {
        let last_line = match self.read() {
            // What was read before the file failed is stored, as it would be in a longer file.
            Err(error @ Error::Io { .. }) => return self.flush().and(Err(error)),
            read => read?,
        };
        self.flush()?;
        self.warn_if_cut(last_line);
        (self.progress)(Progress::new(self.lines.size(), self.lines.size()));
        Ok((self.report, self.sessions))
    }

    /// Reads all lines; returns the number of the last one.
    fn read(&mut self) -> Result<u64> {
        let failed = |source| Error::Io { path: self.path.to_owned(), source };
        let (mut told, mut last_line) = (0, 1);
        while let Some(line) = self.lines.next().map_err(failed)? {
            (self.check)()?;
            let settled = self.report.added + self.report.known;
            last_line = line.number;
            self.report.records += 1;
            match line.text {
                Ok(text) => self.take(line.number, &text)?,
                Err(why) => self.lose_damaged(line.number, why),
            }
            let offset = self.lines.place().offset;
            let has_stored = self.report.added + self.report.known > settled;
            if has_stored || offset >= told + PROGRESS_STEP {
                told = offset;
                (self.progress)(Progress::new(offset, self.lines.size()));
            }
        }
        self.close_session()?;
        Ok(last_line)
    }

    fn lose_damaged(&mut self, line: u64, why: String) {
        self.is_damaged = true;
        self.boundary.pass_damaged();
        self.report.lose(line, why);
    }

    fn take(&mut self, line: u64, text: &str) -> Result<()> {
        let record = match Record::of(text) {
            Ok(record) => record,
            Err(why) => {
                self.lose_damaged(line, why);
                return Ok(());
            }
        };
        match (record, self.position) {
            (Record::Header(version), _) => {
                self.close_session()?;
                self.begin(line, text, version);
            }
            (_, Position::Newer) => {
                self.report.lose(line, "part of an export of an unknown version");
            }
            (_, Position::Outside) => {
                self.report.lose(line, "outside of an export: no header comes before it");
            }
            (Record::End { counts, checksum }, Position::Inside) => {
                self.close_session()?;
                self.end(line, counts, &checksum);
            }
            (Record::Of(kind, number, text), Position::Inside) => {
                self.checksum = chain(self.checksum, text);
                self.count(kind);
                let taken = self.take_of_session(line, kind, number, text)?;
                self.lose_left_out(line, kind, taken);
            }
        }
        Ok(())
    }

    fn lose_left_out(&mut self, line: u64, kind: Kind, taken: std::result::Result<(), String>) {
        if let Err(why) = taken {
            let kind = kind.as_str();
            self.report.lose(line, format!("{kind} record left out: {why}"));
        }
    }

    fn begin(&mut self, line: u64, text: &str, version: f64) {
        self.warn_if_cut(line);
        (self.counts, self.checksum, self.is_damaged) = (Counts::default(), Uuid::nil(), false);
        if let Some(known) = (1..=FORMAT_VERSION).find(|known| version == f64::from(*known)) {
            self.version = known;
            self.position = Position::Inside;
            self.checksum = chain(self.checksum, text);
            self.report.converted += 1;
            return;
        }
        self.position = Position::Newer;
        let why =
            format!("an export of version {version}; this build reads up to {FORMAT_VERSION}");
        self.report.lose(line, why);
    }

    fn end(&mut self, line: u64, told: Counts, checksum: &str) {
        self.report.converted += 1;
        self.position = Position::Outside;
        if self.is_damaged {
            return;
        }
        if told != self.counts {
            let why = format!("the export holds {}, not {told} as its end says", self.counts);
            self.report.fault(line, why);
        } else if checksum != self.checksum.to_string() {
            self.report.fault(line, "the checksum does not fit: the export was changed");
        }
    }

    fn warn_if_cut(&mut self, line: u64) {
        if self.position == Position::Inside {
            self.report.fault(line, "the export has no end record: it was cut off");
        }
    }

    fn count(&mut self, kind: Kind) {
        let Counts { sessions, messages, compactions, labels } = &mut self.counts;
        match kind {
            Kind::Session => *sessions += 1,
            Kind::Message => *messages += 1,
            Kind::Compaction => *compactions += 1,
            Kind::Label => *labels += 1,
            Kind::Tombstone | Kind::Elision | Kind::Tag | Kind::Head | Kind::Unknown => {}
        }
    }

    /// Stores a record of a session; the inner error says why it is dropped.
    fn take_of_session(
        &mut self,
        line: u64,
        kind: Kind,
        number: Option<u64>,
        text: &str,
    ) -> Result<std::result::Result<(), String>> {
        if kind == Kind::Session {
            self.close_session()?;
            return self.open_session(line, number, text);
        }
        let version = self.version;
        let is_open = self.gathered.is_some() || self.session.is_some();
        if is_open && !self.boundary.holds(kind, number, || record::is_root(kind, text, version)) {
            return Ok(Err("the record of its session is damaged or missing".to_owned()));
        }
        if let Some(gathered) = &mut self.gathered {
            if gathered.take(line, kind, text) {
                return Ok(Ok(()));
            }
            if let Some(gathered) = self.gathered.take() {
                self.flush()?;
                self.read_again(gathered.into_start())?;
            }
        }
        self.take_step(line, kind, text)
    }

    /// Stores a record of a session that is stored step by step.
    fn take_step(
        &mut self,
        line: u64,
        kind: Kind,
        text: &str,
    ) -> Result<std::result::Result<(), String>> {
        let Some(session) = &mut self.session else {
            return Ok(Err("it comes before any session".to_owned()));
        };
        match record::part(kind, text, self.version) {
            Ok(part) => session.take(line, text.len(), part, &mut self.report).map(Ok),
            Err(why) => Ok(Err(why)),
        }
    }

    fn open_session(
        &mut self,
        line: u64,
        number: Option<u64>,
        text: &str,
    ) -> Result<std::result::Result<(), String>> {
        let (id, mut details) = match record::session(text) {
            Ok(session) => session,
            Err(why) => return Ok(Err(why)),
        };
        self.sessions += 1;
        self.report.converted += 1;
        let boundary = Boundary::of(number, &id);
        self.boundary = boundary.clone();
        let id = self.options.session.as_ref().unwrap_or(&id).clone();
        if self.named.insert(id.clone()) {
            self.report.sessions.push(id.clone());
        }
        if let Some(Err(error)) = details.name.as_ref().map(|name| check_name("session name", name))
        {
            self.report.fault(line, error.to_string());
            details.name = None;
        }
        if self.queue.holds(&id) {
            self.flush()?;
        }
        let place = self.lines.place();
        let version = self.version;
        let start = Start { id, details, line, last_line: line, place, version, boundary };
        let (id, session) = (start.id.clone(), self.store.session(&start.id)?);
        let info = session.info()?;
        let is_erased = self.store.is_import_forbidden(&id)?;
        let refused = match &info {
            _ if is_erased => Some(Error::SessionErased { id: id.clone() }),
            Some(info) if info.deleted_at.is_some() => {
                Some(Error::SessionInTrash { id: id.clone() })
            }
            _ => None,
        };
        if let Some(why) = refused {
            self.report.remark(line, why.to_string());
            // The line of the session is dropped, too.
            self.report.converted -= 1;
            self.report.dropped += 1;
            self.report.erased.extend(is_erased.then_some(id));
            self.session = Some(Incoming::refused(session));
            return Ok(Ok(()));
        }
        let is_whole = !self.is_dry && self.options.session.is_none();
        if is_whole && info.is_none() {
            self.gathered = Some(Gathered::new(start));
            return Ok(Ok(()));
        }
        self.begin_steps(start)?;
        Ok(Ok(()))
    }

    /// Begins to store a session step by step.
    fn begin_steps(&mut self, start: Start) -> Result<()> {
        let Start { id, details, line, version, boundary, .. } = start;
        // What a fork shares with its original is found in the store only.
        if details.parent_session.as_ref().is_some_and(|original| self.queue.holds(original)) {
            self.flush()?;
        }
        let session = self.store.session(&id)?;
        let has_messages = session.latest_leaf()?.is_some();
        let stored = Some(&session).filter(|_| has_messages && self.options.session.is_none());
        let path = self.path;
        let failed = |source: io::Error| Error::Io { path: path.to_owned(), source };
        let ahead = look_ahead(&mut self.lines, version, boundary, stored, self.check, &failed)?;
        let session = match ahead.conflict {
            None => Incoming::open(session, has_messages, &details, ahead.mark, self.is_dry)?,
            Some(why) => {
                let why = format!(
                    "session {id:?} already holds another conversation ({why}): {} messages left \
                     out; import them into a session of another id",
                    ahead.messages
                );
                self.report.fault(line, why);
                Incoming::refused(session)
            }
        };
        self.session = Some(session);
        Ok(())
    }

    /// Reads the lines of a session again that were gathered, and stores it step by step.
    fn read_again(&mut self, start: Start) -> Result<()> {
        let path = self.path;
        let failed = |source: io::Error| Error::Io { path: path.to_owned(), source };
        let (here, version) = (self.lines.place(), self.version);
        let last_line = start.last_line;
        self.lines.go_back(start.place).map_err(failed)?;
        self.version = start.version;
        let mut boundary = start.boundary.clone();
        self.begin_steps(start)?;
        while let Some(line) = self.lines.next().map_err(failed)?
            && line.number <= last_line
        {
            (self.check)()?;
            // A damaged line between these was reported when it was read first, and so was one of another session.
            let read = line.text.as_deref().map_err(String::as_str);
            let Ok(Ok(Record::Of(kind, number, text))) = read.map(Record::of) else {
                boundary.pass_damaged();
                continue;
            };
            let version = self.version;
            if boundary.holds(kind, number, || record::is_root(kind, text, version)) {
                let taken = self.take_step(line.number, kind, text)?;
                self.lose_left_out(line.number, kind, taken);
            }
        }
        self.version = version;
        self.lines.go_back(here).map_err(failed)
    }

    /// Stores the sessions that wait; one that is refused is stored step by step, which says what is wrong with it.
    fn flush(&mut self) -> Result<()> {
        if self.queue.is_empty() {
            return Ok(());
        }
        let outcomes = self.store.import_sessions(self.queue.imports())?;
        for start in self.queue.settle(outcomes, &mut self.report) {
            self.read_again(start)?;
            self.close_steps()?;
        }
        Ok(())
    }

    fn close_session(&mut self) -> Result<()> {
        let Some(gathered) = self.gathered.take() else { return self.close_steps() };
        if let Err(start) = self.queue.add(gathered) {
            self.flush()?;
            self.read_again(*start)?;
            return self.close_steps();
        }
        if self.queue.is_full() { self.flush() } else { Ok(()) }
    }

    fn close_steps(&mut self) -> Result<()> {
        match self.session.take() {
            Some(session) => session.close(&mut self.report),
            None => Ok(()),
        }
    }
}
