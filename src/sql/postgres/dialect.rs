//! A statement as PostgreSQL reads it.

/// Returns a statement as PostgreSQL reads it: parameters are `$1`, what says which index SQLite uses is left out, the bytes of a text
/// are counted as it was before it was stored, `key = ?1 /*HASH*/` finds a long key by its hash, and in a write the row is locked that is the
/// lock of the write.
pub(super) fn translated(sql: &str, is_write: bool) -> String {
    let (mut out, mut count, mut rest) = (String::new(), 0, sql);
    while let Some((before, after)) = rest.split_once('?') {
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        count += 1;
        let number = if digits == 0 { count.to_string() } else { after[..digits].to_owned() };
        out = out + before + "$" + &number;
        rest = &after[digits..];
    }
    out = (out + rest).replace(" NOT INDEXED", "").replace("octet_length(", "octets(");
    while let Some((before, after)) = out.split_once(" /*HASH*/") {
        let mut words = before.rsplitn(4, char::is_whitespace);
        let (value, key) = (words.next().unwrap_or_default(), words.nth(1).unwrap_or_default());
        out = format!("{before} AND md5({key}) = md5({value}){after}");
    }
    while let Some((before, after)) = out.split_once(" INDEXED BY ") {
        let name = after.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(after.len());
        out = before.to_owned() + &after[name..];
    }
    match lock(sql).filter(|_| is_write) {
        Some(table) => out + " FOR NO KEY UPDATE OF " + table,
        None => out,
    }
}

/// Returns the table whose row a statement reads as the lock of a write.
pub(super) fn lock(sql: &str) -> Option<&str> {
    Some(sql.split_once("/*LOCK ")?.1.split_once("*/")?.0)
}
