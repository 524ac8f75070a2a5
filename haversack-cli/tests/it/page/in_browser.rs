//! The page in a real browser: search, edit, a lost race, a conflict, undo, keyboard, no scripts, many memories, attackers.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::json;

use super::Opened;
use super::browser::Window;
use super::sample::Sample;
use crate::environment::TestEnv;

const PORTS: &str = "claude_memory/lighthouse/project_ports.md";

/// Every view of the sample, by its address.
pub(super) const VIEWS: [&str; 22] = [
    "now",
    "memories",
    "memories?q=port",
    "memory?path=claude_memory%2Flighthouse%2Fproject_ports.md",
    "memory?path=claude_memory%2Flighthouse%2Fproject_ports.md&show=source",
    "memory?path=claude_memory%2Flighthouse%2Fproject_ports.md&show=authors",
    "edit?path=claude_memory%2Flighthouse%2Freference_lamp.md",
    "undo?path=claude_memory%2Fharbour%2Fproject_deploys.md",
    "change?number=2",
    "conflicts",
    "inbox",
    "tidy",
    "next",
    "time",
    "time?by=week",
    "time?by=year",
    "graph",
    "graph?around=claude_memory%2Flighthouse%2Freference_lamp.md",
    "memory?path=claude_memory%2Flighthouse%2Freference_lens.md",
    "memory?path=nowhere.md",
    "machines",
    "health",
];

fn window(opened: &Opened) -> Option<Window> {
    let mut window = Window::open()?;
    window.look(1280, 900, "light");
    window.enter(&opened.entrance());
    Some(window)
}

fn address(opened: &Opened, view: &str) -> String {
    format!("http://{}/{}/{view}", opened.address, opened.prefix)
}

fn desktop(sample: &Sample) -> Opened {
    Opened::start(&sample.env, &["--home", "desktop"])
}

fn content(sample: &Sample, file: &str) -> String {
    std::fs::read_to_string(sample.env.path("desktop/memory").join(file)).unwrap_or_default()
}

/// The browser comes from a local file, which counts as another site, and still brings the cookie to the first view.
#[test]
fn local_file_leads_into_the_page() {
    let env = TestEnv::new();
    let opened = Opened::start(&env, &[]);
    let Some(mut window) = Window::open() else { return };
    let file = env.path("open.html");
    let document =
        format!("<!doctype html><meta http-equiv=\"refresh\" content=\"0;url={}\"><p>x", opened.entrance());
    std::fs::write(&file, document).expect("written");
    window.enter(&format!("file://{}", file.display()));
    assert!(window.text().contains("Memories"), "{}", window.text());
    assert!(!window.eval("location.href.includes('code')").as_bool().unwrap_or(true));
    assert_eq!(window.eval("document.cookie"), json!(""), "no script can read the cookie");
}

#[test]
fn search_edit_lost_race_resolve_and_undo() {
    let sample = Sample::new();
    let opened = desktop(&sample);
    let Some(mut window) = window(&opened) else { return };
    assert!(window.text().contains("thing"), "{}", window.text());

    // Search as you type, from the keyboard.
    window.go(&address(&opened, "memories"));
    window.press("/");
    window.insert("pulses");
    window.wait("document.querySelectorAll('#results mark').length > 0");
    assert!(window.text().contains("The lamp driver"), "{}", window.text());
    assert!(window.eval("location.search.includes('q=puls')").as_bool().unwrap_or(false));

    // A conflict is settled with one click.
    window.go(&address(&opened, "conflicts"));
    let shown = window.text();
    assert!(shown.contains("5434, since the move") && shown.contains("5440 until Friday"), "{shown}");
    window.click_and_wait(".sides form button", "document.body.innerText.includes('Settled')");
    let settled = content(&sample, PORTS);
    assert!(settled.contains("5434, since") != settled.contains("5440 until"), "{settled}");

    // An edit, and its undo.
    let lamp = "claude_memory/lighthouse/reference_lamp.md";
    window.go(&address(&opened, "edit?path=claude_memory%2Flighthouse%2Freference_lamp.md"));
    window.eval("(() => { const text = document.querySelector('textarea'); text.value = text.value.replace('45 ms', '50 ms'); })()");
    window.click_and_wait("form[action=edit] button.main", "document.body.innerText.includes('Saved.')");
    assert!(content(&sample, lamp).contains("50 ms between"));
    window.click_and_wait(".notice a", "!!document.querySelector('form[action=undo]')");
    window.click_and_wait("form[action=undo] button.main", "document.body.innerText.includes('Undone')");
    assert!(content(&sample, lamp).contains("45 ms between"));

    // An agent writes while the user edits: the user's text is shown, the agent's stays.
    window.go(&address(&opened, "edit?path=claude_memory%2Flighthouse%2Freference_lamp.md"));
    let told = sample.env.run(&["--home", "desktop", "append", lamp, "A line of an agent.\n"]);
    assert!(told.starts_with("exit 0\n"), "{told}");
    window.eval("(() => { const text = document.querySelector('textarea'); text.value = text.value.replace('45 ms', '60 ms'); })()");
    window.click_and_wait(
        "form[action=edit] button.main",
        "document.body.innerText.includes('Your edit was not saved')",
    );
    assert!(
        window.eval("document.querySelector('textarea').value.includes('60 ms')").as_bool().unwrap_or(false)
    );
    assert!(window.text().contains("A line of an agent."), "{}", window.text());
    assert!(
        content(&sample, lamp).contains("45 ms between")
            && content(&sample, lamp).contains("A line of an agent.")
    );
}

