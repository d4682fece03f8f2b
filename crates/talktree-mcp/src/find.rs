//! The tools over all conversations: search, lists and sums.

use std::time::Duration;

use talktree::{
    Hit, Matched, Search, SearchResults, SessionFilter, SessionInfo, UsageFilter, UsageGroup,
    UsageTotal,
};
use talktree_text::foreign::{line, short_line};
use talktree_text::{Query, SNIPPET_CHARS, Snippet, snippet};

use crate::access::{View, last_at};
use crate::answer::{NOTICE, Refused, Result, id, minute, quotation, quoted, text};
use crate::read::message;
use crate::tools::Arguments;

/// How long a search takes at most: a model waits for the answer, and so does whoever waits for the model.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How many rows of a sum are listed.
const MAX_ROWS: usize = 30;

pub(crate) fn search(view: &View, given: &Arguments) -> Result<String> {
    let (limit, offset) = (given.number("limit"), given.number("offset"));
    let search = scope(view, given)?.without_hidden().timeout(TIMEOUT);
    let found = search.clone().limit(limit + 1).offset(offset).run()?;
    let mut lines = noticed(view, &found);
    if found.hits.is_empty() {
        let (said, others) = match offset {
            0 => ("Nothing was found.", search.alternatives()?),
            _ => ("Nothing more was found.", Vec::new()),
        };
        lines.push(said.to_owned());
        let others = others
            .iter()
            .map(|it| format!("{}: {}", it.widening, quoted(&view.redacted_text(&it.query))));
        return Ok(lines.into_iter().chain(others).collect::<Vec<_>>().join("\n"));
    }
    lines.insert(0, NOTICE.to_owned());
    // The hits of a session follow each other; the session with the best hit is the first.
    let mut hits: Vec<&Hit> = found.hits.iter().take(limit).collect();
    while let Some(session) = hits.first().map(|hit| &hit.session) {
        let info = view.store.session(session)?.info()?;
        let titled = info.as_ref().map_or_else(|| id(session), |info| titled(view, info));
        lines.push(format!("\nSession {titled}"));
        for hit in hits.extract_if(.., |hit| hit.session == *session) {
            lines.push(shown(hit, &snippet_of(view, hit, given.required("query"))?));
        }
    }
    if found.hits.len() > limit {
        lines.push(format!("\nThere is more: search {}", given.with("offset", offset + limit)));
    }
    Ok(lines.join("\n"))
}

/// Returns the search, with the scope and the filters of a call.
fn scope(view: &View, given: &Arguments) -> Result<Search> {
    let mut text = String::new();
    for date in ["after", "before"] {
        given.time(date)?;
    }
    for filter in ["role", "after", "before", "in"] {
        let value = given.text(filter).map(|value| format!("{filter}:\"{value}\" "));
        text += &value.unwrap_or_default();
    }
    // Last, because an open quotation mark would swallow what follows.
    text += given.required("query");
    match (given.text("session"), given.text("branch")) {
        (None, None) => view.narrowed(view.store.search(text)),
        (None, Some(_)) => Err(Refused("\"branch\" needs \"session\"".to_owned())),
        (Some(session), None) => Ok(view.session(session)?.search(text)),
        (Some(session), Some(branch)) => {
            let session = view.session(session)?;
            Ok(session.at(&message(&session, branch)?.id).search(text))
        }
    }
}

/// Says what was done besides the search.
fn noticed(view: &View, found: &SearchResults) -> Vec<String> {
    let steps = found.steps.iter().map(ToString::to_string);
    let mut lines: Vec<String> = found.notices.iter().cloned().chain(steps).collect();
    if found.matched == Matched::Relaxed && !found.hits.is_empty() {
        lines.push("No message needs all the words; the best match comes first.".to_owned());
    }
    if found.is_partial {
        lines.push("The search ran out of time: there may be more.".to_owned());
    }
    lines.iter().map(|text| view.redacted_text(&line(text)).into_owned()).collect()
}

/// Returns the snippet of a hit; of a message of which something is redacted a new one, because it may begin or end inside of that.
fn snippet_of(view: &View, hit: &Hit, query: &str) -> Result<Snippet> {
    if view.access.redact.is_some()
        && let Some(message) = view.store.session(&hit.session)?.message(&hit.id)?
    {
        let redacted = view.redacted(&message);
        if *redacted != message {
            return Ok(snippet(&text(&redacted, usize::MAX), &Query::parse(query), SNIPPET_CHARS));
        }
    }
    Ok(hit.snippet.clone())
}

