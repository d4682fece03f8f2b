//! `talktree search`: finds messages or sessions.

mod again;
mod beyond;
mod grouped;
mod minus;
mod proposal;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use clap::builder::NonEmptyStringValueParser;
use serde::Serialize;
use talktree::search::{Step, Taken};
use talktree::{
    CompactionId, Hit, Matched, MessageId, Query, Search, Session, SessionHit, SessionId, Snippet,
    Store,
};

use self::again::{Again, Page};
use self::grouped::{GROUPED, Group, groups};
pub(crate) use self::minus::with_queries;
use self::proposal::Proposal;
use crate::context::Context;
use crate::failure::{Failure, Result, tell};
use crate::output::{Output, Piece};
use crate::shell::quote;
use crate::short_ids::ShortIds;
use crate::short_message_ids::ShortMessageIds;
use crate::suggestion::{command, verb};
use crate::text::{cut, plural};
use crate::{date, lookup, session_title, style};

/// Find messages or sessions, best match first
///
/// A query may contain words (all must match; in a question some are enough), "a phrase", prefix*, -not, OR, role:user,
/// author:ID, tag:TAG, session:ID, after:2026-01-31, before:7d, in:tools and exact:"these characters". Dates are UTC: 2026, 2026-01, 2026-01-31,
/// today, yesterday, 12h, 7d, 2w, 3mo, 1y, or an instant like 2026-01-31T12:00:00Z. Quote a query that contains `-not`, or
/// put it after `--`: `talktree search "python -code"`, `talktree search -- -blue shirt`.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree search [OPTIONS] <QUERY>...")]
pub(crate) struct Args {
    /// The words to find, and filters.
    #[arg(required_unless_present_any = ["author", "tag"])]
    query: Vec<String>,

    /// Search only this session.
    #[arg(long)]
    session: Option<String>,

    /// Search only the path to this message: an id, a label, or `head`.
    #[arg(long, value_name = "MESSAGE", requires = "session")]
    branch: Option<String>,

    /// Find only messages of this role; repeat it for several roles.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    role: Vec<String>,

    /// Find only messages of this author. Without a query, all of them are listed.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    author: Option<String>,

    /// Find only messages with this tag; repeat it for messages with all of several tags.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    tag: Vec<String>,

    /// Find only messages from this date on, as 2026, 2026-01-31, yesterday or 7d.
    #[arg(long, value_name = "DATE")]
    after: Option<String>,

    /// Find only messages before this date.
    #[arg(long, value_name = "DATE")]
    before: Option<String>,

    /// Search text, or reasoning and tool calls (`tools`), or both (`all`) [default: text].
    #[arg(long = "in", value_name = "WHERE")]
    column: Option<Column>,

    /// Print at most N results.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,

    /// Print the Nth page of results.
    #[arg(long, value_name = "N", default_value = "1", conflicts_with = "offset", value_parser = page)]
    page: usize,

    /// Skip the first N results.
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: usize,

    /// Print only the best message of each session, and how many more of it were found.
    #[arg(long, conflicts_with = "sessions")]
    group: bool,

    /// Find sessions instead of messages.
    #[arg(long, conflicts_with = "branch")]
    sessions: bool,

    /// Stop after this many seconds, and print what was found; 0 for no limit.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    timeout: Option<Duration>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Column {
    Text,
    Tools,
    All,
}