#[test]
fn proposal_is_accepted_memory_is_pinned_and_graph_is_moved() {
    let sample = Sample::new();
    let opened = desktop(&sample);
    let Some(mut window) = window(&opened) else { return };
    window.go(&address(&opened, "inbox"));
    let shown = window.text();
    assert!(shown.contains("memories are proposed") && shown.contains("tide tests"), "{shown}");
    let before = window.eval("document.querySelectorAll('article').length").as_u64().unwrap_or(0);
    window.click_and_wait("article button.main", "document.body.innerText.includes('Accepted.')");
    window.go(&address(&opened, "inbox"));
    // Other words, then a rejection.
    window.eval("(() => { document.querySelector('article details').open = true; document.querySelector('article textarea').value = 'My own words for it.'; })()");
    window.click_and_wait("article details button", "document.body.innerText.includes('Accepted.')");
    assert!(window.text().contains("My own words for it."), "{}", window.text());
    window.go(&address(&opened, "inbox"));
    assert_eq!(window.eval("document.querySelectorAll('article').length").as_u64(), Some(before - 2));
    window.click_and_wait("article button.bad", "document.body.innerText.includes('Rejected.')");

    // Pin, and the label in the view of tidying.
    window.go(&address(&opened, "memory?path=claude_memory%2Flighthouse%2Freference_lamp.md"));
    window.click_and_wait("form[action=pin] button", "document.body.innerText.includes('Pinned.')");
    assert!(content(&sample, "claude_memory/lighthouse/reference_lamp.md").contains("pinned: true"));
    window.go(&address(&opened, "tidy"));
    assert!(
        window.text().contains("The lamp driver") && window.text().contains("At the next tidy"),
        "{}",
        window.text()
    );
    window.go(&address(&opened, "memory?path=claude_memory%2Flighthouse%2Freference_lamp.md"));
    window.click_and_wait("form[action=pin] button", "document.body.innerText.includes('Unpinned.')");
    assert!(!content(&sample, "claude_memory/lighthouse/reference_lamp.md").contains("pinned"));

    // The graph is moved and made larger, and a click opens a memory.
    window.go(&address(&opened, "graph"));
    let view = window.eval("document.querySelector('.graph svg').getAttribute('viewBox')");
    window.eval("document.querySelector('button[data-zoom=in]').click()");
    assert_ne!(window.eval("document.querySelector('.graph svg').getAttribute('viewBox')"), view);
    window.eval("document.querySelector('button[data-zoom=whole]').click()");
    let place = window.eval("(() => { const box = document.querySelector('.graph a').getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()");
    let mouse = |window: &mut Window, kind: &str, x: f64, y: f64| {
        let buttons = u32::from(kind != "mouseReleased");
        window.call(
            "Input.dispatchMouseEvent",
            json!({ "type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1 }),
        );
    };
    let (x, y) = (place[0].as_f64().expect("a number"), place[1].as_f64().expect("a number"));
    // A drag that begins on a box moves the picture and opens nothing.
    mouse(&mut window, "mousePressed", x, y);
    mouse(&mut window, "mouseMoved", x + 40.0, y + 30.0);
    mouse(&mut window, "mouseMoved", x + 80.0, y + 60.0);
    mouse(&mut window, "mouseReleased", x + 80.0, y + 60.0);
    assert_ne!(window.eval("document.querySelector('.graph svg').getAttribute('viewBox')"), view);
    assert!(window.eval("location.pathname.endsWith('/graph')").as_bool().unwrap_or(false));
    window.eval("document.querySelector('button[data-zoom=whole]').click()");
    window.eval("window.isOld = true");
    mouse(&mut window, "mousePressed", x, y);
    mouse(&mut window, "mouseReleased", x, y);
    window.wait("!window.isOld && location.pathname.endsWith('/memory')");
}

#[test]
fn two_tabs_and_an_agent_edit_one_memory_and_lose_nothing() {
    let sample = Sample::new();
    let opened = desktop(&sample);
    let Some(mut window) = window(&opened) else { return };
    let lamp = "claude_memory/lighthouse/reference_lamp.md";
    let edit = address(&opened, "edit?path=claude_memory%2Flighthouse%2Freference_lamp.md");
    window.go(&edit);
    // The second tab is a document of its own in the same browser.
    window.eval(&format!(
        "fetch({}).then((answer) => answer.text()).then((text) => {{ window.second = new DOMParser().parseFromString(text, 'text/html'); return true; }})",
        json!(edit)
    ));
    let told = sample.env.run(&["--home", "desktop", "append", lamp, "The agent's line.\n"]);
    assert!(told.starts_with("exit 0\n"), "{told}");
    window.eval(
        "(() => { const text = document.querySelector('textarea'); text.value += 'The first tab.\\n'; })()",
    );
    window.eval("window.savedSecond = window.second");
    let refused = window.eval(
        "(async () => { const form = window.second.querySelector('form[action=edit]'); const fields = new URLSearchParams(new FormData(form)); \
         fields.set('text', fields.get('text') + 'The second tab.\\n'); \
         const answer = await fetch('edit', { method: 'POST', body: fields, redirect: 'manual' }); return [answer.status, await answer.text()]; })()",
    );
    assert_eq!(refused[0], json!(409), "{refused}");
    let told = refused[1].as_str().unwrap_or_default();
    assert!(told.contains("The second tab.") && told.contains("agent"), "{told}");
    window.click_and_wait(
        "form[action=edit] button.main",
        "document.body.innerText.includes('Your edit was not saved')",
    );
    assert!(
        window
            .eval("document.querySelector('textarea').value.includes('The first tab.')")
            .as_bool()
            .unwrap_or(false)
    );
    assert!(content(&sample, lamp).contains("The agent's line.") && !content(&sample, lamp).contains("tab."));
    // With both in view, the user saves again.
    window.eval("(() => { const text = document.querySelector('textarea'); text.value += 'The agent\\'s line.\\n'; })()");
    window.click_and_wait("form[action=edit] button.main", "document.body.innerText.includes('Saved.')");
    let now = content(&sample, lamp);
    assert!(now.contains("The agent's line.") && now.contains("The first tab."), "{now}");
}

#[test]
fn keyboard_alone_reaches_opens_and_saves() {
    let sample = Sample::new();
    let opened = desktop(&sample);
    let Some(mut window) = window(&opened) else { return };
    window.press("Tab");
    assert_eq!(window.eval("document.activeElement.textContent"), json!("Skip to the content"));
    window.go(&address(&opened, "memories?q=tides"));
    window.press("j");
    window.eval("window.isOld = true");
    window.press("Enter");
    window.wait("!window.isOld && location.pathname.endsWith('/memory')");
    let mut steps = 0;
    while window.eval("document.activeElement.textContent") != json!("Edit") {
        window.press("Tab");
        steps += 1;
        assert!(steps < 40, "the button is reached by Tab");
    }
    window.press("Enter");
    window.wait("location.pathname.endsWith('/edit') && document.readyState === 'complete'");
    while window.eval("document.activeElement.tagName") != json!("TEXTAREA") {
        window.press("Tab");
        steps += 1;
        assert!(steps < 80, "the text is reached by Tab");
    }
    window.insert("typed ");
    window.press("Tab");
    window.press("Enter");
    window.wait("document.body.innerText.includes('Saved.')");
    let path = window.eval("new URLSearchParams(location.search).get('path')");
    assert!(content(&sample, path.as_str().unwrap_or_default()).contains("typed "), "{path}");
}

#[test]
fn page_works_without_scripts() {
    let sample = Sample::new();
    let opened = desktop(&sample);
    let Some(mut window) = window(&opened) else { return };
    window.without_scripts();
    for view in VIEWS {
        window.call("Page.navigate", json!({ "url": address(&opened, view) }));
        let place = view.split('?').next().unwrap_or_default();
        window.wait(&format!("location.pathname.endsWith('/{place}') && document.readyState === 'complete' && !!document.querySelector('main h1')"));
        assert!(window.text().len() > 60, "{view}");
    }
    window.call("Page.navigate", json!({ "url": address(&opened, "memories?q=tides") }));
    window.wait("document.querySelectorAll('#results mark').length > 0");
    window.call("Page.navigate", json!({ "url": address(&opened, "conflicts") }));
    window.wait("!!document.querySelector('.sides form button')");
    window.eval("document.querySelector('.sides form button').click()");
    window.wait("document.body.innerText.includes('Settled')");
}

#[test]
fn keyboard_alone_accepts_and_undoes() {
    let sample = Sample::new();
    let opened = desktop(&sample);
    let Some(mut window) = window(&opened) else { return };
    let reach = |window: &mut Window, text: &str| {
        let mut steps = 0;
        while window.eval("document.activeElement.textContent.trim()") != json!(text) {
            window.press("Tab");
            steps += 1;
            assert!(steps < 80, "{text} is reached by Tab: {}", window.text());
        }
        window.eval("window.isOld = true");
        window.press("Enter");
    };
    window.go(&address(&opened, "inbox"));
    reach(&mut window, "Accept");
    window.wait("!window.isOld && document.body && document.body.innerText.includes('Accepted.')");
    let path = window.eval("new URLSearchParams(location.search).get('path')");
    let path = path.as_str().unwrap_or_default().to_owned();
    assert!(!content(&sample, &path).is_empty(), "{path}");
    reach(&mut window, "Undo");
    window.wait("!window.isOld && !!document.querySelector('form[action=undo]') && document.readyState === 'complete'");
    let button = window.eval("document.querySelector('form[action=undo] button.main').textContent.trim()");
    reach(&mut window, button.as_str().unwrap_or_default());
    window.wait("!window.isOld && document.body && document.body.innerText.includes('Undone')");
    assert_eq!(content(&sample, &path), "");
}

#[test]
fn forms_work_without_scripts() {
    let sample = Sample::new();
    let opened = desktop(&sample);
    let Some(mut window) = window(&opened) else { return };
    window.without_scripts();
    let lamp = "claude_memory/lighthouse/reference_lamp.md";
    let go = |window: &mut Window, view: &str| {
        let place = view.split('?').next().unwrap_or_default();
        window.call("Page.navigate", json!({ "url": address(&opened, view) }));
        window.wait(&format!("location.pathname.endsWith('/{place}') && document.readyState === 'complete' && !!document.querySelector('main h1')"));
    };
    let click = |window: &mut Window, selector: &str, told: &str| {
        window.eval(&format!("document.querySelector({}).click()", json!(selector)));
        window.wait(&format!("document.body.innerText.includes({})", json!(told)));
    };
    go(&mut window, "edit?path=claude_memory%2Flighthouse%2Freference_lamp.md");
    window.eval("(() => { const text = document.querySelector('textarea'); text.value = text.value.replace('45 ms', '50 ms'); })()");
    click(&mut window, "form[action=edit] button.main", "Saved.");
    assert!(content(&sample, lamp).contains("50 ms between"));
    click(&mut window, "form[action=pin] button", "Pinned.");
    assert!(content(&sample, lamp).contains("pinned: true"));
    go(&mut window, "undo?path=claude_memory%2Flighthouse%2Freference_lamp.md");
    click(&mut window, "form[action=undo] button.main", "Undone");
    assert!(!content(&sample, lamp).contains("pinned: true"));
    go(&mut window, "inbox");
    click(&mut window, "article button.main", "Accepted.");
}

#[test]
fn axe_finds_nothing_serious_in_refused_forms_and_the_static_page() {
    let sample = Sample::new();
    let opened = desktop(&sample);
    let Some(mut window) = window(&opened) else { return };
    let lamp = "claude_memory/lighthouse/reference_lamp.md";
    for (action, told) in [("edit", "Your edit was not saved"), ("delete", "so it was not deleted")] {
        let view = if action == "edit" { "edit" } else { "memory" };
        window.go(&address(&opened, &format!("{view}?path=claude_memory%2Flighthouse%2Freference_lamp.md")));
        let told_by_append = sample.env.run(&["--home", "desktop", "append", lamp, "A line of an agent.\n"]);
        assert!(told_by_append.starts_with("exit 0\n"), "{told_by_append}");
        window.eval("(() => { const text = document.querySelector('textarea'); if (text) text.value += 'Mine.\\n'; })()");
        window.click_and_wait(
            &format!("form[action={action}] button"),
            &format!("document.body.innerText.includes({})", json!(told)),
        );
        let found = window.axe();
        assert!(found.is_empty(), "{action}: {found:#?}");
    }
    let told = sample.env.run(&["--home", "desktop", "page", "--static", "memory.html"]);
    assert!(told.starts_with("exit 0\n"), "{told}");
    for scheme in ["light", "dark"] {
        window.look(1280, 900, scheme);
        window.go(&format!("file://{}", sample.env.path("memory.html").display()));
        let found = window.axe();
        assert!(found.is_empty(), "static, {scheme}: {found:#?}");
    }
}

#[test]
fn axe_finds_nothing_serious_in_any_view() {
    let sample = Sample::new();
    let opened = desktop(&sample);
    let Some(mut window) = window(&opened) else { return };
    for (width, scheme) in [(1280, "light"), (1280, "dark"), (360, "light"), (3840, "light")] {
        window.look(width, 800, scheme);
        for view in VIEWS {
            window.go(&address(&opened, view));
            let found = window.axe();
            assert!(found.is_empty(), "{view} at {width} {scheme}: {found:#?}");
            let overflow =
                window.eval("document.documentElement.scrollWidth - document.documentElement.clientWidth");
            assert!(overflow.as_i64().unwrap_or(0) <= 0, "{view} at {width}: {overflow} pixels too wide");
        }
    }
}

/// Serves one document to everybody, on a port of its own, and returns the port.
fn attacker(document: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("it listens").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                document.len()
            );
            let answer = format!("{head}{document}");
            // A browser opens connections in advance and sends nothing on them for a while.
            std::thread::spawn(move || {
                let mut request = [0u8; 4096];
                drop(stream.read(&mut request));
                drop(stream.write_all(answer.as_bytes()));
            });
        }
    });
    port
}

