//! What the page reads: lists, hits, pages of a path, sums.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use talktree::{
    CompactionId, Hit, Matched, MessageId, Path, Session, SessionFilter, SessionState, UsageFilter,
    UsageGroup,
};

use crate::routes::{Answer, Query, Refused, Result};
use crate::server::Page;
use crate::view::{self, Extent};

/// How long a search takes at most: somebody types.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How many of the greatest rows of a sum are shown; of days, all are.
const MAX_ROWS: usize = 12;

/// How many conversations are searched where filters choose them.
const MAX_SEARCHED: usize = 1_000;

/// Returns which conversations the filters of the list show.
fn filter(page: &Page, query: &Query) -> Result<SessionFilter> {
    let state = match query.text("state") {
        None => SessionState::Present,
        Some("open") => SessionState::Open,
        Some("ended") => SessionState::Ended,
        Some("trash") => SessionState::Trash,
        Some(_) => return Err(Refused(400, "there is no such state".to_owned())),
    };
    Ok(SessionFilter {
        owner: page.options.owner.clone().or(query.owned("owner")),
        source: query.owned("source"),
        model: query.owned("model"),
        tag: query.owned("tag"),
        name: query.owned("name"),
        since: query.time("since")?,
        until: query.time("until")?,
        is_pinned: query.is("pinned").then_some(true),
        state,
        ..SessionFilter::default()
    })
}

pub(crate) fn sessions(page: &Page, query: &Query) -> Result<Value> {
    let list = page.store.list().filter(filter(page, query)?).after(query.text("after"));
    let found = list.limit(query.limit(40, 200)?).run()?;
    let views = found.sessions.iter().map(|listed| {
        let mut view = view::session(&listed.info);
        view["preview"] = json!(listed.preview);
        view
    });
    Ok(json!({"sessions": views.collect::<Vec<_>>(), "after": found.after}))
}

pub(crate) fn search(page: &Page, query: &Query) -> Result<Value> {
    let text = query.required("q")?;
    let search = match query.text("session") {
        Some(_) => page.session(query)?.0.search(text),
        None => page.store.search(text),
    };
    let filter = filter(page, query)?;
    let of_owner = SessionFilter { owner: filter.owner.clone(), ..SessionFilter::default() };
    let mut search = filter.owner.iter().fold(search, |search, owner| search.owner(owner));
    let mut notices = Vec::new();
    if filter.state == SessionState::Trash {
        notices.push("The trash is not searched.".to_owned());
    }
    if filter != of_owner {
        let list = page.store.list().filter(filter).limit(MAX_SEARCHED).run()?;
        if list.after.is_some() {
            let what = "conversations that meet the filters are searched";
            notices.push(format!("Only the newest {MAX_SEARCHED} {what}."));
        }
        search = search.sessions(list.sessions.into_iter().map(|it| it.info.id));
    }
    let search = search.timeout(TIMEOUT).limit(query.limit(40, 200)?);
    let found = search.clone().run()?;
    let is_empty = found.hits.is_empty();
    notices.extend(found.notices);
    if found.matched == Matched::Relaxed && !is_empty {
        notices.push("These messages have some of the words, the best first.".to_owned());
    }
    let alternatives = match is_empty && !found.is_partial && query.is("propose") {
        true => search.alternatives()?,
        false => Vec::new(),
    };
    let alternatives = alternatives.iter().map(|it| json!([it.widening, it.query]));
    let (mut sessions, mut hits) = (Map::new(), Vec::new());
    for hit in &found.hits {
        let session = page.store.session(hit.session.clone())?;
        if !sessions.contains_key(hit.session.as_str()) {
            let info = session.info()?.as_ref().map(view::session);
            sessions.insert(hit.session.as_str().to_owned(), json!(info));
        }
        hits.push(hit_view(&session, hit)?);
    }
    let steps: Vec<String> = found.steps.iter().map(ToString::to_string).collect();
    let about = json!({
        "steps": steps, "notices": notices, "is_partial": found.is_partial,
        "alternatives": alternatives.collect::<Vec<_>>(),
    });
    Ok(json!({"hits": hits, "sessions": sessions, "about": about}))
}

