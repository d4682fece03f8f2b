//! The times of appends.

use super::Probe;
use talktree::Result;

#[test]
fn a_time_is_greater_than_every_one_before() -> Result<()> {
    let probe = Probe::new()?;
    let mut last = 0;
    for n in 0..50 {
        let path = format!("p{}/s{}", n % 3, n % 7);
        probe.say(&path, ".")?;
        let mtime = probe.mtime(&path)?.unwrap_or_default();
        assert!(mtime > last, "{mtime} is after {last}");
        last = mtime;
        if n % 5 == 0 {
            probe.delete(&path)?;
        }
    }
    probe.is_sound()
}

#[test]
fn a_time_changes_when_an_entry_is_added_and_only_then() -> Result<()> {
    let probe = Probe::new()?;
    probe.say("p/s", "a")?;
    let first = probe.mtime("p/s")?;
    // Neither a known entry, nor a transcript of a subagent.
    probe.say("p/s", "a")?;
    probe.say("p/s/subagents/agent-1", "a b")?;
    probe.delete("p/s/subagents/agent-1")?;
    assert_eq!(probe.mtime("p/s")?, first);
    probe.say("p/s", "a b")?;
    assert!(probe.mtime("p/s")? > first);
    probe.is_sound()
}
