//! `talktree usage`: tokens and cost of answers.

use talktree::{Cost, Store, UsageFilter, UsageGroup};

use crate::context::Context;
use crate::failure::Result;
use crate::short_ids::ShortIds;
use crate::table::Table;
use crate::text::one_line;
use crate::{date, lookup, style};

/// Add up the tokens and the cost of answers
///
/// `input` includes cached tokens, `output` those of reasoning. Deleted messages and removed sessions count; messages that a
/// fork copied count once.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree usage [OPTIONS] [SESSION]")]
pub(crate) struct Args {
    /// The session: its id, the start or the end of its id, or its name [default: all].
    session: Option<String>,
    /// Print a sum for each of these.
    #[arg(long, value_name = "GROUP")]
    by: Option<Group>,
    /// Count answers in sessions of this owner.
    #[arg(long)]
    owner: Option<String>,
    /// Count answers to this author: an answer is to that of the nearest message above it that has one.
    #[arg(long)]
    author: Option<String>,
    /// Count answers of this model.
    #[arg(long)]
    model: Option<String>,
    /// Count answers in sessions from this program or file.
    #[arg(long)]
    source: Option<String>,
    /// Count answers from this date on.
    #[arg(long, alias = "since", value_name = "DATE")]
    after: Option<String>,
    /// Count answers before this date.
    #[arg(long, alias = "until", value_name = "DATE")]
    before: Option<String>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Group {
    /// Each model, the one with the most tokens first.
    Model,
    /// Each day in UTC, the newest first.
    Day,
    /// Each owner, the one with the most tokens first.
    Owner,
    /// Each author who was answered, the one with the most tokens first.
    Author,
    /// Each session, the one with the most tokens first.
    Session,
    /// Each program or file, the one with the most tokens first.
    Source,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let session = args.session.as_ref().map(|given| lookup::session(&store, given)).transpose()?;
    let filter = UsageFilter {
        session: session.map(|session| session.id().clone()),
        owner: args.owner,
        author: args.author,
        model: args.model,
        source: args.source,
        since: date::time("after", args.after.as_deref())?,
        until: date::time("before", args.before.as_deref())?,
    };
    let (group, heading) = match args.by {
        None => (UsageGroup::All, "of"),
        Some(Group::Model) => (UsageGroup::Model, "model"),
        Some(Group::Day) => (UsageGroup::Day, "day"),
        Some(Group::Owner) => (UsageGroup::Owner, "owner"),
        Some(Group::Author) => (UsageGroup::Author, "author"),
        Some(Group::Session) => (UsageGroup::Session, "session"),
        Some(Group::Source) => (UsageGroup::Source, "source"),
    };
    let rows = store.usage().filter(filter).by(group).run()?;
    // A file or a pipe gets whole ids.
    let short = match args.by {
        Some(Group::Session) if context.out.width().is_some() => short_ids(&store)?,
        _ => ShortIds::new([]),
    };
    let mut table = Table::new([
        (heading, style::STRONG),
        ("answers", style::PLAIN),
        ("input", style::PLAIN),
        ("cached", style::FAINT),
        ("output", style::PLAIN),
        ("reasoning", style::FAINT),
        ("cost", style::PLAIN),
    ])
    .of_numbers(&["reasoning", "cached", "answers", "input", "output"]);
    for row in &rows {
        if context.is_json {
            context.out.json(row)?;
            continue;
        }
        let total = &row.total;
        table.push([
            match (&row.group, args.by) {
                (Some(name), _) => one_line(short.of(name)),
                (None, None) => "all".to_owned(),
                (None, Some(Group::Session)) => "(removed)".to_owned(),
                (None, Some(_)) => "(none)".to_owned(),
            },
            total.answers.to_string(),
            total.input.to_string(),
            total.cache_read.to_string(),
            total.output.to_string(),
            total.reasoning.to_string(),
            total.costs.iter().map(amount).collect::<Vec<_>>().join(" + "),
        ]);
    }
    context.write_list(&table, None, || Ok("no usage is stored".to_owned()))
}

/// Returns the short ids of all sessions, those in the trash included: their usage counts, too.
fn short_ids(store: &Store) -> Result<ShortIds> {
    let (present, trash) = (store.sessions()?, lookup::trash(store)?);
    Ok(ShortIds::new(present.iter().chain(&trash).map(|info| info.id.as_str())))
}

/// Returns an amount with its currency: `1.25 USD`.
fn amount(cost: &Cost) -> String {
    let (whole, rest) = (cost.micros / 1_000_000, cost.micros % 1_000_000);
    let digits = format!("{rest:06}");
    // Two digits at least, and no zeros at the end after them.
    let digits = digits.trim_end_matches('0');
    one_line(&format!("{whole}.{digits:0<2} {}", cost.currency))
}