#[test]
fn other_origins_rebound_names_and_frames_get_nothing() {
    let sample = Sample::new();
    let opened = desktop(&sample);
    let Some(mut window) = window(&opened) else { return };
    let before = content(&sample, PORTS);
    // The worst case: the attacker knows the whole address, and the browser has the cookie.
    let here = address(&opened, "memory?path=claude_memory%2Flighthouse%2Fproject_ports.md");
    let delete = address(&opened, "delete");
    let document = format!(
        "<!doctype html><title>x</title><iframe src=\"{here}\"></iframe>\
         <form method=post action=\"{delete}\"><input name=path value=\"{PORTS}\"><input name=seen value=x></form>\
         <script>window.got = []; Promise.allSettled([\
         fetch('{here}', {{credentials: 'include'}}).then((answer) => answer.text()),\
         fetch('{here}', {{credentials: 'include', mode: 'no-cors'}}).then((answer) => answer.text()),\
         fetch('{delete}', {{method: 'POST', credentials: 'include', mode: 'no-cors', body: 'path={PORTS}'}}).then((answer) => answer.text()),\
         ]).then((all) => {{ window.got = all.map((one) => one.value || ''); window.isDone = true; }})</script>"
    );
    let port = attacker(document);
    // Another port of this machine, and another name: neither reads a byte.
    for site in [format!("http://127.0.0.1:{port}/"), format!("http://evil.example:{port}/")] {
        window.call("Page.navigate", json!({ "url": site }));
        window.wait("window.isDone === true");
        let got = window.eval("window.got.join('')").as_str().unwrap_or_default().to_owned();
        assert!(!got.contains("listens"), "{site}: {got}");
        // The browser itself holds no text of ours in the frame.
        window.wait("document.readyState === 'complete'");
        let frames = window.texts_of_frames();
        assert_eq!(frames.len(), 1, "{site}: {frames:?}");
        assert!(!frames[0].contains("listens") && !frames[0].contains("Memories"), "{site}: {frames:?}");
        window.eval("document.forms[0].submit()");
        window.wait("location.pathname.endsWith('/delete') && document.readyState === 'complete'");
        assert!(!window.text().contains("listens"), "{}", window.text());
        assert_eq!(content(&sample, PORTS), before, "{site}");
    }
    // The look at frames is no blind one: it reads a frame that lets itself be shown.
    let framed = attacker("<!doctype html><p>a text in a frame".to_owned());
    let outer = attacker(format!("<!doctype html><iframe src=\"http://127.0.0.1:{framed}/\"></iframe>"));
    window.go(&format!("http://127.0.0.1:{outer}/"));
    assert_eq!(window.texts_of_frames(), ["a text in a frame"]);
    // A name that was pointed at this machine, with our own port.
    let own_port = opened.address.rsplit(':').next().expect("a port");
    let rebound = here.replace(&opened.address, &format!("evil.example:{own_port}"));
    window.call("Page.navigate", json!({ "url": rebound }));
    window.wait("location.hostname === 'evil.example' && document.readyState === 'complete'");
    assert!(window.text().contains("does not have that name"), "{}", window.text());
    // The user's own window still works.
    window.go(&address(&opened, "now"));
    assert!(window.text().contains("Memories"));
}