/// The most columns of a session's name beside a hit.
const MAX_TITLE: usize = 62;
/// How many messages before and after a hit the proposed command shows.
const AROUND: usize = 3;

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let began = Instant::now();
    let text = args.text()?;
    let store = context.searcher()?;
    let text = with_whole_ids(&text, &store)?;
    let session =
        args.session.as_deref().map(|given| lookup::session(&store, given)).transpose()?;
    if let Some(session) = &session
        && is_in_trash(session)?
    {
        return Err(not_searched(session));
    }
    let leaf = match (&session, &args.branch) {
        (Some(session), Some(leaf)) => Some(lookup::message(session, leaf)?),
        _ => None,
    };
    let (session, leaf) = (session.as_ref(), leaf.as_ref());
    let scope =
        Scope { store: &store, session, leaf, author: args.author.as_deref(), tags: &args.tag };
    let timeout = args.timeout.filter(|timeout| !timeout.is_zero());
    // One more than a page, to know whether there is another.
    let (offset, limit) = (args.offset(), args.limit.saturating_add(1));
    let search = within(scope.search(&text), timeout).limit(limit).offset(offset);
    let end = print(search, &args, &store, context)?;
    let is_empty = end.first.is_none();
    // A prefix of too many words makes a result partial, too; that has its own notice.
    let late = timeout.filter(|timeout| end.is_partial && began.elapsed() >= *timeout / 2);
    let is_empty_page = is_empty && late.is_none() && args.limit > 0;
    let beyond = match is_empty_page && offset > 0 {
        true => beyond::text(within(scope.search(&text), timeout), &args)?,
        false => None,
    };
    let proposals = match is_empty_page && !end.is_partial && beyond.is_none() {
        true => proposal::proposals(&scope, &text)?,
        false => Vec::new(),
    };
    if context.is_json && (end.is_partial || is_empty || !end.steps.is_empty()) {
        let End { is_partial, steps, .. } = &end;
        context.out.json(&Summary { is_partial: *is_partial, steps, instead: &proposals })?;
    }
    if end.has_more {
        context.out.flush()?;
        tell(&format!("there is more: {}", Again::of(&args).on(Page::after(&args)).line()));
    }
    if let Some(first) = end.first.filter(|_| !context.is_json && !context.is_tour) {
        context.out.flush()?;
        tell(&format!("messages around the first hit: {}", command(&first)));
    }
    match (is_empty, late) {
        (true, Some(timeout)) => Err(Failure::NotFound(format!(
            "nothing found in {timeout:?}; --timeout gives the search more time"
        ))),
        (true, None) if args.limit == 0 => {
            Err(Failure::NotFound("no hits are printed with --limit 0".to_owned()))
        }
        (true, None) => {
            Err(Failure::NotFound(beyond.unwrap_or_else(|| proposal::text(&proposals, &args))))
        }
        (false, Some(timeout)) => {
            tell(&format!(
                "the search was stopped after {timeout:?}: there may be more hits, and better ones; --timeout gives it more time"
            ));
            Ok(())
        }
        (false, None) => Ok(()),
    }
}

/// Runs a search, and writes a page of its results.
fn print(search: Search, args: &Args, store: &Store, context: &mut Context) -> Result<End> {
    if args.sessions {
        let mut found = search.by_session().run()?;
        let has_more = args.cut(&mut found.sessions);
        notice(&found.notices, &found.steps, found.matched, found.sessions.is_empty());
        let first = sessions(&found.sessions, store, context)?;
        return Ok(End { is_partial: found.is_partial, has_more, first, steps: found.steps });
    }
    if args.group {
        let found = search.limit(GROUPED).offset(0).run()?;
        let mut groups: Vec<Group> = groups(&found.hits).into_iter().skip(args.offset()).collect();
        let has_more = args.cut(&mut groups);
        notice(&found.notices, &found.steps, found.matched, groups.is_empty());
        let first = grouped::print(&groups, store, args, context)?;
        return Ok(End { is_partial: found.is_partial, has_more, first, steps: found.steps });
    }
    let mut found = search.run()?;
    let has_more = args.cut(&mut found.hits);
    notice(&found.notices, &found.steps, found.matched, found.hits.is_empty());
    let first = hits(&found.hits, store, context)?;
    Ok(End { is_partial: found.is_partial, has_more, first, steps: found.steps })
}

/// Returns the search with a limit of time, if there is one.
fn within(search: Search, timeout: Option<Duration>) -> Search {
    match timeout {
        Some(timeout) => search.timeout(timeout),
        None => search,
    }
}

/// How a search ended.
struct End {
    is_partial: bool,
    /// Whether there is another page.
    has_more: bool,
    /// The command that shows the first hit in its surroundings, without `talktree`; `None` if nothing was found.
    first: Option<String>,
    steps: Vec<Taken>,
}

/// The last line of JSON of a search that found nothing, not everything, or little for the query as it is written.
#[derive(Serialize)]
struct Summary<'a> {
    is_partial: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    steps: &'a [Taken],
    instead: &'a [Proposal],
}

