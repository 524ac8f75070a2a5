//! The memory tool face: every documented string, and none of the reference's mistakes.

use futures_lite::future::block_on;
use haversack::memory_tool::{Command, Content, MemoryTool};
use haversack::store::{ErrorKind, Fault};

use crate::subjects::{Subject, on_every_backend};

on_every_backend!(
    documented_strings_of_success,
    documented_strings_of_refusal,
    paths_outside_are_refused,
    listings,
    listings_that_are_too_long,
    ranges,
    long_texts_are_cut_with_a_note,
    images,
    what_is_not_text,
    inserting,
    replacing_by_nothing,
);

fn tool(subject: &Subject) -> MemoryTool {
    MemoryTool::new(subject.memory.clone())
}

fn ask(subject: &Subject, command: Command) -> (String, bool) {
    let answer = block_on(tool(subject).answer(command));
    let Content::Text(text) = answer.content else { panic!("not a text: {answer:?}") };
    (text, answer.is_error)
}

fn done(text: &str) -> (String, bool) {
    (text.to_owned(), false)
}

fn refused(text: &str) -> (String, bool) {
    (text.to_owned(), true)
}

fn view(path: &str) -> Command {
    Command::View { path: path.to_owned(), view_range: None }
}

fn view_range(path: &str, view_range: [i64; 2]) -> Command {
    Command::View { path: path.to_owned(), view_range: Some(view_range) }
}

fn create(path: &str, file_text: &str) -> Command {
    Command::Create { path: path.to_owned(), file_text: file_text.to_owned() }
}

fn str_replace(path: &str, old_str: &str, new_str: &str) -> Command {
    Command::StrReplace { path: path.to_owned(), old_str: old_str.to_owned(), new_str: new_str.to_owned() }
}

fn insert(path: &str, insert_line: i64, insert_text: &str) -> Command {
    Command::Insert { path: path.to_owned(), insert_line, insert_text: insert_text.to_owned() }
}

fn delete(path: &str) -> Command {
    Command::Delete { path: path.to_owned() }
}

fn rename(old_path: &str, new_path: &str) -> Command {
    Command::Rename { old_path: old_path.to_owned(), new_path: new_path.to_owned() }
}

fn documented_strings_of_success(subject: &Subject) {
    for (command, answer) in [
        (create("/memories/a.md", "1\n2\n3\n4\n5\n6\n"), "File created successfully at: /memories/a.md"),
        (
            view("/memories/a.md"),
            "Here's the content of /memories/a.md with line numbers:\n     1\t1\n     2\t2\n     3\t3\n     4\t4\n     5\t5\n     6\t6\n     7\t",
        ),
        (
            str_replace("/memories/a.md", "4", "four"),
            "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n     2\t2\n     3\t3\n     4\tfour\n     5\t5\n     6\t6",
        ),
        (insert("/memories/a.md", 0, "0"), "The file /memories/a.md has been edited."),
        (
            rename("/memories/a.md", "/memories/d/b.md"),
            "Successfully renamed /memories/a.md to /memories/d/b.md",
        ),
        (delete("/memories/d"), "Successfully deleted /memories/d"),
    ] {
        assert_eq!(ask(subject, command.clone()), done(answer), "{command:?}");
    }
}

fn documented_strings_of_refusal(subject: &Subject) {
    subject.put("a.md", "one\ntwo one\n");
    subject.put("d/b.md", "b");
    for (command, answer) in [
        (view("/memories/x"), "The path /memories/x does not exist. Please provide a valid path."),
        (create("/memories/a.md", "x"), "Error: File /memories/a.md already exists"),
        (create("/memories/d", "x"), "Error: File /memories/d already exists"),
        (create("/memories", "x"), "Error: File /memories already exists"),
        (
            str_replace("/memories/x", "a", "b"),
            "Error: The path /memories/x does not exist. Please provide a valid path.",
        ),
        (
            str_replace("/memories/d", "a", "b"),
            "Error: The path /memories/d does not exist. Please provide a valid path.",
        ),
        (
            str_replace("/memories/a.md", "three", "b"),
            "No replacement was performed, old_str `three` did not appear verbatim in /memories/a.md.",
        ),
        (
            str_replace("/memories/a.md", "one", "b"),
            "No replacement was performed. Multiple occurrences of old_str `one` in lines: 1, 2. Please ensure it is unique",
        ),
        (
            str_replace("/memories/a.md", "", "b"),
            "No replacement was performed, old_str is empty: name the text to replace in /memories/a.md.",
        ),
        (insert("/memories/x", 0, "a"), "Error: The path /memories/x does not exist"),
        (insert("/memories/d", 0, "a"), "Error: The path /memories/d does not exist"),
        (
            insert("/memories/a.md", 3, "a"),
            "Error: Invalid `insert_line` parameter: 3. It should be within the range of lines of the file: [0, 2]",
        ),
        (
            insert("/memories/a.md", -1, "a"),
            "Error: Invalid `insert_line` parameter: -1. It should be within the range of lines of the file: [0, 2]",
        ),
        (delete("/memories/x"), "Error: The path /memories/x does not exist"),
        (delete("/memories"), "Cannot delete the /memories directory itself"),
        (delete("/memories/"), "Cannot delete the /memories directory itself"),
        (rename("/memories", "/memories/x"), "Cannot rename the /memories directory itself"),
        (rename("/memories/x", "/memories/new/y"), "Error: The path /memories/x does not exist"),
        (
            rename("/memories/a.md", "/memories/d/b.md"),
            "Error: The destination /memories/d/b.md already exists",
        ),
        (rename("/memories/a.md", "/memories"), "Error: The destination /memories already exists"),
        (rename("/memories/x", "/memories/a.md"), "Error: The destination /memories/a.md already exists"),
        (rename("/memories/d", "/memories/d/b.md"), "Error: The destination /memories/d/b.md already exists"),
        (
            rename("/memories/d", "/memories/d/e"),
            "Error: Cannot rename /memories/d to /memories/d/e: a directory cannot be moved into itself",
        ),
    ] {
        assert_eq!(ask(subject, command.clone()), refused(answer), "{command:?}");
    }
    assert_eq!(subject.text("a.md").as_deref(), Some("one\ntwo one\n"));
    assert_eq!(subject.text("d/b.md").as_deref(), Some("b"));
    let listing = ask(subject, view("/memories")).0;
    assert!(!listing.contains("new"), "a refused rename makes no directory: {listing}");
}

