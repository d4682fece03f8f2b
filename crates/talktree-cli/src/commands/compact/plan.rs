//! `talktree compact --plan`: says what would be compacted.

use std::io::Write;

use talktree::{CompactionId, NothingToCompact};

use super::Target;
use crate::output::Exact;
use crate::prelude::*;

pub(super) fn plan(target: &Target, is_prompt: bool, context: &mut Context) -> Result<()> {
    let session = &target.session;
    let plan = match target.plan()? {
        Ok(plan) => plan,
        Err(why) => return nothing(target, &why, is_prompt, context),
    };
    if context.is_json {
        let mut json = json!({
            "session": session.id(),
            "leaf": plan.leaf(),
            "first": plan.first(),
            "last": plan.last(),
            "messages": plan.messages(),
            "summaries": plan.summaries(),
            "tokens": plan.tokens(),
            "target_tokens": plan.target_tokens(),
            "usage": plan.usage(),
            "expected_total": plan.expected_total(),
            "nothing": null,
        });
        if is_prompt {
            json["prompt"] = json!(plan.prompt());
        }
        return Ok(context.out.json(&json)?);
    }
    let (first, last) = (plan.first().as_str(), plan.last().as_str());
    if is_prompt {
        let mut out = Exact::new(&mut context.out, false);
        out.write_all(plan.prompt().as_bytes())?;
        out.flush()?;
        // The range is named, because after an append the plan may be a different one.
        let range = format!("--summary-file FILE {} {}", option("from", first), option("to", last));
        let add = command(&verb("compact", &[session.id().as_str()], &range));
        tell(&format!("to add the answer: {add}"));
        return Ok(());
    }
    let (title, ids) = (format!("{}: ", target.title), ShortIds::of_messages(session)?);
    let messages = plural(plan.messages() as u64, "message");
    put!(context.out; PLAIN &title, STRONG &messages, PLAIN " would become a summary")?;
    let summaries = plan.summaries().iter().map(CompactionId::as_message);
    let summaries: Vec<String> = summaries.map(|id| ids.of(id.as_str()).to_owned()).collect();
    let (tokens, most) = (plan.tokens(), plan.target_tokens());
    let size = match tokens > most {
        true => format!("at most {most} tokens, in place of {tokens}"),
        false => format!(
            "at most {most} tokens: it may be no shorter than the {tokens} that it replaces"
        ),
    };
    for (what, value) in [
        ("from", ids.of(first)),
        ("to", ids.of(last)),
        ("earlier summaries", &summaries.join(" ")),
        ("summary", &size),
        ("window now", &plan.usage().to_string()),
        ("window after", &format!("about {} tokens", plan.expected_total())),
    ] {
        if !value.is_empty() {
            put!(context.out; FAINT &format!("{what:<17}"), PLAIN "  ", PLAIN value)?;
        }
    }
    Ok(())
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
        let mut json = json!({
            "session": session.id(),
            "leaf": target.leaf.as_ref().or(head.as_ref()),
            "first": null,
            "last": null,
            "messages": 0,
            "summaries": [],
            "tokens": 0,
            "target_tokens": 0,
            "usage": usage,
            "expected_total": usage.total,
            "nothing": why.to_string(),
        });
        if is_prompt {
            json["prompt"] = json!("");
        }
        return Ok(context.out.json(&json)?);
    }
    tell_nothing(why);
    if !is_prompt {
        put!(context.out; FAINT "window", PLAIN "  ", PLAIN &usage.to_string())?;
    }
    Ok(())
}
