//! `talktree import --all`: what the programs of this machine keep.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use talktree::{Error, Store};
use talktree_import::{Collector, ImportOptions, Place};

use super::{ImportArgs, Printer, Total, failure_of, open};
use crate::prelude::*;
use crate::work::Bar;

pub(super) fn run(args: &ImportArgs, options: ImportOptions, context: &mut Context) -> Result<()> {
    let places = Place::all();
    if args.list {
        return list(&places, context);
    }
    let mut files: Vec<(PathBuf, &'static str)> = Vec::new();
    let mut seen = BTreeSet::new();
    for place in &places {
        let new = place.files().into_iter().filter(|path| seen.insert(path.clone()));
        files.extend(new.map(|path| (path, place.tool)));
    }
    if files.is_empty() {
        return Err(nothing(&places));
    }
    let is_new = !args.dry_run && context.is_missing()?;
    let store = open(args, context)?;
    if is_new {
        tell(&format!("created a new store: {}", shown(&context.store_path()?)));
    }
    let (mut collector, mut printer) = (Collector::new(&store, options), Printer::new(&store));
    let mut total = Total { is_brief: !context.is_json, ..Total::default() };
    let (mut unchanged, mut skipped) = (0, BTreeMap::new());
    for (path, tool) in &files {
        let bar = Bar::of_bytes(&path.file_name().unwrap_or_default().to_string_lossy());
        match collector.add(path, |progress| bar.show(progress)) {
            Ok(is_read) => unchanged += u64::from(!is_read),
            Err(error @ (Error::Io { .. } | Error::Json { .. } | Error::Import { .. })) => {
                let first = || match &error {
                    Error::Import { .. } => error.to_string(),
                    error => format!("{}: {error}", shown(path)),
                };
                skipped.entry(*tool).or_insert_with(|| (0, first())).0 += 1;
            }
            Err(error) => return Err(error.into()),
        }
        drop(bar);
        total.report(collector.take_reports()?, &mut printer, context)?;
    }
    total.report(collector.finish()?, &mut printer, context)?;
    for (tool, (files, first)) in &skipped {
        tell(&format!("{tool}: {} not imported, such as {first}", plural(*files, "file")));
    }
    if context.is_json {
        return Ok(());
    }
    let sum = format!("{}; {unchanged} files are as they were", total.sum(args));
    Ok(put!(context.out; STRONG &sum)?)
}

/// Prints the places with files, and how many of these are new.
fn list(places: &[Place], context: &mut Context) -> Result<()> {
    let store = if context.is_missing()? { None } else { Some(context.reader()?) };
    let mut folders: BTreeMap<(&str, &Path), Found> = BTreeMap::new();
    for place in places {
        for path in place.files() {
            let found = folders.entry((place.tool, &place.folder)).or_default();
            found.add(&path, store.as_ref()).map_err(failure_of)?;
        }
    }
    if folders.is_empty() {
        return Err(nothing(places));
    }
    let mut table = Table::new("tool files new bytes folder", [ID, PLAIN, GOOD, FAINT, PLAIN]);
    for ((tool, folder), Found { files, new, bytes }) in &folders {
        let path = folder.to_string_lossy();
        let json =
            json!({"tool": tool, "folder": path, "files": files, "new": new, "bytes": bytes});
        let cells = [(*tool).to_owned(), files.to_string(), new.to_string(), bytes.to_string()];
        let [tool, files, new, bytes] = cells;
        context.row(&mut table, &json, [tool, files, new, bytes, path.into_owned()])?;
    }
    context.write_list(&table, None, || Ok(String::new()))
}

/// The files of a folder.
#[derive(Default)]
struct Found {
    files: u64,
    new: u64,
    bytes: u64,
}

impl Found {
    fn add(&mut self, path: &Path, store: Option<&Store>) -> talktree::Result<()> {
        self.files += 1;
        self.bytes += std::fs::metadata(path).map_or(0, |found| found.len());
        let is_new = store.map_or(Ok(true), |store| Collector::is_new(store, path))?;
        self.new += u64::from(is_new);
        Ok(())
    }
}

fn nothing(places: &[Place]) -> Failure {
    let tools: BTreeSet<&str> = places.iter().map(|place| place.tool).collect();
    let tools = tools.into_iter().collect::<Vec<_>>().join(", ");
    Failure::NotFound(format!(
        "no conversations of these programs are in their usual places: {tools}"
    ))
}