fn paths_outside_are_refused(subject: &Subject) {
    for path in ["/memoriesX", "/memoriesX/a.md", "memories/a.md", "/etc/passwd", "", "/", "/Memories/a"] {
        let expected = refused(&format!("Path must start with /memories, got: {path}"));
        assert_eq!(ask(subject, view(path)), expected, "{path}");
        assert_eq!(ask(subject, create(path, "x")), expected, "{path}");
    }
    for path in ["/memories/..", "/memories/../x", "/memories/a/../../x", "/memories/a/.."] {
        let expected = refused(&format!("Path {path} would escape /memories directory"));
        for command in [view(path), create(path, "x"), delete(path), rename(path, "/memories/x")] {
            assert_eq!(ask(subject, command), expected, "{path}");
        }
    }
    for path in ["/memories/a\\b", "/memories/a\0b", "/memories/.haversack/x", "/memories/manifest.json"] {
        let (text, is_error) = ask(subject, create(path, "x"));
        assert!(is_error && text.starts_with("Error: The path "), "{text}");
    }
    let (text, is_error) = ask(subject, view(&format!("/elsewhere/{}", "x".repeat(100_000))));
    assert!(is_error && text.len() < 2000, "a long path is not repeated whole");
}

fn listings(subject: &Subject) {
    for (key, bytes) in [
        ("b.md", 1536),
        ("a/deep/hidden_by_depth.md", 1),
        ("a/x.md", 0),
        ("a/.hidden", 1),
        (".git/config", 1),
        ("node_modules/p/index.js", 1),
        ("a/node_modules/index.js", 1),
        ("c.md", 2048),
    ] {
        subject.put(key, vec![b'x'; bytes]);
    }
    assert_eq!(
        ask(subject, view("/memories")),
        done(
            "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items and node_modules:\n4.0K\t/memories\n4.0K\t/memories/a/\n4.0K\t/memories/a/deep/\n0B\t/memories/a/x.md\n1.5K\t/memories/b.md\n2.0K\t/memories/c.md"
        )
    );
    let below = "\n4.0K\t/memories/a/deep/\n1B\t/memories/a/deep/hidden_by_depth.md\n0B\t/memories/a/x.md";
    for path in ["/memories/a", "/memories/a/"] {
        let header = format!(
            "Here're the files and directories up to 2 levels deep in {path}, excluding hidden items and node_modules:\n4.0K\t{path}"
        );
        assert_eq!(ask(subject, view(path)), done(&format!("{header}{below}")));
    }
    let ranged = ask(subject, view_range("/memories/a", [2, 2]));
    assert_eq!(ranged, ask(subject, view("/memories/a")), "a range means nothing for a short listing");
    assert!(!ask(subject, view("/memories/a/.hidden")).1, "what is hidden can be viewed by its name");
}

fn listings_that_are_too_long(subject: &Subject) {
    for number in 0..1000 {
        subject.put(&format!("note-{number:04}.md"), "x");
    }
    let (whole, _) = ask(subject, view("/memories"));
    assert!(whole.len() < 17_000, "{}", whole.len());
    let last = whole.lines().last().expect("lines");
    let next =
        last.split("view_range [").nth(1).and_then(|rest| rest.split(',').next()).expect("a next line");
    assert!(last.starts_with("[Lines 1-") && last.contains(" of 1001 are shown."), "{last}");
    let mut seen: Vec<String> =
        whole.lines().filter(|line| line.contains("/note-")).map(str::to_owned).collect();
    let mut next: i64 = next.parse().expect("a number");
    while seen.len() < 1000 {
        let (part, _) = ask(subject, view_range("/memories", [next, -1]));
        let more: Vec<String> =
            part.lines().filter(|line| line.contains("/note-")).map(str::to_owned).collect();
        assert!(!more.is_empty());
        next += i64::try_from(more.len()).expect("few");
        seen.extend(more);
    }
    seen.dedup();
    assert_eq!(seen.len(), 1000, "the rest can be seen");
}

