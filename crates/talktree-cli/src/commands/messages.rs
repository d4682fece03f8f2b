//! `talktree log`, `show` and `expand`: print messages.

use std::collections::HashMap;
use std::io;

use talktree::{CompactionId, Message, MessageId, Part, Session, Store};
use talktree_model::SeenState;

use crate::prelude::*;

/// How much of a message is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// Tool inputs and outputs are cut after some lines.
    Brief,
    /// Everything.
    Full,
}

/// The maximum number of lines of a tool's input or output in brief.
const BRIEF_LINES: usize = 6;
/// The maximum number of characters in each of these lines.
const BRIEF_CHARS: usize = 400;

/// Prints the messages of a session: as JSON with their tags, or for people with their labels.
struct Printer {
    ids: ShortIds,
    labels: HashMap<MessageId, Vec<String>>,
    tags: HashMap<MessageId, Vec<String>>,
}

/// A message as JSON.
#[derive(Serialize)]
struct Tagged<'a> {
    #[serde(flatten)]
    message: &'a Message,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tags: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<&'a str>,
}

impl Printer {
    fn new(session: &Session) -> Result<Self> {
        let ids = ShortIds::of_messages(session)?;
        let mut printer = Self { ids, labels: HashMap::new(), tags: HashMap::new() };
        for label in session.labels()? {
            printer.labels.entry(label.id).or_default().push(label.name);
        }
        for found in session.all_tags()? {
            printer.tags.entry(found.message).or_default().push(found.tag);
        }
        Ok(printer)
    }

    /// Prints a message; `notes` come before its labels.
    fn print(
        &self,
        message: &Message,
        notes: &[&str],
        extent: Extent,
        context: &mut Context,
    ) -> Result<()> {
        if context.is_json {
            let tags = self.tags.get(&message.id).map_or(&[][..], Vec::as_slice);
            return Ok(context.out.json(&Tagged { message, tags, seen: None })?);
        }
        let labels = self.labels.get(&message.id).into_iter().flatten().map(String::as_str);
        let notes: Vec<&str> = notes.iter().copied().chain(labels).collect();
        let id = self.ids.of(message.id.as_str());
        Ok(write(&mut context.out, message, id, &notes.join(", "), extent)?)
    }
}

/// Writes a message: a heading, and its parts below.
fn write(
    out: &mut Output,
    message: &Message,
    id: &str,
    note: &str,
    extent: Extent,
) -> io::Result<()> {
    let is_summary = CompactionId::from_message(&message.id).is_some();
    let time = format!("  {}  ", out.moment(message.created_at));
    out.line(&[
        (role_style(&message.role), message.role.as_str()),
        (FAINT, &time),
        (ID, id),
        (LABEL, if note.is_empty() { "" } else { "  " }),
        (LABEL, note),
        (COMPACTION, if is_summary { "  [summary]" } else { "" }),
        (FAINT, if message.is_hidden { "  [hidden]" } else { "" }),
    ])?;
    for part in &message.parts {
        write_part(out, &part.typed(), extent, is_summary || message.is_hidden)?;
    }
    out.line(&[])
}

fn write_part(out: &mut Output, part: &Part, extent: Extent, is_faint: bool) -> io::Result<()> {
    let style = if is_faint { FAINT } else { PLAIN };
    match part {
        Part::Text(text) => out.block(style, "  ", &text.text),
        Part::Reasoning(reasoning) => {
            put!(out; FAINT "  [reasoning]")?;
            write_some(out, &reasoning.text, extent)
        }
        Part::Tool(tool) => {
            for (word, json) in [("calls", &tool.input), ("result of", &tool.output)] {
                let Some(json) = json else { continue };
                put!(out; COMPACTION &format!("  [{word} {}]", tool.name))?;
                // A JSON string reads better without its quotes and escapes.
                let value = json.value();
                write_some(out, value.as_str().unwrap_or(json.as_str()), extent)?;
            }
            if let Some(error) = &tool.error_text {
                put!(out; BAD &format!("  [failed: {}]", tool.name))?;
                write_some(out, error, extent)?;
            }
            Ok(())
        }
        Part::File(file) => {
            let name = file.filename.as_ref().map(|name| format!("{name}  ")).unwrap_or_default();
            let url = if file.url.starts_with("data:") { "" } else { &file.url };
            let about = format!("{name}{}  {url}", file.media_type);
            out.line(&[(COMPACTION, "  [file] "), (style, &about)])
        }
        Part::Other(json) => {
            put!(out; COMPACTION &format!("  [{}]", part.kind()))?;
            write_some(out, json.as_str(), extent)
        }
        _ => Ok(()),
    }
}

