//! The tools that read one conversation.

use talktree::{
    CompactionId, DrawOptions, Message, MessageId, Path, PieceKind, Session, TreeLine,
    estimate_tokens,
};

use crate::access::View;
use crate::answer::{NOTICE, Refused, Result, call, id, quotation, quoted, said};
use crate::find::titled;
use crate::tools::Arguments;

/// How many tokens of an answer are kept for what is around the messages.
const OURS: usize = 150;

/// How many messages are read for an answer; the tokens decide how many of them are shown.
const PAGE: usize = 40;

/// Returns the message of an id or a label, or the head. A hidden one is not there for a model.
pub(crate) fn message(session: &Session, given: &str) -> Result<Message> {
    let mut found = match given {
        "head" => session.head()?.map(|head| session.message(&head)).transpose()?.flatten(),
        _ => session.message(&given.into())?,
    };
    if found.is_none()
        && let Some(labelled) = session.labelled(given)?
    {
        found = session.message(&labelled)?;
    }
    let unknown = || format!("session {} has no message {}", id(session.id()), quoted(given));
    found.filter(|found| !found.is_hidden).ok_or_else(|| Refused(unknown()))
}

/// Messages, the nearest first, and whether there are more.
type Side = (Vec<Message>, bool);

fn side(messages: impl Iterator<Item = Message>, has_more: bool) -> Side {
    (messages.filter(|message| !message.is_hidden).collect(), has_more)
}

/// Reads what comes before a message of a path, or its end.
fn earlier(path: &Path, at: Option<&MessageId>) -> Result<Side> {
    let page = path.page().limit(PAGE);
    let page = at.into_iter().fold(page, |page, at| page.before(at)).run()?;
    Ok(side(page.messages.into_iter().rev(), page.before.is_some()))
}

/// Reads what follows a message of one of these paths to the head, or on the newest branch if it is on none.
fn later(session: &Session, paths: &[Path], at: &MessageId) -> Result<Side> {
    for path in paths {
        match path.page().after(at).limit(PAGE).run() {
            Ok(page) => return Ok(side(page.messages.into_iter(), page.after.is_some())),
            Err(error) if error.is_unknown() => {}
            Err(error) => return Err(error.into()),
        }
    }
    let (mut last, mut found) = (at.clone(), Vec::new());
    while found.len() < PAGE
        && let Some(next) = session.branches(&last)?.pop()
    {
        last = next.id.clone();
        found.push(next);
    }
    let has_more = found.len() == PAGE;
    Ok(side(found.into_iter(), has_more))
}

pub(crate) fn read(view: &View, given: &Arguments) -> Result<String> {
    let session = &view.session(given.required("session"))?;
    let of = |name| given.text(name).map(|given| message(session, given)).transpose();
    let (target, before, after) = (of("message")?, of("before")?, of("after")?);
    // As a model sees it; around a message, as it was said.
    let [seen, raw] = [session.path(), session.path().raw()];
    let nothing = (Vec::new(), false);
    let (before, after) = match (&target, before, after) {
        (Some(at), None, None) if CompactionId::from_message(&at.id).is_some() => {
            (earlier(&seen, Some(&at.id))?, later(session, &[seen], &at.id)?)
        }
        (Some(at), None, None) => (earlier(&raw, Some(&at.id))?, later(session, &[raw], &at.id)?),
        (None, None, Some(at)) => (nothing, later(session, &[seen, raw], &at.id)?),
        (None, at, None) => (earlier(&seen, at.as_ref().map(|at| &at.id))?, nothing),
        _ => {
            return Err(Refused(
                "give at most one of \"message\", \"before\" and \"after\"".to_owned(),
            ));
        }
    };
    let room = given.number("max_tokens").saturating_sub(OURS) as u64;
    let mut shown = String::new();
    if let Some(at) = &target {
        let notes = notes(session, at)?;
        let (session, at) = (session.id().as_str(), view.redacted(at));
        shown = said(session, &at, &notes, Some(given.number("offset")), room);
    }
    // Without a message in the middle one at least is shown. What follows it has half of what is left, and what came before the rest.
    let (least, share) = if target.is_some() { (0, room / 4) } else { (1, room / 3) };
    let left = room.saturating_sub(estimate_tokens(&shown));
    let room_after = if before.0.is_empty() { left } else { left / 2 };
    let texts_after = fill(view, session, &after.0, least, share, room_after);
    let left = left.saturating_sub(estimate_tokens(&texts_after.concat()));
    let mut texts_before = fill(view, session, &before.0, least, share, left);
    let more = |(messages, has_more): &Side, count: usize, name: &str, place: &str| {
        let at = messages[..count].last().or(target.as_ref()).map(|at| at.id.as_str())?;
        let call = call("read", &[("session", session.id().as_str()), (place, at)]);
        (*has_more || count < messages.len()).then(|| format!("[{name}: {call}]\n"))
    };
    let earlier = more(&before, texts_before.len(), "earlier", "before").unwrap_or_default();
    let later = more(&after, texts_after.len(), "later", "after").unwrap_or_default();
    texts_before.reverse();
    let texts = texts_before.concat() + &shown + &texts_after.concat();
    Ok(format!("Session {}\n{NOTICE}\n\n{earlier}{texts}{later}", title(view, session)?)
        .trim_end()
        .to_owned())
}

