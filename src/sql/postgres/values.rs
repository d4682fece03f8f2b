//! Values on their way to the server and back: numbers of 64 bits, texts, bytes.
//!
//! The types of parameters are those that the server infers. A text of PostgreSQL holds no NUL, so the bytes 0 and 1 of a text are
//! stored as two bytes each, which keeps the order of texts. The first of them is 1, so the others are as many as the text has: `octets`
//! in the schema counts them.

use rusqlite::types::{ToSqlOutput, Value};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::sql::BackendResult;

/// Returns a value that was bound.
pub(crate) fn owned(value: ToSqlOutput<'_>) -> Value {
    match value {
        ToSqlOutput::Borrowed(value) => value.try_into().unwrap_or(Value::Null),
        ToSqlOutput::Owned(value) => value,
        // Nothing else is bound: see `sql::value`.
        _ => Value::Null,
    }
}

/// Returns the type of a value; the server infers that of NULL.
pub(super) fn type_of(value: &Value) -> Type {
    match value {
        // No number with a fraction is bound.
        Value::Null | Value::Real(_) => Type::UNKNOWN,
        Value::Integer(_) => Type::INT8,
        Value::Text(_) => Type::TEXT,
        Value::Blob(_) => Type::BYTEA,
    }
}

/// Returns a value as the parameter of this type.
pub(super) fn parameter(value: Value, of: &Type) -> Box<dyn ToSql + Sync + Send> {
    match (value, of) {
        (Value::Integer(number), _) => Box::new(number),
        (Value::Text(text), _) => Box::new(escaped(text)),
        (Value::Blob(bytes), _) => Box::new(bytes),
        (_, &Type::INT8) => Box::new(None::<i64>),
        (_, &Type::BYTEA) => Box::new(None::<Vec<u8>>),
        _ => Box::new(None::<String>),
    }
}

/// Returns values of this type or NULL as the parameter of an array.
pub(super) fn array(values: Vec<Value>, of: &Type) -> (Box<dyn ToSql + Sync + Send>, Type) {
    fn each<T>(values: Vec<Value>, read: impl Fn(Value) -> Option<T>) -> Vec<Option<T>> {
        values.into_iter().map(read).collect()
    }
    match *of {
        Type::INT8 => {
            let read = |it| if let Value::Integer(it) = it { Some(it) } else { None };
            (Box::new(each(values, read)), Type::INT8_ARRAY)
        }
        Type::BYTEA => {
            let read = |it| if let Value::Blob(it) = it { Some(it) } else { None };
            (Box::new(each(values, read)), Type::BYTEA_ARRAY)
        }
        _ => {
            let read = |it| if let Value::Text(it) = it { Some(escaped(it)) } else { None };
            (Box::new(each(values, read)), Type::TEXT_ARRAY)
        }
    }
}

/// Returns the values of a row.
pub(super) fn of_row(row: &Row) -> BackendResult<Vec<Value>> {
    let columns = row.columns().iter().map(tokio_postgres::Column::type_).enumerate();
    columns.map(|(at, of)| Ok(value(row, at, of)?.unwrap_or(Value::Null))).collect()
}

fn value(row: &Row, at: usize, of: &Type) -> BackendResult<Option<Value>> {
    Ok(match of.clone() {
        Type::INT8 => row.try_get::<_, Option<i64>>(at)?.map(Value::Integer),
        Type::INT4 => row.try_get::<_, Option<i32>>(at)?.map(|it| Value::Integer(it.into())),
        Type::BOOL => row.try_get::<_, Option<bool>>(at)?.map(|it| Value::Integer(it.into())),
        Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(at)?.map(Value::Blob),
        _ => row.try_get::<_, Option<String>>(at)?.map(|text| Value::Text(unescaped(text))),
    })
}

/// The two bytes that a byte 1 and a byte 0 are stored as.
const ESCAPES: [(char, &str); 2] = [('\u{1}', "\u{1}\u{3}"), ('\u{0}', "\u{1}\u{2}")];

fn escaped(text: String) -> String {
    match text.contains(['\u{0}', '\u{1}']) {
        false => text,
        true => ESCAPES.iter().fold(text, |text, (plain, escape)| text.replace(*plain, escape)),
    }
}

fn unescaped(text: String) -> String {
    if !text.contains('\u{1}') {
        return text;
    }
    let mut characters = text.chars();
    let mut out = String::with_capacity(text.len());
    while let Some(c) = characters.next() {
        out.push(match c {
            '\u{1}' => match characters.next() {
                Some('\u{2}') => '\u{0}',
                _ => '\u{1}',
            },
            other => other,
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_control_characters_comes_back_and_keeps_its_order() {
        let texts = [
            "",
            "\u{0}",
            "\u{0}\u{0}",
            "\u{0}\u{1}",
            "\u{1}",
            "\u{1}\u{0}",
            "\u{1}\u{2}",
            "\u{2}",
            "a\u{0}",
        ];
        let stored: Vec<String> = texts.map(|text| escaped(text.to_owned())).into();
        assert!(
            stored.is_sorted() && stored.iter().all(|text| !text.contains('\u{0}')),
            "{stored:?}"
        );
        let back: Vec<String> = stored.into_iter().map(unescaped).collect();
        assert_eq!(back, texts);
    }
}
