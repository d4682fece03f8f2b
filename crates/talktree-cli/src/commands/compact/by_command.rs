//! `talktree compact --summarizer-cmd`: compaction step by step.

use std::time::Duration;

use talktree::{CompactionId, CompactionPlan, Error, Planned, Summary};

use super::{Args, Target, plan, print_added};
use crate::clean::plural;
use crate::context::Context;
use crate::failure::{Failure, Result, tell};
use crate::progress::Bar;
use crate::summarizer::Summarizer;

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
        // The next one may take a while.
        context.out.flush()?;
        if args.once {
            break;
        }
    }
    Ok(())
}

/// Asks for one summary, lays it, and returns its id.
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
    let before = if number > 1 { "; the summaries laid before it stay" } else { "" };
    let compacted = target.session.commit(plan, summary).map_err(|error| match error {
        // The command is at fault, not who called it.
        Error::SummaryRefused { why } => Failure::Summary(format!(
            "the summarizer's answer is refused: {why}; at most {wanted} tokens are asked for{before}"
        )),
        error => error.into(),
    })?;
    if compacted.tokens_after > wanted {
        let tokens = compacted.tokens_after;
        tell(&format!(
            "the summary has {tokens} tokens, more than the {wanted} that were asked for"
        ));
    }
    Ok(compacted.id)
}
