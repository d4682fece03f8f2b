//! The small inputs after public bug reports, in `inputs` beside the folder of real conversations: each comes out as
//! `cases.json` says.
//!
//! Most of the results are said in one form: a history by its ids, the messages that a search finds, a format that is
//! refused by its name. [`regular`] reads these forms; [`special`] has the others, by the first word of the case.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};
use talktree::{CompactionId, Message, Part, Result, Role, Session, Store};
use talktree_import::export::{export_jsonl, export_markdown};
use talktree_import::{ImportOptions, ImportReport};
use talktree_model::{Provider, export_openai, validate_for};

use crate::data;
use crate::tables::is_on_server;

/// Cases that do not come out right yet.
const PENDING: &[&str] = &[];

#[derive(Deserialize)]
struct Case {
    name: String,
    files: Vec<String>,
    expected: String,
}

/// What was found, and what is right.
type Outcome = Result<(Value, Value)>;

fn inputs() -> Option<PathBuf> {
    let inputs = data::folder()?.parent()?.join("inputs");
    inputs.is_dir().then_some(inputs)
}

#[test]
fn each_case_comes_out_as_it_should() {
    let Some(folder) = inputs() else { return };
    let cases = std::fs::read_to_string(folder.join("cases.json")).unwrap();
    let cases: Vec<Case> = serde_json::from_str(&cases).unwrap();
    let mut wrong = Vec::new();
    for case in &cases {
        let name = case.name.as_str();
        if is_on_server() && name.contains("--store") {
            continue; // a file that is given as a store
        }
        let run = || regular(&folder, case).unwrap_or_else(|| special(&folder, case));
        let what = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
            Ok(Ok((found, right))) if found == right => {
                if PENDING.contains(&name) {
                    println!("{name}: comes out right by now");
                }
                continue;
            }
            Ok(Ok((found, right))) => format!("found {found}\n  right {right}"),
            Ok(Err(error)) => format!("failed: {error}"),
            Err(_) => "panicked".to_owned(),
        };
        match PENDING.contains(&name) {
            true => println!("{name}: pending"),
            false => wrong.push(format!("{name} {:?}\n  {what}", case.files)),
        }
    }
    let count = cases.len();
    assert!(wrong.is_empty(), "{} of {count} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// The files of a case, imported one after the other.
struct Imported {
    store: Store,
    reports: Vec<Result<ImportReport>>,
}

impl Imported {
    fn new<'a>(folder: &Path, files: impl IntoIterator<Item = &'a String>) -> Result<Self> {
        let mut imported = Self { store: Store::open_in_memory()?, reports: Vec::new() };
        for file in files {
            imported.add(folder, file, &ImportOptions::default());
        }
        Ok(imported)
    }

    fn add(&mut self, folder: &Path, file: &str, options: &ImportOptions) {
        let report = talktree_import::import(&self.store, folder.join(file), options, |_| {});
        if let Ok(report) = &report {
            let counted = report.kept + report.converted + report.dropped;
            assert_eq!(report.records, counted, "{report:#?}");
        }
        self.reports.push(report);
    }

    fn last(&self) -> &ImportReport {
        self.reports.last().unwrap().as_ref().unwrap()
    }

    /// The last session that was imported.
    fn session(&self) -> Result<Session> {
        self.store.session(self.last().sessions.last().unwrap())
    }

    fn notes(&self) -> String {
        let notes = self.last().notes.iter();
        notes.map(|note| format!("{:?}: {}", note.line, note.why)).collect::<Vec<_>>().join("\n")
    }

    fn faults(&self) -> usize {
        self.last().notes.iter().filter(|note| note.is_fault).count()
    }

    /// The messages that a search finds, without hidden ones.
    fn hits(&self, query: &str) -> Result<BTreeSet<String>> {
        let mut found = BTreeSet::new();
        for hit in self.store.search(query).limit(1_000).run()?.hits {
            let message = self.store.session(&hit.session)?.message(&hit.id)?.unwrap();
            if !message.is_hidden {
                found.insert(hit.id.to_string());
            }
        }
        Ok(found)
    }

    fn answers(&self) -> Result<Value> {
        let total = self.store.usage().total()?;
        Ok(json!([total.answers, total.input, total.output]))
    }

    fn parent_of(&self, session: &str) -> Result<Value> {
        let info = self.store.session(session)?.info()?.unwrap();
        Ok(json!([info.parent_session, info.fork_point]))
    }

    fn exported(&self) -> Result<Vec<u8>> {
        let mut file = Vec::new();
        export_jsonl(&self.store, &mut file)?;
        Ok(file)
    }
}

