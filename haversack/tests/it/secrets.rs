//! Ordinary memory holds no secret: a thousand files as agents write them.

use haversack::ids::ContentHash;
use haversack::secrets::find;

/// The number of files.
const FILES: usize = 1_000;

/// Numbers that look random and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 16) % limit as u64).expect("below a usize")
    }

    fn one<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }

    fn hash(&mut self) -> String {
        ContentHash::of(&self.below(usize::MAX).to_le_bytes()).to_string()
    }

    fn of(&mut self, alphabet: &str, count: usize) -> String {
        let alphabet: Vec<char> = alphabet.chars().collect();
        (0..count).map(|_| alphabet[self.below(alphabet.len())]).collect()
    }

    fn base64(&mut self, count: usize) -> String {
        self.of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", count)
    }

    fn uuid(&mut self) -> String {
        let hex = self.hash();
        format!("{}-{}-4{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
    }

    fn date(&mut self) -> String {
        format!("2026-{:02}-{:02}", 1 + self.below(12), 1 + self.below(28))
    }

    fn time(&mut self) -> String {
        format!(
            "{}T{:02}:{:02}:{:02}.{:03}Z",
            self.date(),
            self.below(24),
            self.below(60),
            self.below(60),
            self.below(1000)
        )
    }

    fn sentence(&mut self) -> String {
        let who = ["The user", "A teammate", "The keeper", "The agent", "Whoever deploys", "The reviewer"];
        let does = [
            "prefers short answers about",
            "wants to be asked before anything touches",
            "keeps the password of the database in 1Password, not in",
            "rotates the API key every quarter for",
            "says the access token comes from the keychain, see",
            "renamed the secret to lighthouse-staging-2026 for",
            "found that the session token expires after 3600 seconds in",
            "moved the signing key to the hardware module of",
            "uses argon2id for the passwords of",
            "reads max_tokens: 4096 from",
            "fixed the cache key of",
            "decided that bearer tokens are never logged by",
            "measured 18,233 tokens per session in",
            "runs `cargo test -p lamp --features tls-1-3` for",
            "asked that the password: field is hidden in",
        ];
        let what = [
            "the lighthouse's staging environment",
            "lamp/src/rotation.rs",
            "the nightly build (job 48213)",
            "docs/runbook-2026.md",
            "https://lighthouse.internal:8443/dashboards/7?from=now-6h&to=now",
            "the fog horn service, v2.14.0-rc.1",
            "`KEEPER_TOKEN_FILE=/run/secrets/keeper_token_v2`",
            "postgres://keeper@db.lamp.internal:5432/lighthouse",
        ];
        format!("{} {} {}.", self.one(&who), self.one(&does), self.one(&what))
    }

    fn paragraph(&mut self) -> String {
        let count = 2 + self.below(5);
        (0..count).map(|_| self.sentence()).collect::<Vec<_>>().join(" ")
    }
}

fn fact(numbers: &mut Numbers) -> String {
    let kind = numbers.one(&["user", "feedback", "project", "reference"]);
    let (name, session) = (numbers.one(&["ports", "lamp", "fog-horn", "deploys"]), numbers.uuid());
    let mut text = format!(
        "---\nname: {name}_{}\ndescription: {}\ntype: {kind}\nmetadata:\n  originSessionId: {session}\n  updated: {}\n---\n\n",
        numbers.below(100),
        numbers.sentence(),
        numbers.time()
    );
    for _ in 0..1 + numbers.below(6) {
        text.push_str(&format!("{}\n\n", numbers.paragraph()));
    }
    text.push_str(&format!(
        "**Why:** commit {} broke it; see `{}`.\n",
        &numbers.hash()[..40],
        &numbers.hash()[..7]
    ));
    text
}

