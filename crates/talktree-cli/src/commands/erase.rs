//! `talktree erase`: leaves no byte of what it erases.

use std::collections::BTreeSet;

use clap::ArgGroup;
use talktree::{
    Erased, Erasure, ErasureCopies, ErasureExtent, ErasureProof, ErasureSummary, MessageId,
    Session, Store,
};

use crate::last_list;
use crate::prelude::*;
use crate::whole::{self, Line, Whole};

/// What is between the first and the last message of a range.
const RANGE: &str = "..";

/// What is not known of an erasure that was interrupted.
const UNLISTED: &str = "copies and summaries that it left before it was interrupted are not listed";

/// Erase sessions, messages, an owner, an author or a key, so that no byte is left
///
/// What `rm` deletes can still be in the search index, in the write-ahead log and in backups that are made later. What
/// is erased is not. Backups that were made before keep it. The command asks for confirmation; without a terminal it
/// requires --yes. Ids are whole here, so that the same command, given again, erases nothing else. An erasure that was
/// interrupted is finished first.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree erase [OPTIONS] <SESSION> [MESSAGES]...
       talktree erase [OPTIONS] --owner <OWNER>
       talktree erase [OPTIONS] --author <AUTHOR>
       talktree erase [OPTIONS] --key <KEY>
       talktree erase --deleted
       talktree erase --finish")]
#[command(group(ArgGroup::new("what").required(true)))]
#[command(group(ArgGroup::new("option").multiple(true)))]
pub(crate) struct EraseArgs {
    /// The session: its whole id, or with --name its name.
    #[arg(group = "what")]
    session: Option<String>,

    /// The whole ids of the messages to erase; without any, the whole session is erased. FIRST..LAST is all from FIRST to
    /// LAST on a path.
    messages: Vec<String>,

    /// SESSION is the name of a session.
    #[arg(long, requires = "session")]
    name: bool,

    /// Erase all sessions, context blocks, usage and transcripts of this owner.
    #[arg(long, group = "what")]
    owner: Option<String>,

    /// Erase what this author wrote in all sessions, also in those of others. Answers and what others wrote stay.
    #[arg(long, group = "what")]
    author: Option<String>,

    /// Erase this key, and all sessions that it points to or pointed to.
    #[arg(long, group = "what")]
    key: Option<String>,

    /// Erase what was deleted before, for example with `rm --forever`. The trash stays.
    #[arg(long, group = "what", conflicts_with = "option")]
    deleted: bool,

    /// Erase the messages and all messages below them.
    #[arg(long, requires = "messages", group = "option")]
    branch: bool,

    /// Also erase copies of the messages, in forks and in the session that was forked.
    #[arg(long, group = "option")]
    forks: bool,

    /// Also erase summaries that cover an erased message: of compactions, of branches and of sessions that continue here.
    #[arg(long, group = "option")]
    summaries: bool,

    /// Keep the usage in totals, without its session, owner and source.
    #[arg(long, group = "option")]
    keep_totals: bool,

    /// Refuse later imports of sessions with these ids. The same text under another id is imported.
    #[arg(long, group = "option")]
    forbid_import: bool,

    /// Show what would be erased, and erase nothing.
    #[arg(long, group = "option")]
    dry_run: bool,

    /// Look for the erased texts in every byte of the store afterwards.
    #[arg(long, conflicts_with = "dry_run", group = "option")]
    prove: bool,

    /// Do not ask for confirmation.
    #[arg(long, short, group = "option")]
    yes: bool,

    /// Finish the erasures that were interrupted, or whose log another program was reading.
    #[arg(long, group = "what", conflicts_with = "option")]
    finish: bool,
}

