//! Running a call: do what the model asks for, and say what came of it.

use talktree_text::foreign::{name, quoted, read_name};

use super::answer;
use super::call::{Fields, suggestion};
use super::definition::{
    HISTORY_BRANCHES, HISTORY_EXPAND, HISTORY_SEARCH, LOAD_CONTEXT, SEARCH_CONTEXT, SESSION_SEARCH,
    SET_CONTEXT, UNLOAD_CONTEXT,
};
use crate::context::{BlockInfo, Context, Keep};
use crate::error::{Error, Result};
use crate::id::{CompactionId, MessageId, shorten};
use crate::message::{Message, Role};
use crate::search::indexed_text::{plain_text, plain_tools};
use crate::search::{Hit, Scope, SearchTarget};
use crate::storage::context::{BlockScope, Document};
use crate::storage::sqlite::SqliteSession;
use crate::tokens::estimate_tokens;
use crate::tree::preview;

/// How many places with branches are listed; the newest ones.
const MAX_PLACES: usize = 20;

/// How many branches of one place are listed; the newest ones.
const MAX_BRANCHES: usize = 20;

/// Runs a call and returns the answer.
///
/// An error that a model can correct, or has to accept, becomes a text. An error of the store is for the host.
pub(super) fn run(
    context: &Context,
    tool: &str,
    fields: &Fields,
    max_tokens: u64,
) -> Result<String> {
    match done(context, tool, fields, max_tokens) {
        Ok(text) => Ok(text),
        Err(error) if is_of_the_store(&error) => Err(error),
        Err(error) => Ok(answer::error(error)),
    }
}

fn is_of_the_store(error: &Error) -> bool {
    matches!(
        error,
        Error::Busy { .. }
            | Error::Corrupt { .. }
            | Error::DiskFull
            | Error::Interrupted
            | Error::Io { .. }
            | Error::ReadOnly
            | Error::Storage { .. }
    )
}

fn done(context: &Context, tool: &str, fields: &Fields, max_tokens: u64) -> Result<String> {
    let (label, key, query) = (fields.text("label"), fields.text("key"), fields.text("query"));
    let conversation = &*context.backing().conversation;
    match tool {
        SET_CONTEXT => {
            let keep = if fields.text("action") == "append" { Keep::All } else { Keep::About };
            if !context.require(label)?.kind().is_keyed() {
                let info = context.write(label, fields.text("content"), keep)?;
                return Ok(answer::written(&info, None));
            }
            let key = context.write_document(label, &fields.document(), keep)?;
            written(context, label, &key)
        }
        LOAD_CONTEXT => {
            let content = context.load(label, key)?;
            let hint = if content.is_none() { near(context, label, key) } else { String::new() };
            Ok(answer::document(label, key, content.as_deref()) + &hint)
        }
        UNLOAD_CONTEXT => Ok(match context.unload(label, key)? {
            Some(_) => answer::unloaded(label, key),
            None => answer::not_loaded(label, key),
        }),
        SEARCH_CONTEXT => {
            let (documents, matched) = context.look_up(label, query, answer::MAX_HITS)?;
            // Each has an equal share, so that a long document leaves room for those after it.
            let share = max_tokens / (documents.len().max(1) as u64);
            let share = share.saturating_sub(2);
            let hit = |found: &Document| {
                answer::Entry::within(share, name(&found.key).into_owned(), &found.content)
            };
            let hits: Vec<_> = documents.iter().map(hit).collect();
            Ok(answer::found(query, matched, &[], false, &hits))
        }
        SESSION_SEARCH => {
            let scope = context.tool_options().sessions.unwrap_or(BlockScope::Session);
            messages(context, query, Scope::Store, scope)
        }
        HISTORY_SEARCH => {
            let session = conversation.id().clone();
            let scope = match fields.text("branches") {
                "current" => Scope::Path(session, None),
                _ => Scope::session(session),
            };
            messages(context, query, scope, BlockScope::Session)
        }
        HISTORY_EXPAND => {
            // A history shows a summary as a message; both ids are accepted.
            let id = fields.text("id");
            let summary = CompactionId::from_message(&id.into()).unwrap_or_else(|| id.into());
            expand(context, &summary, fields.id("after").as_ref(), max_tokens)
        }
        HISTORY_BRANCHES => match fields.id("id") {
            None => all_branches(context),
            Some(id) => {
                let branches = shown_after(conversation, Some(&id))?;
                let id = name(id.as_str());
                match branches.len() {
                    0 => Ok(format!("Nothing follows {id}.")),
                    _ => Ok(format!("After [{id}]:\n{}", listed(conversation, &branches)?)),
                }
            }
        },
        other => Ok(answer::error(format_args!("there is no tool {other:?}"))),
    }
}