fn write_some(out: &mut Output, text: &str, extent: Extent) -> io::Result<()> {
    if extent == Extent::Full {
        return out.block(FAINT, "  ", text);
    }
    let mut lines = text.lines();
    for line in lines.by_ref().take(BRIEF_LINES) {
        match line.char_indices().nth(BRIEF_CHARS) {
            None => out.block(FAINT, "  ", line)?,
            Some((end, _)) => {
                put!(out; FAINT "  ", FAINT &line[..end], FAINT " …")?;
            }
        }
    }
    match lines.count() {
        0 => Ok(()),
        more => put!(out; FAINT &format!("  … {more} more lines")),
    }
}

/// Print the history of a session as a model should see it, oldest first
#[derive(Debug, clap::Args)]
pub(crate) struct LogArgs {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,

    #[command(flatten)]
    path: PathArgs,
}

/// Print the history of the session with the newest message
#[derive(Debug, clap::Args)]
pub(crate) struct LastArgs {
    #[command(flatten)]
    path: PathArgs,
}

/// What is printed of a history.
#[derive(Debug, clap::Args)]
struct PathArgs {
    /// Print the stored messages: without summaries, with hidden messages.
    #[arg(long)]
    raw: bool,

    /// Print the path to this message instead of the path to the head.
    #[arg(long, value_name = "MESSAGE")]
    at: Option<String>,

    /// Print only the newest N messages [default: 20 on a terminal, else all].
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Print all messages, also on a terminal.
    #[arg(long, conflicts_with = "limit")]
    all: bool,

    /// Print tool inputs and outputs in full [default: 6 lines of each].
    #[arg(long)]
    full: bool,
}

pub(crate) fn log(args: LogArgs, context: &mut Context) -> Result<()> {
    let (_, session) = context.read(&args.session)?;
    history(&args.path, &session, context)
}

pub(crate) fn last(args: LastArgs, context: &mut Context) -> Result<()> {
    let (store, session) = context.read(lookup::LAST)?;
    if !context.is_json {
        put!(context.out; STRONG &lookup::title(&store, &session)?)?;
        context.out.line(&[])?;
    }
    history(&args.path, &session, context)
}

fn history(args: &PathArgs, session: &Session, context: &mut Context) -> Result<()> {
    let path = lookup::path(session, args.at.as_deref(), args.raw)?;
    let printer = Printer::new(session)?;
    let extent = if args.full { Extent::Full } else { Extent::Brief };
    let mut count = 0_u64;
    let mut print = |message: &Message, context: &mut Context| {
        count += 1;
        printer.print(message, &[], extent, context)
    };
    match context.limit(args.limit, args.all) {
        usize::MAX => path.iter().try_for_each(|message| print(&message?, context))?,
        limit => {
            let newest = path.iter_rev().take(limit.saturating_add(1));
            let mut newest: Vec<Message> = newest.collect::<talktree::Result<_>>()?;
            if newest.len() > limit && args.limit.is_none() {
                put!(context.out; FAINT &format!("the newest {limit} messages; --all prints all"))?;
                context.out.line(&[])?;
            }
            newest.truncate(limit);
            newest.iter().rev().try_for_each(|message| print(message, context))?;
        }
    }
    if count == 0 && !context.is_json && args.limit != Some(0) {
        tell("the history is empty");
    }
    Ok(())
}

/// Print one message in full
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,

    /// The message: its id, the start or the end of its id, a label, or `head`.
    message: String,

    /// Also print N messages before it and N after it: towards the head, or on the newest branch if it is off its path.
    #[arg(long, value_name = "N", default_value_t = 0)]
    around: usize,

    /// Print what the model saw when it wrote this message, instead.
    #[arg(long, conflicts_with = "around")]
    seen: bool,
}

pub(crate) fn show(args: ShowArgs, context: &mut Context) -> Result<()> {
    let (store, session) = context.read(&args.session)?;
    let id = lookup::message(&session, &args.message)?;
    let message = session.message(&id)?;
    // Another process may have deleted it since the lookup.
    let message =
        message.ok_or_else(|| Failure::NotFound(format!("message {id:?} was deleted")))?;
    if args.seen {
        return seen(&store, &session, &message, context);
    }
    let (before, after) = surroundings(&session, &id, args.around)?;
    let printer = Printer::new(&session)?;
    for other in &before {
        printer.print(other, &[], Extent::Brief, context)?;
    }
    let is_head = session.head()?.as_ref() == Some(&id);
    let mut notes = if args.around > 0 { vec!["this message"] } else { Vec::new() };
    notes.extend(is_head.then_some("head"));
    printer.print(&message, &notes, Extent::Full, context)?;
    if !context.is_json {
        about(&message, &session, &printer, context)?;
        if !after.is_empty() {
            context.out.line(&[])?;
        }
    }
    after.iter().try_for_each(|other| printer.print(other, &[], Extent::Brief, context))
}

