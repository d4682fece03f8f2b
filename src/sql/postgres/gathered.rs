//! What one statement sends for many: rows to insert, and questions asked ahead.
//!
//! Their values are arrays, a column each, that PostgreSQL unnests.

use std::sync::{Arc, Mutex};

use rusqlite::types::Value;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::{Bound, dialect, values};
use crate::sql::{BackendResult, corrupt};

/// How many rows are sent at once, and after how many bytes no more are added.
const MAX_ROWS: usize = 1_000;
const MAX_BYTES: usize = 1 << 20;

/// What is not sent yet.
pub(super) struct Gathered {
    pub(super) sql: &'static str,
    pub(super) rows: Vec<Vec<Value>>,
    /// Of each column; unknown where all values are NULL.
    pub(super) types: Vec<Type>,
    bytes: usize,
    takes_more: bool,
    pub(super) answers: Arc<Mutex<Answers>>,
}

/// The answers to questions that are asked together, once they are read.
#[derive(Default)]
pub(super) struct Answers {
    pub(super) of_each: Vec<Vec<Row>>,
}

impl Gathered {
    pub(super) fn new(sql: &'static str) -> Self {
        let (rows, types, takes_more) = (Vec::new(), Vec::new(), dialect::takes_many(sql));
        Self { sql, rows, types, bytes: 0, takes_more, answers: Arc::default() }
    }

    /// Returns whether these values can be sent with the others.
    pub(super) fn takes(&self, sql: &str, values: &[Value]) -> bool {
        let fits = |(of, value): (&Type, &Value)| {
            let other = values::type_of(value);
            *of == other || *of == Type::UNKNOWN || other == Type::UNKNOWN
        };
        self.takes_more
            && !values.is_empty()
            && self.sql == sql
            && self.rows.len() < MAX_ROWS
            && self.bytes < MAX_BYTES
            && self.types.iter().zip(values).all(fits)
    }

    /// Adds values; returns where their answer will be.
    pub(super) fn add(&mut self, values: Vec<Value>) -> (Arc<Mutex<Answers>>, usize) {
        self.types.resize(values.len(), Type::UNKNOWN);
        for (of, value) in self.types.iter_mut().zip(&values) {
            if *of == Type::UNKNOWN {
                *of = values::type_of(value);
            }
            self.bytes += match value {
                Value::Text(text) => text.len(),
                Value::Blob(bytes) => bytes.len(),
                _ => 8,
            };
        }
        self.rows.push(values);
        if let Ok(mut answers) = self.answers.lock() {
            answers.of_each.push(Vec::new());
        }
        (Arc::clone(&self.answers), self.rows.len() - 1)
    }
}

impl Answers {
    /// Gives each question its rows: with several of them the last column tells whose a row is.
    pub(super) fn put(&mut self, rows: Vec<Row>) -> BackendResult<()> {
        let [only] = &mut self.of_each[..] else {
            for row in rows {
                let number: i64 = row.try_get(row.len() - 1)?;
                let of_one = usize::try_from(number - 1).ok();
                let of_one = of_one.and_then(|at| self.of_each.get_mut(at));
                of_one.ok_or_else(|| corrupt("an answer without a question"))?.push(row);
            }
            return Ok(());
        };
        *only = rows;
        Ok(())
    }
}

/// Returns the types of columns as SQL names them.
pub(super) fn names(types: &[Type]) -> Vec<&'static str> {
    let name = |of: &Type| match *of {
        Type::INT8 => "BIGINT",
        Type::TEXT => "TEXT",
        Type::BYTEA => "BYTEA",
        _ => "",
    };
    types.iter().map(name).collect()
}

/// Returns the columns of rows, without those in which all is NULL.
pub(super) fn columns(rows: Vec<Vec<Value>>, types: &[Type]) -> Bound {
    let mut columns: Vec<Vec<Value>> = types.iter().map(|_| Vec::new()).collect();
    for row in rows {
        columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
    }
    let known = columns.into_iter().zip(types).filter(|(_, of)| **of != Type::UNKNOWN);
    known.map(|(column, of)| values::array(column, of)).collect()
}