fn hit_view(session: &Session, hit: &Hit) -> Result<Value> {
    let pieces: Vec<(&str, bool)> = hit.snippet.pieces().collect();
    let marked = pieces.iter().find(|(_, is_match)| *is_match).map(|(text, _)| *text);
    let message = session.message(&hit.id)?;
    // What is found, but not in what was said, is in a call, a result or a thought.
    let is_in_text = message
        .as_ref()
        .is_none_or(|message| marked.is_none_or(|marked| message.text().contains(marked)));
    Ok(json!({
        "session": hit.session, "id": hit.id, "role": hit.role.as_str(), "at": hit.created_at,
        "pieces": pieces, "on_path": hit.on_path, "under": hit.under, "in_tools": !is_in_text,
        "hidden": message.is_some_and(|message| message.is_hidden),
    }))
}

pub(crate) fn session(page: &Page, query: &Query) -> Result<Value> {
    let (session, info) = page.session(query)?;
    let mut tags: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for tag in session.all_tags()? {
        tags.entry(tag.message.to_string()).or_default().push(tag.tag);
    }
    let usage = page.store.usage().session(info.id.clone()).total()?;
    Ok(json!({
        "info": view::session(&info), "tree": session.tree()?, "labels": session.labels()?, "tags": tags,
        "usage": usage, "visible_tokens": session.visible_tokens()?,
    }))
}

/// Returns a page of a path: its end, what is before or after a message, or what is around it.
///
/// A message that the path does not show is shown where it is: on the newest branch that has it, or as it was said.
pub(crate) fn messages(page: &Page, query: &Query) -> Result<Value> {
    let (session, _) = page.session(query)?;
    let (leaf, limit) = (query.id("leaf"), query.limit(60, 200)?);
    let is_raw = query.is("raw");
    let path = |leaf: &Option<MessageId>, is_raw: bool| {
        let path = leaf.as_ref().map_or_else(|| session.path(), |leaf| session.at(leaf));
        if is_raw { path.raw() } else { path }
    };
    let Some(around) = query.id("around") else {
        let builder = path(&leaf, is_raw).page().limit(limit);
        let builder = match (query.id("before"), query.id("after")) {
            (Some(before), _) => builder.before(&before),
            (None, Some(after)) => builder.after(&after),
            (None, None) => builder,
        };
        let found = builder.run()?;
        let (before, after) = (found.before.is_some(), found.after.is_some());
        return shown(&session, leaf, is_raw, found.messages, before, after);
    };
    let around = match query.is("summaries") && !is_raw {
        true => covering(&session, &path(&leaf, false), &around)?.unwrap_or(around),
        false => around,
    };
    let unknown = || Refused(404, "there is no such message".to_owned());
    let target = session.message(&around)?.ok_or_else(unknown)?;
    let newest = leaf_of(&session, &around)?;
    let places = [(&leaf, is_raw), (&leaf, true), (&newest, is_raw), (&newest, true)];
    for (leaf, is_raw) in places {
        if target.is_hidden && !is_raw {
            continue;
        }
        let after = match path(leaf, is_raw).page().after(&around).limit(limit / 2).run() {
            Ok(after) => after,
            Err(error) if error.is_unknown() => continue,
            Err(error) => return Err(error.into()),
        };
        let before = path(leaf, is_raw).page().before(&around).limit(limit / 2).run()?;
        let (has_before, has_after) = (before.before.is_some(), after.after.is_some());
        let messages = before.messages.into_iter().chain([target]).chain(after.messages);
        let messages = messages.collect();
        let mut page = shown(&session, leaf.clone(), is_raw, messages, has_before, has_after)?;
        page["around"] = around.to_string().into();
        return Ok(page);
    }
    Err(unknown())
}

/// Returns the summary that a path shows in place of a message.
fn covering(session: &Session, path: &Path, id: &MessageId) -> Result<Option<MessageId>> {
    for compaction in session.compactions()? {
        let (first, last) = (&compaction.first, &compaction.last);
        // An end that was deleted is no message any more.
        let is_in = |from, to| session.is_ancestor(from, to).unwrap_or_default();
        let summary = compaction.id.as_message();
        if is_in(first, id) && is_in(id, last) && path.page().after(&summary).limit(1).run().is_ok()
        {
            return Ok(Some(summary));
        }
    }
    Ok(None)
}

/// Returns the newest leaf below a message.
fn leaf_of(session: &Session, id: &MessageId) -> Result<Option<MessageId>> {
    for leaf in session.leaves()?.into_iter().rev() {
        if session.is_ancestor(id, &leaf)? {
            return Ok(Some(leaf));
        }
    }
    Ok(None)
}

