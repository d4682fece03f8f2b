//! Files of twenty agents, with which two browsers of transcripts test their readers: each is read as what it is, or refused by its
//! name. The table in docs/formats.md says which.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::data::data;
use talktree::{Error, Result, Store};
use talktree_import::{Format, ImportOptions};

/// What becomes of the files below a folder: the format, or what the refusal names.
const EXPECTED: &[(&str, &str)] = &[
    ("agentsview/claude/", "claude-code"),
    ("agentsview/codex/", "codex"),
    ("agentsview/gemini/system_messages.json", "read as gemini-cli, it holds no message"),
    ("agentsview/gemini/", "gemini-cli"),
    ("agentsview/gptme/", "openai"),
    ("agentsview/iflow/", "claude-code"),
    ("agentsview/kiro_sqlite/malformed_payload.txt", "in no format"),
    ("agentsview/kiro_sqlite/", "a conversation of Kiro"),
    ("agentsview/pi/", "pi"),
    ("agentsview/traex/", "codex"),
    ("agentsview/vibe/session_basic/messages.jsonl", "openai"),
    ("agentsview/vibe/session_with_tools/messages.jsonl", "openai"),
    ("agentsview/vibe/session_empty/", "without a record"),
    ("agentsview/vibe/", "the description of a session of Mistral Vibe"),
    ("deja-vu/registry/antigravity/", "a log of Antigravity"),
    ("deja-vu/registry/claude-code/", "claude-code"),
    ("deja-vu/registry/cline/legacy/state/", "the list of tasks of Cline or Roo Code"),
    (
        "deja-vu/registry/cline/modern/sessions/session_synthetic_01/session_synthetic_01.json",
        "the description of a session of Cline",
    ),
    ("deja-vu/registry/cline/", "cline"),
    ("deja-vu/registry/codex/", "codex"),
    ("deja-vu/registry/copilot/", "copilot-cli"),
    ("deja-vu/registry/cursor/", "cursor"),
    ("deja-vu/registry/deepseek/", "a session of DeepSeek"),
    ("deja-vu/registry/gemini/", "gemini-cli"),
    ("deja-vu/registry/goose/sessions/goose.sql", "in no format"),
    ("deja-vu/registry/goose/", "goose"),
    (
        "deja-vu/registry/grok/sessions/workspace%2Fregistry-demo/registry-grok/summary.json",
        "the description of a session of Grok",
    ),
    ("deja-vu/registry/grok/", "a log of Grok"),
    ("deja-vu/registry/hermes/", "in no format"),
    (
        "deja-vu/registry/kimi/sessions/wd_demo_0123456789ab/session_fixture01/state.json",
        "the description of a session of Kimi",
    ),
    ("deja-vu/registry/kimi/", "a log of Kimi"),
    ("deja-vu/registry/omp/", "pi"),
    ("deja-vu/registry/openclaw/agents/main/sessions/sessions.json", "in no format"),
    ("deja-vu/registry/openclaw/", "pi"),
    ("deja-vu/registry/opencode/", "in no format"),
    ("deja-vu/registry/pi/", "pi"),
    ("deja-vu/registry/qwen/", "qwen-code"),
    (
        "deja-vu/registry/roo/tasks/1767225700000/history_item.json",
        "the list of tasks of Cline or Roo Code",
    ),
    ("deja-vu/registry/roo/", "cline"),
    ("deja-vu/registry/zed/", "in no format"),
    ("deja-vu/synthetic/claude/", "claude-code"),
    ("deja-vu/synthetic/codex/history.jsonl", "the prompts that Codex remembers"),
    ("deja-vu/synthetic/codex/", "codex"),
];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

#[test]
fn every_file_is_read_as_what_it_is_or_refused_by_its_name() -> Result<()> {
    let Some(folder) = data("agents") else { return Ok(()) };
    let (mut found, mut wrong) = (Vec::new(), BTreeMap::new());
    files(&folder, &mut found);
    assert!(found.len() > 50, "{found:?}");
    for path in found {
        let name = path.strip_prefix(&folder).unwrap().to_string_lossy().into_owned();
        let expected = EXPECTED.iter().find(|(start, _)| name.starts_with(start));
        let expected = expected.unwrap_or_else(|| panic!("what is {name}?")).1;
        let store = Store::open_in_memory()?;
        let (is_read, became) =
            match talktree_import::import(&store, &path, &ImportOptions::default(), |_| {}) {
                Ok(report) => {
                    assert!(report.kept > 0, "{name}: {report:#?}");
                    let again =
                        talktree_import::import(&store, &path, &ImportOptions::default(), |_| {})?;
                    assert_eq!(again.added, 0, "{name}");
                    (true, report.format)
                }
                Err(Error::Import { why, .. }) => (false, why),
                Err(error) => return Err(error),
            };
        let is_format = Format::ALL.iter().any(|format| format.as_str() == expected);
        if is_read != is_format || !became.contains(expected) {
            wrong.insert(name, became);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}
