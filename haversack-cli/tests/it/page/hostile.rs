//! Memory that attacks the page: HTML, scripts, escapes, marks of direction, very long and binary files, files that vanish.

use super::Opened;
use crate::environment::TestEnv;

const HOSTILE: &str = "---\nname: \"><script>alert('name')</script>\ntype: <img src=x onerror=alert(1)>\n\
    pinned: true\nsuperseded_by: \"><img src=x onerror=alert(4)>\n---\n\
    # <script>alert(1)</script>\n- <img src=\"https://evil.example/i.png\" onerror=alert(1)>\n\
    [click](javascript:alert(1)) ![image](https://evil.example/x.png) [[\"><svg onload=alert(1)>]]\n\
    </textarea><script>alert(2)</script> </title></main> {{7*7}} \u{1b}[31mred \u{202e}txet\u{202c} \u{0}\u{7}\n\
    <a href=\"https://evil.example\">away</a>\n";

#[test]
fn nothing_in_a_memory_becomes_an_element() {
    let env = TestEnv::new();
    env.run(&["create", "hostile.md", "x"]);
    let directory = env.path(".local/share/haversack/memory");
    std::fs::write(directory.join("hostile.md"), HOSTILE.replace('\u{0}', "")).expect("written");
    std::fs::write(directory.join("<img src=x onerror=alert(1)>.md"), HOSTILE).expect("written");
    std::fs::write(directory.join("binary.bin"), [0u8, 159, 146, 150, 60, 98, 62]).expect("written");
    std::fs::create_dir(directory.join("inbox")).expect("made");
    std::fs::write(directory.join("inbox/abcdef012345.json"), PROPOSAL).expect("written");
    let opened = Opened::start(&env, &[]);
    let cookie = opened.enter();
    for view in [
        "now",
        "memories",
        "memories?q=alert+script",
        "memories?q=%3Cscript%3Ealert(3)%3C/script%3E",
        "memories?group=%22%3E%3Cscript%3E&kind=%3Cscript%3E&age=%3Cscript%3E",
        "memories?deleted=%3Cscript%3Ealert(4)%3C/script%3E",
        "memory?path=hostile.md",
        "memory?path=hostile.md&show=source",
        "memory?path=hostile.md&show=authors",
        "memory?path=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E.md",
        "memory?path=%3Cscript%3E.md",
        "memory?path=binary.bin",
        "edit?path=hostile.md",
        "edit?path=binary.bin",
        "undo?path=%3Cscript%3E",
        "undo?number=%3Cscript%3E",
        "change?number=%3Cscript%3E",
        "time?by=%3Cscript%3E&at=%3Cscript%3E&machine=%3Cscript%3E",
        "graph?group=%3Cscript%3E",
        "graph?around=%3Cscript%3E",
        "graph?group=%2F",
        "inbox",
        "inbox?done=%3Cscript%3E",
        "tidy",
        "conflicts",
        "machines",
        "health",
        "next",
    ] {
        let answer = opened.get(&cookie, view);
        assert!([200, 422].contains(&answer.status), "{view}: {} {}", answer.status, answer.body);
        let body = answer.body.to_lowercase();
        // A field has the text as it is, to be edited.
        let is_field = view.starts_with("edit") || view.starts_with("inbox");
        // Our own document has one script and one style, both by address, and no image.
        assert_eq!(
            body.matches("<script").count(),
            usize::from(body.contains("<!doctype")),
            "{view}: {body}"
        );
        for opening in
            ["<img", "<svg onload", "onerror=\"", "href=\"javascript", "href=\"https://", "src=\"https://"]
        {
            assert!(!body.contains(opening), "{view}: {opening}: {body}");
        }
        assert!(!body.contains('\u{202e}') || is_field, "{view}: a mark of direction is shown by its number");
        assert!(!body.contains('\u{1b}') || is_field, "{view}");
    }
    let inbox = opened.get(&cookie, "inbox").body;
    assert!(inbox.contains("1 memory is proposed") && inbox.contains("U+001B"), "{inbox}");
    let shown = opened.get(&cookie, "memory?path=hostile.md");
    assert!(shown.body.contains("U+202E") && shown.body.contains("&lt;script&gt;alert(1)"), "{}", shown.body);
}

