//! The outline of a stored tree, after appends, branches and deletes.

use talktree::{DrawOptions, Message, MessageId, Result, Session, Store};

fn say(id: &str) -> Message {
    Message::user(format!("says {id}")).with_id(id)
}

/// Appends messages given as `child` to the head or `parent>child`.
fn write(chat: &Session, messages: &str) -> Result<()> {
    for message in messages.split_whitespace() {
        match message.split_once('>') {
            Some((parent, id)) => chat.append_to(&parent.into(), say(id))?,
            None => chat.append(say(message))?,
        };
    }
    Ok(())
}

fn drawn(chat: &Session) -> Result<Vec<String>> {
    let lines = chat
        .tree()?
        .lines(&DrawOptions::default())
        .map(|line| line.to_string())
        .collect::<Vec<_>>();
    Ok(lines.iter().map(|line| line.replace(" user", "")).collect())
}

#[test]
fn an_unknown_session_has_an_empty_outline() -> Result<()> {
    let tree = Store::open_in_memory()?.session("nobody")?.tree()?;
    assert_eq!((tree.messages, tree.segments.len(), tree.head), (0, 0, None));
    Ok(())
}

#[test]
fn branches_labels_and_the_head_are_drawn() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    write(&chat, "a b c b>d e")?;
    chat.label("start", &"a".into())?;
    chat.checkout(&"c".into())?;
    assert_eq!(
        drawn(&chat)?,
        [
            "o a (start)  says a",
            "o b  says b",
            "├─o d  says d",
            "│ o e  says e",
            "* c (head)  says c"
        ]
    );
    assert_eq!(chat.tree()?.head, Some("c".into()));
    Ok(())
}

#[test]
fn deleted_messages_are_not_in_the_outline() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    write(&chat, "a b c b>d e b>f")?;
    chat.delete([&"b".into()])?;
    assert_eq!(
        drawn(&chat)?,
        ["o a  says a", "├─o c  says c", "├─o d  says d", "│ o e  says e", "* f (head)  says f"]
    );
    // Two of three branches are deleted, so one chain remains.
    chat.delete([&"c".into(), &"e".into(), &"d".into()])?;
    let tree = chat.tree()?;
    assert_eq!((tree.segments.len(), tree.segments[0].count), (1, 2));
    assert_eq!(tree.segments[0].last, "f");
    Ok(())
}

#[test]
fn summaries_are_drawn_below_their_ranges() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    write(&chat, "a b c d e")?;
    chat.append(say("x").hidden())?;
    chat.add_compaction("b to d", &"b".into(), &"d".into())?;
    let lines = drawn(&chat)?;
    assert_eq!(lines[1..4], ["· b  says b", "· c  says c", "· d  says d"]);
    assert!(lines[4].ends_with(": 3 messages] b to d"), "{}", lines[4]);
    assert_eq!(lines[5..], ["o e  says e", "* x (head) [hidden]  says x"]);

    let tree = chat.tree()?;
    let segment = serde_json::to_value(&tree.segments[0]).unwrap();
    let compaction = &segment["compactions"][0];
    assert_eq!((&compaction["starts_at"], &compaction["ends_at"]), (&1.into(), &3.into()));
    assert_eq!(segment["hidden"], 1);
    Ok(())
}

#[test]
fn only_the_ends_of_a_long_chain_are_read() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    chat.append_all((1..=10_000).map(|n| say(&format!("m{n}"))))?;
    chat.label("middle", &"m5000".into())?;
    let tree = chat.tree()?;
    let places: Vec<u64> = tree.segments[0].landmarks.iter().map(|landmark| landmark.at).collect();
    assert_eq!(places, [0, 1, 2, 3, 4999, 9996, 9997, 9998, 9999]);
    assert_eq!(tree.segments[0].landmarks[4].labels, ["middle"]);
    Ok(())
}

#[test]
fn interleaved_branches_are_two_segments() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    chat.append(say("root"))?;
    let mut ends: [MessageId; 2] = ["root".into(), "root".into()];
    for turn in 0..50 {
        for (side, end) in ends.iter_mut().enumerate() {
            *end = chat.append_to(end, say(&format!("{side}-{turn}")))?.id;
        }
    }
    let tree = chat.tree()?;
    assert_eq!(tree.segments.iter().map(|segment| segment.count).collect::<Vec<_>>(), [1, 50, 50]);
    assert_eq!(tree.segments[2].last, "1-49");
    Ok(())
}

/// The segments of random trees agree with their parents.
#[test]
fn random_trees_have_the_segments_of_their_parents() -> Result<()> {
    let store = Store::open_in_memory()?;
    let mut state = 7_u64;
    let mut random = move |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for round in 0..60 {
        let chat = store.session(format!("s{round}"))?;
        let mut living: Vec<MessageId> = Vec::new();
        for n in 0..60 {
            let id = format!("m{n}");
            match random(10) {
                0 => drop(chat.append_root(say(&id))?),
                1..=4 if !living.is_empty() => {
                    drop(chat.append_to(&living[random(living.len())], say(&id))?);
                }
                5 | 6 if living.len() > 1 => {
                    let gone = living.swap_remove(random(living.len()));
                    chat.delete([&gone])?;
                    continue;
                }
                _ => drop(chat.append(say(&id))?),
            }
            living.push(id.as_str().into());
        }
        let tree = chat.tree()?;
        assert_eq!(tree.messages, living.len() as u64);
        assert_eq!(tree.head, chat.head()?);
        let mut ends: Vec<MessageId> = Vec::new();
        for segment in &tree.segments {
            let path = chat.at(&segment.last).raw_history()?;
            let first = path.len() - segment.count as usize;
            assert_eq!(path[first].id, segment.first);
            assert_eq!(
                path[first].parent,
                segment.parent.map(|parent| tree.segments[parent].last.clone())
            );
            for message in &path[first..path.len() - 1] {
                assert_eq!(chat.branches(&message.id)?.len(), 1);
            }
            let children = chat.branches(&segment.last)?;
            assert!(children.len() != 1);
            let firsts = segment.children.iter().map(|child| &tree.segments[*child].first);
            assert!(children.iter().map(|child| &child.id).eq(firsts));
            if children.is_empty() {
                ends.push(segment.last.clone());
            }
        }
        let mut leaves = chat.leaves()?;
        leaves.sort();
        ends.sort();
        assert_eq!(ends, leaves);
    }
    Ok(())
}
