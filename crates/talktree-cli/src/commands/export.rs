//! `talktree export`: writes sessions for other programs and for people.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use clap::ValueEnum;
use talktree::{Error, Part, Store};
use talktree_import::export::{
    Person, PersonFormat, export_jsonl, export_markdown, export_person, export_readable_jsonl,
    export_session,
};
use talktree_model::export_openai;

use crate::failure::Damage;
use crate::new_file::NewFile;
use crate::output::Exact;
use crate::prelude::*;
use crate::text::{MAX_NAME, cut};

/// Write a session as talktree's JSON lines, as Markdown, or as OpenAI chat messages
///
/// The `talktree` format holds all branches, compactions and labels, but not context blocks: see
/// `talktree context export`, or `talktree backup`. The other two hold
/// only the history: the path to the head as a model should see it.
///
/// With --owner: all data of a person, as JSON lines or Markdown. These are sessions with all messages, context
/// blocks with their versions, usage and keys. With --author: the messages that a person wrote in all sessions, also in
/// those of others.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "talktree export [OPTIONS] <SESSION>\n       talktree export [OPTIONS] --all\n       talktree export [OPTIONS] --owner <OWNER>\n       talktree export [OPTIONS] --author <AUTHOR>"
)]
pub(crate) struct ExportArgs {
    /// The session: its id, the start or the end of its id, or its name; not with --all, --owner or --author.
    #[arg(required_unless_present_any = ["all", "owner", "author"])]
    session: Option<String>,

    /// The output format.
    #[arg(long, default_value = "talktree")]
    format: Format,

    /// Write the path to this message instead of the path to the head.
    #[arg(long, value_name = "MESSAGE")]
    at: Option<String>,

    /// Write the stored messages: without summaries, with hidden messages.
    #[arg(long)]
    raw: bool,

    /// Write all sessions of the store.
    #[arg(long, conflicts_with_all = ["session", "at", "raw"])]
    all: bool,

    /// Write all data of this owner, as JSON lines or, with --format markdown, as a page for people.
    #[arg(long, value_name = "OWNER", conflicts_with_all = ["session", "at", "raw", "all"])]
    owner: Option<String>,

    /// Write what this author wrote in all sessions, as JSON lines or, with --format markdown, as a page for people.
    #[arg(long, value_name = "AUTHOR", conflicts_with_all = ["session", "at", "raw", "all", "owner"])]
    author: Option<String>,

    /// With --all: skip the sessions that cannot be read completely, and report them.
    #[arg(long, requires = "all")]
    skip_damaged: bool,

    /// Write to this file instead of stdout; it must not exist yet, and gets its name when it is complete.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// JSON lines with all branches, compactions and labels; `talktree import` reads them.
    #[value(alias = "jsonl")]
    Talktree,
    /// A Markdown page for people.
    Markdown,
    /// One JSON object with the `messages` of an OpenAI chat request.
    Openai,
}

impl ExportArgs {
    /// Returns the person whose data is written.
    fn person(&self) -> Option<Person<'_>> {
        let owner = self.owner.as_deref().map(Person::Owner);
        owner.or(self.author.as_deref().map(Person::Author))
    }
}