fn settings(numbers: &mut Numbers) -> String {
    let mut text =
        format!("# How {} is set up\n\n{}\n\n", numbers.one(&["staging", "production"]), numbers.paragraph());
    text.push_str("```toml\n[database]\nhost = \"db.lamp.internal\"\nport = 5433\nuser = \"keeper\"\n");
    text.push_str(
        "password = \"${DB_PASSWORD}\"\npassword_file = \"/run/secrets/db_password_v2\"\n\n[api]\n",
    );
    text.push_str("api_key = \"<your-api-key>\"\ntoken_env = \"LIGHTHOUSE_TOKEN_2026\"\nsecret_name = \"lighthouse/staging/v2\"\n```\n\n");
    text.push_str("```yaml\nenv:\n  - name: API_KEY\n    valueFrom:\n      secretKeyRef: { name: lighthouse-api, key: api-key-v2 }\n");
    text.push_str(
        "  DB_PASSWORD: ${{ secrets.DB_PASSWORD_2 }}\n  TOKEN: !secret lighthouse_token_3\n```\n\n",
    );
    text.push_str("```python\npassword = os.environ[\"DB_PASSWORD\"]\ntoken = keyring.get_password(\"lighthouse\", \"keeper2\")\n");
    text.push_str("client = Client(api_key=settings.api_key, secret=config.signing.secret_v2)\n");
    text.push_str(
        "headers = {\"Authorization\": f\"Bearer {token}\", \"X-Request-Id\": str(uuid4())}\n```\n\n",
    );
    text.push_str("```sh\nexport GITHUB_TOKEN=$(gh auth token)\ncurl -H \"Authorization: Bearer $TOKEN\" https://api.lamp.internal/v1\n");
    text.push_str("psql postgres://keeper:$PGPASSWORD@db.lamp.internal/lighthouse\n```\n");
    text.push_str(&format!("\nImage: `registry.lamp.internal/horn@sha256:{}`\n", numbers.hash()));
    text
}

fn interactions(numbers: &mut Numbers) -> String {
    let mut text = String::new();
    let mut parent = numbers.uuid();
    for _ in 0..5 + numbers.below(30) {
        let id = numbers.uuid();
        let line = format!(
            "{{\"id\":\"{id}\",\"parent\":\"{parent}\",\"time\":\"{}\",\"session\":\"{}\",\"role\":\"{}\",\"text\":\"{}\\n{}\",\"tokens\":{},\"sha\":\"{}\",\"nextPageToken\":\"{}\"}}\n",
            numbers.time(),
            numbers.uuid(),
            numbers.one(&["user", "assistant"]),
            numbers.sentence(),
            numbers.sentence(),
            numbers.below(9000),
            numbers.hash(),
            numbers.base64(28)
        );
        text.push_str(&line);
        parent = id;
    }
    text
}

fn lock_file(numbers: &mut Numbers) -> String {
    let mut text = String::from("# What the build pins\n\n```toml\n");
    for _ in 0..10 + numbers.below(20) {
        let (name, version) =
            (numbers.one(&["secrecy", "tokenizers", "keyring", "lamp", "serde"]), numbers.below(30));
        text.push_str(&format!(
            "[[package]]\nname = \"{name}\"\nversion = \"1.{version}.0\"\nchecksum = \"{}\"\n\n",
            numbers.hash()
        ));
    }
    text.push_str("```\n\n```json\n");
    for _ in 0..10 {
        let integrity = numbers.base64(86);
        let name = numbers.one(&["js-tokens", "csrf", "jsonwebtoken", "cookie-signature"]);
        text.push_str(&format!(
            "\"{name}\": {{ \"version\": \"4.{}.0\", \"resolved\": \"https://packages.lamp.internal/{name}/-/{name}-4.0.0.tgz#{}\", \"integrity\": \"sha512-{integrity}==\" }},\n",
            numbers.below(20),
            &numbers.hash()[..40]
        ));
    }
    text.push_str("```\n");
    text
}