fn shown(
    session: &Session,
    leaf: Option<MessageId>,
    is_raw: bool,
    messages: Vec<talktree::Message>,
    before: bool,
    after: bool,
) -> Result<Value> {
    // Stored messages are counted: those that a summary replaces and hidden ones, too.
    let (mut views, mut position, mut above) = (Vec::new(), 0, None);
    for message in &messages {
        let is_next = above.is_some() && above == message.parent;
        position = if is_next { position + 1 } else { session.at(&message.id).path_length()? };
        above = Some(message.id.clone());
        let mut view = view::message(message, Extent::Cut);
        view["position"] = position.into();
        views.push(view);
    }
    let total = leaf
        .as_ref()
        .map_or_else(|| session.path_length(), |leaf| session.at(leaf).path_length())?;
    Ok(json!({
        "leaf": leaf, "raw": is_raw, "messages": views, "before": before, "after": after, "total": total, "head": session.head()?,
    }))
}

pub(crate) fn expand(page: &Page, query: &Query) -> Result<Value> {
    let (session, _) = page.session(query)?;
    let id = CompactionId::from(query.required("compaction")?);
    let items = session.expand_page(&id, query.id("after").as_ref(), query.limit(100, 200)?)?;
    let views: Vec<Value> = items.iter().map(|it| view::message(it, Extent::Cut)).collect();
    let is_more = match items.last() {
        Some(last) => !session.expand_page(&id, Some(&last.id), 1)?.is_empty(),
        None => false,
    };
    Ok(json!({"messages": views, "more": is_more}))
}

/// Returns a part in full: a text as plain text, a file as its bytes.
pub(crate) fn part(page: &Page, query: &Query) -> Result<Answer> {
    let (session, _) = page.session(query)?;
    let message = session.message(&query.required("message")?.into())?;
    let at = query.parsed::<usize>("part")?.unwrap_or_default();
    let part = message.as_ref().and_then(|message| message.parts.get(at));
    let part = part.ok_or_else(|| Refused(404, "there is no such part".to_owned()))?;
    if let Some((kind, is_shown, bytes)) = view::file(part) {
        return Ok(Answer::File { kind, is_shown, bytes });
    }
    let text = view::whole(part).ok_or_else(|| Refused(404, "the file is elsewhere".to_owned()))?;
    Ok(Answer::File {
        kind: "text/plain; charset=utf-8".to_owned(),
        is_shown: true,
        bytes: text.into(),
    })
}

pub(crate) fn usage(page: &Page, query: &Query) -> Result<Value> {
    let by = match query.text("by") {
        Some("day") => UsageGroup::Day,
        Some("model") => UsageGroup::Model,
        Some("owner") => UsageGroup::Owner,
        Some("session") => UsageGroup::Session,
        _ => UsageGroup::All,
    };
    let filter = UsageFilter {
        owner: page.options.owner.clone().or(query.owned("owner")),
        since: query.time("since")?,
        until: query.time("until")?,
        ..UsageFilter::default()
    };
    let rows = page.store.usage().filter(filter).by(by).run()?;
    let mut views = Vec::new();
    let max = if by == UsageGroup::Day { usize::MAX } else { MAX_ROWS };
    for row in rows.iter().take(max) {
        let mut view = json!(row);
        if let (UsageGroup::Session, Some(id)) = (by, &row.group) {
            let info = page.store.session(id.as_str())?.info()?;
            view["name"] = info.and_then(|info| info.name).into();
        }
        views.push(view);
    }
    Ok(json!({"rows": views}))
}

/// Returns what changes when the newest session or one session changes.
pub(crate) fn state(page: &Page, session: Option<&str>) -> Result<Value> {
    let filter = SessionFilter { owner: page.options.owner.clone(), ..SessionFilter::default() };
    let newest = page.store.list().filter(filter).limit(1).run()?.sessions.into_iter().next();
    let list = newest.map(|it| (it.info.id, it.info.messages, it.info.last_message_at));
    let mut now = json!({"list": list, "session": null});
    if let Some(id) = session {
        let query = Query::of(&[("session", id)]);
        let (session, info) = page.session(&query)?;
        now["session"] = json!([info.updated_at, session.head()?]);
    }
    Ok(now)
}
