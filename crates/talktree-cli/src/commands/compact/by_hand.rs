//! `talktree compact --summary`: laying a summary that was written by hand.

use std::path::Path;

use talktree::{Compaction, Planned, Session, Summary};

use super::{Args, Target, plan, print_added};
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::{find, stdin};

/// Lays the summary over the stretch that was named.
pub(super) fn over(
    from: &str,
    to: &str,
    args: &Args,
    session: &Session,
    context: &mut Context,
) -> Result<()> {
    let text = text(args)?;
    let (first, last) = (find::message(session, from)?, find::message(session, to)?);
    let mut compaction = Compaction::new(text, first, last);
    compaction.model.clone_from(&args.model);
    session.import_compaction(&compaction)?;
    print_added(&session.compaction(&compaction.id)?, session, context)
}

/// Lays the summary over what would be compacted now.
pub(super) fn over_plan(args: &Args, target: &Target, context: &mut Context) -> Result<()> {
    // First: writing it may take longer than what is planned stands.
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

/// Returns the summary that was given.
fn text(args: &Args) -> Result<String> {
    let text = match (&args.summary, &args.summary_file) {
        (Some(text), _) if text != "-" => text.clone(),
        (_, Some(file)) if file != Path::new("-") => {
            std::fs::read_to_string(file).map_err(|error| {
                Failure::Input(format!("{} cannot be read: {error}", file.display()))
            })?
        }
        _ => stdin::read("the summary")?,
    };
    Ok(text.trim_end().to_owned())
}