/// Returns what is said about the message that was asked for.
fn notes(session: &Session, at: &Message) -> Result<Vec<String>> {
    let mut notes = vec!["this message".to_owned()];
    if CompactionId::from_message(&at.id).is_none() && !session.is_on_path(&at.id)? {
        notes.push("on another branch than the head".to_owned());
    }
    let others = side(session.siblings(&at.id)?.into_iter(), false).0.into_iter();
    let others = others.filter(|other| other.id != at.id).take(5).map(|other| id(&other.id));
    let others: Vec<String> = others.collect();
    notes.extend((!others.is_empty()).then(|| format!("other versions: {}", others.join(" "))));
    Ok(notes)
}

/// Quotes messages as long as there is room, but at least so many, each within its share.
fn fill(
    view: &View,
    session: &Session,
    messages: &[Message],
    least: usize,
    share: u64,
    mut room: u64,
) -> Vec<String> {
    let mut shown = Vec::new();
    for message in messages {
        let text = said(session.id().as_str(), &view.redacted(message), &[], None, share);
        let tokens = estimate_tokens(&text);
        if tokens > room && shown.len() >= least {
            break;
        }
        room = room.saturating_sub(tokens);
        shown.push(text);
    }
    shown
}

fn title(view: &View, session: &Session) -> Result<String> {
    Ok(session.info()?.map_or_else(|| id(session.id()), |info| titled(view, &info)))
}

pub(crate) fn expand(view: &View, given: &Arguments) -> Result<String> {
    let session = &view.session(given.required("session"))?;
    let summary = given.required("summary");
    let summary = CompactionId::from_message(&summary.into()).unwrap_or_else(|| summary.into());
    let mut messages = side(session.expand(&summary)?.into_iter(), false).0;
    if let Some(after) = given.text("after") {
        let at = messages.iter().position(|message| message.id == after);
        let unknown = || Refused(format!("the summary has no message {}", quoted(after)));
        messages.drain(..=at.ok_or_else(unknown)?);
    }
    let room = given.number("max_tokens").saturating_sub(OURS) as u64;
    let shown = fill(view, session, &messages, 1, room / 3, room);
    let summary = summary.as_message();
    let mut text = format!("Summary {} replaces:\n{NOTICE}\n\n{}", id(&summary), shown.concat());
    let left = messages.len() - shown.len();
    if let Some(last) = messages[..shown.len()].last().filter(|_| left > 0) {
        let (session, summary) = (session.id().as_str(), summary.as_str());
        let more = [("session", session), ("summary", summary), ("after", last.id.as_str())];
        text += &format!("[{left} more: {}]", call("expand", &more));
    }
    Ok(text.trim_end().to_owned())
}

pub(crate) fn tree(view: &View, given: &Arguments) -> Result<String> {
    let session = &view.session(given.required("session"))?;
    let mut tree = session.tree()?;
    let landmarks = tree.segments.iter_mut().flat_map(|segment| &mut segment.landmarks);
    landmarks.filter(|landmark| landmark.is_hidden).for_each(|landmark| landmark.preview.clear());
    let ends = tree.segments.iter().filter(|segment| segment.children.is_empty()).count();
    let about = format!("{} messages, {ends} branches", tree.messages);
    let mut text = format!("Session {}: {about}\n{NOTICE}\n\n", title(view, session)?);
    let mut left = given.number("max_tokens").saturating_sub(OURS) as u64;
    for line in tree.lines(&DrawOptions::default()) {
        let line = quotation(&with_whole_id(view, &line));
        let Some(rest) = left.checked_sub(estimate_tokens(&line)) else {
            text +=
                "[cut; a larger \"max_tokens\" shows more, and `read` what is around a message]";
            break;
        };
        left = rest;
        text += &line;
    }
    Ok(text.trim_end().to_owned())
}

/// Returns a line of a tree with the id that the other tools take.
fn with_whole_id(view: &View, line: &TreeLine) -> String {
    let Some(message) = &line.message else { return line.to_string() };
    let piece = |(kind, text): &(PieceKind, String)| match kind {
        PieceKind::Id => format!(" {}", id(message)),
        PieceKind::Compaction => {
            let (_, count) = text.rsplit_once(": ").unwrap_or(("", text));
            format!("[summary {}: {count}", id(message))
        }
        PieceKind::Text | PieceKind::Faded => view.redacted_start(text).into_owned(),
        _ => text.clone(),
    };
    line.pieces.iter().map(piece).collect()
}