/// Suggests the document that an unknown key may mean: a block of skills lists each in a line.
fn near(context: &Context, label: &str, key: &str) -> String {
    // Without the list there is no suggestion.
    let list = context.block(label).ok().flatten().map(|block| block.content).unwrap_or_default();
    let lines = list.lines().filter_map(|line| line.strip_prefix("- "));
    let keys: Vec<_> = lines.map(|line| read_name(line).0).collect();
    let keys: Vec<&str> = keys.iter().map(AsRef::as_ref).collect();
    suggestion(key, &keys)
}

/// Says how large a document is now. A provider may take documents that cannot be read back.
fn written(context: &Context, label: &str, key: &str) -> Result<String> {
    let block = context.require(label)?.kind();
    Ok(match context.load(label, key) {
        Ok(Some(content)) => {
            let document = BlockInfo { tokens: estimate_tokens(&content), ..block };
            answer::written(&document, Some(key))
        }
        _ => answer::written_to(label, Some(key)) + ".",
    })
}

fn messages(context: &Context, query: &str, scope: Scope, of: BlockScope) -> Result<String> {
    let is_everywhere = scope == Scope::Store;
    let backing = context.backing();
    let found = match is_everywhere {
        true => backing.search_sessions(of, query, answer::MAX_HITS)?,
        false => {
            let request = backing.request(query, scope, answer::MAX_HITS)?;
            backing.conversation.database().search(&request)?
        }
    };
    let hit = |hit: &Hit| {
        answer::Entry::within(u64::MAX, about(hit, is_everywhere), &hit.snippet.to_string())
    };
    let hits: Vec<_> = found.hits.iter().map(hit).collect();
    Ok(answer::found(query, found.matched, &found.steps, found.is_partial, &hits))
}

/// Returns what the bracket of a hit says.
fn about(hit: &Hit, is_everywhere: bool) -> String {
    let id = name(hit.id.as_str());
    let mut about = match is_everywhere {
        true => format!("conversation {}, {id}", name(hit.session.as_str())),
        false => id.into_owned(),
    };
    about += &format!(", {}, {}", role(&hit.role), hit.created_at.format("%Y-%m-%d %H:%M"));
    if !is_everywhere && !hit.on_path {
        about += ", on another branch";
    }
    if let Some(under) = &hit.under {
        about += &format!(", under summary {}", name(under.as_str()));
    }
    about
}

/// A role may have any length.
fn role(role: &Role) -> String {
    name(&shorten(role.as_str())).into_owned()
}

