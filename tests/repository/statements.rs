//! Every statement of the library is read by SQLite and by PostgreSQL, and the tables of the two are the same.
//!
//! The statements are taken from the source: each literal and each macro that begins with a keyword of SQL. Where there is a
//! PostgreSQL, a private one in a folder of the test's prepares each of them. What only SQLite reads is in a file of
//! [`OF_SQLITE`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

#[path = "../../src/sql/postgres/dialect.rs"]
mod dialect;

use dialect::{lock, translated};

use crate::common::server::{self, Outcome};

/// The files whose statements only SQLite reads, below `src/storage/sqlite`, and why.
const OF_SQLITE: &[(&str, &str)] = &[
    ("embedding/mod.rs", "tables that are made when the first vector comes, by either"),
    ("index/", "the inverted index is FTS5's"),
    ("readers.rs", "connections"),
    ("schema.rs", "the file format"),
    ("snapshot.rs", "the spool is a database of its own"),
    ("stats.rs", "reads the size of the file"),
    ("verify/index.rs", "FTS5's own check"),
    ("verify/mod.rs", "pages and definitions"),
    ("wal.rs", "the write-ahead log"),
    ("erase/scan.rs", "reads the bytes of the file, and all tables"),
];

const KEYWORDS: [&str; 5] = ["SELECT ", "INSERT ", "UPDATE ", "DELETE ", "WITH "];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/storage/sqlite")
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

/// A macro of the library that makes a part of a statement: its patterns, and what each becomes.
type Arms = Vec<(Vec<Vec<TokenTree>>, Vec<TokenTree>)>;

/// Reads the macros and the statements of the source.
#[derive(Default)]
struct Reader {
    macros: BTreeMap<String, Arms>,
    /// By the macro that `columns!` defines: the columns.
    columns: BTreeMap<String, Vec<String>>,
    /// By the text: the file.
    statements: BTreeMap<String, String>,
}

impl Reader {
    fn of_source() -> std::io::Result<Self> {
        let mut paths = Vec::new();
        files(&source(), &mut paths)?;
        paths.sort();
        let mut reader = Self::default();
        let mut read = Vec::new();
        for path in paths {
            let name = path.strip_prefix(source()).unwrap_or(&path).to_string_lossy().into_owned();
            if name.contains("tests") || name == "query_plans.rs" {
                continue;
            }
            let tokens: TokenStream = fs::read_to_string(&path)?.parse().expect("it compiles");
            let tokens = without_tests(tokens);
            reader.define(&tokens);
            read.push((name, tokens));
        }
        for (name, tokens) in &read {
            reader.take(tokens, name);
        }
        Ok(reader)
    }

    fn define(&mut self, tokens: &[TokenTree]) {
        for at in 0..tokens.len() {
            match &tokens[at..] {
                [a, bang, name, TokenTree::Group(arms), ..]
                    if is(a, "macro_rules") && is(bang, "!") =>
                {
                    let rules: Vec<_> = arms.stream().into_iter().collect();
                    let arms = split(&rules, ';').into_iter().filter_map(|arm| match arm {
                        [TokenTree::Group(pattern), .., TokenTree::Group(body)] => {
                            let pattern: Vec<_> = pattern.stream().into_iter().collect();
                            let pattern = split(&pattern, ',').into_iter().map(<[_]>::to_vec);
                            Some((pattern.collect(), body.stream().into_iter().collect()))
                        }
                        _ => None,
                    });
                    self.macros.insert(name.to_string(), arms.collect());
                }
                [a, bang, TokenTree::Group(list), ..] if is(a, "columns") && is(bang, "!") => {
                    let list: Vec<_> = list.stream().into_iter().collect();
                    let Some(TokenTree::Group(fields)) = list.last() else { continue };
                    let fields: Vec<_> = fields.stream().into_iter().collect();
                    let columns = split(&fields, ',').into_iter().filter_map(<[_]>::last);
                    let columns = columns.map(ToString::to_string).collect();
                    self.columns.insert(list[0].to_string(), columns);
                }
                _ => {}
            }
        }
    }

