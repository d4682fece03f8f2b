//! `talktree compact --list`: lists the compactions with their status.

use serde::Serialize;
use talktree::{Compaction, CompactionId, CompactionStatus, Session};

use crate::context::Context;
use crate::failure::Result;
use crate::short_ids::ShortIds;
use crate::style;
use crate::table::{Table, minute};
use crate::text::one_line;

#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    compaction: &'a Compaction,
    status: &'static str,
    /// The compaction that contains this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    under: Option<&'a CompactionId>,
}

pub(super) fn run(session: &Session, context: &mut Context) -> Result<()> {
    let compactions = session.compactions()?;
    let short = ShortIds::new(compactions.iter().map(|compaction| compaction.id.as_str()));
    let mut table = Table::new([
        ("compaction", style::COMPACTION),
        ("status", style::PLAIN),
        ("messages", style::PLAIN),
        ("tokens", style::PLAIN),
        ("model", style::FAINT),
        ("created", style::FAINT),
        ("summary", style::PLAIN),
    ]);
    for compaction in &compactions {
        let status = match session.compaction_status(&compaction.id) {
            // Removed since the list was read.
            Err(error) if error.is_unknown() => continue,
            status => status?,
        };
        let (status, under) = match &status {
            CompactionStatus::Shown => ("shown", None),
            CompactionStatus::Under { id } => ("under", Some(id)),
            _ => ("off_path", None),
        };
        if context.is_json {
            context.out.json(&Row { compaction, status, under })?;
            continue;
        }
        table.push([
            short.of(compaction.id.as_str()).to_owned(),
            match under {
                Some(id) => format!("inside {}", short.of(id.as_str())),
                None => status.replace("off_path", "other branch"),
            },
            compaction.count.to_string(),
            format!("{} -> {}", compaction.tokens_before, compaction.tokens_after),
            one_line(compaction.model.as_deref().unwrap_or_default()),
            minute(compaction.created_at),
            one_line(&compaction.summary),
        ]);
    }
    context.write_list(&table, None, || Ok("the session has no compactions".to_owned()))
}
