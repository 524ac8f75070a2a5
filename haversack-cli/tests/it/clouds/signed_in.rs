//! An agent that signs in to Azure as itself, from the token endpoint to the blobs.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use haversack_servers::{Act, Answer, Asked, Azurite, Front, Responder, azurite};

use crate::machines::Machines;

const TENANT: &str = "11111111-aaaa-4bbb-8ccc-000000000001";
const BLUEPRINT: &str = "22222222-aaaa-4bbb-8ccc-000000000002";
const AGENT: &str = "33333333-aaaa-4bbb-8ccc-000000000003";
const USER: &str = "44444444-aaaa-4bbb-8ccc-000000000004";

const EXCHANGE: &str = "api://AzureADTokenExchange/.default";
const JWT: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

fn fixture(name: &str) -> PathBuf {
    let store = Path::new(env!("CARGO_MANIFEST_DIR")).join("../haversack-store");
    store.join("tests/fixtures/agent-identity").join(name)
}

/// Checks that an assertion was signed with the agent's key; returns what it claims.
fn verified(assertion: &str) -> serde_json::Value {
    let pem = std::fs::read_to_string(fixture("test-only-rsa.pkcs8.pem")).expect("there");
    let der: String = pem
        .lines()
        .skip_while(|line| !line.starts_with("-----BEGIN"))
        .filter(|line| !line.starts_with('-'))
        .collect();
    let pair = ring::rsa::KeyPair::from_pkcs8(&STANDARD.decode(der).expect("base64")).expect("a key");
    let (signed, signature) = assertion.rsplit_once('.').expect("three parts");
    let public = ring::signature::UnparsedPublicKey::new(
        &ring::signature::RSA_PKCS1_2048_8192_SHA256,
        pair.public().as_ref(),
    );
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).expect("base64url");
    public.verify(signed.as_bytes(), &decode(signature)).expect("signed with the agent's key");
    serde_json::from_slice(&decode(signed.split('.').nth(1).expect("claims"))).expect("JSON")
}

/// A token endpoint that wants everything to be exact, and hands out what Azurite takes.
struct Entra {
    server: Responder,
    issued: Arc<AtomicUsize>,
}

impl Entra {
    fn start() -> Entra {
        let issued = Arc::new(AtomicUsize::new(0));
        let counted = issued.clone();
        let server = Responder::start(move |asked| match token(asked) {
            Ok((token, is_last)) => {
                let _ = counted.fetch_add(usize::from(is_last), Ordering::SeqCst);
                let body =
                    serde_json::json!({ "token_type": "Bearer", "expires_in": 3600, "access_token": token });
                Answer::new(200).with_header("content-type", "application/json").with_body(body.to_string())
            }
            Err(why) => {
                let body = serde_json::json!({ "error": "invalid_request", "error_description": why });
                Answer::new(400).with_body(body.to_string())
            }
        });
        Entra { server, issued }
    }

    /// Returns how many tokens for storage were handed out.
    fn issued(&self) -> usize {
        self.issued.load(Ordering::SeqCst)
    }
}

