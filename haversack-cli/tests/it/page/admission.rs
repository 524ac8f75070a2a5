//! Who gets in: the matrix of hosts, origins, sites, cookies and tokens over real connections.

use std::process::Stdio;

use super::Opened;
use crate::environment::TestEnv;

#[test]
fn the_matrix_of_hosts_origins_and_cookies() {
    let env = TestEnv::new();
    env.run(&["create", "lamp.md", "oil"]);
    let opened = Opened::start(&env, &[]);
    let cookie = opened.enter();
    let port = opened.address.rsplit(':').next().expect("a port").to_owned();
    let here = opened.address.clone();
    let [named, six, bare] = [format!("localhost:{port}"), format!("[::1]:{port}"), "127.0.0.1".to_owned()];
    let hosts = [
        (Some(here.as_str()), true),
        (Some(named.as_str()), false),
        (Some(six.as_str()), false),
        (Some(bare.as_str()), false),
        (Some("localhost"), false),
        (Some("evil.example"), false),
        (Some("localhost.evil.example"), false),
        (Some("127.0.0.1.evil.example"), false),
        (Some("localhost@evil.example"), false),
        (Some("0.0.0.0"), false),
        (Some(""), false),
        (None, false),
    ];
    let ours = format!("http://{here}");
    let other_port = "http://127.0.0.1:1".to_owned();
    let origins = [
        (None, true),
        (Some(ours.as_str()), true),
        (Some(other_port.as_str()), false),
        (Some("http://localhost:3000"), false),
        (Some("null"), false),
        (Some("https://evil.example"), false),
        (Some("http://localhost.evil.example"), false),
        (Some("file://"), false),
    ];
    let mut cells = 0;
    for method in ["GET", "POST"] {
        for (host, host_fits) in hosts {
            for (origin, origin_fits) in origins {
                for has_cookie in [true, false] {
                    let mut headers = Vec::new();
                    headers.extend(host.map(|host| ("Host", host)));
                    headers.extend(origin.map(|origin| ("Origin", origin)));
                    headers.extend(has_cookie.then_some(("Cookie", cookie.as_str())));
                    let path =
                        format!("/{}/{}", opened.prefix, if method == "GET" { "now" } else { "delete" });
                    let answer = opened.send(method, &path, &headers, "path=lamp.md");
                    // A change must say that it comes from our page, and has no token here.
                    let is_told = method == "GET" || origin.is_some();
                    let expected = match (host_fits && origin_fits && is_told, has_cookie) {
                        _ if matches!(host, None | Some("")) && answer.status == 400 => 400,
                        (false, _) => 403,
                        (true, false) => 401,
                        (true, true) if method == "GET" => 200,
                        (true, true) => 403,
                    };
                    assert_eq!(
                        answer.status, expected,
                        "{method} {host:?} {origin:?} {has_cookie}: {}",
                        answer.body
                    );
                    assert!(answer.header("set-cookie").is_none(), "{host:?}");
                    assert!(!answer.head.to_lowercase().contains("access-control-allow"), "{}", answer.head);
                    assert!(answer.status == 200 || !answer.body.contains("lamp"), "{}", answer.body);
                    cells += 1;
                }
            }
        }
    }
    assert_eq!(cells, 384);
    assert!(env.path(".local/share/haversack/memory/lamp.md").exists());
}

#[test]
fn sites_frames_and_forms_of_others_get_nothing() {
    let env = TestEnv::new();
    env.run(&["create", "lamp.md", "oil"]);
    let opened = Opened::start(&env, &[]);
    let cookie = opened.enter();
    let path = format!("/{}/memory?path=lamp.md", opened.prefix);
    for (site, dest, expected) in [
        ("same-origin", "document", 200),
        ("none", "document", 200),
        ("same-site", "document", 403),
        ("cross-site", "document", 403),
        ("nonsense", "document", 403),
        ("same-origin", "iframe", 403),
        ("same-origin", "object", 403),
    ] {
        let headers: [(&str, &str); 4] = [
            ("Host", opened.address.as_str()),
            ("Cookie", &cookie),
            ("Sec-Fetch-Site", site),
            ("Sec-Fetch-Dest", dest),
        ];
        assert_eq!(opened.send("GET", &path, &headers, "").status, expected, "{site} {dest}");
    }
    let shown = opened.get(&cookie, "memory?path=lamp.md");
    let (seen, token) = (shown.field("seen"), shown.field("token"));
    let without = opened.post(&cookie, "delete", &[("path", "lamp.md"), ("seen", &seen)]);
    assert_eq!(without.status, 403, "{}", without.body);
    let wrong =
        opened.post(&cookie, "delete", &[("path", "lamp.md"), ("seen", &seen), ("token", &token[1..])]);
    assert_eq!(wrong.status, 403, "{}", wrong.body);
    // A change by GET does not exist.
    let by_get = opened.get(&cookie, &format!("delete?path=lamp.md&seen={seen}&token={token}"));
    assert_eq!(by_get.status, 404, "{}", by_get.body);
    assert!(env.path(".local/share/haversack/memory/lamp.md").exists());
    assert_eq!(
        opened.post(&cookie, "delete", &[("path", "lamp.md"), ("seen", &seen), ("token", &token)]).status,
        303
    );
    assert!(!env.path(".local/share/haversack/memory/lamp.md").exists());
}

