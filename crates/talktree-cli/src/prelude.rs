//! What most commands use.

pub(crate) use serde::Serialize;
pub(crate) use serde_json::json;

pub(crate) use crate::context::Context;
pub(crate) use crate::failure::{Failure, Result, tell};
pub(crate) use crate::lookup;
pub(crate) use crate::names::{ShortIds, title_of};
pub(crate) use crate::output::{
    BAD, COMPACTION, FAINT, GOOD, ID, LABEL, MATCH, Output, PLAIN, Piece, STRONG, piece_style, put,
    role_style,
};
pub(crate) use crate::suggestion::{command, given, option, quote, verb};
pub(crate) use crate::table::Table;
pub(crate) use crate::text::{escape, one_line, plural, quoted, shown, size};
pub(crate) use crate::time::time_of;
pub(crate) use crate::work::{Signals, confirm};
