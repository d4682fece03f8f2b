//! `talktree compact --plan`: prints what would be compacted.

use std::io::Write;

use serde::Serialize;
use talktree::{
    CompactionId, CompactionPlan, MessageId, NothingToCompact, Planned, SessionId, WindowUsage,
};

use super::Target;
use crate::context::Context;
use crate::failure::{Result, tell};
use crate::output::{Exact, Piece};
use crate::shell::quote;
use crate::text::plural;
use crate::{lookup, style};

#[derive(Serialize)]
struct Answer<'a> {
    session: &'a SessionId,
    leaf: Option<&'a MessageId>,
    first: Option<&'a MessageId>,
    last: Option<&'a MessageId>,
    messages: usize,
    summaries: &'a [CompactionId],
    tokens: u64,
    target_tokens: u64,
    usage: WindowUsage,
    expected_total: u64,
    /// Why there is nothing to compact.
    nothing: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<&'a str>,
}

pub(super) fn run(target: &Target, is_prompt: bool, context: &mut Context) -> Result<()> {
    match target.plan()? {
        Planned::Nothing(why) => nothing(target, &why, is_prompt, context),
        Planned::Compact(plan) if context.is_json => Ok(context.out.json(&Answer {
            session: target.session.id(),
            leaf: Some(plan.leaf()),
            first: Some(plan.first()),
            last: Some(plan.last()),
            messages: plan.messages(),
            summaries: plan.summaries(),
            tokens: plan.tokens(),
            target_tokens: plan.target_tokens(),
            usage: plan.usage(),
            expected_total: plan.expected_total(),
            nothing: None,
            prompt: is_prompt.then(|| plan.prompt()),
        })?),
        Planned::Compact(plan) if is_prompt => {
            let mut out = Exact::new(&mut context.out, false);
            out.write_all(plan.prompt().as_bytes())?;
            out.flush()?;
            // The range is named, because after an append the plan may be a different one.
            let [session, first, last] =
                [target.session.id().as_str(), plan.first().as_str(), plan.last().as_str()]
                    .map(quote);
            tell(&format!(
                "to add the answer: talktree compact {session} --summary-file FILE --from {first} --to {last}"
            ));
            Ok(())
        }
        Planned::Compact(plan) => write(target, &plan, context),
    }
}

/// Reports why there is nothing to compact.
pub(super) fn tell_nothing(why: &NothingToCompact) {
    let hint = match why {
        NothingToCompact::NothingBetween { .. } => "; try a smaller --keep-recent-tokens",
        _ => "",
    };
    tell(&format!("nothing to compact: {why}{hint}"));
}

fn nothing(
    target: &Target,
    why: &NothingToCompact,
    is_prompt: bool,
    context: &mut Context,
) -> Result<()> {
    let session = &target.session;
    let usage = match &target.leaf {
        None => session.window_usage()?,
        Some(leaf) => session.at(leaf).window_usage()?,
    };
    if context.is_json {
        let head = session.head()?;
        return Ok(context.out.json(&Answer {
            session: session.id(),
            leaf: target.leaf.as_ref().or(head.as_ref()),
            first: None,
            last: None,
            messages: 0,
            summaries: &[],
            tokens: 0,
            target_tokens: 0,
            usage,
            expected_total: usage.total,
            nothing: Some(why.to_string()),
            prompt: is_prompt.then_some(""),
        })?);
    }
    tell_nothing(why);
    match is_prompt {
        true => Ok(()),
        false => Ok(context.out.line(&line("window", &usage.to_string()))?),
    }
}

fn write(target: &Target, plan: &CompactionPlan, context: &mut Context) -> Result<()> {
    let title = lookup::title(&target.session)?;
    let messages = plural(plan.messages() as u64, "message");
    context.out.line(&[
        (style::PLAIN, &title),
        (style::PLAIN, ": "),
        (style::STRONG, &messages),
        (style::PLAIN, " would be compacted"),
    ])?;
    let summaries: Vec<&str> = plan.summaries().iter().map(CompactionId::as_str).collect();
    let summaries = if summaries.is_empty() { "none".to_owned() } else { summaries.join(" ") };
    let tokens = format!("{} into about {}", plan.tokens(), plan.target_tokens());
    let after = format!("about {} tokens", plan.expected_total());
    for (what, value) in [
        ("from", plan.first().as_str()),
        ("to", plan.last().as_str()),
        ("earlier compactions", &summaries),
        ("tokens", &tokens),
        ("window now", &plan.usage().to_string()),
        ("window after", &after),
    ] {
        context.out.line(&line(what, value))?;
    }
    Ok(())
}

/// Returns a line with a name and its value.
fn line<'a>(what: &'a str, value: &'a str) -> [Piece<'a>; 3] {
    [(style::FAINT, what), (style::PLAIN, "  "), (style::PLAIN, value)]
}
