//! The example `bot_core` remembers, searches, answers again, and forgets.

use crate::common::example::printed;

#[test]
fn the_bot_remembers_its_people_and_forgets_one() -> Result<(), Box<dyn std::error::Error>> {
    let output = printed("bot_core", [] as [&str; 0])?;
    // A server has no proof.
    let forgotten = match cfg!(talktree_on_postgres) {
        true => "telegram:1 /forget -> Forgotten.",
        false => "telegram:1 /forget -> Forgotten; erased text was found at 0 places.",
    };
    let said: Vec<&str> = output.lines().filter(|line| line.contains(" -> ")).collect();
    let expected = [
        "telegram:1 I am Bob -> Nice to meet you, Bob.", // written to the owner's memory
        "telegram:1 My cat is Mozart -> Noted.",
        "telegram:1 How is the weather? -> 21 degrees.", // by a tool of the program
        "telegram:1 Name a colour -> Red.",
        "telegram:1 /retry -> Blue.",
        "telegram:1 /edit Name a tree -> Noted.",
        "discord:7 Who am I? -> You are Bob.", // from the owner's memory
        "telegram:1 What is my cat called? -> Your cat is called Mozart.", // from an expired session
        "telegram:2 What is my cat called? -> I do not know.",             // of another owner
        "telegram:1 /usage -> 11 answers, 55 tokens.",
        forgotten,
        "telegram:1 /usage -> 0 answers, 0 tokens.",
        "telegram:1 What is my cat called? -> I do not know.",
    ];
    assert_eq!(said, expected, "{output}");

    let ann = output.lines().find_map(|line| line.strip_prefix("ann: ")).ok_or("no line of ann")?;
    let numbers: Vec<usize> = ann.split([' ', '.']).filter_map(|word| word.parse().ok()).collect();
    assert!(numbers[0] == 124 && numbers[1] < 124, "compacted in the background: {ann}");
    // Of the erased sessions nothing is listed; the last question began a new one.
    assert_eq!(output.lines().filter(|line| line.starts_with("bob: ")).count(), 1, "{output}");
    assert!(!output.contains("not compacted"), "{output}");
    Ok(())
}
