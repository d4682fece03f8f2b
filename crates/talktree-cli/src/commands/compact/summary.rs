//! `talktree compact --summary` and `--summary-file`: compacts with a given summary.

use talktree::{Compaction, Planned, Session, Summary};

use super::{Args, Target, plan, print_added};
use crate::context::Context;
use crate::failure::Result;
use crate::input::{read_stdin, read_text};
use crate::lookup;

/// Compacts the range from one message to another.
pub(super) fn add_range(
    from: &str,
    to: &str,
    args: &Args,
    session: &Session,
    context: &mut Context,
) -> Result<()> {
    let text = text(args)?;
    let (first, last) = (lookup::message(session, from)?, lookup::message(session, to)?);
    let mut compaction = Compaction::new(text, first, last);
    compaction.model.clone_from(&args.model);
    session.import_compaction(&compaction)?;
    print_added(&session.compaction(&compaction.id)?, session, context)
}

/// Compacts the range that the policy chooses.
pub(super) fn commit_plan(args: &Args, target: &Target, context: &mut Context) -> Result<()> {
    // The summary is read before planning: typing it may take so long that the plan would be stale.
    let mut summary = Summary::new(text(args)?);
    if let Some(model) = &args.model {
        summary = summary.by(model);
    }
    match target.plan()? {
        Planned::Nothing(why) => plan::tell_nothing(&why),
        Planned::Compact(plan) => {
            let compacted = target.session.commit(plan, summary)?;
            print_added(&target.session.compaction(&compacted.id)?, &target.session, context)?;
        }
    }
    Ok(())
}

/// Returns the given summary.
fn text(args: &Args) -> Result<String> {
    const WHAT: &str = "the summary";
    let text = match (&args.summary, &args.summary_file) {
        (Some(text), _) if text != "-" => text.clone(),
        (_, Some(file)) => read_text(file, WHAT)?,
        _ => read_stdin(WHAT)?,
    };
    Ok(text.trim_end().to_owned())
}