    /// Collects the statements among some tokens.
    fn take(&mut self, tokens: &[TokenTree], file: &str) {
        let mut at = 0;
        while at < tokens.len() {
            let width = match &tokens[at..] {
                [_, bang, TokenTree::Group(_), ..]
                    if is(bang, "!") && self.text(&tokens[at..at + 3]).is_some() =>
                {
                    3
                }
                [a, bang, _, TokenTree::Group(_), ..] if is(a, "macro_rules") && is(bang, "!") => {
                    at += 4;
                    continue;
                }
                _ => 1,
            };
            let part = &tokens[at..at + width];
            at += width;
            match (self.text(part), part) {
                (Some(text), _) if KEYWORDS.iter().any(|word| text.starts_with(word)) => {
                    self.statements.insert(text, file.to_owned());
                }
                (None, [TokenTree::Group(group)]) => {
                    let inner: Vec<_> = group.stream().into_iter().collect();
                    self.take(&inner, file);
                }
                _ => {}
            }
        }
    }

    /// Returns the text that an expression is: a literal, or a macro that becomes one.
    fn text(&self, expression: &[TokenTree]) -> Option<String> {
        match expression {
            [TokenTree::Literal(literal)] => Some(unescaped(&literal.to_string())),
            [name, bang, TokenTree::Group(arguments)] if is(bang, "!") => {
                let arguments: Vec<_> = arguments.stream().into_iter().collect();
                let arguments = split(&arguments, ',');
                let name = name.to_string();
                match (self.columns.get(&name), self.macros.get(&name)) {
                    _ if name == "concat" => arguments.iter().map(|it| self.text(it)).collect(),
                    (Some(columns), _) => {
                        Some(listed(columns, &arguments.first()?.first()?.to_string()))
                    }
                    (None, Some(arms)) => {
                        let bound = |(pattern, body): &(Vec<Vec<TokenTree>>, Vec<TokenTree>)| {
                            Some(substituted(body, &bindings(pattern, &arguments)?))
                        };
                        self.text(&arms.iter().find_map(bound)?)
                    }
                    (None, None) => None,
                }
            }
            _ => None,
        }
    }
}

/// Returns what a macro of `columns!` becomes.
fn listed(columns: &[String], form: &str) -> String {
    let each = |form: &dyn Fn(&String) -> String| columns.iter().map(form).collect::<String>();
    match form {
        "names" => each(&|column| format!(", {column}")),
        "values" => each(&|_| ", ?".to_owned()),
        "assign" => each(&|column| format!(", {column} = ?")).split_off(2),
        "assign_given" => each(&|column| format!("{column} = coalesce(?, {column}), ")),
        other => panic!("columns! has no form {other}"),
    }
}

type Bound<'t> = BTreeMap<String, &'t [TokenTree]>;

/// Returns the arguments by the names in a pattern, if they match it.
fn bindings<'t>(pattern: &[Vec<TokenTree>], arguments: &[&'t [TokenTree]]) -> Option<Bound<'t>> {
    let mut bound = Bound::new();
    for (pattern, argument) in pattern.iter().zip(arguments) {
        match &pattern[..] {
            [dollar, name, ..] if is(dollar, "$") => drop(bound.insert(name.to_string(), argument)),
            word if shown(word) == shown(argument) => {}
            _ => return None,
        }
    }
    (pattern.len() == arguments.len()).then_some(bound)
}

fn shown(tokens: &[TokenTree]) -> String {
    tokens.iter().map(ToString::to_string).collect()
}

fn substituted(body: &[TokenTree], bound: &Bound<'_>) -> Vec<TokenTree> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < body.len() {
        match &body[at..] {
            [dollar, name, ..] if is(dollar, "$") && bound.contains_key(&name.to_string()) => {
                out.extend_from_slice(bound[&name.to_string()]);
                at += 2;
            }
            [TokenTree::Group(group), ..] => {
                let inner: Vec<_> = group.stream().into_iter().collect();
                let inner: TokenStream = substituted(&inner, bound).into_iter().collect();
                out.push(proc_macro2::Group::new(group.delimiter(), inner).into());
                at += 1;
            }
            [token, ..] => {
                out.push(token.clone());
                at += 1;
            }
            [] => break,
        }
    }
    out
}

fn is(token: &TokenTree, text: &str) -> bool {
    !matches!(token, TokenTree::Group(_)) && token.to_string() == text
}

/// Returns the parts between a separator; none after the last one.
fn split(tokens: &[TokenTree], separator: char) -> Vec<&[TokenTree]> {
    let is_separator = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == separator);
    tokens.split(is_separator).filter(|part| !part.is_empty()).collect()
}