/// The ids of messages; that of a summary is `summary`.
fn names(messages: &[Message]) -> Vec<String> {
    let name = |message: &Message| match CompactionId::from_message(&message.id) {
        Some(_) => "summary".to_owned(),
        None => message.id.to_string(),
    };
    messages.iter().map(name).collect()
}

fn texts(messages: &[Message]) -> Vec<String> {
    messages.iter().map(Message::text).collect()
}

fn roles(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| message.role.as_str().to_owned()).collect()
}

/// The words between brackets, without quotes.
fn listed(expected: &str) -> Option<Vec<String>> {
    let list = expected.split_once('[')?.1.split_once(']')?.0;
    let words = list.split(',').map(|word| word.trim().trim_matches(['\'', '"']).to_owned());
    Some(words.filter(|word| !word.is_empty()).collect())
}

fn regular(folder: &Path, case: &Case) -> Option<Outcome> {
    let Case { name, files, expected } = case;
    let import = || Imported::new(folder, files);
    if expected.starts_with("log = [") {
        let right = listed(expected)?.into_iter().map(|word| match &*word {
            "s2" => "summary".to_owned(),
            _ => word,
        });
        let right: Vec<String> = right.collect();
        return Some(
            import().and_then(|it| Ok((json!(names(&it.session()?.history()?)), json!(right)))),
        );
    }
    if expected == "refused" || expected.starts_with("refused, named") {
        let (_, format) = expected.split_once(", named ").unwrap_or(("", ""));
        return Some(import().map(|it| refused_or_read(&it, name, format)));
    }
    if expected == "imported" {
        return Some(import().map(|it| (json!(it.last().kept > 0), json!(true))));
    }
    if expected.starts_with("2 messages (or") {
        return Some(import().map(|it| match &it.reports[0] {
            Ok(report) => (json!([report.kept, report.added]), json!([2, 2])),
            Err(error) => (json!(error.to_string().contains("in no format")), json!(true)),
        }));
    }
    if expected.starts_with("nothing imported") {
        return Some(import().and_then(|it| {
            let said =
                it.reports[0].as_ref().err().map(|error| error.to_string().contains("format"));
            Ok((json!([said, it.store.sessions()?.len()]), json!([true, 0])))
        }));
    }
    if let Some(id) = expected.strip_prefix("hit ") {
        let word = name.split('"').nth(1)?;
        let found = import().and_then(|it| it.hits(&format!("in:all {word}")));
        return Some(found.map(|found| (json!(found.contains(id)), json!(true))));
    }
    let query = name.strip_prefix("25 ").filter(|_| files == &["c25_cjk.json"])?;
    let query = match query.ends_with(' ') {
        true => query.trim_end(),
        false => query.split_whitespace().next()?,
    };
    Some(import().and_then(|it| found(&it, query, expected)))
}

/// A search finds these, and with `only` no others.
fn found(imported: &Imported, query: &str, expected: &str) -> Outcome {
    let right: BTreeSet<String> = listed(expected).unwrap().into_iter().collect();
    let mut found = imported.hits(query)?;
    if !expected.ends_with("only") {
        found.retain(|id| right.contains(id));
    }
    Ok((json!(found), json!(right)))
}

/// A file is refused by the name of its format, or read as what it is.
fn refused_or_read(imported: &Imported, case: &str, format: &str) -> (Value, Value) {
    let plain = |text: &str| text.to_lowercase().replace([' ', '-'], "");
    match &imported.reports[0] {
        Err(error) => {
            let is_named = plain(&error.to_string()).contains(&plain(format));
            (json!([is_named, imported.store.sessions().unwrap().len()]), json!([true, 0]))
        }
        Ok(report) => {
            let read_as = report.format.split('-').next().unwrap_or_default();
            let is_right = plain(case).contains(read_as) || plain(format).contains(read_as);
            (json!([report.format, is_right, report.kept > 0]), json!([report.format, true, true]))
        }
    }
}

/// Imports the files in both orders; what is asked must be the same.
fn in_both_orders(
    folder: &Path,
    case: &Case,
    right: Value,
    ask: impl Fn(&Imported) -> Result<Value>,
) -> Outcome {
    let one = ask(&Imported::new(folder, &case.files)?)?;
    let other = ask(&Imported::new(folder, case.files.iter().rev())?)?;
    Ok((json!([one, other]), json!([right, right])))
}