impl EraseArgs {
    /// Returns the flags that were given, without `--yes`.
    fn options(&self) -> String {
        given(&[
            (self.branch, "--branch"),
            (self.forks, "--forks"),
            (self.summaries, "--summaries"),
            (self.keep_totals, "--keep-totals"),
            (self.forbid_import, "--forbid-import"),
            (self.dry_run, "--dry-run"),
            (self.prove, "--prove"),
        ])
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    /// Whether something was erased.
    is_erased: bool,
    #[serde(flatten)]
    extent: &'a ErasureExtent,
    is_rewritten: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<ErasureProof>,
}

pub(crate) fn run(args: EraseArgs, context: &mut Context) -> Result<()> {
    if args.prove && Store::is_url(context.store_path()?) {
        let why =
            "--prove reads the bytes of a file, and the store is on a server; nothing was erased";
        return Err(Failure::Usage(why.to_owned()));
    }
    let store = context.writer()?;
    if args.finish {
        return finish(&store, context);
    }
    if args.deleted {
        return erase_deleted(&store, context);
    }
    let mut is_complete = None;
    if !args.dry_run && store.has_unfinished_erasure()? {
        // What the arguments name may be what it has marked, and be found no more.
        tell("an erasure was interrupted, and is finished first");
        is_complete = Some(store.finish_erasure()?);
    }
    let (erasure, extent) = match (named(&args, &store), is_complete) {
        (Err(Failure::NotFound(why)), Some(is_complete)) => {
            tell(&why);
            return match (is_complete, args.prove) {
                (false, _) => Err(unfinished()),
                (true, true) => Err(Failure::Store(format!(
                    "the interrupted erasure is finished, but not proved: its texts are not known any more; {UNLISTED}"
                ))),
                (true, false) => {
                    tell(UNLISTED);
                    Ok(())
                }
            };
        }
        (named, _) => named?,
    };
    tell_left(&extent);
    if args.dry_run {
        return print(false, &extent, false, None, context);
    }
    let what = format!("erase {}, so that no copy of it is left in the store", counts(&extent));
    confirm(args.yes, &what, "nothing was erased")?;
    let erased = erase(&store, &erasure)?;
    let (proof, unproved) = match args.prove.then(|| erased.prove()) {
        Some(Err(error)) => (None, Some(error)),
        proved => (proved.and_then(talktree::Result::ok), None),
    };
    print(true, &erased.extent, erased.is_rewritten, proof, context)?;
    if !context.is_json {
        suggest(&args, &erased, &store, &mut context.out)?;
    }
    unproved.map_or(Ok(()), |error| Err(error.into()))
}

/// Returns what the arguments name, and what there is of it. It is an error if nothing is stored of an owner, an author or a
/// key.
fn named(args: &EraseArgs, store: &Store) -> Result<(Erasure, ErasureExtent)> {
    let erasure = erasure(args, store)?;
    let extent = store.erasure_extent(&erasure)?;
    let what = match (&args.owner, &args.author, &args.key) {
        (Some(owner), ..) => format!("of owner {}", quoted(owner)),
        (_, Some(author), _) => format!("of author {}", quoted(author)),
        (.., Some(key)) => format!("under key {}", quoted(key)),
        // Sessions and messages were looked up.
        _ => return Ok((erasure, extent)),
    };
    match numbers(&extent).is_empty() {
        true => Err(Failure::NotFound(format!("the store has no data {what}"))),
        false => Ok((erasure, extent)),
    }
}

/// Erases; a signal interrupts it. It is an error if another program uses the log, which then still has the texts.
fn erase(store: &Store, erasure: &Erasure) -> Result<Erased> {
    // The ids of what is erased may be in it.
    last_list::forget();
    let erased = Signals::catch()?.run(store, "erasing", |bar| {
        store.erase_with_progress(erasure, |progress| bar.show(progress))
    })?;
    if erased.is_complete() { Ok(erased) } else { Err(in_use()) }
}

/// Returns what the arguments name.
fn erasure(args: &EraseArgs, store: &Store) -> Result<Erasure> {
    let mut erasure = match (&args.session, &args.owner, &args.author, &args.key) {
        (Some(session), ..) => {
            let mut line = Line {
                verb: "erase",
                arguments: [session].into_iter().chain(&args.messages).map(|it| &**it).collect(),
                options: args.options(),
            };
            let session = whole::session(store, &line, args.name)?;
            line.arguments[0] = session.id().as_str();
            let mut ids = Vec::new();
            for (at, given) in args.messages.iter().enumerate() {
                ids.extend(messages(&session, given, |given| line.with(at + 1, given))?);
            }
            whole::erasure(&session, &ids, args.branch)
        }
        (_, Some(owner), ..) => Erasure::owner(owner),
        (.., Some(author), _) => Erasure::author(author),
        (.., Some(key)) => Erasure::key(key),
        _ => return Err(Failure::Usage("name what to erase".to_owned())),
    };
    erasure.forks = args.forks;
    erasure.summaries = args.summaries;
    erasure.keep_totals = args.keep_totals;
    erasure.forbid_import = args.forbid_import;
    Ok(erasure)
}

/// Returns the message that an argument names, or the messages of a range.
fn messages(
    session: &Session,
    given: &str,
    typed: impl Fn(&str) -> String,
) -> Result<Vec<Whole<MessageId>>> {
    let one = whole::message(session, given, &typed);
    let Some((first, last)) = given.split_once(RANGE) else { return Ok(vec![one?]) };
    let range = (
        whole::message(session, first, |id| typed(&format!("{id}{RANGE}{last}"))),
        whole::message(session, last, |id| typed(&format!("{first}{RANGE}{id}"))),
    );
    match (one, range) {
        // If it were one of them now, it would be the other when it is given again.
        (Ok(_), (Ok(_), Ok(_))) => Err(Failure::Usage(format!(
            "{} is the id of a message, and also a range; erase the range in parts",
            quoted(given)
        ))),
        (Ok(id), _) => Ok(vec![id]),
        (Err(Failure::NotFound(_)), (first, last)) => whole::range(session, &first?, &last?),
        (Err(failure), _) => Err(failure),
    }
}

fn erase_deleted(store: &Store, context: &mut Context) -> Result<()> {
    let erased = erase(store, &Erasure::deleted())?;
    match context.is_json {
        true => print(true, &erased.extent, erased.is_rewritten, None, context),
        false => Ok(put!(context.out; PLAIN "nothing of what was deleted is left")?),
    }
}

/// Finishes the erasures that are not complete.
fn finish(store: &Store, context: &mut Context) -> Result<()> {
    if !store.finish_erasure()? {
        return Err(unfinished());
    }
    context.answer(&json!({"is_erased": true}), &[(PLAIN, "every erasure is complete")])
}

fn unfinished() -> Failure {
    Failure::Store(format!(
        "the erasure is not complete: another program reads from the store, or erases something; run `{}` when it has \
         ended",
        command("erase --finish")
    ))
}

fn in_use() -> Failure {
    Failure::Store(format!(
        "the text was deleted, but it is still in the write-ahead log, which another program reads; \
         run `{}` when that program has ended",
        command("erase --finish")
    ))
}

fn print(
    is_erased: bool,
    extent: &ErasureExtent,
    is_rewritten: bool,
    proof: Option<ErasureProof>,
    context: &mut Context,
) -> Result<()> {
    if context.is_json {
        return Ok(context.out.json(&Answer { is_erased, extent, is_rewritten, proof })?);
    }
    let out = &mut context.out;
    let verb = if is_erased { "erased" } else { "would be erased" };
    put!(out; PLAIN &format!("{verb}: {}", counts(extent)))?;
    for id in &extent.sessions {
        put!(out; PLAIN "session ", ID id.as_str())?;
    }
    for key in &extent.transcripts {
        let names = [key.project.as_str(), key.session.as_str(), key.subpath.as_str()];
        let name = names.map(one_line).join(" ");
        put!(out; PLAIN "transcript ", ID name.trim_end())?;
    }
    let left = if is_erased { "left" } else { "would be left" };
    for copies in &extent.copies_left {
        let mut what: Vec<String> = Vec::new();
        what.extend((copies.messages > 0).then(|| plural(copies.messages, "copy")));
        what.extend(copies.blocks.iter().map(|label| format!("block {}", one_line(label))));
        what.extend(copies.details.iter().cloned());
        let left = format!("{} {left} in session ", what.join(", "));
        put!(out; PLAIN &left, ID copies.session.as_str())?;
    }
    for summary in &extent.summaries_left {
        let left = format!("summary {left} that covers erased text: ");
        put!(
            out;
            PLAIN &left, COMPACTION summary.id.as_str(), PLAIN " in session ",
            ID summary.session.as_str(),
        )?;
    }
    if let Some(proof) = proof {
        let (texts, pieces) =
            (plural(proof.texts, "erased text"), plural(proof.sequences, "piece"));
        let store = size(proof.bytes);
        put!(out; PLAIN &format!("proof: all {store} of the store were searched for {pieces} of {texts}"))?;
        let copies = if proof.left > 0 { ", as the copies and summaries above" } else { "" };
        for (count, found) in [
            (proof.sequences.saturating_sub(proof.kept), "nowhere".to_owned()),
            // What others said, too.
            (proof.kept, format!("only in texts that stay and have the same words{copies}")),
        ] {
            if count > 0 {
                put!(out; PLAIN &format!("  {} found {found}", plural(count, "piece")))?;
            }
        }
    }
    Ok(())
}

/// Says before an erasure what will be left: afterwards the messages that it was made of are unknown.
fn tell_left(extent: &ErasureExtent) {
    let copies: u64 = extent.copies_left.iter().map(ErasureCopies::count).sum();
    if copies > 0 {
        let copies = plural(copies, "copy");
        tell(&format!("{copies} in other sessions will be left; --forks also erases them"));
    }
    if !extent.summaries_left.is_empty() {
        let summaries = plural(extent.summaries_left.len() as u64, "summary");
        tell(&format!("{summaries} of erased text will be left; --summaries also erases them"));
    }
}

/// Says how to erase the copies and the summaries that are left.
fn suggest(args: &EraseArgs, erased: &Erased, store: &Store, out: &mut Output) -> Result<()> {
    // Without messages the whole session would be named.
    for copies in erased.extent.copies_left.iter().filter(|copies| !copies.ids.is_empty()) {
        let session = store.session(copies.session.clone())?;
        let messages = arguments_of(&session, &copies.ids)?;
        let mut arguments = vec![copies.session.as_str()];
        arguments.extend(messages.iter().map(String::as_str));
        let flags = [(args.summaries, "--summaries"), (args.keep_totals, "--keep-totals")];
        let rest = verb("erase", &arguments, &given(&flags));
        let copies = format!("{} in session ", plural(copies.messages, "copy"));
        put!(out; PLAIN &copies, ID session.id().as_str(), PLAIN " can be erased with:")?;
        put!(out; PLAIN "  ", PLAIN &command(&rest))?;
    }
    let summaries = &erased.extent.summaries_left;
    if !summaries.is_empty() {
        put!(out; PLAIN "the summaries can be erased with:")?;
    }
    let mut is_any_removed = false;
    for ErasureSummary { session, id, .. } in summaries {
        let removed = id.as_str().strip_prefix(talktree::CompactionId::PREFIX);
        is_any_removed |= removed.is_some();
        let rest = match removed {
            Some(id) => verb("compact", &[session.as_str()], &option("remove", id)),
            None => verb("erase", &[session.as_str(), id.as_str()], ""),
        };
        put!(out; PLAIN "  ", PLAIN &command(&rest))?;
    }
    if is_any_removed {
        put!(out; PLAIN "  ", PLAIN &command("erase --deleted"))?;
    }
    Ok(())
}

/// Returns the numbers that are not zero, as one text.
fn counts(extent: &ErasureExtent) -> String {
    let counts = numbers(extent);
    if counts.is_empty() { "nothing".to_owned() } else { counts.join(", ") }
}

/// Returns the numbers that are not zero, each with its noun.
fn numbers(extent: &ErasureExtent) -> Vec<String> {
    let counts = [
        (extent.sessions.len() as u64, "session"),
        (extent.messages, "message"),
        (extent.summaries, "summary"),
        (extent.texts, "context text"),
        (extent.details, "detail"),
        (extent.prompts, "frozen prompt"),
        (extent.bindings, "binding"),
        (extent.items, "pending item"),
        (extent.usage, "usage row"),
        (extent.transcripts.len() as u64, "transcript"),
        (extent.entries, "transcript entry"),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    counts.map(|(count, noun)| plural(count, noun)).collect()
}

/// Returns arguments that name exactly these messages; those that follow each other on a path are one range.
pub(crate) fn arguments_of(session: &Session, ids: &[MessageId]) -> Result<Vec<String>> {
    let mut left: BTreeSet<&MessageId> = ids.iter().collect();
    let mut arguments = Vec::new();
    // The newest first: a fork copies a path.
    for last in ids.iter().rev() {
        if !left.contains(last) {
            continue;
        }
        let path = session.at(last).raw().row_stats()?;
        let mut first = last;
        for row in path.iter().rev().take_while(|row| left.contains(&row.id)) {
            first = &row.id;
            // An id with two dots would not be read as the end of a range.
            if row.id.as_str().contains(RANGE) {
                break;
            }
        }
        if last.as_str().contains(RANGE) || first.as_str().contains(RANGE) {
            first = last;
        }
        let start = path.iter().position(|row| row.id == *first).unwrap_or_default();
        for row in &path[start..] {
            left.remove(&row.id);
        }
        arguments.push(match first == last {
            true => last.to_string(),
            false => format!("{first}{RANGE}{last}"),
        });
    }
    arguments.reverse();
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use talktree::{Message, Store};

    use super::*;

    #[test]
    fn messages_that_follow_each_other_are_one_range() -> Result<()> {
        let chat = Store::open_in_memory()?.session("s")?;
        let say = |id: &str| Message::user("hi").with_id(id);
        chat.append_all(["a", "b", "c", "d", "e..f", "g"].map(say))?;
        chat.append_to(&"c".into(), say("h"))?;
        for (ids, expected) in [
            ("a", "a"),
            ("a b c", "a..c"),
            ("a c", "a c"),
            ("a b d", "a..b d"),
            ("a b c d h", "d a..h"),
            ("c d e..f g", "c..d e..f g"),
            ("", ""),
        ] {
            let ids: Vec<MessageId> = ids.split_whitespace().map(MessageId::from).collect();
            assert_eq!(arguments_of(&chat, &ids)?.join(" "), expected);
        }
        Ok(())
    }
}