fn day(numbers: &mut Numbers) -> String {
    let mut text = format!("# {}\n\n", numbers.date());
    for _ in 0..3 + numbers.below(12) {
        let line = match numbers.below(8) {
            0 => format!("- [ ] {} (due {})", numbers.sentence(), numbers.date()),
            1 => format!("- [x] merged {} into main, tree {}", &numbers.hash()[..40], &numbers.hash()[..12]),
            2 => format!("- request {} took {} ms", numbers.uuid(), numbers.below(900)),
            3 => format!("- trace `00-{}-{}-01`", &numbers.hash()[..32], &numbers.hash()[..16]),
            4 => format!("- ![chart](data:image/png;base64,{}==)", numbers.base64(4_000)),
            5 => format!("- etag \"{}\", object {}", &numbers.hash()[..32], numbers.hash()),
            6 => format!("- ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{} keeper@lamp", numbers.base64(43)),
            _ => format!("- {}", numbers.paragraph()),
        };
        text.push_str(&line);
        text.push('\n');
    }
    text
}

fn index(numbers: &mut Numbers) -> String {
    let mut text = String::from("# Memory\n\n");
    for number in 0..20 + numbers.below(40) {
        let name = numbers.one(&["api-keys", "passwords", "tokens", "secrets", "ports", "lamp"]);
        text.push_str(&format!("- [{name} {number}]({name}-{number}.md): {}\n", numbers.sentence()));
    }
    text.push_str("\n| what | where | since |\n|---|---|---|\n");
    for _ in 0..8 {
        let what = numbers.one(&["token", "api key", "password", "secret", "port"]);
        text.push_str(&format!(
            "| {what} | 1Password, vault lighthouse-{} | {} |\n",
            numbers.below(90),
            numbers.date()
        ));
    }
    text
}

