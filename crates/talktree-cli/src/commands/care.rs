//! `talktree stats`, `verify`, `backup` and `copy`: count, check and copy the store.

use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use talktree::{Error, Store, Verified};

use crate::failure::Damage;
use crate::input::open_input;
use crate::new_file::named;
use crate::prelude::*;

/// Count what the store holds
#[derive(Debug, clap::Args)]
pub(crate) struct StatsArgs {}

pub(crate) fn stats(_args: StatsArgs, context: &mut Context) -> Result<()> {
    let stats = context.reader()?.stats()?;
    if context.is_json {
        return Ok(context.out.json(&stats)?);
    }
    for (what, count) in [
        ("sessions", stats.sessions),
        ("messages", stats.messages),
        ("hidden messages", stats.hidden),
        ("branching messages", stats.branching_messages),
        ("most children", stats.max_children),
        ("longest path", stats.max_depth),
        ("compactions", stats.compactions),
        ("context texts", stats.context_entries),
        ("older versions", stats.context_versions),
        ("elisions", stats.elisions),
        ("transcripts", stats.transcripts),
        ("transcript entries", stats.transcript_entries),
        ("pending items", stats.inbox_items),
    ] {
        put!(context.out; FAINT &format!("{what:<22}"), STRONG &format!("{count:>14}"))?;
    }
    let size = size(stats.bytes);
    Ok(put!(context.out; FAINT &format!("{:<22}", "size"), STRONG &format!("{size:>14}"))?)
}

/// Check every invariant of the store, and list each damage with its remedy
#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    /// Rebuild the search index before the check.
    #[arg(long)]
    rebuild_index: bool,
    /// Correct wrong token counts before the check.
    #[arg(long)]
    recount_tokens: bool,
}

pub(crate) fn verify(args: VerifyArgs, context: &mut Context) -> Result<()> {
    // A check of a large store makes a copy, which a signal must not leave behind.
    let signals = Signals::catch()?;
    let verified = context.searcher().and_then(|store| check(&args, &store, &signals));
    let verified = verified.map_err(|failure| of_verify(failure, context))?;
    let count = verified.damages.len() as u64;
    if context.is_json {
        context.out.json(&verified)?;
    } else {
        let checked = format!("{} checked: ", plural(verified.messages, "message"));
        match count {
            0 => put!(context.out; PLAIN &checked, GOOD "the store is sound")?,
            _ => put!(context.out; PLAIN &checked, BAD &plural(count, "damage"))?,
        }
        for damage in &verified.damages {
            put!(context.out; BAD damage.kind, PLAIN "  ", PLAIN &damage.what)?;
            put!(context.out; FAINT "  remedy: ", FAINT damage.remedy)?;
        }
    }
    if count == 0 { Ok(()) } else { Err(Failure::Damaged(Damage::Printed)) }
}

fn check(args: &VerifyArgs, store: &Store, signals: &Signals) -> Result<Verified> {
    signals.run(store, "checking", |bar| {
        if args.rebuild_index {
            store.rebuild_search()?;
        }
        if args.recount_tokens {
            store.recount_tokens()?;
        }
        store.verify(|progress| bar.show(progress))
    })
}

/// Returns the failure of a check that could not be made; damage by a cut is named as such.
fn of_verify(failure: Failure, context: &Context) -> Failure {
    match failure {
        Failure::Damaged(Damage::Met(what)) => {
            let cut = context.store_path().ok().and_then(|path| cut_off(&path).ok().flatten());
            Failure::Damaged(Damage::StopsVerify(cut.unwrap_or(what)))
        }
        failure => failure,
    }
}

/// Returns what is missing if the file is shorter than its header says.
///
/// Called when the store is closed.
fn cut_off(path: &Path) -> io::Result<Option<String>> {
    /// The header of an SQLite file: the page size is at byte 16, the number of pages at byte 28.
    const HEADER: usize = 100;
    let mut file = open_input(path)?;
    let length = file.metadata()?.len();
    let mut header = [0; HEADER];
    if length < HEADER as u64 {
        return Ok(Some(format!("the file is cut off: it has {length} bytes, less than a header")));
    }
    file.read_exact(&mut header)?;
    let page = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536,
        size => u64::from(size),
    };
    let pages = u32::from_be_bytes([header[28], header[29], header[30], header[31]]);
    let whole = page * u64::from(pages);
    Ok((length < whole)
        .then(|| format!("the file is cut off: it has {length} bytes, and {whole} by its header")))
}

/// Copy the store to a new file; the copy is a snapshot, and writers may continue
#[derive(Debug, clap::Args)]
pub(crate) struct BackupArgs {
    /// The file to create; it must not exist yet.
    file: PathBuf,
}

pub(crate) fn backup(args: BackupArgs, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let output = |error| Failure::Output(named(&args.file, &error));
    let copied = Signals::catch().map_err(output)?.run(&store, "copying", |bar| {
        // The outer error is one of the store, the inner one of the new file.
        Ok(match store.backup(&args.file, |progress| bar.show(progress)) {
            Err(Error::Io { path, source }) if source.kind() == ErrorKind::AlreadyExists => {
                Err(Failure::Usage(format!("{} already exists; nothing was copied", shown(&path))))
            }
            Err(Error::Io { path, source }) if path == args.file => Err(output(source)),
            copied => return copied.map(Ok),
        })
    });
    copied??;
    let path = args.file.to_string_lossy().into_owned();
    let bytes = std::fs::metadata(&args.file).map(|file| file.len()).unwrap_or(0);
    let json = json!({"path": path, "bytes": bytes});
    context.answer(&json, &[(PLAIN, &path), (FAINT, &format!("  {}", size(bytes)))])
}

/// Copy sessions, context blocks and bindings into another store
///
/// Given again, it continues a copy that was stopped, adds what is new, and writes nothing that is equal. Sessions in the trash,
/// transcripts, inboxes and vectors are not copied.
#[derive(Debug, clap::Args)]
pub(crate) struct CopyArgs {
    /// The store to read, a file or a URL; without it, that of --store.
    #[arg(long, value_name = "STORE")]
    from: Option<PathBuf>,

    /// The store to write into, a file or a URL; without it, that of --store. It is created if it is missing.
    #[arg(long, value_name = "STORE", required_unless_present = "from")]
    to: Option<PathBuf>,
}

pub(crate) fn copy(args: CopyArgs, context: &mut Context) -> Result<()> {
    let store = context.store_option.take();
    context.store_option = args.from.or_else(|| store.clone());
    let from = context.reader()?;
    context.store_option = args.to.or(store);
    let to = context.maker()?;
    let signals = Signals::catch()?;
    signals.interrupt(&from);
    let copied = signals.run(&to, "copying", |bar| {
        talktree_import::copy(&from, &to, |progress| bar.show(progress))
    })?;
    for id in &copied.different {
        tell(&format!(
            "session {} is another one there, or was changed or refused there",
            quoted(id.as_str())
        ));
    }
    let [sessions, texts, bindings] = [
        plural(copied.sessions, "session"),
        plural(copied.texts, "text"),
        plural(copied.bindings, "binding"),
    ];
    let rest = format!(
        ", {texts} and {bindings} copied; {} unchanged",
        plural(copied.unchanged, "session")
    );
    context.answer(&copied, &[(STRONG, &sessions), (PLAIN, &rest)])?;
    match copied.different.len() as u64 {
        0 => Ok(()),
        count => Err(Failure::Input(format!("not copied: {}", plural(count, "session")))),
    }
}
