//! `talktree search`: messages or conversations that hold what is asked for.

use clap::ValueEnum;
use talktree::{Found, Hit, Matched, Query, SessionId, Snippet, Store};

use crate::context::Context;
use crate::failure::{Failure, Result, tell};
use crate::find::ShortIds;
use crate::output::{Output, Piece};
use crate::{find, paint};

/// Find messages, best first
///
/// Words (all must match), "a phrase", prefix*, -not, OR, role:user, session:ID, after:2026-01-31,
/// before:.., in:tools. Put a query with `-not` in quotes, and one that begins with a minus after `--`:
/// `talktree search "python -code"`, `talktree search -- -blue`.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree search [OPTIONS] <QUERY>...")]
pub(crate) struct Args {
    /// What to look for.
    #[arg(required = true)]
    query: Vec<String>,

    /// Search this session only.
    #[arg(long)]
    session: Option<String>,

    /// Search the branch that leads to this message only: an id, a label, or `head`.
    #[arg(long, value_name = "MESSAGE", requires = "session")]
    branch: Option<String>,

    /// Find messages of this role only; may be repeated.
    #[arg(long)]
    role: Vec<String>,

    /// Find messages of this UTC day, or instant, and later.
    #[arg(long, value_name = "TIME")]
    after: Option<String>,

    /// Find messages before this UTC day, or instant.
    #[arg(long, value_name = "TIME")]
    before: Option<String>,

    /// Look at what was said, at reasoning and tools, or at both.
    #[arg(long = "in", value_name = "WHERE")]
    column: Option<Column>,

    /// Show this many at the most.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,

    /// Leave out this many of the best.
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: usize,

    /// Find whole conversations.
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
    let session = args.session.as_deref().map(|given| find::session(&store, given)).transpose()?;
    if args.sessions {
        let mut search = store.search(text).limit(args.limit).offset(args.offset);
        if let Some(session) = &session {
            search = search.session(session.id());
        }
        let found = search.by_session().run()?;
        notice(&found.notices, found.matched, found.sessions.is_empty());
        if found.sessions.is_empty() {
            return Err(nothing());
        }
        let names = Names::of(&store)?;
        for conversation in &found.sessions {
            if context.is_json {
                context.out.json(conversation)?;
                continue;
            }
            let name = crate::clean::one_line(conversation.name.as_deref().unwrap_or_default());
            context.out.line_cut(&[
                (paint::ID, names.0.of(conversation.session.as_str())),
                (paint::PLAIN, "  "),
                (paint::STRONG, &name),
            ])?;
            for hit in conversation.hits.iter().take(3) {
                let mut pieces = vec![
                    (paint::PLAIN, "  "),
                    (paint::role(&hit.role), hit.role.as_str()),
                    (paint::PLAIN, "  "),
                ];
                pieces.extend(snippet(&hit.snippet, context.out.is_coloured()));
                context.out.line(&pieces)?;
            }
            context.out.line(&[])?;
        }
        return Ok(());
    }
    let found: Found = match (&session, &args.branch) {
        (Some(session), Some(leaf)) => {
            let path = session.at(&find::message(session, leaf)?);
            path.search(text).limit(args.limit).offset(args.offset).run()?
        }
        (Some(session), None) => {
            session.search(text).limit(args.limit).offset(args.offset).run()?
        }
        (None, _) => store.search(text).limit(args.limit).offset(args.offset).run()?,
    };
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
    /// Returns the query with what the options ask for.
    fn text(&self) -> Result<String> {
        if self.query.iter().all(|word| word.trim().is_empty()) {
            return Err(Failure::Usage("the query is empty: there is nothing to find".to_owned()));
        }
        let mut text = String::new();
        for (option, value) in [("after", &self.after), ("before", &self.before)] {
            let Some(value) = value else { continue };
            let filter = format!("{option}:{value}");
            let filters = Query::parse(&filter).filters;
            if filters.after.or(filters.before).is_none() || value.contains(char::is_whitespace) {
                return Err(Failure::Usage(format!(
                    "--{option} {value:?} is no time; give a day, 2026-01-31, or an instant, 2026-01-31T12:00:00Z"
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
        // Last, so that a quote that is not closed takes no filter with it.
        Ok(text + &self.query.join(" "))
    }
}

fn nothing() -> Failure {
    Failure::NotFound("nothing found".to_owned())
}

fn notice(notices: &[String], matched: Matched, is_empty: bool) {
    notices.iter().for_each(|notice| tell(notice));
    if matched == Matched::Relaxed && !is_empty {
        tell("these hold some of the words, the best first");
    }
}

/// The names of the sessions, to show beside hits.
struct Names(ShortIds, std::collections::HashMap<SessionId, String>);

impl Names {
    fn of(store: &Store) -> Result<Self> {
        let sessions = store.sessions()?;
        let short = ShortIds::new(sessions.iter().map(|info| info.id.as_str()));
        let names = sessions
            .into_iter()
            .filter_map(|info| Some((info.id, crate::clean::one_line(&info.name?))));
        Ok(Self(short, names.collect()))
    }
}

fn write(out: &mut Output, hit: &Hit, names: &Names) -> Result<()> {
    let time = crate::table::minute(hit.created_at);
    let place = match (&hit.under, hit.on_path) {
        (Some(id), _) => format!("under summary {}", crate::clean::one_line(id.as_str())),
        (None, true) => String::new(),
        (None, false) => "on another branch".to_owned(),
    };
    let name = names.1.get(&hit.session).map_or("", String::as_str);
    out.line(&[
        (paint::ID, names.0.of(hit.session.as_str())),
        (paint::PLAIN, if name.is_empty() { "" } else { "  " }),
        (paint::STRONG, name),
        (paint::PLAIN, "  "),
        (paint::role(&hit.role), hit.role.as_str()),
        (paint::PLAIN, "  "),
        (paint::FAINT, &time),
        (paint::PLAIN, "  "),
        (paint::ID, hit.id.as_str()),
        (paint::PLAIN, if place.is_empty() { "" } else { "  " }),
        (paint::COMPACTION, &place),
    ])?;
    let mut pieces = vec![(paint::PLAIN, "  ")];
    pieces.extend(snippet(&hit.snippet, out.is_coloured()));
    out.line(&pieces)?;
    if hit.sessions.len() > 1 {
        out.line(&[(paint::FAINT, &format!("  also in {} more", hit.sessions.len() - 1))])?;
    }
    Ok(out.line(&[])?)
}

/// Returns a snippet with its matches in colour or, without colour, between stars.
fn snippet(snippet: &Snippet, is_coloured: bool) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    for (text, is_match) in snippet.pieces() {
        match (is_match, is_coloured) {
            (false, _) => pieces.push((paint::PLAIN, text)),
            (true, true) => pieces.push((paint::MATCH, text)),
            (true, false) => {
                pieces.extend([(paint::PLAIN, "**"), (paint::PLAIN, text), (paint::PLAIN, "**")])
            }
        }
    }
    pieces
}