#[allow(clippy::too_many_lines, reason = "one arm for each case")]
fn special(folder: &Path, case: &Case) -> Outcome {
    let name = case.name.as_str();
    let is = |start: &str| name.starts_with(start);
    let it = Imported::new(folder, &case.files)?;
    let history = || it.session()?.history();
    let message = |id: &str| Ok::<_, talktree::Error>(it.session()?.message(&id.into())?.unwrap());
    let has_text =
        |file: &str, text: &str| std::fs::read_to_string(folder.join(file)).unwrap().contains(text);

    Ok(match name {
        _ if is("2b ") || is("2e ") => {
            let shown = history()?.into_iter().filter(|it| it.text().contains("use port 81"));
            let shown: Vec<_> = shown.map(|it| (it.id.to_string(), it.role)).collect();
            let ids: Vec<&String> = shown.iter().map(|(id, _)| id).collect();
            let hits = it.hits("\"use port 81\"")?;
            (json!([shown.len(), shown[0].1, hits]), json!([1, Role::User, ids]))
        }
        _ if is("3a ") => {
            let history = history()?;
            let calls = history.iter().flat_map(|it| &it.parts);
            let calls = calls.filter(|part| matches!(part, Part::Tool(it) if it.input.is_some()));
            let said: Vec<String> =
                texts(&history).into_iter().filter(|text| text.contains("Let")).collect();
            (json!([said, calls.count()]), json!([["Let me look"], 1]))
        }
        _ if is("3b ") => (it.answers()?, json!([2, 150, 12])),
        _ if is("3c ") => {
            let result = message("r1")?;
            let is_kept = matches!(&result.parts[0], Part::Tool(tool)
                if tool.output.as_ref().unwrap().as_str().contains("<persisted-output>"));
            (json!([is_kept, it.notes().contains("toolu_9.txt")]), json!([true, true]))
        }
        _ if is("4a ") => in_both_orders(folder, case, json!([4, 40, 20]), Imported::answers)?,
        _ if is("4b ") => in_both_orders(folder, case, json!(2), |it| {
            Ok(json!(it.store.search("herons").run()?.hits.len()))
        })?,
        _ if is("4c ") || is("continued-in") => {
            in_both_orders(folder, case, json!(["s1", "a3"]), |it| it.parent_of("s2"))?
        }
        _ if is("/branch") => {
            in_both_orders(folder, case, json!([["s1", "a2"], [3, 30, 15]]), |it| {
                Ok(json!([it.parent_of("s3")?, it.answers()?]))
            })?
        }
        _ if is("usage grows") || is("the same in two imports") => {
            (it.answers()?, json!([1, 52, 260]))
        }
        _ if is("mid-stream fallback") => {
            let rows = it.store.usage().by_model().run()?;
            let rows =
                rows.iter().map(|row| json!([row.group, row.answers, row.input, row.output]));
            (json!(rows.collect::<Vec<_>>()), json!([["small", 1, 13, 300]]))
        }
        _ if is("10c ") => {
            let scratch = tempfile::tempdir().unwrap();
            let (original, copy) = (folder.join(&case.files[0]), scratch.path().join("store"));
            std::fs::copy(&original, &copy).unwrap();
            let is_refused = Store::open(&copy).is_err();
            let is_same = std::fs::read(&original).unwrap() == std::fs::read(&copy).unwrap();
            (json!([is_refused, is_same]), json!([true, true]))
        }
        _ if is("7a ") => {
            let path = names(&history()?);
            (json!([path.last(), path.contains(&"ansA".to_owned())]), json!(["a2", true]))
        }
        _ if is("7b ") => {
            let is_shown = names(&history()?).contains(&"ctx".to_owned());
            let found = it.hits("marzipan")?;
            (json!([message("ctx")?.is_hidden, is_shown, found]), json!([true, false, []]))
        }
        _ if is("7c ") => {
            let info = it.session()?.info()?.unwrap();
            let day = info.created_at.format("%Y-%m-%d").to_string();
            (json!([info.model, day]), json!(["gpt-5", "2026-03-01"]))
        }
        _ if is("the same export") => {
            let siblings = |file: &String| -> Result<Value> {
                let it = Imported::new(folder, [file])?;
                let all: Vec<Message> = it.session()?.all_messages().collect::<Result<_>>()?;
                let branches = it.session()?.branches(&"q1".into())?;
                Ok(json!([all.len(), names(&branches), names(&it.session()?.history()?)]))
            };
            (siblings(&case.files[0])?, siblings(&case.files[1])?)
        }
        _ if is("7f ") => {
            let found = [it.hits("in:text marsh")?, it.hits("in:text godwit")?];
            (json!(found), json!([["m10"], ["m11"]]))
        }
        _ if is("an export with only a voice") => {
            let said: Vec<_> =
                (0..6).map(|n| format!("spoken sentence {n} about otters")).collect();
            (json!(texts(&history()?)), json!(said))
        }
        _ if is("voice conversation +") => {
            let lengths: Result<Vec<usize>> = it
                .last()
                .sessions
                .iter()
                .map(|session| Ok(it.store.session(session)?.history()?.len()))
                .collect();
            let mut lengths = lengths?;
            lengths.sort_unstable();
            (json!(lengths), json!([4, 6]))
        }
        _ if is("7g ") => {
            let thought = message("m2")?;
            let shown: Vec<&str> = thought
                .parts
                .iter()
                .filter_map(|part| match part {
                    Part::Reasoning(reasoning) => Some(reasoning.text.as_str()),
                    _ => None,
                })
                .collect();
            let is_kept = serde_json::to_string(&thought).unwrap().contains("Looking at beak");
            (json!([shown.contains(&"Only a summary"), is_kept]), json!([true, true]))
        }
        _ if is("current_node dangles") => {
            let chat = it.session()?;
            let head = chat.head()?.unwrap();
            (json!([chat.id(), chat.leaves()?.contains(&head)]), json!(["idonly", true]))
        }
        _ if is("8a ") => match &it.reports[0] {
            Err(error) => (json!(error.to_string().contains("claude.ai")), json!(true)),
            Ok(_) => {
                let siblings = names(&it.session()?.siblings(&"m2".into())?);
                (json!([siblings, it.hits("frond notes")?.len()]), json!([["m2", "m2b"], 1]))
            }
        },
        _ if is("15b ") => {
            let file = String::from_utf8(it.exported()?).unwrap();
            (json!(file.contains(&case.expected)), json!(true))
        }
        _ if is("15c ") || is("18b ") || is("21c ") => {
            let (one, other) = (it.exported()?, Store::open_in_memory()?);
            let reader = std::io::Cursor::new(&one);
            talktree_import::import_reader(&other, "x", reader, &ImportOptions::default(), |_| {})?;
            let again = Imported { store: other, reports: Vec::new() }.exported()?;
            (json!(one == again), json!(true))
        }
        _ if is("15e ") => {
            let Part::Tool(tool) = &message("a1")?.parts[0] else { panic!() };
            let right = r#"{"a":26.0,"c":12345678901234567890,"e":1E400,"d":-0}"#;
            (json!(tool.input.as_ref().unwrap().as_str()), json!(right))
        }
        _ if is("duplicate keys") => {
            let Part::Tool(tool) = &message("d1")?.parts[0] else { panic!() };
            let input = tool.input.as_ref().unwrap().as_str();
            (json!(has_text(&case.files[0], input)), json!(true))
        }
        _ if is("16") => {
            let chat = it.session()?;
            let all: Vec<Message> = chat.all_messages().collect::<Result<_>>()?;
            let ids = names(&all);
            let found = match &name[..3] {
                "16a" => names(&chat.history()?),
                "16b" => {
                    let (mut pages, mut before) = (Vec::new(), None);
                    loop {
                        let page = chat.page().limit(37);
                        let page = match &before {
                            Some(before) => page.before(before).run()?,
                            None => page.run()?,
                        };
                        pages.push(names(&page.messages));
                        before = page.before;
                        if before.is_none() {
                            break;
                        }
                    }
                    pages.into_iter().rev().flatten().collect()
                }
                _ => {
                    let run = |offset: usize, limit: usize| -> Result<Vec<String>> {
                        let found = it.store.search("ledger").offset(offset).limit(limit).run()?;
                        Ok(found.hits.iter().map(|hit| hit.id.to_string()).collect())
                    };
                    let mut paged = Vec::new();
                    for offset in (0..1_000).step_by(100) {
                        paged.extend(run(offset, 100)?);
                    }
                    if is("16d") {
                        return Ok((json!(paged), json!(run(0, 1_000)?)));
                    }
                    return Ok((
                        json!(paged.iter().collect::<BTreeSet<_>>()),
                        json!(ids.iter().collect::<BTreeSet<_>>()),
                    ));
                }
            };
            (json!([found.len(), found]), json!([1_000, ids]))
        }
        _ if is("300 sessions") => {
            let all: Vec<String> =
                it.store.sessions()?.into_iter().map(|info| info.id.to_string()).collect();
            let page = it.store.list().limit(100).run()?;
            let page: Vec<String> =
                page.sessions.into_iter().map(|listed| listed.info.id.to_string()).collect();
            (json!([all.len(), page]), json!([300, &all[..100]]))
        }
        _ if is("18a ") => {
            let shown = serde_json::to_string(&history()?).unwrap();
            let texts =
                [r"left\u0000right mango", r"half \ud83d pair papaya", r"\ud800\ud800 guava"];
            let are_kept = texts.map(|text| shown.contains(text));
            let found = ["mango", "papaya", "guava", "lychee"].map(|word| it.hits(word));
            let found: Result<Vec<_>> = found.into_iter().collect();
            (json!([are_kept, found?]), json!([[true, true, true], [["a"], ["b"], ["b"], ["c"]]]))
        }
        _ if is("18c ") || is("21d ") => {
            let mut file = Vec::new();
            match name.contains("markdown") {
                true => export_markdown(&it.session()?.path(), &mut file)?,
                false => export_openai(&it.session()?.path(), &mut file)?,
            }
            let text = String::from_utf8(file).unwrap();
            let problems = match serde_json::from_str::<Value>(&text) {
                Ok(chat) => {
                    validate_for(Provider::OpenAiChat, &json!({"messages": chat["messages"]}))
                }
                Err(_) => Vec::new(),
            };
            (json!([text.is_empty(), problems.len()]), json!([false, 0]))
        }
        _ if is("18e ") || is("18f ") || is("18g ") => {
            let words: &[&str] = match &name[..3] {
                "18e" => &["medlar", "sorb", "bullace"],
                "18f" => &["damson"],
                _ => &["sloe"],
            };
            let mut found = Vec::new();
            for word in words {
                found.push(it.hits(word)?.len());
            }
            let shown = serde_json::to_string(&history()?).unwrap();
            let is_kept = !is("18g ") || shown.contains(r"\ud800");
            (json!([found, is_kept]), json!([vec![1; words.len()], true]))
        }
        _ if is("19a ") => (
            json!([names(&history()?), roles(&history()?)]),
            json!([["u1", "a1", "r1", "a2"], ["user", "assistant", "tool", "assistant"]]),
        ),
        _ if is("19b ") => {
            let Part::Tool(tool) = &message("r1")?.parts[0] else { panic!() };
            let head = it.session()?.head()?;
            (
                json!([names(&history()?), tool.name, head]),
                json!([["u1", "a1", "r1", "a2"], "Scale", "a2"]),
            )
        }
        _ if is("19b2") => (
            json!([names(&history()?), it.session()?.head()?]),
            json!([["u1", "a1", "u2", "a2"], "a2"]),
        ),
        _ if is("the same for UIMessages") => {
            (json!(texts(&history()?)), json!(["one", "two", "three"]))
        }
        _ if is("19d ") => {
            let damages = it.store.verify(|_| {})?.damages.len();
            (json!([it.store.stats()?.messages, it.faults() > 0, damages]), json!([4, true, 0]))
        }
        _ if is("19f ") => {
            let child = message("c")?;
            (json!([child.parent, it.notes().contains("\"o\"")]), json!(["p", true]))
        }
        _ if is("parallel tool calls") => {
            let shown = names(&history()?);
            let both = ["r1", "r2"].map(|id| shown.contains(&id.to_owned()));
            (json!(both), json!([true, true]))
        }
        _ if is("20") => return of_openai(&it, name),
        _ if is("two fine-tuning") => (json!(it.last().sessions.len()), json!(2)),
        _ if is("usage on an OpenAI") => {
            let total = it.store.usage().total()?;
            (json!([total.input, total.output, total.cache_read]), json!([10, 5, 4]))
        }
        _ if is("Anthropic messages") => {
            let result = &history()?[2];
            let Part::Tool(tool) = &result.parts[0] else { panic!() };
            (json!([result.role, tool.name]), json!(["tool", "open_hatch"]))
        }
        _ if is("21a ") => {
            let file = std::fs::read_to_string(folder.join(&case.files[0])).unwrap();
            let file: Value = serde_json::from_str(&file).unwrap();
            let right: Vec<_> =
                file["messages"].as_array().unwrap().iter().map(|it| &it["parts"]).collect();
            let all = it.session()?.raw_history()?;
            let parts: Vec<_> = all.iter().map(|it| json!(it.parts)).collect();
            (json!(parts), json!(right))
        }
        _ if is("21b ") => all_found(&it, &["scoby", "vinegar", "fizzy"])?,
        _ if is("SDK v4") => all_found(&it, &["sencha", "matcha", "oolong"])?,
        _ if is("22a ") || is("22d ") || is("two compactions") => {
            let shown: Vec<_> =
                texts(&history()?).into_iter().filter(|text| !text.is_empty()).collect();
            (json!(shown), json!(listed(&case.expected)))
        }
        _ if is("22b ") => {
            let chat = it.session()?;
            let info = chat.info()?.unwrap();
            (
                json!([chat.labelled("named")?, info.name, info.model]),
                json!(["a3", "Dune map", "claude-y"]),
            )
        }
        _ if is("22c ") => {
            let total = it.store.usage().total()?;
            (json!([total.answers, total.input, total.output]), json!([3, 37, 13]))
        }
        _ if is("22e ") => {
            let damaged: Vec<_> =
                it.last().notes.iter().filter(|it| it.is_fault).map(|it| it.line).collect();
            (json!([it.last().dropped, damaged.contains(&Some(8))]), json!([1, true]))
        }
        _ if is("22f ") => {
            let mut it = it;
            it.add(folder, "c22_pi.jsonl", &ImportOptions::default());
            let chat = it.session()?;
            let found = json!([
                chat.compactions()?.len(),
                chat.labelled("named")?,
                names(&chat.history()?)
            ]);
            let new = Imported::new(folder, [&"c22_pi.jsonl".to_owned()])?.session()?;
            (found, json!([1, "a3", names(&new.history()?)]))
        }
        _ if is("23a ") => {
            let chat = it.session()?;
            let is_marked = serde_json::to_string(&message("r1")?).unwrap().contains("deleted");
            let path = names(&chat.raw_history()?);
            (
                json!([is_marked, it.notes().contains("id"), path]),
                json!([true, true, ["p", "r2", "q"]]),
            )
        }
        _ if is("23b ") => {
            (json!([it.last().sessions.len(), it.store.stats()?.messages]), json!([1, 3]))
        }
        _ if is("24a ") => {
            let files: Vec<&String> = match name.ends_with("(B,A)") {
                true => case.files.iter().rev().collect(),
                false => case.files.iter().collect(),
            };
            let it = Imported::new(folder, files)?;
            (json!([it.last().added, it.faults() > 0]), json!([0, true]))
        }
        _ if is("24b ") => {
            let chat = it.session()?;
            let new = chat.message(&"m3".into())?.is_some();
            (
                json!([message("m2")?.text(), it.notes().contains("\"m2\""), new]),
                json!(["answer A", true, true]),
            )
        }
        _ if is("24c ") => (json!(it.notes().contains("other content")), json!(true)),
        _ if is("the same differing file") => {
            let mut it = it;
            it.add(folder, &case.files[1], &ImportOptions::default());
            let said = |report: &Result<ImportReport>| {
                let report = report.as_ref().unwrap();
                report.notes.iter().filter(|note| note.why.contains("other content")).count()
            };
            (json!([said(&it.reports[1]), said(&it.reports[2])]), json!([1, 1]))
        }
        _ if is("--strict") || is("the same where the text differs") => {
            let mut it = Imported::new(folder, &case.files[..1])?;
            let before = it.exported()?;
            let options = ImportOptions { is_strict: true, ..ImportOptions::default() };
            it.add(folder, &case.files[1], &options);
            (json!([it.reports[1].is_err(), before == it.exported()?]), json!([true, true]))
        }
        _ if is("25 NFD") => {
            let nfd = "\u{1112}\u{116c}\u{110b}\u{1174}\u{1105}\u{1169}\u{11a8}";
            let query = match name {
                _ if name.contains("Hangul: composed query") => "회의록",
                _ if name.contains("Hangul") => nfd,
                _ if name.contains("Kana: composed query") => "データベース",
                _ if name.contains("Kana") => "テ\u{3099}ータヘ\u{3099}ース",
                _ if name.contains("Vietnamese") => "đặt phòng",
                _ => "exact:\"회의록\"",
            };
            return found(&it, query, &case.expected);
        }
        _ if is("progress entries fork") => {
            (json!(names(&history()?)), json!(["u1", "a1", "r1", "a2", "u2"]))
        }
        _ if is("a parent that was never") => {
            (json!([names(&history()?), it.faults()]), json!([["u1", "a1", "u2", "a2"], 1]))
        }
        _ if is("a tool result and a text") => {
            let mut file = Vec::new();
            export_openai(&it.session()?.path(), &mut file)?;
            let file: Value = serde_json::from_slice(&file).unwrap();
            let roles: Vec<&Value> =
                file["messages"].as_array().unwrap().iter().map(|it| &it["role"]).collect();
            (json!(roles), json!(["user", "assistant", "tool", "user", "assistant"]))
        }
        _ if is("server_tool_use") => all_found(&it, &["peregrine", "almanac"])?,
        _ if is("epoch in microseconds") => {
            let day = message("us")?.created_at.format("%Y-%m-%d").to_string();
            (json!(day), json!("2026-03-01"))
        }
        _ if is("RFC 3339") => {
            let time = |id: &str| Ok::<_, talktree::Error>(message(id)?.created_at.to_rfc3339());
            let is_right = |time: String| time.starts_with("2026-03-01T10:00");
            let spaced = is_right(time("space_tz")?);
            let noted = it.notes().contains("unreadable times");
            (json!(spaced && (is_right(time("string_ms")?) || noted)), json!(true))
        }
        _ if is("rewind ") => {
            let found = it.hits("beret")?;
            (json!([names(&history()?), found]), json!([["u1", "a1", "u3", "a3"], ["a2"]]))
        }
        _ => (json!("no check of this case"), json!(case.expected)),
    })
}