pub(crate) fn run(args: ExportArgs, context: &mut Context) -> Result<()> {
    let why = match (args.format, args.person()) {
        (Format::Markdown | Format::Openai, None) if args.all => {
            "--all writes only the talktree format; leave out --format"
        }
        (Format::Talktree, _) if args.raw || args.at.is_some() => {
            "the talktree format always holds every stored message; --at and --raw need --format markdown or openai"
        }
        (Format::Openai, Some(person)) => &format!(
            "--{} writes JSON lines or Markdown; leave out --format, or use --format markdown",
            person.kind()
        ),
        _ => "",
    };
    if !why.is_empty() {
        return Err(Failure::Usage(why.to_owned()));
    }
    let store = context.reader()?;
    let session = args.session.as_ref().map(|given| lookup::session(&store, given)).transpose()?;
    let path = session.map(|session| lookup::path(&session, args.at.as_deref(), args.raw));
    let path = path.transpose()?;
    let skipped = match &args.output {
        None => {
            let mut out = Exact::new(&mut context.out, args.format != Format::Markdown);
            let skipped = write(&store, path.as_ref(), &args, &mut out)?;
            out.flush()?;
            tell_left_out(path.as_ref(), args.format)?;
            skipped
        }
        Some(name) => {
            let mut file = NewFile::create(name)?;
            file.interrupt(&store);
            let written = write(&store, path.as_ref(), &args, &mut file);
            let skipped = written.map_err(|failure| file.failure(failure))?;
            let bytes = file.finish()?;
            tell_left_out(path.as_ref(), args.format)?;
            let format = args.format.to_possible_value();
            let format = format.as_ref().map_or("", |value| value.get_name());
            let name = name.to_string_lossy();
            let json = json!({"path": name, "format": format, "bytes": bytes});
            context.answer(&json, &[(PLAIN, &name), (FAINT, &format!("  {bytes} bytes"))])?;
            skipped
        }
    };
    if skipped > 0 { Err(Failure::Damaged(Damage::Printed)) } else { Ok(()) }
}

/// Says which parts have no place in the format. Markdown and talktree's own format have one for every part.
fn tell_left_out(path: Option<&talktree::Path>, format: Format) -> Result<()> {
    let (Some(path), Format::Openai) = (path, format) else { return Ok(()) };
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    for message in path.iter() {
        for part in &message?.parts {
            let is_lost = match part {
                Part::Reasoning(_) => true,
                // What a user said while the model worked is written; the start of a step is only a mark.
                Part::Other(_) => !matches!(&*part.kind(), "steering-message" | "step-start"),
                _ => false,
            };
            if is_lost {
                *kinds.entry(part.kind().into_owned()).or_default() += 1;
            }
        }
    }
    if !kinds.is_empty() {
        let count = plural(kinds.values().sum(), "part");
        let kinds = kinds.iter().map(|(kind, count)| format!("{kind} ({count})"));
        let kinds = kinds.collect::<Vec<_>>().join(", ");
        tell(&format!("{count} left out; the openai format has no place for: {kinds}"));
    }
    Ok(())
}

/// Writes what the arguments name; returns how many sessions were skipped, each of which was reported.
fn write(
    store: &Store,
    path: Option<&talktree::Path>,
    args: &ExportArgs,
    output: &mut impl Write,
) -> Result<u64> {
    let (mut skipped, mut unknown) = (0, None);
    let written = match (path, args.person()) {
        (_, Some(person)) => {
            let format = match args.format {
                Format::Markdown => PersonFormat::Markdown,
                _ => PersonFormat::Jsonl,
            };
            export_person(store, person, format, output).map(|written| {
                unknown = written.is_empty().then_some(person);
            })
        }
        (Some(path), None) => match args.format {
            Format::Talktree => export_session(path.session(), output),
            Format::Markdown => export_markdown(path, output),
            Format::Openai => export_openai(path, output),
        },
        (None, None) if !args.skip_damaged => export_jsonl(store, output),
        (None, None) => export_readable_jsonl(store, output, |id, error| {
            skipped += 1;
            // Without the advice to run `verify`, which the error's own text ends with.
            let why = match error {
                Error::Corrupt { what } => what.clone(),
                error => error.to_string(),
            };
            let name = escape(id.as_str());
            tell(&format!("session {} is skipped: {why}", cut(&name, MAX_NAME)));
        }),
    };
    written.map_err(|error| match error {
        // The store returns this kind of error only when it is opened, so this one is the output's.
        Error::Io { source, .. } => Failure::Output(source),
        error => error.into(),
    })?;
    match unknown {
        Some(person) => Err(Failure::NotFound(format!(
            "the store has no data of {} {}",
            person.kind(),
            quoted(person.name())
        ))),
        None => Ok(skipped),
    }
}