/// Lines of documentation and code that speak of secrets and hold none.
const HARMLESS: &[&str] = &[
    // Placeholders of documentation.
    "password: <password>",
    "password: <your password here>",
    "token: your-token-here",
    "API_TOKEN=your_api_token_here_2",
    "export GITHUB_TOKEN=ghp_your_token_here",
    "export OPENAI_API_KEY=sk-your-key-here",
    "export OPENAI_API_KEY=\"sk-...\"",
    "ANTHROPIC_API_KEY=sk-ant-xxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "DB_PASSWORD=${DB_PASSWORD}",
    "DB_PASSWORD=${DB_PASSWORD:-postgres}",
    "DB_PASSWORD: \"{{ db_password }}\"",
    "password: \"{{ lookup('env', 'DB_PASSWORD_2') }}\"",
    "DATABASE_URL=postgres://user:password@localhost/db",
    "DATABASE_URL=postgres://user:password@host:5432/dbname",
    "DATABASE_URL=postgres://USER:PASSWORD@HOST:5432/NAME",
    "DATABASE_URL=postgres://username:mypassword@db.lamp.internal:5432/app",
    "mongodb+srv://<user>:<password>@cluster0.mongodb.net/lighthouse",
    "redis://:password@cache:6379/0",
    "amqp://guest:guest@rabbit:5672/",
    "https://user:pass@example.com/path",
    "https://token:x-oauth-basic@github.com/lamp/lighthouse.git",
    "mysql://root:root@127.0.0.1:3306/test",
    "password=changeme",
    "password=changeme123",
    "POSTGRES_PASSWORD=postgres",
    "POSTGRES_PASSWORD=mysecretpassword",
    "MYSQL_ROOT_PASSWORD: example",
    "password: password123",
    "password: \"********\"",
    "password: [redacted]",
    "password: REDACTED",
    "SECRET_KEY = 'your-secret-key-goes-here'",
    "SECRET_KEY = 'django-insecure-change-me'",
    "SECRET_KEY = os.environ['DJANGO_SECRET_KEY']",
    "SECRET_KEY = env('SECRET_KEY', default='unsafe-secret-key')",
    "curl -u user:password https://lamp.internal/api",
    "curl -u \"$USER:$PASS\" https://lamp.internal/api",
    "curl -u keeper: https://lamp.internal/api",
    "curl -u keeper https://lamp.internal:8443/api",
    "sshpass -p \"$SSHPASS\" ssh keeper@lamp",
    "sshpass -p password ssh keeper@lamp",
    "sshpass -e ssh keeper@lamp.internal",
    "mysql -u root -p lighthouse",
    "mysql -u root -p$MYSQL_PASSWORD lighthouse",
    "mysql -u root -ppassword -P3307 lighthouse",
    "mysqldump --password=\"$(cat /run/secrets/db)\" lighthouse",
    "PGPASSWORD=$DB_PASS psql -h db.lamp.internal",
    "docker run -u 1000:1000 -p 8080:8080 -e PASSWORD lamp:2.14",
    "docker login -u keeper --password-stdin registry.lamp.internal",
    "redis-cli -a \"$REDIS_PASSWORD\" ping",
    "tar -xzpf lamp-2.14.tar.gz; mkdir -p lamp/src/rotation2",
    "\"auth\": \"none\"",
    "\"auth\": \"oauth2\", \"authType\": \"bearerToken2\"",
    "\"auths\": { \"registry.lamp.internal\": {} }, \"credsStore\": \"desktop\"",
    "client-key-data: REDACTED",
    "client-certificate-data: DATA+OMITTED",
    "https://discord.com/api/webhooks/ID/TOKEN",
    "https://discord.com/channels/112233445566778899/998877665544332211",
    // Code.
    "password = get_password()",
    "password = getpass.getpass(\"Password for db2: \")",
    "let password = self.passwords.get(&user_id2)?;",
    "password: String, token: Option<String>, secret_v2: SecretBox<[u8; 32]>",
    "password: z.string().min(8).max(128)",
    "password = Column(String(128), nullable=False)",
    "const password = req.body.password2;",
    "if password == user.password_hash { return Ok(()) }",
    "password_hash = \"$argon2id$v=19$m=65536,t=3,p=4\"",
    "var token = tokens[i + 1];",
    "token = \"Bearer \" + accessToken;",
    "let pass = render_pass(&device, &queue2);",
    "pass: Stage2Pass,",
    "pass = 3 of 4, fail = 1",
    "<input type=\"password\" name=\"password\" id=\"password-1\">",
    "<password>${env.DB_PASSWORD}</password>",
    "<password></password>",
    "def test_password_reset_v2(client, user): pass",
    "assert_eq!(password, \"hidden\");",
    "PASSWORD_MIN_LENGTH = 12",
    "CHALLENGE_PASSWORD: \"challengePhrase\", password=\"forgottenLink\"",
    "password: required|min:8|confirmed",
    "password: varchar(255) not null",
    "pw: number, ph: number",
    "pwd: /srv/lighthouse/v2",
    "const PIN: u8 = 13;",
    "pin: 2.14.0",
    "let pin = Pin::new(14);",
    "#define LED_PIN 13",
    "msg = \"ghp\" + \"_\" + name",
    "print(\"a\" + \"b\" \\\n    + \"c\")",
    "re.compile(r\"\\x1b\\[[0-9;]*m|\\u005f|\\.md$\")",
    "sk-learn 1.5 and task-4821ab are no keys, nor is sk-2024-11-05",
    // Prose.
    "the password is in the keychain",
    "The password is stored in 1Password, under lighthouse-staging-2.",
    "The password is rotated every 90 days; ask the keeper.",
    "The password was changed on 2026-05-14 by a teammate.",
    "The password is the same as for staging2.",
    "The password is at least 12 characters long.",
    "The password for the staging database is kept in vault v2.",
    "Password reset is broken since v2.14.0: see lamp/src/auth2.rs.",
    "password: see 1Password",
    "Password: ask Keeper-2 on Slack",
    "password (8-64 characters): required",
    "passwords: argon2id, 64 MiB, 3 passes",
    "The passphrase is never written down.",
    "My passphrase is in the safe at home.",
    "The passphrase is asked for each time",
    "passphrase: empty for local development builds",
    "My PIN is in the safe.",
    "Pin the version to 2024.11 or 4821.",
    "The PIN is 4 digits long; the default PIN is 1234.",
    "The secret is to rotate the lamp at 12rpm.",
    "The token is valid for 3600 seconds, the key is cached.",
    "the pass is closed in winter: road 4821",
    "Passing tests: 4821, failing: 3.",
    "Their login is keeper2 and the password is unknown.",
    "This is the key: never deploy on Fridays.",
    // Numbers, hashes and encodings.
    "see https://lamp.internal:8443/a%20b%2Fc?next=https%3A%2F%2Flamp.internal%3A8443%2Fx%40y",
    "family: \u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}, co\u{ad}op\u{ad}er\u{ad}ate",
    "snake\\_case\\_name, 3 \\* 4, \\[x\\], C:\\\\lamp\\\\src\\\\rotation2",
    "{\"text\":\"a \\u003cb\\u003e caf\\u00e9 \\\"quoted\\\" \\/ end\"}",
    "&lt;password&gt; &amp; &#8212; &#x2014;",
    "docker run \\\n  -e PASSWORD \\\n  lamp",
];