/// Where to search.
#[derive(Clone, Copy)]
struct Scope<'a> {
    store: &'a Store,
    session: Option<&'a Session>,
    leaf: Option<&'a MessageId>,
    author: Option<&'a str>,
    tags: &'a [String],
}

impl Scope<'_> {
    fn search(&self, text: &str) -> Search {
        let mut search = match (self.session, self.leaf) {
            (Some(session), Some(leaf)) => session.at(leaf).search(text),
            (Some(session), None) => session.search(text),
            (None, _) => self.store.search(text),
        };
        if let Some(author) = self.author {
            search = search.author(author);
        }
        self.tags.iter().fold(search, |search, tag| search.tag(tag))
    }
}

impl Args {
    /// Returns how many results come before the page.
    fn offset(&self) -> usize {
        self.offset.max((self.page - 1).saturating_mul(self.limit))
    }

    /// Cuts results to a page; returns whether there are more.
    fn cut<T>(&self, results: &mut Vec<T>) -> bool {
        let has_more = results.len() > self.limit;
        results.truncate(self.limit);
        has_more && self.limit > 0
    }

    /// Returns the query, with the options as filters.
    fn text(&self) -> Result<String> {
        let is_narrowed = self.author.is_some() || !self.tag.is_empty();
        if !is_narrowed && self.query.iter().all(|word| word.trim().is_empty()) {
            return Err(Failure::Usage("the query is empty; give at least one word".to_owned()));
        }
        let mut text = String::new();
        for (option, value) in [("after", &self.after), ("before", &self.before)] {
            let Some(value) = value else { continue };
            date::time(option, Some(value.as_str()))?;
            text.push_str(&match value.contains(' ') {
                true => format!("{option}:\"{value}\" "),
                false => format!("{option}:{value} "),
            });
        }
        for role in &self.role {
            let role = role.replace('"', "");
            text.push_str(&match role.contains(char::is_whitespace) || role.is_empty() {
                true => format!("role:\"{role}\" "),
                false => format!("role:{role} "),
            });
        }
        if let Some(column) = self.column {
            text.push_str(match column {
                Column::Text => "in:text ",
                Column::Tools => "in:tools ",
                Column::All => "in:all ",
            });
        }
        // Last, because an unclosed quote would swallow the filters after it.
        Ok(text + &self.query.join(" "))
    }
}

/// Completes the ids of `session:` in a query, so that they can be typed as they are printed.
///
/// It is an error if one fits several sessions, or if all sessions that it names are in the trash.
fn with_whole_ids(text: &str, store: &Store) -> Result<String> {
    let mut found: HashMap<String, Session> = HashMap::new();
    let (mut trashed, mut searched) = (None, 0);
    for given in Query::parse(text).filters.sessions {
        match lookup::session(store, &given) {
            Ok(session) => {
                match is_in_trash(&session)? {
                    true => trashed = trashed.or(Some(session.clone())),
                    false => searched += 1,
                }
                found.insert(given, session);
            }
            // The search says which sessions there are not.
            Err(Failure::NotFound(_)) => {}
            Err(failure) => return Err(failure),
        }
    }
    if let Some(session) = trashed.filter(|_| searched == 0) {
        return Err(not_searched(&session));
    }
    let whole = |word: &str| {
        let id = found.get(word.strip_prefix("session:")?)?.id().to_string();
        (quote(&id) == id).then(|| format!("session:{id}"))
    };
    let words = text.split(' ').map(|word| whole(word).unwrap_or_else(|| word.to_owned()));
    Ok(words.collect::<Vec<_>>().join(" "))
}

fn is_in_trash(session: &Session) -> Result<bool> {
    Ok(session.info()?.is_some_and(|info| info.deleted_at.is_some()))
}

fn not_searched(session: &Session) -> Failure {
    let id = session.id().as_str();
    let restore = command(&verb("restore", &[id], ""));
    Failure::NotFound(format!("session {id:?} is in the trash, which is not searched: `{restore}`"))
}

fn seconds(given: &str) -> std::result::Result<Duration, String> {
    let seconds = given.parse().ok().and_then(|given| Duration::try_from_secs_f64(given).ok());
    seconds.ok_or_else(|| "a number of seconds was expected".to_owned())
}

