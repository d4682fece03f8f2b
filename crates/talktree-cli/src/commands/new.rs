//! `talktree new`: creates a session.

use serde::Serialize;
use talktree::{SessionDetails, SessionId};

use crate::context::Context;
use crate::failure::{Result, tell};
use crate::style;
use crate::text::shown;

/// Create a session, and the store if there is none
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree new [OPTIONS] [NAME]")]
pub(crate) struct Args {
    /// The name.
    name: Option<String>,

    /// The id [default: a random one].
    #[arg(long)]
    id: Option<String>,

    /// The person or tenant whose data it is.
    #[arg(long)]
    owner: Option<String>,

    /// The program that it comes from.
    #[arg(long)]
    source: Option<String>,

    /// The model.
    #[arg(long)]
    model: Option<String>,

    /// A tag; may be given several times.
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
}

#[derive(Serialize)]
struct Answer<'a> {
    session: &'a SessionId,
    name: Option<&'a str>,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let path = context.store_path()?;
    let is_new = !path.exists();
    let store = context.maker()?;
    let id = args.id.map_or_else(SessionId::new, SessionId::from);
    let details = SessionDetails {
        name: args.name.clone(),
        owner: args.owner,
        source: args.source,
        model: args.model,
        tags: args.tags,
        ..SessionDetails::default()
    };
    let session = store.create_session_as(id, details)?;
    if is_new {
        tell(&format!("created a new store: {}", shown(&path)));
    }
    let name = args.name.as_deref();
    if context.is_json {
        return Ok(context.out.json(&Answer { session: session.id(), name })?);
    }
    let mut pieces = vec![(style::ID, session.id().as_str())];
    pieces.extend(name.into_iter().flat_map(|name| [(style::PLAIN, "  "), (style::STRONG, name)]));
    Ok(context.out.line(&pieces)?)
}
