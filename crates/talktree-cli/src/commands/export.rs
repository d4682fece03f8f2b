//! `talktree export`: writes sessions for other programs and for people.

use std::io::Write;
use std::path::PathBuf;

use clap::ValueEnum;
use serde_json::Value;
use talktree::{Error, Part, Store};
use talktree_import::export::{
    LeftOut, Person, PersonFormat, export_claude_code, export_codex, export_jsonl, export_markdown,
    export_person, export_pi, export_readable_jsonl, export_session,
};
use talktree_model::{export_openai, to_ai_sdk, to_anthropic};

use crate::failure::Damage;
use crate::new_file::NewFile;
use crate::output::Exact;
use crate::prelude::*;
use crate::text::{MAX_NAME, cut};

/// Write a session for talktree, for people, or for another program
///
/// The `talktree` format holds all branches, compactions and labels, but not context blocks: see
/// `talktree context export`, or `talktree backup`. The others hold
/// only the history: the path to the head as a model should see it. What they have no place for is named.
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

    /// With --format html: replace what looks like a key or a token.
    #[cfg(feature = "web")]
    #[arg(long, conflicts_with_all = ["all", "owner", "author"])]
    redact: bool,

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
    /// A page with all branches and summaries, which a browser opens without a network.
    #[cfg(feature = "web")]
    Html,
    /// One JSON object with the `messages` of an OpenAI chat request.
    Openai,
    /// One JSON object with the `system` and `messages` of an Anthropic request.
    Anthropic,
    /// One JSON object with `UIMessage`s of the Vercel AI SDK.
    UiMessage,
    /// A transcript of Claude Code, which `claude --resume` goes on with.
    ClaudeCode,
    /// A rollout of Codex, which `codex resume` goes on with.
    Codex,
    /// A session of the Pi coding agent, version 3.
    Pi,
}

impl Format {
    /// Returns whether it holds one path, without a form for people.
    fn is_of_program(self) -> bool {
        !matches!(self, Self::Talktree | Self::Markdown)
    }

    /// Returns whether it holds every branch of a session.
    fn is_whole(self) -> bool {
        #[cfg(feature = "web")]
        if self == Self::Html {
            return true;
        }
        self == Self::Talktree
    }
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
        (format, None) if args.all && format != Format::Talktree => {
            "--all writes only the talktree format; leave out --format"
        }
        (format, _) if format.is_whole() && (args.raw || args.at.is_some()) => &format!(
            "the {} format always holds every stored message; --at and --raw need another --format",
            name_of(format)
        ),
        #[cfg(feature = "web")]
        (format, _) if args.redact && format != Format::Html => "--redact needs --format html",
        (format, Some(person)) if format.is_of_program() => &format!(
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
            let (skipped, left_out) = write(&store, path.as_ref(), &args, &mut out)?;
            out.flush()?;
            tell_left_out(&left_out, args.format);
            skipped
        }
        Some(name) => {
            let mut file = NewFile::create(name)?;
            file.interrupt(&store);
            let written = write(&store, path.as_ref(), &args, &mut file);
            let (skipped, left_out) = written.map_err(|failure| file.failure(failure))?;
            let bytes = file.finish()?;
            tell_left_out(&left_out, args.format);
            let format = name_of(args.format);
            let name = name.to_string_lossy();
            let json = json!({"path": name, "format": format, "bytes": bytes});
            context.answer(&json, &[(PLAIN, &name), (FAINT, &format!("  {bytes} bytes"))])?;
            skipped
        }
    };
    if skipped > 0 { Err(Failure::Damaged(Damage::Printed)) } else { Ok(()) }
}

/// Says what has no place in the format. Markdown and talktree's own format have one for every part.
fn tell_left_out(left_out: &LeftOut, format: Format) {
    if !left_out.is_empty() {
        let count = plural(left_out.values().sum(), "part");
        let kinds = left_out.iter().map(|(kind, count)| format!("{kind} ({count})"));
        let kinds = kinds.collect::<Vec<_>>().join(", ");
        let format = name_of(format);
        tell(&format!("{count} left out; the {format} format has no place for: {kinds}"));
    }
}

fn name_of(format: Format) -> String {
    format.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Returns what a request to a provider has no place for.
fn lost(path: &talktree::Path, format: Format) -> talktree::Result<LeftOut> {
    let mut kinds = LeftOut::new();
    for message in path.iter() {
        for part in &message?.parts {
            let is_lost = match part {
                Part::Reasoning(it) => {
                    format == Format::Openai || !it.extra.contains_key("signature")
                }
                // What a user said while the model worked is written; the start of a step is only a mark.
                Part::Other(_) => !matches!(&*part.kind(), "steering-message" | "step-start"),
                _ => false,
            };
            if is_lost {
                *kinds.entry(part.kind().into_owned()).or_default() += 1;
            }
        }
    }
    Ok(kinds)
}

/// Writes one JSON value, which is made of a path, on one line.
fn write_json(
    path: &talktree::Path,
    output: &mut impl Write,
    to_json: impl FnOnce(&talktree::Path) -> talktree::Result<Value>,
) -> talktree::Result<()> {
    let mut text = to_json(path)?.to_string();
    text.push('\n');
    let written = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    written.map_err(|source| Error::Io { path: "the output".into(), source })
}

fn ui_messages(path: &talktree::Path) -> talktree::Result<Value> {
    let session = path.session();
    let title = session.info()?.and_then(|info| info.name);
    Ok(json!({"id": session.id(), "title": title, "messages": to_ai_sdk(&path.history()?)}))
}

/// Writes what the arguments name; returns how many sessions were skipped, each of which was reported, and what the format
/// has no place for.
fn write(
    store: &Store,
    path: Option<&talktree::Path>,
    args: &ExportArgs,
    output: &mut impl Write,
) -> Result<(u64, LeftOut)> {
    let (mut skipped, mut unknown, mut left_out) = (0, None, LeftOut::new());
    let mut keep = |lost: LeftOut| left_out = lost;
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
            #[cfg(feature = "web")]
            Format::Html => talktree_web::export_html(path.session(), output, |record| {
                if args.redact {
                    talktree_import::redact(record);
                }
            }),
            Format::Openai => {
                export_openai(path, output).and_then(|()| lost(path, args.format)).map(&mut keep)
            }
            Format::Anthropic => {
                write_json(path, output, |path| Ok(to_anthropic(&path.history()?)))
                    .and_then(|()| lost(path, args.format))
                    .map(&mut keep)
            }
            Format::UiMessage => write_json(path, output, ui_messages),
            Format::ClaudeCode => export_claude_code(path, output).map(&mut keep),
            Format::Codex => export_codex(path, output).map(&mut keep),
            Format::Pi => export_pi(path, output).map(&mut keep),
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
        None => Ok((skipped, left_out)),
    }
}