/// Returns the tokens without what only tests have, in modules and in functions.
fn without_tests(tokens: TokenStream) -> Vec<TokenTree> {
    let mut out = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let is_of_tests = is(&token, "#")
            && tokens.peek().is_some_and(|next| next.to_string().replace(' ', "") == "[cfg(test)]");
        if is_of_tests {
            let is_end = |token: &TokenTree| match token {
                TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                token => is(token, ";"),
            };
            drop(tokens.by_ref().find(is_end));
        } else {
            out.push(token);
        }
    }
    out
}

/// Returns the value of a literal.
fn unescaped(literal: &str) -> String {
    let Some(text) = literal.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else {
        return literal.to_owned();
    };
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('\\') {
        out += before;
        rest = match after.strip_prefix('\n') {
            Some(more) => more.trim_start(),
            None => {
                let escaped = after.chars().next().unwrap_or_default();
                out.push(if escaped == 'n' { '\n' } else { escaped });
                &after[escaped.len_utf8()..]
            }
        };
    }
    out + rest
}

#[test]
fn the_locks_of_writes_are_those_that_the_architecture_lists() -> Outcome {
    let reader = Reader::of_source()?;
    let mut marked: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (sql, file) in &reader.statements {
        if let Some(table) = lock(sql) {
            marked.entry(table).or_default().insert(format!("`storage/sqlite/{file}`"));
        }
    }
    let marked = marked.into_iter().map(|(table, files)| {
        format!("  - `{table}` ({})", files.into_iter().collect::<Vec<_>>().join(", "))
    });
    let page = text_of("ARCHITECTURE.md")?;
    let (_, listed) = page.split_once("(`/*LOCK session*/`)").ok_or("no list of locks")?;
    let listed = listed.lines().skip(1).take_while(|line| line.starts_with("  - "));
    let listed = listed.map(|line| line.split(':').next().unwrap_or_default().to_owned());
    assert_eq!(marked.collect::<BTreeSet<_>>(), listed.collect::<BTreeSet<_>>());
    Ok(())
}

/// The index of such a column has its hash on a server, because it may be long. Without the mark the table is read.
#[test]
fn long_keys_are_looked_up_by_their_hash() -> Outcome {
    for (sql, file) in Reader::of_source()?.statements {
        for column in ["answer", "record", "uuid"] {
            for after in sql.split(&format!("AND {column} = ?")).skip(1) {
                let after = after.trim_start_matches(|char: char| char.is_ascii_digit());
                assert!(after.starts_with(" /*HASH*/"), "{file}: {sql}");
            }
        }
    }
    Ok(())
}

fn is_of_sqlite(file: &str) -> bool {
    OF_SQLITE.iter().any(|(of, _)| file.starts_with(of))
}

#[test]
fn postgres_reads_every_statement() -> Outcome {
    let reader = Reader::of_source()?;
    for (file, _) in OF_SQLITE {
        assert!(source().join(file).exists(), "{file} is not there");
    }
    let shared: Vec<_> = reader.statements.iter().filter(|(_, file)| !is_of_sqlite(file)).collect();
    assert!(shared.len() > 200, "only {} statements were found", shared.len());

    let mut script = text_of("schema.postgres.sql")? + "\n\n";
    for (number, (sql, _)) in shared.iter().enumerate() {
        script += &format!("PREPARE s{number} AS {};\n\n", translated(sql, true));
    }
    script += "SELECT name, parameter_types FROM pg_prepared_statements;\n\n";
    let Some((answer, errors)) = postgres(&script)? else { return Ok(()) };

    let mut broken = Vec::new();
    let types = answer.lines().filter_map(|line| line.split('"').nth(1)).collect::<Vec<_>>();
    let prepared: BTreeMap<_, _> = types.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    for (number, (sql, file)) in shared.iter().enumerate() {
        let why = match prepared.get(&*format!("s{number}")) {
            None => errors
                .split("ERROR:  ")
                .find(|error| error.contains(&format!("PREPARE s{number} AS")))
                .and_then(|error| error.lines().next())
                .unwrap_or("not prepared"),
            // What is bound is a number of 64 bits or a text.
            Some(types) => {
                let mut types = types.trim_matches(['{', '}']).split(',');
                match types.find(|of| !["bigint", "text", ""].contains(of)) {
                    None => continue,
                    Some(other) => other,
                }
            }
        };
        broken.push(format!("{file}: {why}\n    {sql}"));
    }
    assert!(
        broken.is_empty(),
        "{} of {}:\n{}\n{}",
        broken.len(),
        shared.len(),
        broken.join("\n"),
        if prepared.is_empty() { &errors } else { "" }
    );
    Ok(())
}