/// Returns the token of a hop, and whether it is the last; or what is wrong with the request.
fn token(asked: &Asked) -> Result<(String, bool), String> {
    let field = |name: &str| asked.form(name).unwrap_or_default();
    let wants = |fields: &[(&str, &str)]| {
        for (name, value) in fields {
            if field(name) != *value {
                return Err(format!("{name} is {:?}, not {value:?}", field(name)));
            }
        }
        let sent = String::from_utf8_lossy(&asked.body).split('&').count();
        if sent == fields.len() { Ok(()) } else { Err(format!("{sent} fields")) }
    };
    if (asked.method.as_str(), asked.path.as_str()) != ("POST", &format!("/{TENANT}/oauth2/v2.0/token")) {
        return Err(format!("{} {}", asked.method, asked.path));
    }
    let assertion = field("client_assertion");
    if !field("fmi_path").is_empty() {
        wants(&[
            ("client_id", BLUEPRINT),
            ("scope", EXCHANGE),
            ("fmi_path", AGENT),
            ("grant_type", "client_credentials"),
            ("client_assertion_type", JWT),
            ("client_assertion", &assertion),
        ])?;
        let claims = verified(&assertion);
        if (&claims["iss"], &claims["sub"]) != (&BLUEPRINT.into(), &BLUEPRINT.into()) {
            return Err(format!("it claims {claims}"));
        }
        return Ok(("of-the-blueprint".to_owned(), false));
    }
    if field("grant_type") == "client_credentials" {
        wants(&[
            ("client_id", AGENT),
            ("scope", EXCHANGE),
            ("grant_type", "client_credentials"),
            ("client_assertion_type", JWT),
            ("client_assertion", "of-the-blueprint"),
        ])?;
        return Ok(("of-the-agent".to_owned(), false));
    }
    wants(&[
        ("client_id", AGENT),
        ("scope", "https://storage.azure.com/.default"),
        ("grant_type", "user_fic"),
        ("client_assertion_type", JWT),
        ("client_assertion", "of-the-blueprint"),
        ("user_id", USER),
        ("user_federated_identity_credential", "of-the-agent"),
        ("requested_token_use", "on_behalf_of"),
    ])?;
    Ok((azurite::bearer(TENANT, Duration::from_secs(3600)), true))
}

/// Two machines whose agents sign in; what they ask the storage comes by a front.
struct Agents {
    machines: Machines,
    entra: Entra,
    front: Front,
    url: String,
    _azurite: Azurite,
}

impl Agents {
    fn new() -> Option<Agents> {
        let azurite = Azurite::with_oauth()?;
        let front = Front::before_tls(azurite.endpoint());
        let url = format!("az://{}", azurite.new_container());
        let machines = Machines::new();
        let entra = Entra::start();
        let key = machines.env.path("agent.key.pem");
        let _ = std::fs::copy(fixture("test-only-rsa.pkcs8.pem"), &key).expect("copied");
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("set");
        let agent = format!(
            "tenant = \"{TENANT}\"\nblueprint = \"{BLUEPRINT}\"\nagent-id = \"{AGENT}\"\nagent-user = \"{USER}\"\n\
             certificate = \"{}\"\nkey = \"{}\"\nauthority = \"{}\"\n",
            fixture("test-only-certificate.pem").display(),
            key.display(),
            entra.server.url()
        );
        std::fs::write(machines.env.path("agent.toml"), agent).expect("written");
        std::fs::write(machines.env.path("authority.pem"), front.ca_pem()).expect("written");
        Some(Agents { machines, entra, front, url, _azurite: azurite })
    }

    /// Runs a command in a shell with the endpoint and the trusted certificates, without a secret.
    #[track_caller]
    fn set_up(&self, machine: &str, verb: &[&str]) -> String {
        let mut command = self.machines.command(machine, verb);
        command.args([
            &self.url,
            "--device",
            machine,
            "--credential",
            "agent-identity:agent.toml",
            "--no-mirror",
        ]);
        command
            .env("AZURE_STORAGE_ACCOUNT_NAME", azurite::ACCOUNT)
            .env("AZURE_STORAGE_ENDPOINT", self.front.url());
        let shown =
            self.machines.env.shown(command.env("SSL_CERT_FILE", self.machines.env.path("authority.pem")));
        assert!(shown.starts_with("exit 0\n"), "{machine}: {shown}");
        shown
    }
}

