//! The example `background` compacts both conversations by its worker and loses nothing.

use crate::common::example::printed;

#[test]
fn a_worker_compacts_both_conversations_and_nothing_is_lost()
-> Result<(), Box<dyn std::error::Error>> {
    let output = printed("background", [] as [&str; 0])?;
    assert!(!output.contains("not compacted"), "{output}");
    for id in ["kitchen", "garden"] {
        let line = output.lines().find_map(|line| line.strip_prefix(&format!("{id}: ")));
        let line = line.ok_or_else(|| output.clone())?;
        let numbers: Vec<usize> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [stored, shown, _tokens, summaries] = numbers[..] else { return Err(line.into()) };
        assert!(stored == 200 && shown < 200 && summaries > 0, "{line}");
    }
    Ok(())
}
