//! `talktree owners`, `bindings` and `usage`: what the store says of all its sessions.

use talktree::{Binding, BindingFilter, Cost, OwnerInfo, UsageFilter, UsageGroup};

use crate::prelude::*;

/// How many owners or bindings are read at a time.
const PAGE: usize = 1_000;

/// Returns at most `limit` items, of pages that each follow the last item of the one before.
fn pages<T>(
    limit: Option<usize>,
    mut page: impl FnMut(Option<&T>, usize) -> talktree::Result<Vec<T>>,
) -> Result<Vec<T>> {
    let (mut all, limit) = (Vec::new(), limit.unwrap_or(usize::MAX));
    loop {
        let more = page(all.last(), PAGE.min(limit - all.len()))?;
        if more.is_empty() {
            return Ok(all);
        }
        all.extend(more);
    }
}

/// List the owners of sessions and transcripts, by name
///
/// Sessions in the trash are not counted. `last` is the time of the message that was added last.
#[derive(Debug, clap::Args)]
pub(crate) struct OwnersArgs {
    /// List at most N owners [default: all].
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

pub(crate) fn owners(args: OwnersArgs, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let styles = [STRONG, PLAIN, PLAIN, FAINT, PLAIN];
    let mut table = Table::new("owner sessions messages last transcripts", styles);
    let owners = pages(args.limit, |last: Option<&OwnerInfo>, count| {
        store.owners(last.map(|last| last.owner.as_str()), count)
    })?;
    for owner in &owners {
        let transcripts = Some(owner.transcripts).filter(|count| *count > 0);
        let cells = [
            one_line(&owner.owner),
            owner.sessions.to_string(),
            owner.messages.to_string(),
            owner.last_message_at.map(|at| context.out.ago(at)).unwrap_or_default(),
            transcripts.map(|count| count.to_string()).unwrap_or_default(),
        ];
        context.row(&mut table, owner, cells)?;
    }
    let why_empty = || Ok("no session and no transcript has an owner".to_owned());
    context.write_list(&table, args.limit, why_empty)
}

/// List the outside keys, such as `telegram:4711`, and their sessions
///
/// The newest binding comes first. `until` and `end` say when and why a binding ended.
#[derive(Debug, clap::Args)]
pub(crate) struct BindingsArgs {
    /// The key [default: all].
    key: Option<String>,
    /// List the keys of this session.
    #[arg(long)]
    session: Option<String>,
    /// List only the present bindings.
    #[arg(long)]
    open: bool,
    /// List at most N bindings [default: all].
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

pub(crate) fn bindings(args: BindingsArgs, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let session = args.session.as_ref().map(|given| lookup::session(&store, given)).transpose()?;
    let session = session.map(|session| session.id().clone());
    let filter = BindingFilter { key: args.key, session, is_open: args.open };
    let bindings = pages(args.limit, |last: Option<&Binding>, count| {
        store.bindings(&filter, last.map(|last| last.number), count)
    })?;
    let short = ShortIds::of_sessions(&store)?;
    let styles = [STRONG, FAINT, FAINT, FAINT, ID];
    let mut table = Table::new("key bound until end session", styles);
    for binding in &bindings {
        let cells = [
            one_line(&binding.key),
            context.out.ago(binding.bound_at),
            binding.ended_at.map(|at| context.out.ago(at)).unwrap_or_default(),
            binding.end.map(|end| end.to_string()).unwrap_or_default(),
            short.of(binding.session.as_str()).to_owned(),
        ];
        context.row(&mut table, binding, cells)?;
    }
    context.write_list(&table, args.limit, || Ok("no binding is listed".to_owned()))
}

/// Add up the tokens and the cost of answers
///
/// `input` includes cached tokens, `output` those of reasoning. Deleted messages and removed sessions count; messages that a
/// fork copied count once.
#[derive(Debug, clap::Args)]
pub(crate) struct UsageArgs {
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

pub(crate) fn usage(args: UsageArgs, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let session = args.session.as_ref().map(|given| lookup::session(&store, given)).transpose()?;
    let filter = UsageFilter {
        session: session.map(|session| session.id().clone()),
        owner: args.owner,
        author: args.author,
        model: args.model,
        source: args.source,
        since: time_of("after", args.after.as_deref())?,
        until: time_of("before", args.before.as_deref())?,
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
    // The usage of sessions in the trash counts, too.
    let short = match args.by {
        Some(Group::Session) => ShortIds::of_sessions(&store)?,
        _ => ShortIds::default(),
    };
    let styles = [STRONG, PLAIN, PLAIN, FAINT, PLAIN, FAINT, PLAIN];
    let mut table = Table::new("of answers input cached output reasoning cost", styles)
        .first(heading)
        .of_numbers(&["reasoning", "cached", "answers", "input", "output"]);
    for row in store.usage().filter(filter).by(group).run()? {
        let name = match (&row.group, args.by) {
            (Some(name), _) => one_line(short.of(name)),
            (None, None) => "all".to_owned(),
            (None, Some(Group::Session)) => "(removed)".to_owned(),
            (None, Some(_)) => "(none)".to_owned(),
        };
        let [answers, input, cached, output, reasoning] =
            [row.answers, row.input, row.cache_read, row.output, row.reasoning]
                .map(|count| count.to_string());
        let cost = row.costs.iter().map(amount).collect::<Vec<_>>().join(" + ");
        let cells = [name, answers, input, cached, output, reasoning, cost];
        context.row(&mut table, &row, cells)?;
    }
    context.write_list(&table, None, || Ok("no usage is stored".to_owned()))
}

/// Returns an amount with its currency: `1.25 USD`.
fn amount(cost: &Cost) -> String {
    let (whole, rest) = (cost.micros / 1_000_000, cost.micros % 1_000_000);
    let digits = format!("{rest:06}");
    // Two digits at least, and no zeros at the end after them.
    let digits = digits.trim_end_matches('0');
    one_line(&format!("{whole}.{digits:0<2} {}", cost.currency))
}
