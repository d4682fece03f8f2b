//! The times of a file that cannot be read.

use crate::report::ImportReport;

use crate::fields::Fields;

/// Counts the times of a file that cannot be read, for one note.
#[derive(Debug, Default)]
pub(crate) struct UnreadTimes {
    count: u64,
    /// The line of the first one.
    line: u64,
}

impl UnreadTimes {
    /// Counts a time that is given in at least one of these fields, and can be read in none of them.
    pub(crate) fn check(&mut self, line: u64, given: &[(&Fields, &str)]) {
        let is_read = given.iter().any(|(fields, name)| fields.time(name).is_some());
        if is_read || given.iter().all(|(fields, name)| fields.get(name).is_none()) {
            return;
        }
        if self.count == 0 {
            self.line = line;
        }
        self.count += 1;
    }

    /// Adds the note if there are such times; `instead` is the time that replaces each.
    pub(crate) fn report(&self, instead: &str, report: &mut ImportReport) {
        if self.count > 0 {
            let count = self.count;
            let why =
                format!("unreadable times: {count}, the first one here; {instead} is used instead");
            report.remark(self.line, why);
        }
    }
}