fn text_of(name: &str) -> std::io::Result<String> {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name))
}

/// Runs a script on a new database of its own; `None` where there is no PostgreSQL.
///
/// No server is started: one process reads the script, and ends.
fn postgres(script: &str) -> Outcome<Option<(String, String)>> {
    let Some(programs) = server::programs() else {
        // Said also where the output of tests that pass is not shown.
        writeln!(
            std::io::stderr(),
            "skipped: no statement was read by PostgreSQL, which is not installed"
        )?;
        return Ok(None);
    };
    let folder = tempfile::tempdir()?;
    let data = server::make(&programs, folder.path())?;
    let mut running = server::as_user(&programs.join("postgres"))
        .args(["--single", "-j", "-F", "-c", "log_line_prefix=", "-D"])
        .arg(&data)
        .arg("postgres")
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut input = running.stdin.take().expect("it is a pipe");
    let script = script.to_owned();
    let writer = std::thread::spawn(move || input.write_all(script.as_bytes()));
    let output = running.wait_with_output()?;
    writer.join().expect("it does not panic")?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Some((text(&output.stdout), text(&output.stderr))))
}

/// Returns the tables and the indexes of a schema, by name: what a table's columns are, what an index is on.
fn objects(schema: &str) -> BTreeMap<String, Vec<String>> {
    let text: String = schema
        .lines()
        .map(|line| {
            line.split_once("--").map_or(line, |(code, _)| code).trim_end().to_owned() + "\n"
        })
        .collect();
    let mut objects = BTreeMap::new();
    for statement in text.split(";\n") {
        let Some((head, body)) = statement.trim().split_once('(') else { continue };
        let words: Vec<&str> = head.split_whitespace().collect();
        match words[..] {
            ["CREATE", "TABLE", name] => {
                let is_column =
                    |line: &&str| line.starts_with("    ") && !line.starts_with("     ");
                let columns = body.lines().filter(is_column).map(column).collect();
                objects.insert(name.to_owned(), columns);
            }
            ["CREATE", .., "INDEX", name, "ON", _] => {
                let body = body.replace("IS NOT address", "IS DISTINCT FROM address");
                let body = body.replace("(address + 0)", "address");
                // A long key is in an index by its hash.
                let body = body.replace("md5(", "").replace("),", ",").replace("))", ")");
                let (on, condition) = body.split_once(')').unwrap_or((&body, ""));
                objects.insert(name.to_owned(), vec![format!("{head}({on}"), condition.to_owned()]);
            }
            _ => {}
        }
    }
    objects
}

/// Returns a column as both schemas say it.
fn column(line: &str) -> String {
    let words: Vec<&str> = line.trim().trim_end_matches(',').split_whitespace().collect();
    let line = words.join(" ");
    let line = line
        .replace("INTEGER", "BIGINT")
        .replace(" COLLATE \"C\"", "")
        .replace("BIGINT PRIMARY KEY AUTOINCREMENT", "BIGINT PRIMARY KEY")
        .replace("BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY", "BIGINT PRIMARY KEY");
    // How it is generated is said in the words of each.
    line.split_once(" GENERATED").map_or(line.clone(), |(column, _)| column.to_owned())
}

/// The tables with a key of any length, which PostgreSQL has in an index of its own, by its hash.
const BY_HASH: [(&str, &str); 3] = [
    ("elision", "elision_call"),
    ("imported", "imported_record"),
    ("transcript", "transcript_key"),
];

#[test]
fn both_schemas_have_the_same_tables() -> Outcome {
    let ours = objects(&text_of("schema.sql")?);
    let mut theirs = objects(&text_of("schema.postgres.sql")?);
    // The index of words is of one engine alone.
    theirs.retain(|name, _| !name.contains("search"));
    theirs.retain(|name, _| BY_HASH.iter().all(|(_, index)| name != index));
    assert!(ours.len() > 30, "{} tables and indexes", ours.len());
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
    for (name, object) in &ours {
        let other = &theirs[name];
        match &object[..] {
            // SQLite adds the key of the table by itself.
            [on, condition] if on.contains("INDEX") => {
                assert!(
                    other[0].starts_with(on.as_str()) && other[1] == *condition,
                    "{object:?}\n{other:?}"
                );
            }
            columns if BY_HASH.iter().any(|(table, _)| name == table) => {
                assert_eq!(columns[..columns.len() - 1], other[..], "{name}");
            }
            columns => assert_eq!(columns, other, "{name}"),
        }
    }
    Ok(())
}
