//! `talktree serve`, and a session as a file for a browser.
#![cfg(all(unix, feature = "web"))]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use crate::common::{Outcome, Rig};

#[test]
fn a_page_is_served_at_the_printed_address_until_a_signal() -> Outcome {
    let rig = Rig::toured();
    let mut child = rig.command(["serve"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut address = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut address)?;
    let (host, path) = address.trim().strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host)?;
    write!(
        stream,
        "GET /{path}api/sessions HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("A trip to Jena"), "{answer}");
    Command::new("kill").args(["-INT", &child.id().to_string()]).status()?;
    assert_eq!(child.wait()?.code(), Some(0));
    Ok(())
}

#[test]
fn a_session_is_exported_as_a_page_without_its_keys() -> Outcome {
    let rig = Rig::toured();
    let key = format!("ghp_{}", "x1".repeat(18));
    let chat = talktree::Store::open(rig.store())?.session("tour")?;
    let key_at = chat.append(talktree::Message::user(format!("</script> {key}")))?.id;
    chat.add_compaction(format!("The key is {key}."), &key_at, &key_at)?;
    let page = rig.ok(["export", "tour", "--format", "html"]);
    assert!(page.contains(&key) && page.contains("\\u003c/script>"));
    let page = rig.ok(["export", "tour", "--format", "html", "--redact"]);
    assert!(!page.contains(&key) && page.contains("[redacted github-token]"));
    assert_eq!(page.matches("</script>").count(), 2);
    for args in [&["--redact"][..], &["--format", "html", "--raw"], &["--format", "html", "--all"]]
    {
        let all: Vec<&str> = ["export"]
            .iter()
            .chain((!args.contains(&"--all")).then_some(&"tour"))
            .chain(args)
            .copied()
            .collect();
        rig.fails(2, all);
    }
    Ok(())
}
