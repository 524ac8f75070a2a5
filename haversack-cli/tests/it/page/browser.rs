//! A real browser, driven over its own debugging protocol through a pipe.
//!
//! The pipe needs no port and no driver program, and the browser ends when it closes: no browser is left, even if the test is killed.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// How long the browser may take for one step, on a machine that is busy with something else.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running browser.
pub(super) struct Browser {
    process: Child,
    pipe: Option<ChildStdin>,
    messages: Receiver<Value>,
    last: u64,
    _profile: TempDir,
}

/// A window of the browser.
pub(super) struct Window {
    browser: Browser,
    session: String,
}

impl Browser {
    /// Starts the browser, or says that it is not installed.
    fn start() -> Option<Browser> {
        let program = haversack_servers::tools::program_or_skip("chromium", "cargo xtask tools")?;
        let profile = TempDir::new().expect("a directory");
        // The browser reads messages from descriptor 3 and writes to 4.
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1", "sh"]).arg(program);
        command.args([
            "--headless",
            "--remote-debugging-pipe",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
            "--disable-features=HttpsUpgrades,HttpsFirstBalancedModeAutoEnable",
            "--force-color-profile=srgb",
            "--host-resolver-rules=MAP evil.example 127.0.0.1, MAP *.evil.example 127.0.0.1",
        ]);
        command.arg(format!("--user-data-dir={}", profile.path().display())).arg("about:blank");
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", profile.path())
            .env("LC_ALL", "C.UTF-8")
            .env("TZ", "UTC");
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("started");
        let pipe = process.stdin.take();
        let mut output = BufReader::new(process.stdout.take().expect("piped"));
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while output.read_until(0, &mut message).is_ok_and(|read| read > 0) {
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else { break };
                if sender.send(value).is_err() {
                    break;
                }
                message.clear();
            }
        });
        Some(Browser { process, pipe, messages, last: 0, _profile: profile })
    }

    /// Sends a command and returns its result.
    fn call(&mut self, session: Option<&str>, method: &str, params: Value) -> Result<Value, String> {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.pipe.as_mut().expect("open").write_all(&bytes).expect("sent");
        loop {
            let answer = self
                .messages
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|_| panic!("the browser does not answer {method}"));
            if answer["id"] == json!(self.last) {
                return match answer.get("error") {
                    Some(error) => Err(format!("{method}: {error}")),
                    None => Ok(answer["result"].clone()),
                };
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser and all its processes end with the pipe.
        drop(self.pipe.take());
        let deadline = Instant::now() + Duration::from_secs(10);
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Window {
    /// Opens a window, or says that there is no browser.
    pub(super) fn open() -> Option<Window> {
        let mut browser = Browser::start()?;
        let target =
            browser.call(None, "Target.createTarget", json!({ "url": "about:blank" })).expect("a window");
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.call(None, "Target.attachToTarget", attach).expect("attached");
        let session = attached["sessionId"].as_str().expect("a session").to_owned();
        let mut window = Window { browser, session };
        window.call("Page.enable", json!({}));
        Some(window)
    }

    pub(super) fn call(&mut self, method: &str, params: Value) -> Value {
        let session = self.session.clone();
        self.browser.call(Some(&session), method, params).unwrap_or_else(|why| panic!("{why}"))
    }

    /// Goes to an address and waits until its document is whole.
    pub(super) fn go(&mut self, address: &str) {
        // A page that the server refuses still has a document.
        self.eval("window.isOld = true");
        self.call("Page.navigate", json!({ "url": address }));
        self.wait("!window.isOld && document.readyState === 'complete'");
    }

    /// Lets the browser in with the one-time code.
    pub(super) fn enter(&mut self, entrance: &str) {
        self.call("Page.navigate", json!({ "url": entrance }));
        self.wait("location.pathname.endsWith('/now') && document.readyState === 'complete'");
    }

    /// Evaluates a script in the page, and returns its value. It also works where the page itself may run no script.
    pub(super) fn eval(&mut self, script: &str) -> Value {
        let params = json!({ "expression": script, "awaitPromise": true, "returnByValue": true });
        let session = self.session.clone();
        match self.browser.call(Some(&session), "Runtime.evaluate", params) {
            Ok(answer) => {
                assert!(answer.get("exceptionDetails").is_none(), "{script}: {answer}");
                answer["result"]["value"].clone()
            }
            // The document was replaced meanwhile.
            Err(_) => Value::Null,
        }
    }

    /// Returns the texts of the frames in the document, as the browser itself sees them: the outer document could not look.
    pub(super) fn texts_of_frames(&mut self) -> Vec<String> {
        let script = "document.documentElement ? document.documentElement.innerText : ''";
        let text = |answer: Value| answer["result"]["value"].as_str().unwrap_or_default().to_owned();
        let tree = self.call("Page.getFrameTree", json!({}));
        let frames = tree["frameTree"]["childFrames"].as_array().cloned().unwrap_or_default();
        let mut texts = Vec::new();
        for frame in frames {
            let world = self.call("Page.createIsolatedWorld", json!({ "frameId": frame["frame"]["id"] }));
            let context = &world["executionContextId"];
            let params = json!({ "expression": script, "contextId": context, "returnByValue": true });
            texts.push(text(self.call("Runtime.evaluate", params)));
        }
        // A frame of another site can have a process of its own.
        let targets = self.browser.call(None, "Target.getTargets", json!({})).expect("a list");
        let frames = targets["targetInfos"].as_array().cloned().unwrap_or_default();
        for frame in frames.iter().filter(|target| target["type"] == json!("iframe")) {
            let attach = json!({ "targetId": frame["targetId"], "flatten": true });
            let attached = self.browser.call(None, "Target.attachToTarget", attach).expect("attached");
            let params = json!({ "expression": script, "returnByValue": true });
            let answer = self.browser.call(attached["sessionId"].as_str(), "Runtime.evaluate", params);
            texts.push(text(answer.expect("evaluated")));
        }
        texts
    }

    /// Waits until a condition holds.
    pub(super) fn wait(&mut self, condition: &str) {
        let deadline = Instant::now() + PATIENCE;
        // Between two documents there is no body to look at.
        let safe = format!("(() => {{ try {{ return Boolean({condition}) }} catch {{ return false }} }})()");
        while self.eval(&safe) != json!(true) {
            assert!(Instant::now() < deadline, "never: {condition}\n{}", self.text());
            std::thread::sleep(Duration::from_millis(15));
        }
    }

    /// Clicks the first element that fits a selector and waits for the view that follows.
    pub(super) fn click_and_wait(&mut self, selector: &str, condition: &str) {
        self.eval("window.isOld = true");
        self.eval(&format!("document.querySelector({}).click()", json!(selector)));
        self.wait(&format!("!window.isOld && document.readyState === 'complete' && ({condition})"));
    }

    /// Types a text where the cursor is.
    pub(super) fn insert(&mut self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// Presses and releases a key, as a keyboard does.
    pub(super) fn press(&mut self, key: &str) {
        let (code, number, text) = match key {
            "Tab" => ("Tab", 9, ""),
            "Enter" => ("Enter", 13, "\r"),
            "Escape" => ("Escape", 27, ""),
            "/" => ("Slash", 191, "/"),
            "j" => ("KeyJ", 74, "j"),
            other => panic!("no such key here: {other}"),
        };
        let base = json!({ "key": key, "code": code, "windowsVirtualKeyCode": number });
        let mut down = base.clone();
        down["type"] = json!(if text.is_empty() { "rawKeyDown" } else { "keyDown" });
        if !text.is_empty() {
            down["text"] = json!(text);
        }
        self.call("Input.dispatchKeyEvent", down);
        let mut up = base;
        up["type"] = json!("keyUp");
        self.call("Input.dispatchKeyEvent", up);
    }

    /// Returns the text that the page shows.
    pub(super) fn text(&mut self) -> String {
        self.eval("document.body ? document.body.innerText : ''").as_str().unwrap_or_default().to_owned()
    }

    /// Forbids the page to run scripts.
    pub(super) fn without_scripts(&mut self) {
        self.call("Emulation.setScriptExecutionDisabled", json!({ "value": true }));
    }

    /// Sets the size of the window and whether it is dark.
    pub(super) fn look(&mut self, width: u32, height: u32, scheme: &str) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.call("Emulation.setDeviceMetricsOverride", size);
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Returns a picture of the window.
    pub(super) fn picture(&mut self) -> Vec<u8> {
        use base64::Engine;
        let answer = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let data = answer["data"].as_str().expect("a picture");
        base64::engine::general_purpose::STANDARD.decode(data).expect("base64")
    }

    /// Returns what axe finds wrong that is serious; empty if it finds nothing.
    pub(super) fn axe(&mut self) -> Vec<String> {
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../.tools/axe_core/node_modules/axe-core/axe.min.js");
        let script = std::fs::read_to_string(script).expect("axe-core is there: cargo xtask tools");
        // The script is handed to the browser itself, so the policy of the page stays as it is.
        self.eval(&format!("{script}; true"));
        let found = self.eval(
            "axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] }).then((result) => result.violations\
             .filter((violation) => ['serious', 'critical'].includes(violation.impact))\
             .map((violation) => `${violation.id}: ${violation.nodes.slice(0, 3).map((node) => node.html + ' ' + node.failureSummary).join(' | ')}`))",
        );
        found
            .as_array()
            .expect("a list")
            .iter()
            .map(|line| line.as_str().unwrap_or_default().to_owned())
            .collect()
    }
}
