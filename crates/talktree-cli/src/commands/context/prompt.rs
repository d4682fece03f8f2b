//! `talktree context prompt`: the frozen prompt.

use serde::Serialize;
use talktree::SessionId;

use super::scope::Scope;
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::text::escape;
use crate::{lookup, style};

/// Read the frozen prompt
///
/// This is the prompt as a program froze it, with its fixed texts; nothing is rendered again.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree context prompt [OPTIONS] <SESSION>")]
pub(super) struct Args {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,
}

#[derive(Serialize)]
struct Answer<'a> {
    session: Option<&'a SessionId>,
    prompt: &'a str,
    tokens: u64,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let scope = Scope::session(&store, &lookup::session(&store, &args.session)?)?;
    let frozen = scope.context([])?.frozen_prompt()?;
    let prompt = &*frozen.ok_or_else(|| not_frozen(&scope))?;
    if context.is_json {
        let tokens = talktree::estimate_tokens(prompt);
        return Ok(context.out.json(&Answer { session: scope.id(), prompt, tokens })?);
    }
    Ok(context.out.block(style::PLAIN, "", prompt)?)
}

pub(super) fn not_frozen(scope: &Scope<'_>) -> Failure {
    Failure::NotFound(format!("{}: no prompt is frozen", escape(&scope.name)))
}