#[test]
fn hostile_memory_runs_nothing_and_asks_nobody() {
    let env = TestEnv::new();
    env.run(&["create", "hostile.md", "x"]);
    let port = attacker("asked".to_owned());
    let hostile = format!(
        "# <script>window.isHacked = true</script>\n<img src=\"http://127.0.0.1:{port}/a.png\" onerror=\"window.isHacked = true\">\n\
         ![i](http://127.0.0.1:{port}/b.png) <style>@import 'http://127.0.0.1:{port}/c.css';</style>\n</textarea><script>window.isHacked = true</script>\n"
    );
    std::fs::write(env.path(".local/share/haversack/memory/hostile.md"), hostile).expect("written");
    let opened = Opened::start(&env, &[]);
    let Some(mut window) = window(&opened) else { return };
    for view in [
        "memory?path=hostile.md",
        "memory?path=hostile.md&show=source",
        "edit?path=hostile.md",
        "memories?q=ishacked",
    ] {
        window.go(&address(&opened, view));
        assert_eq!(window.eval("window.isHacked === true"), json!(false), "{view}");
        let asked = window.eval("performance.getEntriesByType('resource').map((entry) => entry.name).filter((name) => !name.startsWith(location.origin) && !name.startsWith('data:')).join(' ')");
        assert_eq!(asked, json!(""), "{view}");
    }
}