fn all_found(imported: &Imported, words: &[&str]) -> Outcome {
    let mut found = Vec::new();
    for word in words {
        found.push(!imported.hits(&format!("in:all {word}"))?.is_empty());
    }
    Ok((json!(found), json!(vec![true; words.len()])))
}

/// The cases of one chat of the OpenAI API.
fn of_openai(it: &Imported, name: &str) -> Outcome {
    let all = it.session()?.raw_history()?;
    let tools = || {
        all.iter().flat_map(|it| &it.parts).filter_map(|part| match part {
            Part::Tool(tool) => Some(tool),
            _ => None,
        })
    };
    Ok(match &name[..3] {
        "20a" => {
            let is_right = matches!(all[0].role.as_str(), "developer" | "system");
            (json!([is_right, all[0].is_hidden]), json!([true, false]))
        }
        "20b" => (json!(all[1].parts.len()), json!(5)),
        "20c" => {
            let inputs: Vec<_> = tools().filter_map(|it| it.input.as_ref()).take(3).collect();
            (json!(inputs), json!(["{\"len\": 3, ", "", "oak keel"]))
        }
        "20d" => {
            let names: Vec<_> =
                tools().filter(|it| it.input.is_none()).take(3).map(|it| &it.name).collect();
            (json!(names), json!(["measure", "paint", "carve"]))
        }
        "20e" => all_found(it, &["boats", "dinghy", "teal", "carved", "rowed", "kayaks", "keel"])?,
        "20f" => {
            let said = texts(&all);
            let is_said = |text: &str| said.iter().any(|said| said == text);
            (
                json!([is_said("I will not sink the gondola"), is_said("Nor the canoe")]),
                json!([true, true]),
            )
        }
        "20g" => {
            let said = texts(&all);
            (json!(said.iter().any(|said| said == "Aye aye about the catamaran")), json!(true))
        }
        _ => {
            let mut file = Vec::new();
            export_openai(&it.session()?.path(), &mut file)?;
            let file: Value = serde_json::from_slice(&file).unwrap();
            let messages = file["messages"].as_array().unwrap();
            let calls: Vec<&Value> =
                messages.iter().flat_map(|it| it["tool_calls"].as_array()).flatten().collect();
            let given = |at: usize| calls[at]["function"]["arguments"].clone();
            (json!([given(0), given(1), given(3)]), json!(["{\"len\": 3, ", "", "{\"oars\":2}"]))
        }
    })
}