#[test]
fn code_opens_once_and_only_below_the_secret_directory() {
    let env = TestEnv::new();
    let opened = Opened::start(&env, &[]);
    let host = [("Host", opened.address.as_str())];
    let path = format!("/{}/enter?code={}", opened.prefix, opened.code);
    // A name that an attacker pointed here neither gets a cookie nor uses the code up.
    let rebound = opened.send("GET", &path, &[("Host", "evil.example")], "");
    assert_eq!((rebound.status, rebound.header("set-cookie")), (403, None));
    let elsewhere = opened.send("GET", &format!("/other/enter?code={}", opened.code), &host, "");
    assert_eq!((elsewhere.status, elsewhere.header("set-cookie")), (401, None));
    let cookie = opened.enter();
    let again = opened.send("GET", &path, &host, "");
    assert_eq!((again.status, again.header("set-cookie")), (403, None));
    let now = opened.get(&cookie, "now");
    let policy = now.header("content-security-policy").expect("a policy");
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(now.header("cache-control"), Some("no-store"));
    assert!(
        !now.body.contains("<script>") && !now.body.contains(" style=") && !now.body.contains(" onclick"),
        "{}",
        now.body
    );
}

#[cfg(unix)]
#[test]
fn browser_gets_the_code_in_a_file_that_only_its_user_can_read() {
    use std::os::unix::fs::PermissionsExt;
    let env = TestEnv::new();
    let bin = env.path("bin");
    std::fs::create_dir(&bin).expect("made");
    let opener = bin.join("xdg-open");
    std::fs::write(
        &opener,
        "#!/bin/sh\necho \"$@\" > \"$HOME/opened.new\"; mv \"$HOME/opened.new\" \"$HOME/opened\"\n",
    )
    .expect("written");
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).expect("set");
    let mut command = env.command(&["open"]);
    command
        .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut process = command.spawn().expect("started");
    let opened = env.path("opened");
    while !opened.exists() {
        assert!(matches!(process.try_wait(), Ok(None)), "it ended");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let argument = std::fs::read_to_string(&opened).expect("read");
    assert!(!argument.contains("http") && !argument.contains("code"), "{argument}");
    let file = std::path::Path::new(argument.trim());
    assert_eq!(std::fs::metadata(file).expect("there").permissions().mode() & 0o777, 0o600);
    assert!(std::fs::read_to_string(file).expect("read").contains("/enter?code="));
    process.kill().expect("ended");
    process.wait().expect("ended");
}

#[test]
fn page_ends_when_it_is_idle() {
    let env = TestEnv::new();
    let mut opened = Opened::start(&env, &["--idle", "1s"]);
    assert!(opened.process.wait().expect("ended").success());
}

/// Who can list processes or read the home's logs learns neither the code, nor the cookie, nor the token of forms.
#[cfg(target_os = "linux")]
#[test]
fn no_log_and_no_list_of_processes_has_a_token() {
    let env = TestEnv::new();
    env.run(&["create", "lamp.md", "oil\n"]);
    let opened = Opened::start(&env, &[]);
    let cookie = opened.enter();
    let form = opened.get(&cookie, "edit?path=lamp.md");
    let (seen, token) = (form.field("seen"), form.field("token"));
    let fields: [(&str, &str); 4] =
        [("path", "lamp.md"), ("seen", &seen), ("token", &token), ("text", "gas\r\n")];
    assert_eq!(opened.post(&cookie, "edit", &fields).status, 303);
    assert_ne!(opened.get("page=wrong", "now").status, 200);
    let cookie = cookie.split_once('=').expect("a value").1.to_owned();
    let secrets = [opened.code.as_str(), &cookie, &token];
    assert!(secrets.iter().all(|secret| secret.len() >= 16), "{secrets:?}");
    let process = format!("/proc/{}", opened.process.id());
    for part in ["cmdline", "environ"] {
        let text = std::fs::read(format!("{process}/{part}")).expect("read");
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(secrets.iter().all(|secret| !text.contains(secret)), "{part}: {text}");
    }
    for (name, text) in crate::machines::files_below(&env.path("")) {
        assert!(secrets.iter().all(|secret| !text.contains(secret)), "{name}: {text}");
    }
}
