//! Importing many files.

use std::io::{Read, Seek};
use std::path::Path;

use crate::report::ImportReport;
use talktree::{Progress, Result, Store};

use crate::ImportOptions;
use crate::driver;
use crate::write::Queue;

/// Imports many files, and stores the short conversations of several files in one transaction.
///
/// A commit waits for the disk: 2 000 files of one conversation each take a tenth of the time that
/// [`import`](crate::import) takes for each. Call [`finish`](Self::finish): what waits when an importer is dropped is not
/// stored.
///
/// ```
/// use std::io::Cursor;
/// use talktree::Store;
/// use talktree_import::{ImportOptions, Importer};
///
/// let store = Store::open_in_memory()?;
/// let mut importer = Importer::new(&store, ImportOptions::default());
/// for day in ["monday", "tuesday"] {
///     let file = format!(r#"{{"id": "{day}", "messages": [{{"role": "user", "content": "hi"}}]}}"#);
///     importer.add(day, Cursor::new(file), |_| {})?;
/// }
/// let reports = importer.finish()?;
/// assert_eq!((reports.len(), reports[1].added), (2, 1));
/// assert_eq!(store.sessions()?.len(), 2);
/// # Ok::<(), talktree::Error>(())
/// ```
pub struct Importer<'a> {
    store: &'a Store,
    options: ImportOptions,
    /// Whether files are imported again and again: then what is gone from the store stays out.
    is_live: bool,
    queue: Queue,
}

impl<'a> Importer<'a> {
    /// Returns an importer into a store; the options hold for every file.
    #[must_use]
    pub fn new(store: &'a Store, options: ImportOptions) -> Self {
        Self { store, options, is_live: false, queue: Queue::default() }
    }

    /// Returns an importer of a [`Collector`](crate::Collector).
    pub(crate) fn of_live_files(store: &'a Store, options: ImportOptions) -> Self {
        Self { is_live: true, ..Self::new(store, options) }
    }

    pub(crate) fn options(&self) -> &ImportOptions {
        &self.options
    }

    /// Reads a file; its last conversations may wait to be stored with those of the next files.
    ///
    /// # Errors
    /// As [`import`](crate::import). After an error of the file ([`Error::Io`](talktree::Error::Io),
    /// [`Error::Import`](talktree::Error::Import)) the next one can be added; the file has no report then.
    pub fn add(
        &mut self,
        name: impl AsRef<Path>,
        mut reader: impl Read + Seek,
        mut progress: impl FnMut(Progress),
    ) -> Result<()> {
        let (name, queue) = (name.as_ref(), &mut self.queue);
        let options = (&self.options, self.is_live);
        driver::import(self.store, queue, name, &mut reader, options, &mut progress)
    }

    /// Returns the reports of the files that are stored to the end, in order, each once.
    pub fn take_reports(&mut self) -> Vec<ImportReport> {
        self.queue.take_reports()
    }

    /// Stores what waits, and returns the remaining reports.
    ///
    /// # Errors
    /// As every write.
    pub fn finish(mut self) -> Result<Vec<ImportReport>> {
        self.flush()
    }

    pub(crate) fn flush(&mut self) -> Result<Vec<ImportReport>> {
        self.queue.flush(self.store, &mut ImportReport::new("", ""))?;
        Ok(self.queue.take_reports())
    }
}

impl std::fmt::Debug for Importer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Importer").field("options", &self.options).finish_non_exhaustive()
    }
}
