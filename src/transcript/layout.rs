//! The files in which the agent's command keeps transcripts: which names are safe.
//!
//! Below a folder of projects: `project/session.jsonl`, `project/session/subagents/agent-x.jsonl`, and beside the latter
//! `agent-x.meta.json`.

/// Returns whether a project or session can be the name of a file.
pub(super) fn is_safe_name(name: &str) -> bool {
    is_safe_subpath(name) && !name.contains(['/', '\\'])
}

/// Returns whether a subpath leads to a file below its session's folder, on every system.
pub(super) fn is_safe_subpath(subpath: &str) -> bool {
    let is_safe = |part: &str| !matches!(part, "" | "." | "..");
    !subpath.contains(['\0', ':']) && subpath.split(['/', '\\']).all(is_safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_subpaths_are_refused() {
        for safe in ["subagents/agent-1", "subagents/workflows/run-1/agent-2", "a..b/.c"] {
            assert!(is_safe_subpath(safe), "{safe}");
        }
        for bad in [
            "",
            "/",
            "/etc/passwd",
            "\\a",
            "..",
            "a/../b",
            "a\\..\\b",
            "./a",
            "a/.",
            "C:a",
            "C:\\a",
            "\\\\host\\a",
            "a\0b",
            "a//b",
            "a/",
        ] {
            assert!(!is_safe_subpath(bad), "{bad:?}");
        }
        assert!(is_safe_name("-home-ann") && !is_safe_name("a/b") && !is_safe_name("a\\b"));
    }
}
