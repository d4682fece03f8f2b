//! The tour: every command it prints works when it is pasted.

use std::process::Command;

use crate::common::{self, Answer, Outcome, Rig};

#[test]
fn the_tour_shows_trees_compactions_and_search() {
    let rig = Rig::empty();
    let answer = rig.run(["tour"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    for shown in [
        "├─o assistant answer-2",
        "* user thanks (head, plan)",
        "3 messages] They will see",
        "Do we need tickets for the planetarium?",
        "光学博物馆很适合孩子",
    ] {
        assert!(answer.stdout.contains(shown), "{shown} in {}", answer.stdout);
    }
    assert!(
        !answer.stderr.contains("line"),
        "the sample is imported without notes: {}",
        answer.stderr
    );
    assert!(!rig.store().exists(), "the tour does not touch the user's store");
    // Nothing is left of it, unless it is kept.
    let left = |rig: &Rig| {
        let names = std::fs::read_dir(rig.path("")).unwrap();
        names.filter(|it| it.as_ref().unwrap().path().join("tour.db").exists()).count()
    };
    assert_eq!(left(&rig), 0);
    rig.ok(["tour", "--keep"]);
    assert_eq!(left(&rig), 1);
}

#[cfg(unix)]
#[test]
fn the_printed_commands_can_be_pasted() -> Outcome {
    let rig = Rig::empty();
    let tour = rig.ok(["tour", "--keep"]);
    let commands: Vec<&str> = tour.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    assert!(commands.len() > 10, "{tour}");
    for command in &commands {
        let answer = Answer::of(Command::new("sh").args(["-c", command]).output()?);
        // The tour has already removed the compaction and undone the move of the head.
        let is_spent = command.contains("--remove") || command.contains("--undo");
        assert!(answer.code == 0 || (is_spent && answer.code == 1), "{command}: {answer:?}");
    }
    Ok(())
}

#[test]
fn the_tour_as_json_is_one_object_per_step() {
    let rig = Rig::empty();
    let steps = rig.json(["tour"]);
    assert!(steps.len() > 10);
    for (index, step) in steps.iter().enumerate() {
        assert_eq!(common::fields(step), ["answers", "command", "step", "title"]);
        assert_eq!(step["step"], index + 1);
        assert!(step["answers"].as_array().is_some_and(|answers| !answers.is_empty()), "{step}");
    }
}