/// Parses the number of a page.
fn page(given: &str) -> std::result::Result<usize, String> {
    match given.parse() {
        Ok(0) | Err(_) => Err("the number of a page was expected, from 1 on".to_owned()),
        Ok(page) => Ok(page),
    }
}

/// Says what was done besides the search, before its hits.
fn notice(notices: &[String], steps: &[Taken], matched: Matched, is_empty: bool) {
    notices.iter().for_each(|notice| tell(notice));
    if !steps.is_empty() {
        tell("little or nothing was found for the query as it is written; there are also:");
    }
    for taken in steps {
        tell(&format!("  {taken}"));
    }
    let is_named = steps.iter().any(|taken| taken.step == Step::AnyWord);
    if matched == Matched::Relaxed && !is_empty && !is_named {
        tell("these messages have some of the words, best match first");
    }
}

/// Writes sessions with their best messages; returns how to show the first.
fn sessions(found: &[SessionHit], store: &Store, context: &mut Context) -> Result<Option<String>> {
    let first = found.iter().flat_map(|session| &session.hits).next();
    if context.is_json {
        found.iter().try_for_each(|session| context.out.json(session))?;
        return Ok(first.map(|hit| show(hit.session.as_str(), hit.id.as_str())));
    }
    let names = Names::of(store, found.iter().flat_map(|session| &session.hits))?;
    let out = &mut context.out;
    for session in found {
        let id = names.sessions.of(session.session.as_str());
        let title = names.title(&session.session);
        out.flow(&[(style::ID, id), (style::STRONG, title)], Some(1))?;
        for hit in &session.hits {
            let mut pieces = vec![(style::role(&hit.role), hit.role.as_str()), (style::PLAIN, " ")];
            let text = hit.snippet.to_string();
            pieces.push((style::PLAIN, " "));
            pieces.extend(snippet(&hit.snippet, &text, out.is_coloured()));
            out.wrapped("  ", &pieces)?;
            other_words(out, hit)?;
        }
        out.line(&[])?;
    }
    Ok(first.map(|hit| names.show(hit)))
}

/// Writes messages; returns how to show the first.
fn hits(found: &[Hit], store: &Store, context: &mut Context) -> Result<Option<String>> {
    if context.is_json {
        found.iter().try_for_each(|hit| context.out.json(hit))?;
        return Ok(found.first().map(|hit| show(hit.session.as_str(), hit.id.as_str())));
    }
    let names = Names::of(store, found)?;
    for hit in found {
        write(&mut context.out, hit, &names)?;
        context.out.line(&[])?;
    }
    Ok(found.first().map(|hit| names.show(hit)))
}

/// Returns the command that shows a message in its surroundings, without `talktree`.
fn show(session: &str, message: &str) -> String {
    verb("show", &[session, message.trim_matches('…')], &format!("--around {AROUND}"))
}

/// What is printed beside hits: short ids and titles.
struct Names {
    sessions: ShortIds,
    messages: ShortMessageIds,
    titles: HashMap<SessionId, String>,
    compactions: HashMap<CompactionId, String>,
}

impl Names {
    fn of<'a>(store: &Store, hits: impl IntoIterator<Item = &'a Hit> + Clone) -> Result<Self> {
        let infos = store.sessions()?;
        let sessions = ShortIds::new(infos.iter().map(|info| info.id.as_str()));
        let ids = hits.clone().into_iter().map(|hit| (&hit.session, &hit.id));
        let messages = ShortMessageIds::of(store, ids)?;
        let (mut titles, mut compactions) = (HashMap::new(), HashMap::new());
        for hit in hits {
            let session = store.session(hit.session.clone())?;
            if !titles.contains_key(&hit.session)
                && let Some(info) = infos.iter().find(|info| info.id == hit.session)
            {
                let title = session_title::of(&session, info)?;
                titles.insert(hit.session.clone(), cut(&title, MAX_TITLE).into_owned());
            }
            if let Some(id) = &hit.under
                && !compactions.contains_key(id)
            {
                let all = session.compactions()?;
                let short = ShortIds::new(all.iter().map(|compaction| compaction.id.as_str()));
                compactions.insert(id.clone(), short.of(id.as_str()).to_owned());
            }
        }
        Ok(Self { sessions, messages, titles, compactions })
    }

    fn title(&self, session: &SessionId) -> &str {
        self.titles.get(session).map_or("", String::as_str)
    }

    /// Returns the command that shows a hit in its surroundings.
    fn show(&self, hit: &Hit) -> String {
        show(self.sessions.of(hit.session.as_str()), self.messages.get(&hit.session, &hit.id))
    }
}

