//! `talktree backup`: copies the store.

use std::io::ErrorKind;
use std::path::PathBuf;

use serde::Serialize;
use talktree::Error;

use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::new_file::named;
use crate::progress::Bar;
use crate::signals::Signals;
use crate::style;
use crate::text::shown;

/// Copy the store to a new file; the copy is a snapshot, and writers may continue
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree backup [OPTIONS] <FILE>")]
pub(crate) struct Args {
    /// The file to create; it must not exist yet.
    file: PathBuf,
}

#[derive(Serialize)]
struct Answer {
    path: String,
    bytes: u64,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let signals = Signals::catch().map_err(|error| Failure::Output(named(&args.file, &error)))?;
    signals.interrupt(&store);
    let bar = Bar::of_steps("copying");
    let copied = store.backup(&args.file, |progress| bar.show(progress));
    drop(bar);
    copied.map_err(|error| match error {
        Error::Interrupted => signals.check().err().unwrap_or_else(|| error.into()),
        Error::Io { path, source } if source.kind() == ErrorKind::AlreadyExists => {
            Failure::Usage(format!("{} already exists; nothing was copied", shown(&path)))
        }
        Error::Io { path, source } if path == args.file => Failure::Output(named(&path, &source)),
        error => error.into(),
    })?;
    let path = args.file.to_string_lossy().into_owned();
    let bytes = std::fs::metadata(&args.file).map(|file| file.len()).unwrap_or(0);
    if context.is_json {
        return Ok(context.out.json(&Answer { path, bytes })?);
    }
    Ok(context.out.line(&[(style::PLAIN, &path), (style::FAINT, &format!("  {bytes} bytes"))])?)
}
