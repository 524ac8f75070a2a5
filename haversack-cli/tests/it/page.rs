//! The page: who gets in, what it shows, what it changes; over plain connections and in a real browser.

mod admission;
mod browser;
mod edits;
mod export;
mod hostile;
mod in_browser;
mod pictures;
mod proposals;
mod sample;
mod views;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use crate::environment::TestEnv;

/// A running `haversack open`.
struct Opened {
    process: Child,
    /// The address and port.
    address: String,
    /// The directory of all views.
    prefix: String,
    /// The code that opens the page once.
    code: String,
}

/// An answer.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut values = lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        values.next()
    }

    /// Returns the value of a hidden field of the first form that has it.
    fn field(&self, name: &str) -> String {
        let (_, rest) = self
            .body
            .split_once(&format!("name=\"{name}\" value=\""))
            .unwrap_or_else(|| panic!("{}", self.body));
        rest.split('"').next().unwrap_or_default().replace("&amp;", "&").replace("&quot;", "\"")
    }
}

impl Opened {
    fn start(env: &TestEnv, arguments: &[&str]) -> Opened {
        Opened::start_with(env, arguments, &[])
    }

    /// Starts it with more variables.
    fn start_with(env: &TestEnv, arguments: &[&str], variables: &[(&str, &str)]) -> Opened {
        let mut all = vec!["open", "--no-browser"];
        all.extend(arguments);
        let mut command = env.command(&all);
        command
            .envs(variables.iter().copied())
            .env("HAVERSACK_SYNC", "off")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = command.spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("piped")).read_line(&mut line).expect("it says where");
        let rest = line.trim().strip_prefix("http://").unwrap_or_else(|| panic!("{line}"));
        let (address, rest) = rest.split_once('/').expect("a path");
        let (prefix, code) = rest.split_once("/enter?code=").expect("a code");
        Opened { process, address: address.to_owned(), prefix: prefix.to_owned(), code: code.to_owned() }
    }

    /// Returns the address that opens the page once.
    fn entrance(&self) -> String {
        format!("http://{}/{}/enter?code={}", self.address, self.prefix, self.code)
    }

    /// Makes a request with these headers and no others.
    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let mut head =
            format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        stream.write_all(format!("{head}\r\n").as_bytes()).expect("sent");
        // A request that is refused by its head alone may meet a closed connection.
        drop(stream.write_all(body.as_bytes()));
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer));
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    /// Uses the code up and returns the cookie.
    fn enter(&self) -> String {
        let path = format!("/{}/enter?code={}", self.prefix, self.code);
        let answer = self.send("GET", &path, &[("Host", &self.address)], "");
        assert_eq!(answer.status, 200, "{}", answer.head);
        let cookie = answer.header("set-cookie").expect("a cookie").to_owned();
        assert!(cookie.contains("HttpOnly; SameSite=Strict"), "{cookie}");
        cookie.split(';').next().unwrap_or_default().to_owned()
    }

    /// Gets a view.
    fn get(&self, cookie: &str, view: &str) -> Answer {
        let path = format!("/{}/{view}", self.prefix);
        self.send(
            "GET",
            &path,
            &[("Host", &self.address), ("Cookie", cookie), ("Sec-Fetch-Site", "same-origin")],
            "",
        )
    }

    /// Sends a form as a browser does.
    fn post(&self, cookie: &str, view: &str, fields: &[(&str, &str)]) -> Answer {
        let encode = |text: &str| text.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
        let body: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
        let origin = format!("http://{}", self.address);
        let headers = [
            ("Host", self.address.as_str()),
            ("Cookie", cookie),
            ("Origin", origin.as_str()),
            ("Sec-Fetch-Site", "same-origin"),
            ("Content-Type", "application/x-www-form-urlencoded"),
        ];
        self.send("POST", &format!("/{}/{view}", self.prefix), &headers, &body.join("&"))
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