fn write(out: &mut Output, hit: &Hit, names: &Names) -> Result<()> {
    let time = crate::table::minute(hit.created_at);
    let note = match (&hit.under, hit.on_path) {
        (Some(id), _) => {
            let id = names.compactions.get(id).map_or(id.as_str(), String::as_str);
            format!("in compaction {}", crate::text::one_line(id))
        }
        (None, true) => String::new(),
        (None, false) => "on another branch".to_owned(),
    };
    let head = [
        (style::ID, names.sessions.of(hit.session.as_str())),
        (style::STRONG, names.title(&hit.session)),
        (style::role(&hit.role), hit.role.as_str()),
        (style::FAINT, &time),
        (style::ID, names.messages.get(&hit.session, &hit.id)),
        (style::COMPACTION, &note),
    ];
    out.flow(&head, Some(1))?;
    let text = hit.snippet.to_string();
    out.wrapped("  ", &snippet(&hit.snippet, &text, out.is_coloured()))?;
    other_words(out, hit)?;
    if hit.sessions.len() > 1 {
        let others = plural(hit.sessions.len() as u64 - 1, "other session");
        out.line(&[(style::FAINT, &format!("  also in {others}"))])?;
    }
    Ok(())
}

/// Names the matching words that the query does not have in this form. With colour they stand out in the text.
fn other_words(out: &mut Output, hit: &Hit) -> Result<()> {
    if !hit.words.is_empty() && !out.is_coloured() {
        let words = format!("found by {}", hit.words.join(", "));
        out.wrapped("  ", &[(style::FAINT, &words)])?;
    }
    Ok(())
}

/// Returns the pieces of a snippet; without colour they are its `text`, in which matches are between `**`.
fn snippet<'a>(snippet: &'a Snippet, text: &'a str, is_coloured: bool) -> Vec<Piece<'a>> {
    if !is_coloured {
        return vec![(style::PLAIN, text)];
    }
    let style = |is_match| if is_match { style::MATCH } else { style::PLAIN };
    snippet.pieces().map(|(text, is_match)| (style(is_match), text)).collect()
}

#[cfg(test)]
mod tests {
    use talktree::{Message, Role};
    use unicode_width::UnicodeWidthStr;

    use super::*;

    /// Hits used to be as wide as a session's name and the ids of a message and a compaction together.
    #[test]
    fn hits_fit_sixty_columns() -> Result<()> {
        let store = Store::open_in_memory()?;
        let chat = store.session("019c1000-aaaa-7000-8000-111122223333")?;
        let text = "Do we **need** tickets for the planetarium? ".repeat(9);
        let question = chat.append(Message::user(&*text))?.id;
        store.rename(chat.id(), &"A long name 博物馆 ".repeat(9))?;
        chat.append(Message::new(Role::Assistant, vec![text.as_str().into()]))?;
        chat.append_to(&question, Message::user("Tickets?"))?;
        chat.add_compaction("They plan.", &question, &question)?;
        let found = store.search("tickets").run()?;
        for width in [60, 80, 120] {
            let (mut out, written) = Output::of_width(width);
            let names = Names::of(&store, &found.hits)?;
            found.hits.iter().try_for_each(|hit| write(&mut out, hit, &names))?;
            out.flush()?;
            let written = String::from_utf8_lossy(&written.borrow()).into_owned();
            let widest = written.lines().map(UnicodeWidthStr::width).max();
            assert!(widest.is_some_and(|widest| widest <= width), "{written}");
            for part in ["in compaction ", "on another branch", "A long name", "…"] {
                assert!(written.contains(part), "{part}: {written}");
            }
            assert!(!written.contains(question.as_str()), "{written}");
        }
        Ok(())
    }
}
