//! Answers that are lost, late or wrong: what was done is known all the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use haversack_servers::{Act, Answer};
use haversack_store::{Blocking, Condition, ErrorKind, Locator};

use super::fronted;
use crate::times;

fn at(key: &str) -> Locator {
    Locator::parse(key).expect("valid")
}

/// The number of increments of each writer; the soak does more.
fn rounds() -> usize {
    times(12, 625)
}

/// The effect of a bad line on a request, by its number: most are done, and the answer is lost.
fn bad_line(number: usize) -> Act {
    match number % 7 {
        0 => Act::CommitThenAnswer(Answer::new(503)),
        1 => Act::CommitThenDrop,
        2 => Act::answer(500, "nothing was done"),
        3 => Act::Drop,
        4 => Act::CommitThenAnswer(Answer::new(504)),
        _ => Act::Pass,
    }
}

#[test]
fn a_list_that_many_add_to_over_a_bad_line_has_everything_once() {
    const WRITERS: usize = 4;
    let counted = Arc::new(AtomicUsize::new(0));
    let places = fronted(move |front| {
        let number = counted.clone();
        front.script(move |seen| match seen.is_write() {
            true => bad_line(number.fetch_add(1, Ordering::Relaxed)),
            false => Act::Pass,
        });
    });
    for (front, place) in places {
        let list = at("list");
        let _ = place.blocking().write(&list, "", Condition::Absent).expect("created");
        let add = |writer: usize, store: &Blocking| {
            for round in 0..rounds() {
                let line = format!("{writer}-{round}\n");
                let mut may_be_done = false;
                loop {
                    let object = store.read(&list).expect("read");
                    let text = String::from_utf8_lossy(&object.bytes).into_owned();
                    // A write that certainly failed is not there; one with an unknown outcome may be.
                    let is_there = text.split_inclusive('\n').any(|other| other == line);
                    assert!(may_be_done || !is_there, "{line:?} was done and reported as a conflict");
                    if is_there {
                        break;
                    }
                    match store.write(&list, text + &line, Condition::Matches(object.version)) {
                        Ok(_) => break,
                        Err(error) if error.kind() == ErrorKind::Conflict => {}
                        Err(error) if error.kind() == ErrorKind::Unavailable => may_be_done = true,
                        Err(error) => panic!("{error:?}"),
                    }
                }
            }
        };
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (add, place) = (&add, &place);
                scope.spawn(move || add(writer, &place.blocking()));
            }
        });
        let end = place.blocking().read_text(&list).expect("read").unwrap_or_default();
        let mut found: Vec<&str> = end.lines().collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), WRITERS * rounds(), "lost on {}: {end}", place.backend);
        assert_eq!(end.lines().count(), found.len(), "twice on {}: {end}", place.backend);
        assert!(front.seen().iter().filter(|seen| seen.is_write()).count() > WRITERS * rounds());
    }
}

#[test]
fn creates_over_a_bad_line_are_no_false_conflicts() {
    let places = fronted(|front| {
        front.script(|seen| match seen.method.as_str() {
            "PUT" => Act::CommitThenAnswer(Answer::new(503)),
            _ => Act::Pass,
        });
    });
    for (_front, place) in places {
        let store = place.blocking();
        for number in 0..20 {
            let key = at(&format!("log/{number:03}"));
            let written = store.write(&key, format!("{number}"), Condition::Absent).expect("it was done");
            assert_eq!(store.read(&key).expect("read").version, written.version);
            assert!(store.write(&key, "again", Condition::Absent).is_err(), "it is there");
            assert_eq!(store.read_text(&key).expect("read"), Some(number.to_string()));
        }
        assert_eq!(store.list_all(&Locator::root()).expect("listed").len(), 20, "on {}", place.backend);
    }
}

#[test]
fn a_delete_whose_answer_is_lost_was_done() {
    let places = fronted(|front| {
        front.script(|seen| match seen.method.as_str() {
            "DELETE" => Act::CommitThenDrop,
            _ => Act::Pass,
        });
    });
    for (_front, place) in places {
        let store = place.blocking();
        let written = store.write(&at("a.md"), "x", Condition::Absent).expect("written");
        store.delete(&at("a.md"), Condition::Matches(written.version)).expect("it was done");
        assert_eq!(store.read(&at("a.md")).expect_err("gone").kind(), ErrorKind::NotFound);
    }
}

#[test]
fn a_storage_that_asks_for_patience_gets_it() {
    let asked = Arc::new(AtomicUsize::new(0));
    let places = fronted(|front| {
        let asked = asked.clone();
        front.script(move |seen| match seen.method.as_str() {
            "GET" if asked.fetch_add(1, Ordering::Relaxed) % 3 < 2 => Act::Answer(Answer::throttled(0)),
            _ => Act::Pass,
        });
    });
    for (_front, place) in places {
        let store = place.blocking();
        let _ = store.write(&at("a.md"), "x", Condition::Absent).expect("written");
        assert_eq!(store.read_text(&at("a.md")).expect("read").as_deref(), Some("x"));
    }
}

#[test]
fn a_storage_that_stays_away_is_unavailable_and_not_empty() {
    let acts: [fn() -> Act; 4] =
        [|| Act::Drop, || Act::Hang, || Act::answer(503, ""), || Act::Answer(Answer::throttled(3600))];
    for act in acts {
        for (_front, place) in fronted(|front| front.script(move |_| act())) {
            let place = place.with(haversack_store::cloud::WAIT_SECONDS, "1");
            let store = place.blocking();
            let read = store.read(&at("a.md")).expect_err("nobody answers");
            assert_eq!(read.kind(), ErrorKind::Unavailable, "{read:?}");
            let written = store.write(&at("a.md"), "x", Condition::Absent).expect_err("nobody answers");
            assert_eq!(written.kind(), ErrorKind::Unavailable, "{written:?}");
            assert!(store.list_all(&Locator::root()).is_err());
        }
    }
}
