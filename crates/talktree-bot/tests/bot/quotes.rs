//! The code in docs/bot.md is that of this crate: `UPDATE=1 cargo test -p talktree-bot quotes::` updates the page.
//!
//! `<!-- quote: src/core.rs reply -->` in the page stands before the lines between `// quote: reply` and `// quote end` of that
//! file, without their indentation; `<!-- quote: src/telegram/intake.rs fn poll -->` before that function.

use std::fs;
use std::path::Path;

/// Returns the lines of a quote.
fn quoted(file: &str, name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let source = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
    let lines: Vec<&str> = match name.strip_prefix("fn ") {
        Some(name) => {
            let is_start =
                |line: &&str| line.trim_start_matches("pub ").starts_with(&format!("fn {name}("));
            let mut lines = source.lines().skip_while(|line| !is_start(line));
            let mut lines: Vec<&str> = lines.by_ref().take_while(|line| *line != "}").collect();
            lines.push("}");
            lines
        }
        None => {
            let start = format!("// quote: {name}");
            let lines = source.lines().skip_while(|line| line.trim() != start).skip(1);
            lines.take_while(|line| line.trim() != "// quote end").collect()
        }
    };
    assert!(lines.len() > 1, "{file} has no quote {name}");
    let indent = |line: &&str| line.len() - line.trim_start().len();
    let indent = lines.iter().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
    lines.iter().map(|line| format!("{}\n", line.get(indent..).unwrap_or(""))).collect()
}

#[test]
fn the_code_in_the_page_is_that_of_the_crate() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/bot.md");
    let page = fs::read_to_string(&path).unwrap();
    let (mut expected, mut quotes) = (String::new(), 0);
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        expected += &format!("{line}\n");
        let Some(mark) = line.strip_prefix("<!-- quote: ").and_then(|it| it.strip_suffix(" -->"))
        else {
            continue;
        };
        let (file, name) = mark.split_once(' ').expect("a quote names a file and a place in it");
        quotes += 1;
        let fence = if file.ends_with(".toml") { "toml" } else { "rust" };
        assert_eq!(lines.next(), Some(format!("```{fence}").as_str()), "after {line}");
        lines.by_ref().take_while(|line| *line != "```").for_each(drop);
        let code = match name {
            "all" => fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap(),
            name => quoted(file, name),
        };
        expected += &format!("```{fence}\n{code}```\n");
    }
    assert!(quotes >= 8, "the page has {quotes} quotes");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, expected).unwrap();
    } else {
        let how = "UPDATE=1 cargo test -p talktree-bot quotes:: updates the page";
        for (at, (found, expected)) in page.lines().zip(expected.lines()).enumerate() {
            assert_eq!(found, expected, "line {} of docs/bot.md; {how}", at + 1);
        }
        assert_eq!(page.len(), expected.len(), "{how}");
    }
}
