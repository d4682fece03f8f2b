//! `talktree search`: finds messages or sessions.

use clap::ValueEnum;
use talktree::{Hit, Matched, Query, SessionId, Snippet, Store};

use crate::context::Context;
use crate::failure::{Failure, Result, tell};
use crate::output::{Output, Piece};
use crate::short_ids::ShortIds;
use crate::text::plural;
use crate::{lookup, style};

/// Find messages or sessions, best match first
///
/// A query may contain words (all must match; in a question some are enough), "a phrase", prefix*, -not, OR, role:user, session:ID,
/// after:2026-01-31, before:2026-01-31 and in:tools. Quote a query that contains `-not`, and put one
/// that starts with a minus after `--`: `talktree search "python -code"`, `talktree search -- -blue`.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree search [OPTIONS] <QUERY>...")]
pub(crate) struct Args {
    /// The words to find, and filters.
    #[arg(required = true)]
    query: Vec<String>,

    /// Search only this session.
    #[arg(long)]
    session: Option<String>,

    /// Search only the path to this message: an id, a label, or `head`.
    #[arg(long, value_name = "MESSAGE", requires = "session")]
    branch: Option<String>,

    /// Find only messages of this role; repeat it for several roles.
    #[arg(long)]
    role: Vec<String>,

    /// Find only messages from this UTC day or instant on, as 2026-01-31 or 2026-01-31T12:00:00Z.
    #[arg(long, value_name = "TIME")]
    after: Option<String>,

    /// Find only messages before this UTC day or instant.
    #[arg(long, value_name = "TIME")]
    before: Option<String>,

    /// Search text, or reasoning and tool calls (`tools`), or both (`all`) [default: text].
    #[arg(long = "in", value_name = "WHERE")]
    column: Option<Column>,

    /// Print at most N results.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,

    /// Skip the first N results.
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: usize,

    /// Find sessions instead of messages.
    #[arg(long, conflicts_with = "branch")]
    sessions: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Column {
    Text,
    Tools,
    All,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let text = args.text()?;
    let store = context.searcher()?;
    let session =
        args.session.as_deref().map(|given| lookup::session(&store, given)).transpose()?;
    let search = match (&session, &args.branch) {
        (Some(session), Some(leaf)) => session.at(&lookup::message(session, leaf)?).search(text),
        (Some(session), None) => session.search(text),
        (None, _) => store.search(text),
    };
    let search = search.limit(args.limit).offset(args.offset);
    if args.sessions {
        let found = search.by_session().run()?;
        notice(&found.notices, found.matched, found.sessions.is_empty());
        if found.sessions.is_empty() {
            return Err(nothing());
        }
        let names = Names::of(&store)?;
        for session in &found.sessions {
            if context.is_json {
                context.out.json(session)?;
                continue;
            }
            let name = crate::text::one_line(session.name.as_deref().unwrap_or_default());
            context.out.line_cut(&[
                (style::ID, names.0.of(session.session.as_str())),
                (style::PLAIN, "  "),
                (style::STRONG, &name),
            ])?;
            for hit in session.hits.iter().take(3) {
                let mut pieces = vec![
                    (style::PLAIN, "  "),
                    (style::role(&hit.role), hit.role.as_str()),
                    (style::PLAIN, "  "),
                ];
                pieces.extend(snippet(&hit.snippet, context.out.is_coloured()));
                context.out.line(&pieces)?;
            }
            context.out.line(&[])?;
        }
        return Ok(());
    }
    let found = search.run()?;
    notice(&found.notices, found.matched, found.hits.is_empty());
    if found.hits.is_empty() {
        return Err(nothing());
    }
    let names = Names::of(&store)?;
    for hit in &found.hits {
        match context.is_json {
            true => context.out.json(hit)?,
            false => write(&mut context.out, hit, &names)?,
        }
    }
    Ok(())
}

impl Args {
    /// Returns the query, with the options as filters.
    fn text(&self) -> Result<String> {
        if self.query.iter().all(|word| word.trim().is_empty()) {
            return Err(Failure::Usage("the query is empty; give at least one word".to_owned()));
        }
        let mut text = String::new();
        for (option, value) in [("after", &self.after), ("before", &self.before)] {
            let Some(value) = value else { continue };
            let filter = format!("{option}:{value}");
            let filters = Query::parse(&filter).filters;
            if filters.after.or(filters.before).is_none() || value.contains(char::is_whitespace) {
                return Err(Failure::Usage(format!(
                    "--{option} {value:?} is not a time; give a day as 2026-01-31, or an instant as 2026-01-31T12:00:00Z"
                )));
            }
            text.push_str(&filter);
            text.push(' ');
        }
        for role in &self.role {
            text.push_str(&format!("role:\"{}\" ", role.replace('"', "")));
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

fn nothing() -> Failure {
    Failure::NotFound("nothing found".to_owned())
}

fn notice(notices: &[String], matched: Matched, is_empty: bool) {
    notices.iter().for_each(|notice| tell(notice));
    if matched == Matched::Relaxed && !is_empty {
        tell("these messages have some of the words, best match first");
    }
}

/// The short ids and the names of the sessions, to print beside hits.
struct Names(ShortIds, std::collections::HashMap<SessionId, String>);

impl Names {
    fn of(store: &Store) -> Result<Self> {
        let sessions = store.sessions()?;
        let short = ShortIds::new(sessions.iter().map(|info| info.id.as_str()));
        let names = sessions
            .into_iter()
            .filter_map(|info| Some((info.id, crate::text::one_line(&info.name?))));
        Ok(Self(short, names.collect()))
    }
}

fn write(out: &mut Output, hit: &Hit, names: &Names) -> Result<()> {
    let time = crate::table::minute(hit.created_at);
    let note = match (&hit.under, hit.on_path) {
        (Some(id), _) => format!("in compaction {}", crate::text::one_line(id.as_str())),
        (None, true) => String::new(),
        (None, false) => "on another branch".to_owned(),
    };
    let name = names.1.get(&hit.session).map_or("", String::as_str);
    out.line(&[
        (style::ID, names.0.of(hit.session.as_str())),
        (style::PLAIN, if name.is_empty() { "" } else { "  " }),
        (style::STRONG, name),
        (style::PLAIN, "  "),
        (style::role(&hit.role), hit.role.as_str()),
        (style::PLAIN, "  "),
        (style::FAINT, &time),
        (style::PLAIN, "  "),
        (style::ID, hit.id.as_str()),
        (style::PLAIN, if note.is_empty() { "" } else { "  " }),
        (style::COMPACTION, &note),
    ])?;
    let mut pieces = vec![(style::PLAIN, "  ")];
    pieces.extend(snippet(&hit.snippet, out.is_coloured()));
    out.line(&pieces)?;
    if hit.sessions.len() > 1 {
        let others = plural(hit.sessions.len() as u64 - 1, "other session");
        out.line(&[(style::FAINT, &format!("  also in {others}"))])?;
    }
    Ok(out.line(&[])?)
}

/// Returns the pieces of a snippet; without colour its matches are between `**`.
fn snippet(snippet: &Snippet, is_coloured: bool) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    for (text, is_match) in snippet.pieces() {
        match (is_match, is_coloured) {
            (false, _) => pieces.push((style::PLAIN, text)),
            (true, true) => pieces.push((style::MATCH, text)),
            (true, false) => {
                pieces.extend([(style::PLAIN, "**"), (style::PLAIN, text), (style::PLAIN, "**")])
            }
        }
    }
    pieces
}