/// Returns a page of documentation: harmless lines that a careless rule would take for secrets.
fn documentation(numbers: &mut Numbers) -> String {
    let mut text = String::from("# How to sign in\n\n");
    for _ in 0..12 + numbers.below(20) {
        let line = numbers.one(HARMLESS);
        let around = match numbers.below(6) {
            0 => format!("- {line}\n"),
            1 => format!("```sh\n{line}\n```\n"),
            2 => format!("    {line}\n"),
            3 => format!("| {line} | {} |\n", numbers.date()),
            4 => format!("{}\n{line}\n", numbers.sentence()),
            _ => format!("{line}\n"),
        };
        text.push_str(&around);
    }
    text
}

/// Returns encoded text and binary data in which there is no secret.
fn encodings(numbers: &mut Numbers) -> String {
    let mut text = String::from("# Encoded\n\n");
    for _ in 0..4 + numbers.below(8) {
        let sentence = format!("{} {}", numbers.sentence(), numbers.one(HARMLESS));
        let encoded = match numbers.below(7) {
            0 => super::secrets_corpus::base64(sentence.as_bytes(), super::secrets_corpus::STANDARD),
            1 => super::secrets_corpus::hex(&sentence),
            2 => super::secrets_corpus::percent(&sentence),
            3 => format!("data:image/png;base64,iVBORw0KGgo{}", numbers.base64(1_200)),
            4 => (0..6).map(|_| numbers.base64(76) + "\n").collect(),
            5 => format!("git tree {} parent {}", &numbers.hash()[..40], &numbers.hash()[..40]),
            _ => format!("{} {} sha256-{}=", numbers.uuid(), numbers.hash(), numbers.base64(43)),
        };
        text.push_str(&encoded);
        text.push_str("\n\n");
    }
    text
}

#[test]
fn ordinary_memory_has_no_secret() {
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    let makers = [fact, settings, interactions, lock_file, day, index, documentation, encodings];
    let mut bytes = 0;
    for number in 0..FILES {
        let text = makers[number % makers.len()](&mut numbers);
        bytes += text.len();
        let found = find(text.as_bytes());
        let lines: Vec<&str> = found.iter().filter_map(|found| text.lines().nth(found.line - 1)).collect();
        assert!(found.is_empty(), "file {number}: {found:?} {lines:?}");
    }
    assert!(bytes > 2_000_000, "{bytes}");
}

#[test]
fn harmless_lines_are_not_held() {
    let mut held = Vec::new();
    for line in HARMLESS {
        let text = format!("# Note\n\n{line}\n\nThe end.\n");
        let found = find(text.as_bytes());
        if !found.is_empty() {
            held.push(format!("{found:?}: {line}"));
        }
    }
    assert!(held.is_empty(), "{}", held.join("\n"));
}

/// Packed data looks like random characters: by chance, some of them look like a short password behind a short name.
#[test]
fn random_characters_are_hardly_ever_held() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let noise: String = (0..20_000_000)
        .map(|_| char::from(33 + u8::try_from(numbers.below(90)).expect("below 90")))
        .collect();
    let found = find(noise.as_bytes());
    assert!(found.len() <= 3, "{found:?}");
}
