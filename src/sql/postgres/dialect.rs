//! A statement as PostgreSQL reads it.

/// Returns a statement as PostgreSQL reads it: parameters are `$1`, what says which index SQLite uses is left out, the bytes of a text
/// are counted as it was before it was stored, `key = ?1 /*HASH*/` finds a long key by its hash, `address /*+ 0*/` is what an index has in
/// place of the key of the table, and in a write the row is locked that is the
/// lock of the write.
pub(super) fn translated(sql: &str, is_write: bool) -> String {
    let out = with_parameters(sql, |number| format!("${number}"));
    match lock(sql).filter(|_| is_write) {
        Some(table) => out + " FOR NO KEY UPDATE OF " + table,
        None => out,
    }
}

/// Returns the same for many: parameters are arrays of these types, and NULL where there is none. A question has one more column: the
/// number of the row that asks.
pub(super) fn of_many(sql: &str, types: &[&str]) -> String {
    let is_given = |number: &usize| !types[number - 1].is_empty();
    let column = |number| if is_given(&number) { format!("c{number}") } else { "NULL".to_owned() };
    let one = with_parameters(sql, column);
    let given: Vec<usize> = (1..=types.len()).filter(is_given).collect();
    let names: Vec<String> = given.iter().map(|number| format!("c{number}")).collect();
    let arrays = given.iter().enumerate();
    let arrays = arrays.map(|(at, number)| format!("CAST(${} AS {}[])", at + 1, types[number - 1]));
    let (arrays, names) = (arrays.collect::<Vec<_>>().join(", "), names.join(", "));
    match values_of(&one) {
        Some((before, values, after)) => {
            format!("{before} SELECT {values} FROM unnest({arrays}) AS given ({names}){after}")
        }
        None => format!(
            "SELECT it.*, given.number
               FROM unnest({arrays}) WITH ORDINALITY AS given ({names}, number)
              CROSS JOIN LATERAL ({one}) AS it"
        ),
    }
}

/// Returns whether a statement can be sent for many at once: a question, or what inserts one row.
pub(super) fn takes_many(sql: &str) -> bool {
    let is_question = sql.starts_with("SELECT ") && lock(sql).is_none();
    is_question || values_of(sql).is_some_and(|(_, _, after)| !after.starts_with(','))
}

/// Splits what inserts a row before and after its values.
fn values_of(sql: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = sql.split_once(" VALUES (").filter(|_| sql.starts_with("INSERT "))?;
    let mut depth = 1;
    let end = rest.find(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth == 0
    })?;
    Some((before, &rest[..end], &rest[end + 1..]))
}

fn with_parameters(sql: &str, parameter: impl Fn(usize) -> String) -> String {
    let (mut out, mut count, mut rest) = (String::new(), 0, sql);
    while let Some((before, after)) = rest.split_once('?') {
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        count += 1;
        out = out + before + &parameter(after[..digits].parse().unwrap_or(count));
        rest = &after[digits..];
    }
    out = (out + rest)
        .replace(" NOT INDEXED", "")
        .replace("octet_length(", "octets(")
        .replace("/*+ 0*/", "+ 0");
    while let Some((before, after)) = out.split_once(" /*HASH*/") {
        let mut words = before.rsplitn(4, char::is_whitespace);
        let (value, key) = (words.next().unwrap_or_default(), words.nth(1).unwrap_or_default());
        out = format!("{before} AND md5({key}) = md5({value}){after}");
    }
    while let Some((before, after)) = out.split_once(" INDEXED BY ") {
        let name = after.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(after.len());
        out = before.to_owned() + &after[name..];
    }
    out
}

/// Returns the table whose row a statement reads as the lock of a write.
pub(super) fn lock(sql: &str) -> Option<&str> {
    Some(sql.split_once("/*LOCK ")?.1.split_once("*/")?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_statement_is_for_many() {
        let insert =
            "INSERT INTO it (a, b, c) VALUES (?1, f(g(?2), 1), ?3) ON CONFLICT (a) DO NOTHING";
        assert_eq!(
            of_many(insert, &["BIGINT", "TEXT", ""]),
            "INSERT INTO it (a, b, c) SELECT c1, f(g(c2), 1), NULL FROM unnest(CAST($1 AS BIGINT[]), CAST($2 AS TEXT[])) AS given (c1, c2) ON CONFLICT (a) DO NOTHING"
        );
        assert!(takes_many(insert) && takes_many("SELECT a FROM it WHERE b = ?1"));
        for other in [
            "INSERT INTO it (a) VALUES (?1), (?2)",
            "INSERT INTO it SELECT 1",
            "UPDATE it SET a = ?1",
            "SELECT a FROM it WHERE b = ?1 /*LOCK it*/",
        ] {
            assert!(!takes_many(other), "{other}");
        }
    }
}
