//! Definitions, inputs and answers of tools.

mod call;
mod definition;
mod schema;

use std::sync::Arc;

use crate::context::{Backing, Block, BlockInfo, Context, ToolOptions};
use crate::storage::context::BlockScope;
use crate::storage::sqlite::{Config, Database, SqliteSession};

use super::Tools;
use super::definition::definitions;

/// One block of each kind.
fn blocks() -> Vec<BlockInfo> {
    let info = |block: Block, label| block.info(label, "text".to_owned());
    vec![
        info(Block::text("You are helpful."), "soul"),
        info(Block::stored(), "memory"),
        info(Block::shared(), "house rules"),
        info(Block::stored_skills(), "skills"),
        info(Block::knowledge(), "knowledge"),
        info(Block::history(), "history"),
    ]
}

const ALL: ToolOptions =
    ToolOptions { sessions: Some(BlockScope::Shared), has_history: true, max_answer_tokens: None };

fn tools() -> Tools {
    of(&blocks(), ALL)
}

/// Tools without blocks behind them: they can be listed, not called.
fn of(blocks: &[BlockInfo], options: ToolOptions) -> Tools {
    let definitions = definitions(blocks, options);
    let database = Database::open_in_memory(Config::default()).expect("a store in memory");
    let session = SqliteSession::new(Arc::new(database), "s".into());
    let context = Context::empty(Backing::of(Arc::new(session)));
    Tools { definitions, options, context, conversation: None }
}
