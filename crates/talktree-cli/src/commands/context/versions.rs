//! `talktree context history` and `drift`: what changed in stored texts.

use std::io;
use std::time::Duration;

use anstyle::Style;
use similar::{ChangeTag, TextDiff};
use talktree::{Drift, StoredText};

use super::read::not_frozen;
use super::scope::{self, Kind, Scope, ScopeArgs};
use crate::prelude::*;

/// List the versions of a text or a document, oldest first
///
/// The newest 1 000 are kept, also those of a removed document.
#[derive(Debug, clap::Args)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    scope: ScopeArgs,

    /// The label of the text.
    label: String,

    /// The key of a document.
    #[arg(value_parser = scope::key())]
    key: Option<String>,

    /// Show what each version changed.
    #[arg(long)]
    diff: bool,

    /// List only the newest N.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    version: &'a StoredText,
    tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<&'a str>,
}

pub(super) fn history(args: HistoryArgs, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let scope = Scope::of(&store, &args.scope)?;
    let versions = find(&scope, &args.label, args.key.as_deref())?;
    let left_out = versions.len().saturating_sub(args.limit.unwrap_or(usize::MAX));
    let mut table = Table::new("version changed tokens text", [ID, FAINT, PLAIN, PLAIN]);
    for (at, version) in versions.iter().enumerate().skip(left_out) {
        let content = version.content.as_deref().unwrap_or_default();
        let tokens = talktree::estimate_tokens(content);
        let before = at.checked_sub(1).and_then(|before| versions.get(before));
        let diff = args.diff.then(|| difference(before, version));
        if context.is_json {
            context.out.json(&Row { version, tokens, diff: diff.as_deref() })?;
            continue;
        }
        let Some(diff) = diff else {
            let first = content.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            table.push([
                version.version.to_string(),
                context.out.ago(version.changed_at),
                tokens.to_string(),
                if version.content.is_some() { one_line(first) } else { REMOVED.to_owned() },
            ]);
            continue;
        };
        let (style, size) = match version.content {
            Some(_) => (PLAIN, plural(tokens, "token")),
            None => (BAD, REMOVED.to_owned()),
        };
        let (number, at) = (
            version.version.to_string(),
            format!("  {}  ", context.out.moment(version.changed_at)),
        );
        context.out.line(&[(STRONG, "version "), (ID, &number), (FAINT, &at), (style, &size)])?;
        write_diff(&mut context.out, &diff)?;
        context.out.line(&[])?;
    }
    if !context.is_json && !args.diff {
        table.write(&mut context.out)?;
    }
    Ok(())
}

const REMOVED: &str = "(removed)";

/// Returns what a version changed, in unified form.
fn difference(before: Option<&StoredText>, version: &StoredText) -> String {
    // The version before the oldest kept one is not known.
    if before.is_none() && version.version > 1 {
        return String::new();
    }
    let text = |version: &StoredText| version.content.clone().unwrap_or_default();
    unified(&before.map(text).unwrap_or_default(), &text(version))
}

/// Returns the versions of a text or a document, also of one that was removed.
fn find(scope: &Scope<'_>, label: &str, key: Option<&str>) -> Result<Vec<StoredText>> {
    let held = match scope.read(label) {
        Ok(held) => held,
        Err(Failure::NotFound(_)) => return removed(scope, label, key),
        Err(failure) => return Err(failure),
    };
    if held.kind != Kind::Text && key.is_none() {
        return Err(Failure::Usage(format!(
            "{label:?} holds documents, each with a history of its own: name a KEY"
        )));
    }
    let versions = held.versions(key)?;
    match (versions.is_empty(), key) {
        (false, _) => Ok(versions),
        (true, Some(key)) => Err(held.unknown_document(key)),
        (true, None) => Err(scope.unknown(label)),
    }
}

/// Returns the versions under a label whose documents were all removed.
fn removed(scope: &Scope<'_>, label: &str, key: Option<&str>) -> Result<Vec<StoredText>> {
    for scope in [scope.clone()].into_iter().chain(scope.beside()?) {
        let versions = scope.empty(label, Kind::Skills)?.versions(key)?;
        if !versions.is_empty() {
            return Ok(versions);
        }
    }
    Err(scope.unknown(label))
}

/// Show the stored texts that differ from the frozen prompt
///
/// Texts from outside the store are left out, and so are shared texts that are not in the prompt.
#[derive(Debug, clap::Args)]
pub(crate) struct DriftArgs {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,
}