fn ranges(subject: &Subject) {
    subject.put("a.md", "1\n2\n3");
    let header = "Here's the content of /memories/a.md with line numbers:\n";
    for (range, body) in [
        ([2, 2], "     2\t2"),
        ([2, -1], "     2\t2\n     3\t3"),
        ([-3, 99], "     1\t1\n     2\t2\n     3\t3"),
        ([3, 2], ""),
        ([7, 9], ""),
    ] {
        let answer = ask(subject, view_range("/memories/a.md", range));
        assert_eq!(answer, done(&format!("{header}{body}")), "{range:?}");
    }
}

fn long_texts_are_cut_with_a_note(subject: &Subject) {
    let text: String = (1..=2000).map(|line| format!("line {line:04} ----\n")).collect();
    subject.put("long.md", text.clone());
    let mut seen = String::new();
    let mut from = 1;
    loop {
        let (part, is_error) = ask(subject, view_range("/memories/long.md", [from, -1]));
        assert!(!is_error);
        assert!(part.chars().count() < 24_000);
        for line in part.lines().skip(1).filter(|line| line.contains("\tline")) {
            seen.push_str(line.split_once('\t').expect("numbered").1);
            seen.push('\n');
        }
        let Some((_, rest)) =
            part.split_once("To see the following lines, view /memories/long.md with view_range [")
        else {
            break;
        };
        from = rest.split(',').next().expect("a number").parse().expect("a number");
    }
    assert_eq!(seen, text);
    subject.put("many.md", "\n".repeat(999_999));
    assert_eq!(
        ask(subject, view("/memories/many.md")),
        refused("File /memories/many.md exceeds maximum line limit of 999,999 lines.")
    );
}

fn images(subject: &Subject) {
    let png = b"\x89PNG\r\n\x1a\n....".to_vec();
    let jpeg = b"\xff\xd8\xff\xe0....".to_vec();
    for (key, bytes, media_type) in [
        ("a.png", &png, "image/png"),
        ("b.JPG", &jpeg, "image/jpeg"),
        ("c.jpeg", &jpeg, "image/jpeg"),
        ("mislabelled.jpg", &png, "image/png"),
    ] {
        subject.put(key, bytes.clone());
        let answer = block_on(tool(subject).answer(view(&format!("/memories/{key}"))));
        assert!(!answer.is_error);
        assert_eq!(answer.content, Content::Image { media_type, bytes: bytes.clone().into() });
    }
    subject.put("text.png", "not an image");
    assert!(ask(subject, view("/memories/text.png")).0.ends_with("     1\tnot an image"));
    let mut large = png.clone();
    large.resize(6 * 1024 * 1024, 0);
    subject.put("large.png", large);
    assert_eq!(
        ask(subject, view("/memories/large.png")),
        refused("The image /memories/large.png is too large to be viewed: 6291456 bytes of at most 5242880.")
    );
}

fn what_is_not_text(subject: &Subject) {
    subject.put("a.bin", &b"ab\xff"[..]);
    let expected = refused(
        "Error: The file /memories/a.bin is not a text file (it is not valid UTF-8) and was left as it is",
    );
    for command in
        [view("/memories/a.bin"), str_replace("/memories/a.bin", "a", "b"), insert("/memories/a.bin", 0, "x")]
    {
        assert_eq!(ask(subject, command), expected);
    }
}

fn inserting(subject: &Subject) {
    for (before, line, text, after) in [
        ("a\nb", 1, "x", "a\nx\nb\n"),
        ("a\n", 1, "x\n\n\n", "a\nx\n"),
        ("", 0, "x", "x\n"),
        ("a", 0, "x", "x\na\n"),
        ("a\n", 0, "", "\na\n"),
        ("a\r\n", 1, "x\r\n", "a\r\nx\r\n"),
    ] {
        subject.put("a.md", before);
        assert!(!ask(subject, insert("/memories/a.md", line, text)).1);
        assert_eq!(subject.text("a.md").as_deref(), Some(after), "{before:?} {line} {text:?}");
    }
}

fn replacing_by_nothing(subject: &Subject) {
    subject.put("a.md", "keep drop keep");
    assert!(!ask(subject, str_replace("/memories/a.md", " drop", "")).1);
    assert_eq!(subject.text("a.md").as_deref(), Some("keep keep"));
}

#[test]
fn a_storage_that_fails_is_an_answer() {
    let (subject, files, _) = Subject::faulty();
    files.plan([Fault::Refused(ErrorKind::Full)]);
    let (text, is_error) = ask(&subject, create("/memories/a.md", "x"));
    assert!(is_error);
    assert_eq!(
        text,
        "Error: /memories/a.md: could not create a.md: the storage refused: could not lock store: a fault was injected"
    );
}
