//! `talktree compact --summarizer-cmd`: compacts step by step with summaries from a command.

use std::time::Duration;

use talktree::{CompactionId, CompactionPlan, Error, Planned, Summary};

use super::{Args, Target, plan, print_added};
use crate::context::Context;
use crate::failure::{Failure, Result, tell};
use crate::progress::Bar;
use crate::summarizer::Summarizer;
use crate::text::plural;

pub(super) fn run(
    command: &str,
    args: &Args,
    target: &Target,
    context: &mut Context,
) -> Result<()> {
    let summarizer = Summarizer::new(command.to_owned(), args.timeout.map(Duration::from_secs))?;
    for number in 1.. {
        let plan = match target.plan()? {
            Planned::Compact(plan) => plan,
            Planned::Nothing(why) => {
                if number == 1 {
                    plan::tell_nothing(&why);
                }
                break;
            }
        };
        let id = step(plan, number, &summarizer, args, target)?;
        print_added(&target.session.compaction(&id)?, &target.session, context)?;
        // The next step may take a while.
        context.out.flush()?;
        if args.once {
            break;
        }
    }
    Ok(())
}

/// Asks for one summary, commits it, and returns the id of the compaction.
fn step(
    plan: CompactionPlan,
    number: usize,
    summarizer: &Summarizer,
    args: &Args,
    target: &Target,
) -> Result<CompactionId> {
    let bar = Bar::of_waiting(&format!(
        "summary {number}: {}, {} of {} tokens",
        plural(plan.messages() as u64, "message"),
        plan.tokens(),
        plan.usage().total,
    ));
    let answer = summarizer.ask(plan.prompt());
    drop(bar);
    let mut summary = Summary::new(answer?);
    if let Some(model) = &args.model {
        summary = summary.by(model);
    }
    let wanted = plan.target_tokens();
    let kept = if number > 1 { "; the compactions of earlier steps are kept" } else { "" };
    let compacted = target.session.commit(plan, summary).map_err(|error| match error {
        // The command is at fault, not the user's arguments.
        Error::SummaryRefused { why } => Failure::Summary(format!(
            "the summarizer's answer was refused: {why}; the prompt asks for at most {wanted} tokens{kept}"
        )),
        error => error.into(),
    })?;
    if compacted.tokens_after > wanted {
        let tokens = compacted.tokens_after;
        tell(&format!("the summary has {tokens} tokens; the prompt asked for at most {wanted}"));
    }
    Ok(compacted.id)
}