#[test]
fn long_binary_odd_and_vanished_files_are_told_plainly() {
    let env = TestEnv::new();
    env.run(&["create", "small.md", "x"]);
    let directory = env.path(".local/share/haversack/memory");
    std::fs::write(directory.join("large.md"), "a line of the large file\n".repeat(420_000))
        .expect("written");
    std::fs::write(directory.join("marks.md"), "[[".repeat(100_000)).expect("written");
    std::fs::write(directory.join("binary.bin"), [0u8, 255, 1]).expect("written");
    let opened = Opened::start(&env, &[]);
    let cookie = opened.enter();
    let large = opened.get(&cookie, "memory?path=large.md");
    assert!(large.body.len() < 400_000 && large.body.contains("haversack view"), "{}", large.body.len());
    assert!(opened.get(&cookie, "edit?path=large.md").body.contains("too long to edit"));
    assert_eq!(opened.get(&cookie, "memory?path=marks.md").status, 200);
    assert!(opened.get(&cookie, "memory?path=binary.bin").body.contains("not text"));
    for path in
        ["../../etc/passwd", "%2e%2e/%2e%2e/x", "/", "", "a%00b", ".haversack/store.json", "small.md/x"]
    {
        let answer = opened.get(&cookie, &format!("memory?path={path}"));
        assert!(
            [200, 422].contains(&answer.status) && !answer.body.contains("root:"),
            "{path}: {}",
            answer.status
        );
    }
    assert_eq!(opened.get(&cookie, "memories").status, 200);
    std::fs::remove_file(directory.join("small.md")).expect("removed");
    let gone = opened.get(&cookie, "memory?path=small.md");
    assert!(gone.body.contains("It was deleted or moved"), "{}", gone.body);
    assert_eq!(opened.get(&cookie, "memories").status, 200);
    let too_large = "x".repeat(5 * 1024 * 1024);
    let path = format!("/{}/edit", opened.prefix);
    let origin = format!("http://{}", opened.address);
    let headers: [(&str, &str); 3] =
        [("Host", opened.address.as_str()), ("Cookie", &cookie), ("Origin", &origin)];
    assert!([413, 0].contains(&opened.send("POST", &path, &headers, &too_large).status));
}

#[test]
fn outdated_memories_come_last_in_a_search_and_are_labelled() {
    let env = TestEnv::new();
    env.run(&[
        "create",
        "a.md",
        "---\nname: first\nsuperseded_by: b.md\n---\n\nThe lamp: a lamp, the lamp.\n",
    ]);
    env.run(&["create", "b.md", "The lamp turns, says this text, which is longer than the other one.\n"]);
    let opened = Opened::start(&env, &[]);
    let body = opened.get(&opened.enter(), "memories?q=lamp").body;
    let (current, label) = (body.find("b.md"), body.find("superseded by b.md"));
    assert!(current.is_some() && current < label, "{body}");
}

/// A proposal that attacks: every machine of a store can write one.
const PROPOSAL: &str = r#"{"id":"abcdef012345","kind":"<img src=x onerror=alert(1)>","name":"\"><script>alert(1)</script>",
"target":"notes/<img src=x onerror=alert(1)>.md","add":"</textarea><script>alert(2)</script> \u202etxet\u202c \u001b[31mred","sources":["<script>x</script>"],
"who":"<b onmouseover=alert(1)>me</b>","why":"<img src=https://evil.example/x.png>","by":"</p><script>alert(3)</script>"}"#;

/// The list of memories is kept between two pages, and is never believed over the files.
#[test]
fn stored_list_is_checked_against_the_files() {
    let env = TestEnv::new();
    env.run(&["create", "changed.md", "---\nname: First title\n---\nx\n"]);
    env.run(&["create", "deleted.md", "---\nname: Gone title\n---\nx\n"]);
    env.run(&["create", "same.md", "---\nname: Same title\n---\nx\n"]);
    let stored = env.path(".local/share/haversack/index/page.json");
    let directory = env.path(".local/share/haversack/memory");
    let end = || assert!(Opened::start(&env, &["--idle", "1s"]).process.wait().expect("ended").success());
    let titles = || {
        let opened = Opened::start(&env, &[]);
        let cookie = opened.enter();
        let list = opened.get(&cookie, "memories").body;
        ["First title", "Gone title", "Same title", "Later title"].map(|title| list.contains(title))
    };
    end();
    let text = std::fs::read_to_string(&stored).expect("stored");
    assert!(text.contains("First title") && text.contains("Gone title"), "{text}");
    std::fs::write(directory.join("changed.md"), "---\nname: Later title\n---\nx\n").expect("written");
    std::fs::remove_file(directory.join("deleted.md")).expect("removed");
    assert_eq!(titles(), [false, false, true, true]);
    for damaged in ["", "{}", "\u{0}garbage", &text[..text.len() / 2], &text.replace("same.md", "../x")] {
        std::fs::write(&stored, damaged).expect("written");
        assert_eq!(titles(), [false, false, true, true], "{damaged}");
    }
}
