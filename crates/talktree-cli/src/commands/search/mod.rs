//! `talktree search`: finds messages and sessions.

mod again;
mod nothing;
mod print;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use clap::builder::NonEmptyStringValueParser;
use talktree::search::Step;
use talktree::{Matched, MessageId, Query, Search, Session, Store};

pub(crate) use self::again::with_queries;
use self::nothing::{beyond, nothing_found, proposals};
use self::print::{GROUPED, Group, groups, print_groups, print_hits, print_sessions};
use crate::prelude::*;

/// Find messages or sessions, best match first
///
/// A query may contain words (all must match; in a question some are enough), "a phrase", prefix*, -not, OR, role:user,
/// author:ID, tag:TAG, session:ID, after:2026-01-31, before:7d, in:tools and exact:"these characters". Dates are UTC: 2026, 2026-01, 2026-01-31,
/// today, yesterday, 12h, 7d, 2w, 3mo, 1y, or an instant like 2026-01-31T12:00:00Z. Quote a query that contains `-not`, or
/// put it after `--`: `talktree search "python -code"`, `talktree search -- -blue shirt`. `talktree show SESSION MESSAGE --around 3`
/// shows a hit in its surroundings.
#[derive(Clone, Debug, clap::Args)]
#[command(override_usage = "talktree search [OPTIONS] <QUERY>...")]
pub(crate) struct SearchArgs {
    /// The words to find, and filters. With filters alone all messages that pass them are listed, the newest first.
    #[arg(required_unless_present_any = ["role", "author", "tag", "after", "before"])]
    query: Vec<String>,

    /// Search only this session.
    #[arg(long)]
    session: Option<String>,

    /// Search only the path to this message: an id, a label, or `head`.
    #[arg(long, value_name = "MESSAGE", requires = "session")]
    branch: Option<String>,

    /// Search only the sessions of this owner.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    owner: Option<String>,

    /// Find only messages of this role; repeat it for several roles.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    role: Vec<String>,

    /// Find only messages of this author.
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

pub(crate) fn run(args: SearchArgs, context: &mut Context) -> Result<()> {
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
    let scope = Scope { store: &store, session, leaf, args: &args };
    let timeout = args.timeout.filter(|timeout| !timeout.is_zero());
    // One more than a page, to know whether there is another.
    let (offset, limit) = (args.offset(), args.limit.saturating_add(1));
    let limited = || timeout.into_iter().fold(scope.search(&text), Search::timeout);
    let search = limited().limit(limit).offset(offset);
    let end = print(search, &args, &store, context)?;
    let is_empty = end.is_empty;
    // A prefix of too many words makes a result partial, too; that has its own notice.
    let late = timeout.filter(|timeout| end.is_partial && began.elapsed() >= *timeout / 2);
    let is_empty_page = is_empty && late.is_none() && args.limit > 0;
    let beyond = match is_empty_page && offset > 0 {
        true => beyond(limited(), &args)?,
        false => None,
    };
    let proposals = match is_empty_page && !end.is_partial && beyond.is_none() {
        true => proposals(&scope, &text)?,
        false => Vec::new(),
    };
    // One line of advice at most, after the hits.
    context.out.flush()?;
    match end.only {
        _ if end.has_more => tell(&format!("there is more: {}", args.next_page().line(false))),
        Some(show) if !context.is_json && !context.is_tour => {
            tell(&format!("messages around it: {}", command(&show)));
        }
        _ => {}
    }
    match (is_empty, late) {
        (true, Some(timeout)) => Err(Failure::NotFound(format!(
            "nothing found in {timeout:?}; --timeout gives the search more time"
        ))),
        (true, None) if args.limit == 0 => {
            Err(Failure::NotFound("no hits are printed with --limit 0".to_owned()))
        }
        (true, None) => {
            Err(Failure::NotFound(beyond.unwrap_or_else(|| nothing_found(&proposals, &args))))
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
fn print(search: Search, args: &SearchArgs, store: &Store, context: &mut Context) -> Result<End> {
    if args.sessions {
        let mut found = search.run_by_session()?;
        let has_more = args.cut(&mut found.hits);
        notice(&found.notices, &found.steps, found.matched, found.hits.is_empty());
        context.keep_list(found.hits.iter().map(|session| &session.session));
        let only = print_sessions(&found.hits, store, context)?;
        let (is_partial, is_empty) = (found.is_partial, found.hits.is_empty());
        return Ok(End { is_partial, is_empty, has_more, only });
    }
    if args.group {
        let found = search.limit(GROUPED).offset(0).run()?;
        let mut groups: Vec<Group> = groups(&found.hits).into_iter().skip(args.offset()).collect();
        let has_more = args.cut(&mut groups);
        notice(&found.notices, &found.steps, found.matched, groups.is_empty());
        context.keep_list(groups.iter().map(|group| &group.best.session));
        let only = print_groups(&groups, store, args, context)?;
        let (is_partial, is_empty) = (found.is_partial, groups.is_empty());
        return Ok(End { is_partial, is_empty, has_more, only });
    }
    let mut found = search.run()?;
    let has_more = args.cut(&mut found.hits);
    notice(&found.notices, &found.steps, found.matched, found.hits.is_empty());
    context.keep_list(found.hits.iter().map(|hit| &hit.session));
    let only = print_hits(&found.hits, store, context)?;
    let (is_partial, is_empty) = (found.is_partial, found.hits.is_empty());
    Ok(End { is_partial, is_empty, has_more, only })
}

/// How a search ended.
struct End {
    is_partial: bool,
    is_empty: bool,
    /// Whether there is another page.
    has_more: bool,
    /// The command that shows the only hit in its surroundings, without `talktree`.
    only: Option<String>,
}

/// Where to search.
#[derive(Clone, Copy)]
struct Scope<'a> {
    store: &'a Store,
    session: Option<&'a Session>,
    leaf: Option<&'a MessageId>,
    args: &'a SearchArgs,
}

impl Scope<'_> {
    fn search(&self, text: &str) -> Search {
        let mut search = match (self.session, self.leaf) {
            (Some(session), Some(leaf)) => session.at(leaf).search(text),
            (Some(session), None) => session.search(text),
            (None, _) => self.store.search(text),
        };
        if let Some(owner) = &self.args.owner {
            search = search.owner(owner);
        }
        if let Some(author) = &self.args.author {
            search = search.author(author);
        }
        self.args.tag.iter().fold(search, |search, tag| search.tag(tag))
    }
}

impl SearchArgs {
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
        let is_narrowed = [&self.author, &self.after, &self.before].iter().any(|it| it.is_some())
            || [&self.role, &self.tag].iter().any(|it| !it.is_empty());
        if !is_narrowed && self.query.iter().all(|word| word.trim().is_empty()) {
            return Err(Failure::Usage("the query is empty; give at least one word".to_owned()));
        }
        let mut text = String::new();
        for (option, value) in [("after", &self.after), ("before", &self.before)] {
            let Some(value) = value else { continue };
            time_of(option, Some(value.as_str()))?;
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
fn notice(notices: &[String], steps: &[Step], matched: Matched, is_empty: bool) {
    notices.iter().for_each(|notice| tell(notice));
    if !steps.is_empty() {
        tell("little or nothing was found for the query as it is written; there are also:");
    }
    for step in steps {
        tell(&format!("  {step}"));
    }
    if matched == Matched::Relaxed && !is_empty {
        tell("these messages have some of the words, best match first");
    }
}
