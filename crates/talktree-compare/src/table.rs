//! The table: one row per task, one column per rival; the time of one operation and, below it, the ratio to talktree's
//! time.

use std::io::Write;

use serde_json::json;

use crate::Result;
use crate::plan::{Plan, TASKS, Task};
use crate::rivals::{Measured, Rival};
use crate::timing::Line;

pub(crate) struct Table<'a> {
    plan: &'a Plan,
    columns: Vec<(&'a Rival, Measured)>,
}

/// The footnotes of the table.
#[derive(Default)]
struct Notes(Vec<String>);

impl Notes {
    /// Returns the mark of a footnote; equal texts share one.
    fn mark(&mut self, note: &str) -> String {
        let index = self.0.iter().position(|known| known == note).unwrap_or_else(|| {
            self.0.push(note.to_owned());
            self.0.len() - 1
        });
        format!("[{}]", index + 1)
    }
}

impl<'a> Table<'a> {
    pub(crate) fn new(plan: &'a Plan) -> Self {
        Self { plan, columns: Vec::new() }
    }

    pub(crate) fn add(&mut self, rival: &'a Rival, measured: Measured) {
        self.columns.push((rival, measured));
    }

    fn tasks(&self) -> impl Iterator<Item = &'static Task> {
        TASKS.iter().filter(|task| self.plan.wants(task.name))
    }

    fn ours(&self, task: &Task) -> Option<f64> {
        let (_, measured) = self.columns.iter().find(|(rival, _)| rival.name == "talktree")?;
        match measured.lines.get(task.name)? {
            Line::Time { seconds, .. } => Some(*seconds),
            _ => None,
        }
    }

    pub(crate) fn print(&self, out: &mut impl Write) -> Result<()> {
        let mut notes = Notes::default();
        let mut lines = vec![
            (
                String::new(),
                self.columns.iter().map(|(rival, _)| rival.head[0].to_owned()).collect(),
            ),
            (
                String::new(),
                self.columns.iter().map(|(rival, _)| rival.head[1].to_owned()).collect(),
            ),
        ];
        for task in self.tasks() {
            let cells: Vec<(String, String)> = self
                .columns
                .iter()
                .map(|(_, measured)| self.cell(task, measured, &mut notes))
                .collect();
            let (times, ratios): (Vec<String>, Vec<String>) = cells.into_iter().unzip();
            lines.push((task.title(self.plan), times));
            lines.push((String::new(), ratios));
        }
        print_lines(out, &lines)?;
        writeln!(out, "\nTime of one operation; below it, the ratio to talktree's time.")?;
        writeln!(
            out,
            "WAL, synchronous=NORMAL unless a row says FULL; texts of 200 to 300 bytes."
        )?;
        for (index, note) in notes.0.iter().enumerate() {
            writeln!(out, "[{}] {note}", index + 1)?;
        }
        for (rival, measured) in &self.columns {
            writeln!(out, "\n{}: {}", rival.name, rival.how)?;
            if !measured.versions.is_empty() {
                writeln!(out, "    {}", measured.versions)?;
            }
            if let Some(trouble) = &measured.trouble {
                writeln!(out, "    INCOMPLETE: {trouble}")?;
            }
        }
        writeln!(out, "\n{}", machine())?;
        Ok(())
    }

    /// Returns the time and the ratio, with the marks of footnotes.
    fn cell(&self, task: &Task, measured: &Measured, notes: &mut Notes) -> (String, String) {
        match measured.lines.get(task.name) {
            Some(Line::Time { seconds, note, .. }) => {
                let mark = note.as_ref().map(|note| notes.mark(note)).unwrap_or_default();
                let ratio = self.ours(task).map(|ours| format!("{}x", figures(seconds / ours)));
                (format!("{}{mark}", time(*seconds)), ratio.unwrap_or_default())
            }
            Some(Line::Why { why, .. }) => (format!("-{}", notes.mark(why)), String::new()),
            _ => {
                let why = measured.trouble.as_deref().unwrap_or("not reported");
                (format!("?{}", notes.mark(why)), String::new())
            }
        }
    }

    pub(crate) fn print_json(&self, out: &mut impl Write) -> Result<()> {
        for task in self.tasks() {
            for (rival, measured) in &self.columns {
                let mut cell = json!({ "task": task.name, "title": task.title(self.plan), "rival": rival.name });
                match measured.lines.get(task.name) {
                    Some(Line::Time { seconds, rounds, note, .. }) => {
                        cell["seconds"] = json!(seconds);
                        cell["rounds"] = json!(rounds);
                        cell["ratio"] = json!(self.ours(task).map(|ours| seconds / ours));
                        cell["note"] = json!(note);
                    }
                    Some(Line::Why { why, .. }) => cell["why"] = json!(why),
                    _ => cell["why"] = json!(measured.trouble),
                }
                writeln!(out, "{cell}")?;
            }
        }
        for (rival, measured) in &self.columns {
            let text =
                json!({ "rival": rival.name, "versions": measured.versions, "how": rival.how });
            writeln!(out, "{text}")?;
        }
        writeln!(out, "{}", json!({ "machine": machine() }))?;
        Ok(())
    }
}

fn print_lines(out: &mut impl Write, lines: &[(String, Vec<String>)]) -> Result<()> {
    let first = lines.iter().map(|line| line.0.len()).max().unwrap_or_default();
    let columns = lines.first().map_or(0, |line| line.1.len());
    let width =
        |column: usize| lines.iter().map(|line| line.1[column].len()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for (title, cells) in lines {
        let mut line = format!("{title:first$}");
        for (cell, width) in cells.iter().zip(&widths) {
            line.push_str(&format!("  {cell:>width$}"));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Returns seconds in a suitable unit, with three digits.
fn time(seconds: f64) -> String {
    let (value, unit) = match seconds {
        ..1e-3 => (seconds * 1e6, "us"),
        ..1.0 => (seconds * 1e3, "ms"),
        _ => (seconds, "s"),
    };
    format!("{} {unit}", figures(value))
}

fn figures(value: f64) -> String {
    let decimals = match value {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// Returns the number of cores, the processor, the kernel, and the load average.
fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown processor", |model| model.1);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let release = read("/proc/sys/kernel/osrelease");
    let load: Vec<String> = read("/proc/loadavg").split(' ').take(3).map(str::to_owned).collect();
    let (system, load) = (std::env::consts::OS, load.join(" "));
    format!("{cores} x {model}, {system} {}, load average at the end {load}", release.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_a_suitable_unit() {
        for (seconds, text) in [
            (0.000_001_234, "1.23 us"),
            (0.000_099_96, "100 us"),
            (0.012_34, "12.3 ms"),
            (1.5, "1.50 s"),
            (754.0, "754 s"),
        ] {
            assert_eq!(time(seconds), text);
        }
    }

    #[test]
    fn equal_texts_share_a_footnote() {
        let mut notes = Notes::default();
        let marks = ["LIKE", "has none", "LIKE"].map(|note| notes.mark(note));
        assert_eq!(marks, ["[1]", "[2]", "[1]"]);
        assert_eq!(notes.0, ["LIKE", "has none"]);
    }
}