pub(super) fn drift(args: DriftArgs, context: &mut Context) -> Result<()> {
    let (store, session) = context.read(&args.session)?;
    let scope = Scope::session(&store, &session)?;
    let own: Vec<String> = scope.stored()?.into_iter().map(|(label, _)| label).collect();
    let blocks = scope.context(scope.readable()?)?;
    if blocks.frozen_prompt()?.is_none() {
        return Err(not_frozen(&scope));
    }
    let mut count = 0_u64;
    for Drift { label, frozen, current, .. } in &blocks.drift()? {
        let (kind, frozen, current) = match (frozen, current) {
            (Some(frozen), Some(current)) => ("changed", frozen.as_str(), current),
            // The command does not know which shared labels a program shows to its model.
            (None, Some(current)) if own.contains(label) => ("added", "", current),
            _ => continue,
        };
        count += 1;
        let diff = unified(frozen, current);
        if context.is_json {
            context.out.json(&json!({
                "label": label, "kind": kind, "frozen": frozen, "current": current, "diff": diff,
            }))?;
            continue;
        }
        let old = if kind == "added" { "(not frozen)" } else { &format!("{label} (frozen)") };
        context.out.block(STRONG, "", &format!("--- {old}\n+++ {label} (now)\n"))?;
        write_diff(&mut context.out, &diff)?;
    }
    if count == 0 && !context.is_json {
        tell("nothing that is stored differs from the frozen prompt");
    }
    Ok(())
}

/// After this long the difference need no longer be the shortest one. Two texts of many lines that have none in common
/// would take minutes.
const DIFF_TIMEOUT: Duration = Duration::from_millis(500);

/// Returns the hunks of the difference, without a header; empty if the texts are equal.
pub(super) fn unified(old: &str, new: &str) -> String {
    // Only a line feed ends a line here, so that a carriage return that came or went is a change of its line.
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let diff = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_slices(&old, &new);
    let mut text = String::new();
    for hunk in diff.unified_diff().context_radius(3).iter_hunks() {
        text += &format!("{}\n", hunk.header());
        for change in hunk.iter_changes() {
            text.push(match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            });
            text += change.value();
            if !change.value().ends_with('\n') {
                text += "\n\\ No newline at end of text\n";
            }
        }
    }
    text
}

/// Writes what [`unified`] returned, in colour.
pub(super) fn write_diff(out: &mut Output, diff: &str) -> io::Result<()> {
    // `lines` would drop a carriage return at the end of a line.
    for line in diff.split_terminator('\n') {
        out.line(&[(style_of(line), line)])?;
    }
    Ok(())
}

fn style_of(line: &str) -> Style {
    match line.as_bytes().first() {
        Some(b'+') => GOOD,
        Some(b'-') => BAD,
        Some(b'@') => COMPACTION,
        Some(b'\\') => FAINT,
        _ => PLAIN,
    }
}

#[cfg(test)]
mod tests {
    use super::unified;

    #[test]
    fn a_difference_is_in_unified_form() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14";
        let new = "1\n2\nthree\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n";
        let diff = "@@ -1,6 +1,6 @@\n 1\n 2\n-3\n+three\n 4\n 5\n 6\n\
                    @@ -11,4 +11,4 @@\n 11\n 12\n 13\n-14\n\\ No newline at end of text\n+14\n";
        assert_eq!(unified(old, new), diff);
        for (old, new, diff) in [
            ("", "", ""),
            ("a\n", "a\n", ""),
            ("a\n", "", "@@ -1 +0,0 @@\n-a\n"),
            ("", "a\n", "@@ -0,0 +1 @@\n+a\n"),
            ("", "a\n\nb", "@@ -0,0 +1,3 @@\n+a\n+\n+b\n\\ No newline at end of text\n"),
            ("a\nb\n", "a\r\nb\n", "@@ -1,2 +1,2 @@\n-a\n+a\r\n b\n"),
        ] {
            assert_eq!(unified(old, new), diff);
        }
    }

    #[test]
    fn a_large_difference_ends_soon() {
        let lines = |word| (0..100_000).map(|n| format!("{word} {n}\n")).collect::<String>();
        let diff = unified(&lines("old"), &lines("new"));
        assert_eq!(diff.lines().count(), 200_001);
    }
}
