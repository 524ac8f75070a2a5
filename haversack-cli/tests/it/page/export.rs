//! `haversack page`: one file without scripts, requests and secrets.

use crate::environment::TestEnv;

#[test]
fn file_has_the_memories_and_no_script_request_or_secret() {
    let env = TestEnv::new();
    env.run(&[
        "create",
        "lamp.md",
        "# Lamp\nsee [[ports]] <script>alert(1)</script> https://evil.example/x.png\n",
    ]);
    env.run(&["create", "ports.md", "staging listens on 5433\n"]);
    let key = ["AKIA", "QYLPMN5HHHFPZAM2"].concat();
    env.run(&[
        "create",
        "secret.md",
        &format!(
            "aws_access_key_id = {key}\naws_secret_access_key = {}\n",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzKEY"
        ),
    ]);
    let told = env.run(&["page", "--static", "memory.html"]);
    assert!(told.starts_with("exit 0\n"), "{told}");
    let html = std::fs::read_to_string(env.path("memory.html")).expect("written");
    assert!(html.contains("staging listens on 5433") && html.contains("&lt;script&gt;"), "{html}");
    assert!(!html.contains("<script") && !html.contains("src=") && !html.contains("href=\"http"), "{html}");
    assert!(html.contains("default-src 'none'"), "{html}");
    assert!(!html.contains(&key) && html.contains("secret.md"), "{told}");
    // An earlier page is replaced; any other file is not.
    assert!(env.run(&["page", "--static", "memory.html"]).starts_with("exit 0\n"));
    std::fs::write(env.path("mine.html"), "my own").expect("written");
    let refused = env.run(&["page", "--static", "mine.html"]);
    assert!(refused.starts_with("exit 1\n") && refused.contains("was not replaced"), "{refused}");
    assert_eq!(std::fs::read_to_string(env.path("mine.html")).expect("there"), "my own");
}