fn shown(hit: &Hit, snippet: &Snippet) -> String {
    let mut about = vec![id(&hit.id), id(hit.role.as_str()), minute(hit.created_at)];
    about.extend((!hit.on_path).then(|| "on another branch".to_owned()));
    about.extend(hit.under.iter().map(|under| format!("under summary {}", id(under.as_message()))));
    let quoted = quotation(&snippet.to_string());
    format!("[{}]\n{}", about.join(", "), quoted.trim_end())
}

/// Returns the id and the name of a session.
pub(crate) fn titled(view: &View, info: &SessionInfo) -> String {
    let name = info.name.as_ref().map(|name| format!(" {}", quoted(&title(view, name))));
    id(&info.id) + &name.unwrap_or_default()
}

/// Returns a name or a preview on one line.
pub(crate) fn title(view: &View, text: &str) -> String {
    short_line(&view.redacted_start(text), 80)
}

pub(crate) fn sessions(view: &View, given: &Arguments) -> Result<String> {
    let limit = given.number("limit");
    let filter = SessionFilter {
        name: given.text("name").map(str::to_owned),
        since: given.time("after")?,
        until: given.time("before")?,
        ..SessionFilter::default()
    };
    let found = view.newest(&filter, limit)?;
    // The next page begins before a time, so sessions of one time are on one page.
    let last = found.get(limit.saturating_sub(1)).map(|session| last_at(&session.info));
    let count = found.partition_point(|it| last.is_none_or(|last| last_at(&it.info) >= last));
    let mut lines = vec![view.access.told()];
    for session in &found[..count] {
        let info = &session.info;
        let preview = session.preview.iter().filter(|_| info.name.is_none());
        let preview = preview.map(|preview| quoted(&title(view, preview)));
        let mut about: Vec<String> = [titled(view, info)].into_iter().chain(preview).collect();
        about.extend([minute(last_at(info)), format!("{} messages", info.messages)]);
        let others = [("source", &info.source), ("model", &info.model), ("owner", &info.owner)];
        about.extend(
            others.iter().filter_map(|(what, of)| Some(format!("{what} {}", id(of.as_ref()?)))),
        );
        about.extend(info.tags.iter().map(|tag| format!("tag {}", id(tag))));
        lines.push(format!("- {}", about.join(", ")));
    }
    match last.filter(|_| count < found.len()) {
        Some(last) => {
            lines.push(format!("There are more: sessions {}", given.with("before", stamp(last))))
        }
        None => lines.push("These are all.".to_owned()),
    }
    Ok(lines.join("\n"))
}

/// Returns a time as a place in the list of sessions.
pub(crate) fn stamp(time: chrono::DateTime<chrono::Utc>) -> String {
    time.to_rfc3339_opts(chrono::SecondsFormat::Micros, true)
}

pub(crate) fn usage(view: &View, given: &Arguments) -> Result<String> {
    let session = given.text("session").map(|session| view.session(session)).transpose()?;
    let by = match given.text("by") {
        None => UsageGroup::All,
        Some("model") => UsageGroup::Model,
        Some("day") => UsageGroup::Day,
        Some("session") => UsageGroup::Session,
        Some(_) => UsageGroup::Source,
    };
    let mut lines = vec![view.access.told()];
    for source in view.access.each_source() {
        lines.extend(source.iter().map(|source| format!("From {}:", quoted(source))));
        let filter = UsageFilter {
            session: session.as_ref().map(|session| session.id().clone()),
            owner: view.access.owner.clone(),
            source,
            since: given.time("after")?,
            until: given.time("before")?,
            ..UsageFilter::default()
        };
        let rows = view.store.usage().filter(filter).by(by).run()?;
        lines.extend(rows.iter().take(MAX_ROWS).map(sum));
        let left = rows.len().saturating_sub(MAX_ROWS);
        lines.extend((left > 0).then(|| format!("[cut: {left} more, with fewer tokens or older]")));
    }
    Ok(lines.join("\n"))
}

fn sum(row: &UsageTotal) -> String {
    let group = row.group.as_ref().map(|group| id(group) + ": ").unwrap_or_default();
    let costs = row.costs.iter().map(|cost| {
        let (whole, rest) = (cost.micros / 1_000_000, cost.micros % 1_000_000);
        format!(", {whole}.{rest:06} {}", id(&cost.currency))
    });
    let UsageTotal { answers, input, cache_read, output, .. } = row;
    let tokens = format!("{input} tokens in ({cache_read} cached), {output} out");
    format!("- {group}{answers} answers, {tokens}{}", costs.collect::<String>())
}