/// Shows the messages behind a summary, as many as there is room for; none that is hidden.
fn expand(
    context: &Context,
    id: &CompactionId,
    after: Option<&MessageId>,
    max_tokens: u64,
) -> Result<String> {
    let conversation = &*context.backing().conversation;
    let mut messages = conversation.expand_raw(id)?;
    messages.retain(|message| !message.is_hidden);
    let start = match after {
        None => 0,
        Some(after) => {
            let at = messages.iter().position(|message| message.id == *after);
            let unknown =
                || Error::UnknownMessage { session: conversation.id().clone(), id: after.clone() };
            at.ok_or_else(unknown)? + 1
        }
    };
    let rest = &messages[start..];
    if rest.is_empty() {
        return Ok("That was all.".to_owned());
    }
    // Leaves room for the line that says how to continue.
    let room = max_tokens.saturating_sub(60);
    let (mut texts, mut tokens) = (Vec::new(), 0);
    for message in rest {
        let text = whole(message, room).to_string();
        let size = estimate_tokens(&text) + 1;
        if !texts.is_empty() && tokens + size > room {
            break;
        }
        texts.push(text);
        tokens += size;
    }
    let told = texts.len();
    let mut text = texts.join("\n\n");
    if let Some(last) = rest.get(told.saturating_sub(1)).filter(|_| told < rest.len()) {
        let left = rest.len() - told;
        let after = quoted(last.id.as_str());
        text += &format!("\n\n[{left} more; call again with after {after}]");
    }
    Ok(text)
}

fn whole(message: &Message, max_tokens: u64) -> answer::Entry {
    let (text, tools) = (plain_text(&message.parts), plain_tools(&message.parts));
    let between = if text.is_empty() || tools.is_empty() { "" } else { "\n" };
    let time = message.created_at.format("%Y-%m-%d %H:%M");
    let about = format!("{}, {}, {time}", name(message.id.as_str()), role(&message.role));
    answer::Entry::within(max_tokens, about, &format!("{text}{between}{tools}"))
}

/// Lists the places where the conversation branches.
fn all_branches(context: &Context) -> Result<String> {
    let conversation = &*context.backing().conversation;
    let tree = conversation.tree()?;
    let mut places: Vec<_> = tree
        .segments
        .iter()
        .filter(|segment| segment.children.len() > 1)
        .map(|segment| Some(&segment.last))
        .collect();
    if tree.roots.len() > 1 {
        places.insert(0, None);
    }
    let left_out = places.len().saturating_sub(MAX_PLACES);
    let mut texts = Vec::new();
    if left_out > 0 {
        texts.push(format!("[{left_out} earlier places are left out]"));
    }
    for place in places.split_off(left_out) {
        let branches = shown_after(conversation, place)?;
        // All others are hidden.
        if branches.len() < 2 {
            continue;
        }
        let after = place
            .map_or("At the beginning".to_owned(), |id| format!("After [{}]", name(id.as_str())));
        texts.push(format!("{after}:\n{}", listed(conversation, &branches)?));
    }
    if texts.is_empty() {
        return Ok("This conversation has no branches.".to_owned());
    }
    Ok(texts.join("\n\n"))
}

/// Returns the branches after a message; instead of a hidden one, what follows it.
fn shown_after(conversation: &SqliteSession, place: Option<&MessageId>) -> Result<Vec<Message>> {
    let newest_first = |place: Option<&MessageId>| -> Result<Vec<Message>> {
        let mut branches = conversation.branches(place)?;
        branches.reverse();
        Ok(branches)
    };
    let (mut left, mut shown) = (newest_first(place)?, Vec::new());
    while let Some(branch) = left.pop() {
        match branch.is_hidden {
            true => left.extend(newest_first(Some(&branch.id))?),
            false => shown.push(branch),
        }
    }
    Ok(shown)
}

fn listed(conversation: &SqliteSession, branches: &[Message]) -> Result<String> {
    let left_out = branches.len().saturating_sub(MAX_BRANCHES);
    let mut lines = Vec::new();
    if left_out > 0 {
        lines.push(format!("- [{left_out} earlier ones are left out]"));
    }
    for branch in &branches[left_out..] {
        let leads_here = conversation.is_on_path(&branch.id, None)?;
        let (id, role) = (name(branch.id.as_str()), role(&branch.role));
        let mark = if leads_here { ", leads here" } else { "" };
        let line = format!("- [{id}, {role}{mark}] {}", preview(&branch.parts));
        lines.push(line.trim_end().to_owned());
    }
    Ok(lines.join("\n"))
}