#[test]
fn agents_carry_memory() {
    let Some(agents) = Agents::new() else { return };
    let machines = &agents.machines;
    machines.write("laptop", "ports.md", "# Ports\n");
    let shown = agents.set_up("laptop", &["remote", "add"]);
    assert!(shown.contains("with an agent identity, also without this shell."), "{shown}");
    machines.done("laptop", &["sync"]);
    agents.set_up("desktop", &["join", "--yes"]);
    machines.write("desktop", "lamp.md", "white\n");
    machines.settle(&["desktop", "laptop"]);
    assert_eq!(machines.files("laptop"), machines.files("desktop"));
    assert_eq!(machines.files("laptop").len(), 2);
    let tested = machines.done("laptop", &["remote", "test"]);
    assert!(tested.contains("credential        an agent identity"), "{tested}");
    let seen = agents.front.seen();
    assert!(
        seen.iter().all(|seen| seen.header("authorization").is_some_and(|said| said.starts_with("Bearer ")))
    );
    // Neither a token nor the key is in a home.
    for machine in ["laptop", "desktop"] {
        assert!(!machines.env.path(machine).join("credential.toml").exists());
        let record = std::fs::read_to_string(machines.env.path(machine).join("remote.toml")).expect("there");
        assert!(!record.contains("PRIVATE KEY") && !record.contains("eyJ"), "{record}");
    }
}

#[test]
fn a_refused_token_is_renewed_once() {
    let Some(agents) = Agents::new() else { return };
    let machines = &agents.machines;
    machines.write("laptop", "ports.md", "# Ports\n");
    agents.set_up("laptop", &["remote", "add"]);
    machines.done("laptop", &["sync"]);
    let refusals: [(u16, &str); 2] = [(401, "InvalidAuthenticationInfo"), (403, "AuthenticationFailed")];
    for (round, (status, code)) in refusals.into_iter().enumerate() {
        let body = format!("<Error><Code>{code}</Code><Message>m</Message></Error>");
        machines.write("laptop", "lamp.md", &format!("white {round}\n"));
        agents.front.forget();
        let once = body.clone();
        agents.front.script(move |seen| match seen.number {
            0 => Act::answer(status, once.clone()),
            _ => Act::Pass,
        });
        let before = agents.entra.issued();
        let shown = machines.done("laptop", &["sync"]);
        assert!(shown.contains("Sent 1 file."), "{shown}");
        assert_eq!(agents.entra.issued() - before, 2, "one token, and one more after {status}");
        assert_eq!(agents.front.count(), 3, "asked again once: {:#?}", agents.front.seen());

        // One that is refused for good is asked for once more, and no more often.
        machines.write("laptop", "lamp.md", &format!("red {round}\n"));
        agents.front.forget();
        agents.front.script(move |_| Act::answer(status, body.clone()));
        let before = agents.entra.issued();
        let shown = machines.shown("laptop", &["sync"]);
        assert!(shown.starts_with("exit 1\n"), "{shown}");
        assert!(shown.contains("the storage does not accept the credential"), "{shown}");
        assert!(shown.contains("Hint: "), "{shown}");
        assert_eq!(agents.entra.issued() - before, 2);
        assert_eq!(agents.front.count(), 2, "{:#?}", agents.front.seen());
        agents.front.script(|_| Act::Pass);
        machines.done("laptop", &["sync"]);
    }
}

#[test]
fn what_entra_refuses_is_told_by_its_hop() {
    let Some(agents) = Agents::new() else { return };
    let machines = &agents.machines;
    machines.write("laptop", "ports.md", "# Ports\n");
    agents.set_up("laptop", &["remote", "add"]);
    let file = machines.env.path("agent.toml");
    let text = std::fs::read_to_string(&file).expect("there");
    std::fs::write(&file, text.replace(USER, AGENT)).expect("written");
    agents.front.forget();
    let shown = machines.shown("laptop", &["sync"]);
    assert!(shown.starts_with("exit 1\n") && shown.contains("hop 3"), "{shown}");
    assert_eq!(agents.front.count(), 0, "nothing is asked without a token");
    std::fs::write(&file, text).expect("written");
    machines.done("laptop", &["sync"]);
}