#[test]
fn ten_thousand_memories_are_listed_searched_and_opened() {
    const COUNT: usize = 10_000;
    let env = TestEnv::new();
    env.run(&["create", "first.md", "x"]);
    let directory = env.path(".local/share/haversack/memory/claude_memory/lighthouse");
    std::fs::create_dir_all(&directory).expect("made");
    for number in 0..COUNT {
        let text = format!(
            "---\nname: Memory {number}\ntype: project\n---\nThe lamp number {number} of the coast, beside [[memory_{}]]. Token t{number}x.\n",
            (number + 1) % COUNT
        );
        std::fs::write(directory.join(format!("memory_{number}.md")), text).expect("written");
    }
    let opened = Opened::start(&env, &[]);
    let Some(mut window) = window(&opened) else { return };
    window.go(&address(&opened, "memories"));
    assert!(window.text().contains("of 10001 memories"), "{}", window.text());
    window.press("/");
    window.insert("t4711x");
    window.wait("document.querySelectorAll('#results mark').length > 0");
    assert!(window.text().contains("Memory 4711"), "{}", window.text());
    for view in [
        "now",
        "memories",
        "graph",
        "time",
        "tidy",
        "inbox",
        "conflicts",
        "memories?q=lamp",
        "memory?path=claude_memory%2Flighthouse%2Fmemory_7.md",
    ] {
        window.go(&address(&opened, view));
        let weight = window.eval("performance.getEntriesByType('navigation')[0].decodedBodySize + performance.getEntriesByType('resource').reduce((sum, entry) => sum + entry.decodedBodySize, 0)");
        assert!(weight.as_u64().is_some_and(|bytes| bytes < 150 * 1024), "{view}: {weight} bytes");
    }
}
