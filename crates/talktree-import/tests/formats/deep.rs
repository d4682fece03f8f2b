//! Files that are deep or long in a way that no program writes: each is imported without a deep stack and in little time.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::common::{faults, import, pi};
use talktree::{Result, Store};

const DEPTH: usize = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };

#[test]
fn a_chain_of_a_million_messages_backwards_takes_no_stack_and_little_time() -> Result<()> {
    let store = Store::open_in_memory()?;
    let mut file = pi("s", "");
    for n in (0..DEPTH).rev() {
        let parent = if n == 0 { "null".to_owned() } else { format!("\"m{}\"", n - 1) };
        write!(file, "\n{{\"type\":\"message\",\"id\":\"m{n}\",\"parentId\":{parent},\"message\":{{\"role\":\"user\",\"content\":\"x\"}}}}").unwrap();
    }
    let start = Instant::now();
    let report = import(&store, &file);
    println!("{DEPTH} messages backwards in {:?}", start.elapsed());
    assert_eq!((report.added, report.notes.len()), (DEPTH as u64, 0));
    let chat = store.session("s")?;
    assert_eq!(chat.leaves()?.len(), 1);
    assert_eq!(chat.at(&format!("m{}", DEPTH - 1).as_str().into()).path_length()?, DEPTH as u64);
    assert!(start.elapsed() < Duration::from_secs(120), "{:?}", start.elapsed());
    Ok(())
}

#[test]
fn a_circle_of_a_million_messages_is_broken() -> Result<()> {
    let store = Store::open_in_memory()?;
    let mut file = pi("s", "");
    for n in 0..DEPTH {
        let parent = (n + DEPTH - 1) % DEPTH;
        write!(file, "\n{{\"type\":\"message\",\"id\":\"m{n}\",\"parentId\":\"m{parent}\",\"message\":{{\"role\":\"user\",\"content\":\"x\"}}}}").unwrap();
    }
    let start = Instant::now();
    let report = import(&store, &file);
    println!("a circle of {DEPTH} in {:?}", start.elapsed());
    assert_eq!((report.added, faults(&report)), (DEPTH as u64, vec![2]));
    assert!(start.elapsed() < Duration::from_secs(120));
    Ok(())
}

#[test]
fn an_open_assistant_tree_may_be_nested_any_depth() -> Result<()> {
    let depth = DEPTH / 10;
    let mut file = String::from(r#"{"message_tree_id":"t","prompt":"#);
    for n in 0..depth {
        write!(file, r#"{{"message_id":"m{n}","text":"x","role":"prompter","replies":["#).unwrap();
    }
    file.push_str(&"]}".repeat(depth));
    file.push('}');
    let store = Store::open_in_memory()?;
    let report = import(&store, &file);
    assert_eq!(report.kept, depth as u64);
    assert_eq!(store.session("t")?.path_length()?, depth as u64);
    Ok(())
}

#[test]
fn a_mapping_of_a_chatgpt_export_may_be_a_circle_or_a_long_chain_of_nothing() -> Result<()> {
    let node = |id: usize, parent: String, message: bool| {
        let message = match message {
            true => format!(
                r#"{{"author":{{"role":"user"}},"content":{{"content_type":"text","parts":["{id}"]}}}}"#
            ),
            false => "null".to_owned(),
        };
        format!(r#""{id}":{{"id":"{id}","parent":{parent},"children":[],"message":{message}}}"#)
    };
    let count = 10_000;
    let circle: Vec<_> =
        (0..count).map(|n| node(n, format!("\"{}\"", (n + 1) % count), true)).collect();
    let store = Store::open_in_memory()?;
    let report = import(&store, &format!(r#"{{"id":"c","mapping":{{{}}}}}"#, circle.join(",")));
    assert_eq!((report.kept, faults(&report).len()), (count as u64, 1));

    let parent = |n: usize| if n == 0 { "null".to_owned() } else { format!("\"{}\"", n - 1) };
    let chain: Vec<_> = (0..count).map(|n| node(n, parent(n), n == 0 || n == count - 1)).collect();
    let report = import(&store, &format!(r#"{{"id":"d","mapping":{{{}}}}}"#, chain.join(",")));
    assert_eq!((report.kept, report.dropped), (2, count as u64 - 2));
    assert_eq!(store.session("d")?.path_length()?, 2);
    Ok(())
}

#[test]
fn rows_of_progress_entries_are_passed_over_in_little_time() -> Result<()> {
    let mut file = String::new();
    for n in 0..DEPTH {
        let parent = if n == 0 { "null".to_owned() } else { format!("\"e{}\"", n - 1) };
        let kind = if n % 1_000 == 0 { "user" } else { "progress" };
        writeln!(file, r#"{{"type":"{kind}","uuid":"e{n}","parentUuid":{parent},"sessionId":"S","message":{{"role":"user","content":"x"}}}}"#).unwrap();
    }
    // And many that hang from the end of the last row.
    for n in 0..1_000 {
        writeln!(file, r#"{{"type":"user","uuid":"f{n}","parentUuid":"e{}","sessionId":"S","message":{{"role":"user","content":"x"}}}}"#, DEPTH - 1).unwrap();
    }
    let store = Store::open_in_memory()?;
    let start = Instant::now();
    let report = import(&store, &file);
    assert_eq!(report.kept, (DEPTH / 1_000 + 1_000) as u64);
    assert_eq!(store.session("S")?.path_length()?, (DEPTH / 1_000 + 1) as u64);
    assert!(start.elapsed() < Duration::from_secs(60));
    Ok(())
}
