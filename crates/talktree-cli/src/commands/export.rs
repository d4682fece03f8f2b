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

enum Selection<'a> {
    Store(Store),
    Path(talktree::Path),
    Person(Store, Person<'a>),
}

pub(crate) fn run(args: ExportArgs, context: &mut Context) -> Result<()> {
    if args.format != Format::Talktree && args.all {
        return Err(Failure::Usage(
            "--all writes only the talktree format; leave out --format".to_owned(),
        ));
    }
    if args.format == Format::Talktree && (args.raw || args.at.is_some()) {
        let why = "the talktree format always holds every stored message; --at and --raw need --format markdown or openai";
        return Err(Failure::Usage(why.to_owned()));
    }
    let owner = args.owner.as_deref().map(Person::Owner);
    let person = owner.or(args.author.as_deref().map(Person::Author));
    if let (Format::Openai, Some(person)) = (args.format, person) {
        return Err(Failure::Usage(format!(
            "--{} writes JSON lines or Markdown; leave out --format, or use --format markdown",
            person.kind()
        )));
    }
    let store = context.reader()?;
    let reader = store.clone();
    let selection = match (&args.session, person) {
        (_, Some(person)) => Selection::Person(store, person),
        (None, None) => Selection::Store(store),
        (Some(session), None) => {
            let session = lookup::session(&store, session)?;
            let leaf = args.at.as_deref().map(|at| lookup::message(&session, at)).transpose()?;
            let path = leaf.as_ref().map_or_else(|| session.path(), |leaf| session.at(leaf));
            Selection::Path(if args.raw { path.raw() } else { path })
        }
    };
    let Some(path) = &args.output else {
        let mut out = Exact::new(&mut context.out, args.format != Format::Markdown);
        let written = write(&selection, &args, &mut out)?;
        out.flush()?;
        tell_left_out(&selection, args.format)?;
        return written.all_or_failure();
    };
    let mut file = NewFile::create(path)?;
    file.interrupt(&reader);
    let written = write(&selection, &args, &mut file).map_err(|failure| file.failure(failure))?;
    if written.unknown.is_some() {
        return written.all_or_failure();
    }
    let bytes = file.finish()?;
    tell_left_out(&selection, args.format)?;
    let format = args.format.to_possible_value();
    let format = format.as_ref().map_or("", |value| value.get_name());
    let path = path.to_string_lossy();
    let json = json!({"path": path, "format": format, "bytes": bytes});
    context.answer(&json, &[(PLAIN, &path), (FAINT, &format!("  {bytes} bytes"))])?;
    written.all_or_failure()
}

/// Says which parts have no place in the format. Markdown and talktree's own format have one for every part.
fn tell_left_out(selection: &Selection<'_>, format: Format) -> Result<()> {
    let (Selection::Path(path), Format::Openai) = (selection, format) else { return Ok(()) };
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
        let kinds: Vec<String> =
            kinds.iter().map(|(kind, count)| format!("{kind} ({count})")).collect();
        let kinds = kinds.join(", ");
        tell(&format!("{count} left out; the openai format has no place for: {kinds}"));
    }
    Ok(())
}

/// What was not written.
#[derive(Default)]
struct Written {
    /// How many sessions were skipped; each was reported when it was.
    skipped: u64,
    /// The person of whom the store has nothing, as in `owner "ann"`.
    unknown: Option<String>,
}

impl Written {
    fn all_or_failure(self) -> Result<()> {
        match self.unknown {
            Some(person) => Err(Failure::NotFound(format!("the store has no data of {person}"))),
            None if self.skipped > 0 => Err(Failure::Damaged(Damage::Printed)),
            None => Ok(()),
        }
    }
}

/// Writes the selection.
fn write(selection: &Selection<'_>, args: &ExportArgs, output: &mut impl Write) -> Result<Written> {
    let mut outcome = Written::default();
    let written = match (selection, args.format) {
        (Selection::Person(store, person), format) => {
            let format = match format {
                Format::Markdown => PersonFormat::Markdown,
                _ => PersonFormat::Jsonl,
            };
            export_person(store, *person, format, output).map(|written| {
                if written.is_empty() {
                    outcome.unknown = Some(format!("{} {}", person.kind(), quoted(person.name())));
                }
            })
        }
        (Selection::Store(store), _) if args.skip_damaged => {
            export_readable_jsonl(store, output, |id, error| {
                outcome.skipped += 1;
                // Without the advice to run `verify`, which the error's own text ends with.
                let why = match error {
                    Error::Corrupt { what } => what.clone(),
                    error => error.to_string(),
                };
                let name = escape(id.as_str());
                tell(&format!("session {} is skipped: {why}", cut(&name, MAX_NAME)));
            })
        }
        (Selection::Store(store), _) => export_jsonl(store, output),
        (Selection::Path(path), Format::Talktree) => export_session(path.session(), output),
        (Selection::Path(path), Format::Markdown) => export_markdown(path, output),
        (Selection::Path(path), Format::Openai) => export_openai(path, output),
    };
    written.map_err(|error| match error {
        // The store returns this kind of error only when it is opened, so this one is the output's.
        Error::Io { source, .. } => Failure::Output(source),
        error => error.into(),
    })?;
    Ok(outcome)
}