/// Prints what a model saw when it wrote an answer.
fn seen(store: &Store, session: &Session, answer: &Message, context: &mut Context) -> Result<()> {
    let Some(seen) = talktree_model::seen(store, session.id(), &answer.id)? else { return Ok(()) };
    let how = |is_exact| if is_exact { "exact" } else { "reconstructed" };
    if !context.is_json {
        let count = plural(seen.messages.len() as u64, "message");
        put!(context.out; STRONG how(seen.is_recorded), PLAIN ": ", PLAIN &count)?;
        for (what, value) in [
            ("tools", (!seen.tools.is_empty()).then(|| seen.tools.join(", "))),
            (
                if seen.is_prompt_exact { "prompt" } else { "prompt (reconstructed)" },
                Some(seen.prompt.clone()),
            ),
        ] {
            let value = value.filter(|value| !value.is_empty());
            value.map_or(
                Ok(()),
                |value| put!(context.out; FAINT what, PLAIN "  ", PLAIN &one_line(&value)),
            )?;
        }
        context.out.line(&[])?;
    }
    let printer = Printer::new(session)?;
    for it in &seen.messages {
        let Some(message) = &it.message else { continue };
        let state = match it.state {
            SeenState::Recorded => "exact",
            _ => "reconstructed",
        };
        if context.is_json {
            context.out.json(&Tagged { message, tags: &[], seen: Some(state) })?;
            continue;
        }
        let is_under = !it.is_shown_now && !message.is_hidden;
        let notes = [
            (state != how(seen.is_recorded)).then_some(state),
            is_under.then_some("now under a summary"),
        ];
        let notes: Vec<&str> = notes.into_iter().flatten().collect();
        printer.print(message, &notes, Extent::Brief, context)?;
    }
    match seen.count(SeenState::Removed) {
        0 => {}
        count => {
            tell(&format!("{} more, which were removed since", plural(count as u64, "message")))
        }
    }
    Ok(())
}

/// Writes the details of a message: all but its content.
fn about(
    message: &Message,
    session: &Session,
    printer: &Printer,
    context: &mut Context,
) -> Result<()> {
    let next = session.branches(&message.id)?;
    let next: Vec<&str> = next.iter().map(|child| printer.ids.of(child.id.as_str())).collect();
    let next = if next.is_empty() { "none".to_owned() } else { next.join(" ") };
    let parent = message.parent.as_ref().map_or("none", |id| printer.ids.of(id.as_str()));
    for (what, value) in [
        ("id", Some(message.id.to_string())),
        ("parent", Some(parent.to_owned())),
        ("children", Some(next)),
        ("metadata", message.metadata.as_ref().map(|it| it.as_str().to_owned())),
        ("tags", printer.tags.get(&message.id).map(|tags| tags.join(", "))),
        ("tokens", Some(format!("about {}", message.tokens()))),
    ] {
        if let Some(value) = value {
            put!(context.out; FAINT what, PLAIN "  ", PLAIN &one_line(&value))?;
        }
    }
    Ok(())
}

/// Returns the messages before and after one, oldest first: after it towards the head, or if it is off the path to the
/// head, on the newest branch.
fn surroundings(
    session: &Session,
    id: &MessageId,
    count: usize,
) -> Result<(Vec<Message>, Vec<Message>)> {
    if count == 0 {
        return Ok((Vec::new(), Vec::new()));
    }
    // A summary is only in a history; a message may be hidden in one.
    let is_summary = CompactionId::from_message(id).is_some();
    let path = if is_summary { session.path() } else { session.path().raw() };
    let before = path.page().before(id).limit(count).run()?.messages;
    let mut after = Vec::new();
    match path.page().after(id).limit(count).run() {
        Ok(page) => after = page.messages,
        // It is on another branch. A summary of one has no branches of its own.
        Err(error) if error.is_unknown() => {
            let mut last = id.clone();
            while after.len() < count && !is_summary {
                let Some(next) = session.branches(&last)?.pop() else { break };
                last = next.id.clone();
                after.push(next);
            }
        }
        Err(error) => return Err(error.into()),
    }
    Ok((before, after))
}

/// Print the messages that a compaction replaces, oldest first
///
/// The compaction is not changed. If it contains other compactions, their summaries are printed;
/// expand them in turn, or print all their messages with --raw.
#[derive(Debug, clap::Args)]
pub(crate) struct ExpandArgs {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,

    /// The compaction: its id, or the start or the end of its id.
    compaction: String,

    /// Print only stored messages, including those of nested compactions.
    #[arg(long)]
    raw: bool,

    /// Print tool inputs and outputs in full [default: 6 lines of each].
    #[arg(long)]
    full: bool,
}

pub(crate) fn expand(args: ExpandArgs, context: &mut Context) -> Result<()> {
    let (_, session) = context.read(&args.session)?;
    let id = lookup::compaction(&session, &args.compaction)?;
    let messages = if args.raw { session.expand_raw(&id)? } else { session.expand(&id)? };
    let extent = if args.full { Extent::Full } else { Extent::Brief };
    let printer = Printer::new(&session)?;
    messages.iter().try_for_each(|message| printer.print(message, &[], extent, context))
}
