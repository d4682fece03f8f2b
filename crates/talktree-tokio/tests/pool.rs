//! Order, bound, cancellation, panics and the end of a runtime.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};

use talktree::{Error, Message, Result, Store};
use talktree_tokio::{AsyncSession, Pool};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_for_a_session_run_in_the_order_in_which_they_were_made() -> Result<()> {
    let store = Store::open_in_memory()?;
    let pool = Pool::new(4);
    // Two handles of one session have one order; other sessions run in between.
    let chats = [store.session("s")?, store.session("s")?].map(|chat| pool.session(chat));
    let other = pool.session(store.session("other")?);
    let mut calls = Vec::new();
    for n in 0..200 {
        calls.push(chats[n % 2].run(move |chat| chat.append(Message::user(n.to_string()))));
        calls.push(other.run(|chat| chat.append(Message::user("x"))));
    }
    // Awaited from the end.
    for call in calls.into_iter().rev() {
        call.await?;
    }
    let texts: Vec<_> = store.session("s")?.history()?.iter().map(Message::text).collect();
    assert_eq!(texts, (0..200).map(|n| n.to_string()).collect::<Vec<_>>());
    assert_eq!(store.session("other")?.path_length()?, 200);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn different_sessions_run_side_by_side_up_to_the_bound() -> Result<()> {
    const BOUND: usize = 3;
    let store = Store::open_in_memory()?;
    let pool = Pool::new(BOUND);
    // Each waits for the others: this ends only if so many run at once.
    let all = Arc::new(Barrier::new(BOUND));
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut calls = Vec::new();
    for n in 0..BOUND * 10 {
        let chat = pool.session(store.session(n.to_string())?);
        let (all, running, most) = (Arc::clone(&all), Arc::clone(&running), Arc::clone(&most));
        calls.push(chat.run(move |_| {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            all.wait();
            running.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        }));
    }
    for call in calls {
        call.await?;
    }
    assert_eq!(most.load(Ordering::SeqCst), BOUND);
    Ok(())
}

#[tokio::test]
async fn a_busy_session_does_not_keep_others_waiting() -> Result<()> {
    let store = Store::open_in_memory()?;
    let pool = Pool::new(1);
    let (busy, other) = (pool.session(store.session("a")?), pool.session(store.session("b")?));
    let order = Arc::new(Mutex::new(Vec::new()));
    let note = |chat: &AsyncSession, who: usize| {
        let order = Arc::clone(&order);
        chat.run(move |_| {
            order.lock().unwrap().push(who);
            Ok(())
        })
    };
    let mut calls: Vec<_> = (0..100).map(|n| note(&busy, n)).collect();
    calls.push(note(&other, usize::MAX));
    for call in calls {
        call.await?;
    }
    let order = order.lock().unwrap();
    let place = order.iter().position(|who| *who == usize::MAX);
    assert!(place.is_some_and(|place| place < 100), "{order:?}");
    Ok(())
}

#[tokio::test]
async fn a_dropped_future_cancels_only_what_has_not_begun() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = Pool::new(1).session(store.session("s")?);
    let (open, closed) = mpsc::channel::<()>();
    let (began, has_begun) = mpsc::channel();
    let begun = chat.run(move |chat| {
        began.send(()).unwrap();
        let _ = closed.recv();
        chat.append(Message::user("begun"))
    });
    let waiting = chat.run(|chat| chat.append(Message::user("waiting")));
    let last = chat.run(|chat| chat.append(Message::user("last")));
    tokio::task::spawn_blocking(move || has_begun.recv()).await.unwrap().unwrap();
    drop(begun);
    drop(waiting);
    drop(open);
    last.await?;
    let texts: Vec<_> = chat.session().history()?.iter().map(Message::text).collect();
    assert_eq!(texts, ["begun", "last"]);
    Ok(())
}

#[tokio::test]
async fn a_call_runs_without_being_polled() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = Pool::new(1).session(store.session("s")?);
    let kept = chat.run(|chat| chat.append(Message::user("hello")));
    assert_eq!(chat.run(|chat| chat.path_length()).await?, 1);
    assert!(kept.await?.is_new);
    Ok(())
}

#[tokio::test]
async fn panics_and_errors_are_outcomes_and_the_next_call_runs() -> Result<()> {
    struct PanicsWhenDropped;
    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let store = Store::open_in_memory()?;
    let chat = Pool::new(1).session(store.session("s")?);
    let panicked: Result<()> = chat.run(|_| panic!("boom {}", 7)).await;
    assert_eq!(
        panicked.unwrap_err().to_string(),
        "a call on the blocking pool failed: it panicked: boom 7"
    );
    let panicked: Result<()> = chat.run(|_| std::panic::panic_any(PanicsWhenDropped)).await;
    assert!(matches!(panicked, Err(Error::Callback { .. })));
    let refused = chat.run(|chat| chat.checkout(&"nobody".into())).await;
    assert!(matches!(refused, Err(Error::UnknownMessage { .. })));
    // The value of a call that nobody waits for panics when it is dropped.
    let (open, closed) = mpsc::channel::<()>();
    let (began, has_begun) = mpsc::channel();
    let left = chat.run(move |_| {
        began.send(()).unwrap();
        let _ = closed.recv();
        Ok(PanicsWhenDropped)
    });
    tokio::task::spawn_blocking(move || has_begun.recv()).await.unwrap().unwrap();
    drop(left);
    drop(open);
    assert_eq!(chat.run(|chat| chat.path_length()).await?, 0);
    Ok(())
}

#[test]
fn nobody_waits_for_a_call_that_will_not_run() -> Result<()> {
    let store = Store::open_in_memory()?;
    let pool = Pool::new(1);
    let chat = pool.session(store.session("s")?);
    let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
    // Outside of a runtime.
    let lost = [chat.run(|chat| chat.path_length()), pool.run(|| Ok(0))];
    // The runtime ends before the call begins: its thread never polls the worker.
    let ended = runtime();
    let dropped = {
        let _inside = ended.enter();
        [chat.run(|chat| chat.path_length()), pool.run(|| Ok(0))]
    };
    drop(ended);
    for call in lost.into_iter().chain(dropped) {
        let outcome = runtime().block_on(call);
        assert!(matches!(outcome, Err(Error::Callback { .. })), "{outcome:?}");
    }
    // The next runtime begins anew.
    assert_eq!(runtime().block_on(async { chat.run(|chat| chat.path_length()).await })?, 0);
    Ok(())
}
