//! A backend drives itself: it works under any executor, and so does the blocking face.

use std::sync::Arc;

use haversack_store::{Backend, Blocking, Bytes, Condition, Durability, Locator};

use crate::conform::Directory;

fn at(key: &str) -> Locator {
    Locator::parse(key).expect("a plain key")
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime")
}

#[test]
fn the_blocking_face_works_inside_a_running_runtime() {
    let directory = Directory::new();
    let store = Blocking::new(Arc::new(directory.backend()));
    runtime().block_on(async {
        let written = store.write(&at("a.md"), "one", Condition::Absent).expect("written");
        let _ = store.write(&at("a.md"), "two", Condition::Matches(written.version)).expect("written");
        assert_eq!(store.read_text(&at("a.md")).expect("read").as_deref(), Some("two"));
        assert_eq!(store.list_all(&Locator::root()).expect("scanned"), [at("a.md")]);
    });
}

#[test]
fn many_tasks_of_one_thread_write_together() {
    let directory = Directory::new();
    let backend: Arc<dyn Backend> = Arc::new(directory.backend());
    runtime().block_on(async {
        let tasks: Vec<_> = (0..32)
            .map(|number| {
                let backend = backend.clone();
                tokio::spawn(async move {
                    let locator = at(&format!("{number}.md"));
                    let _ = backend.write(&locator, Bytes::from("x"), Condition::Absent).await?;
                    backend.append(&at("log"), Bytes::from(format!("{number}\n")), Durability::Now).await
                })
            })
            .collect();
        for task in tasks {
            let _ = task.await.expect("no panic").expect("written");
        }
        assert_eq!(backend.list(&Locator::root()).await.expect("listed").entries.len(), 33);
        let log = backend.read(&at("log")).await.expect("read").bytes;
        assert_eq!(log.iter().filter(|byte| **byte == b'\n').count(), 32);
    });
}

#[test]
fn a_dropped_write_is_done_or_not() {
    let directory = Directory::new();
    let backend = directory.backend();
    runtime().block_on(async {
        for number in 0..50 {
            let locator = at(&format!("{number}.md"));
            let write = backend.write(&locator, Bytes::from(vec![b'x'; 10_000]), Condition::Absent);
            // Polled once, then dropped.
            drop(futures_lite::future::poll_once(write).await);
        }
        for entry in backend.list(&Locator::root()).await.expect("listed").entries {
            let bytes = backend.read(&entry.locator).await.expect("read").bytes;
            assert_eq!(bytes, vec![b'x'; 10_000]);
        }
    });
}
