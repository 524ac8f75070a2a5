//! One sample for each rule, made when it is needed: no text of ours holds anything that looks like a secret.

/// The parts of a sample: `{x12}` is twelve characters of the sort `x`, other text stands for itself.
pub(super) const SAMPLES: &[(&str, &str)] = &[
    ("aws-access-key", "AKIA{T16}"),
    ("aws-secret-key", "aws_secret_access_key = {B40}"),
    ("aws-session-token", "aws_session_token={B200}"),
    ("aws-bedrock-key", "ABSK{B120}"),
    ("azure-storage-key", "AccountName=lamp;AccountKey={B86}==;EndpointSuffix=core.windows.net"),
    ("azure-storage-account-key", "AZURE_STORAGE_KEY={B86}=="),
    ("azure-marked-storage-key", "{B76}+ASt{B5}A=="),
    ("azure-shared-access-key", "Endpoint=sb://lamp/;SharedAccessKeyName=root;SharedAccessKey={B43}="),
    ("azure-shared-access-signature", "https://lamp/c?sv=2024-11-04&sp=r&sig={A43}%3D"),
    ("azure-client-secret", "{A3}8Q~{A34}"),
    ("azure-devops-token", "{A76}AZDO{A4}"),
    ("azure-ai-key", "{A52}JQQJ99{A26}"),
    ("azure-function-key", "{A44}AzFu{A5}A=="),
    ("azure-registry-key", "{A42}+ACRA{A5}"),
    ("azure-search-key", "{A42}AzSeA{A5}"),
    ("azure-cache-key", "{A33}AzCaB{A5}="),
    ("gcp-service-account-key", "\"private_key\": \"-----BEGIN PRIVATE KEY-----\\n{B64}\\n{B64}\\n-----END"),
    ("gcp-api-key", "AIza{A35}"),
    ("google-oauth-secret", "GOCSPX-{W28}"),
    ("google-access-token", "ya29.{W120}"),
    ("google-refresh-token", "1//0{W60}"),
    ("firebase-server-key", "AAAA{W7}:APA91b{W134}"),
    ("alibaba-access-key", "LTAI{A20}"),
    ("tencent-secret-id", "AKID{A32}"),
    ("digitalocean-token", "dop_v1_{h64}"),
    ("heroku-key", "HRKU-AA{A58}"),
    ("heroku-api-key", "HEROKU_API_KEY={h8}-{h4}-{h4}-{h4}-{h12}"),
    ("cloudflare-token", "CLOUDFLARE_API_TOKEN={A40}"),
    ("cloudflare-global-key", "cloudflare api key: {h37}"),
    ("cloudflare-origin-key", "v1.0-{h24}-{h146}"),
    ("fastly-token", "FASTLY_API_TOKEN={A32}"),
    ("netlify-token", "nfp_{A36}"),
    ("vercel-token", "VERCEL_TOKEN={A24}"),
    ("fly-token", "fm2_{A80}"),
    ("render-key", "rnd_{A32}"),
    ("linode-token", "LINODE_TOKEN={h64}"),
    ("supabase-token", "sbp_{h40}"),
    ("supabase-secret-key", "sb_secret_{A31}"),
    ("planetscale-token", "pscale_tkn_{A43}"),
    ("neon-key", "napi_{l64}"),
    ("tailscale-key", "tskey-auth-{A17}-{A32}"),
    ("github-token", "ghp_{A36}"),
    ("github-fine-grained-token", "github_pat_{A22}_{A59}"),
    ("gitlab-token", "glpat-{W20}"),
    ("gitlab-pipeline-token", "glptt-{h40}"),
    ("gitlab-service-token", "glrt-{A20}"),
    ("gitlab-runner-token", "GR1348941{A20}"),
    ("bitbucket-app-password", "ATBB{A24}{H8}"),
    ("atlassian-token", "ATATT3{W180}={H8}"),
    ("npm-token", "npm_{A36}"),
    ("npmrc-token", "//registry.lamp/:_authToken={A40}"),
    ("pypi-token", "pypi-AgEIcHlwaS5vcmc{A150}"),
    ("crates-io-token", "cio{A32}"),
    ("rubygems-key", "rubygems_{h48}"),
    ("nuget-key", "oy2{l43}"),
    ("clojars-token", "CLOJARS_{l60}"),
    ("docker-token", "dckr_pat_{A27}"),
    ("artifactory-key", "AKCp{A69}"),
    ("sourcegraph-token", "sgp_{h16}_{h40}"),
    ("circleci-token", "CCIPAT_{A22}_{h40}"),
    ("buildkite-token", "bkua_{h40}"),
    ("sonar-token", "sqp_{h40}"),
    ("codecov-token", "CODECOV_TOKEN={h8}-{h4}-{h4}-{h4}-{h12}"),
    ("snyk-token", "SNYK_TOKEN={h8}-{h4}-{h4}-{h4}-{h12}"),
    ("postman-key", "PMAK-{h24}-{h34}"),
    ("vault-token", "hvs.{A95}"),
    ("terraform-token", "{A14}.atlasv1.{A67}"),
    ("pulumi-token", "pul-{h40}"),
    ("prefect-key", "pnu_{A36}"),
    ("doppler-token", "dp.pt.{A43}"),
    ("1password-token", "ops_eyJ{A300}"),
    ("1password-secret-key", "A3-{U6}-{U6}-{U5}-{U5}-{U5}-{U5}"),
    ("infracost-key", "ico-{A32}"),
    ("openai-key", "sk-proj-{A74}T3BlbkFJ{A74}"),
    ("anthropic-key", "sk-ant-api03-{A93}AA"),
    ("huggingface-token", "hf_{L34}"),
    ("replicate-token", "r8_{A37}"),
    ("groq-key", "gsk_{A52}"),
    ("xai-key", "xai-{A80}"),
    ("perplexity-key", "pplx-{A48}"),
    ("openrouter-key", "sk-or-v1-{h64}"),
    ("deepseek-key", "DEEPSEEK_API_KEY=sk-{h32}"),
    ("elevenlabs-key", "sk_{h48}"),
    ("cerebras-key", "csk-{l48}"),
    ("tavily-key", "tvly-dev-{A32}"),
    ("pinecone-key", "pcsk_{A5}_{A64}"),
    ("langsmith-key", "lsv2_pt_{h32}_{h10}"),
    ("langfuse-key", "sk-lf-{h8}-{h4}-{h4}-{h4}-{h12}"),
    ("wandb-key", "WANDB_API_KEY={h40}"),
    ("mistral-key", "MISTRAL_API_KEY={A32}"),
    ("cohere-key", "COHERE_API_KEY={A40}"),
    ("databricks-token", "dapi{h32}"),
    ("airtable-token", "pat{A14}.{h64}"),
    ("notion-token", "ntn_{A46}"),
    ("notion-secret", "secret_{A43}"),
    ("algolia-key", "ALGOLIA_ADMIN_KEY={h32}"),
    ("mapbox-token", "sk.eyJ{A80}.{A22}"),
    ("contentful-token", "CFPAT-{W43}"),
    ("datadog-key", "DD_API_KEY={h32}"),
    ("newrelic-user-key", "NRAK-{U27}"),
    ("newrelic-license-key", "{h36}NRAL"),
    ("newrelic-browser-key", "NRJS-{h19}"),
    ("sentry-token", "sntryu_{h64}"),
    ("grafana-token", "glsa_{A32}_{h8}"),
    ("grafana-cloud-token", "glc_eyJ{A120}"),
    ("dynatrace-token", "dt0c01.{U24}.{U64}"),
    ("honeycomb-key", "hcaik_{l58}"),
    ("pagerduty-key", "PAGERDUTY_TOKEN=u+{A18}"),
    ("sendgrid-key", "SG.{W22}.{W43}"),
    ("mailgun-key", "key-{h32}"),
    ("mailgun-sending-key", "MAILGUN_API_KEY={h32}-{h8}-{h8}"),
    ("mailchimp-key", "{h32}-us14"),
    ("brevo-key", "xkeysib-{h64}-{A16}"),
    ("resend-key", "re_{A8}_{A24}"),
    ("postmark-token", "POSTMARK_SERVER_TOKEN={h8}-{h4}-{h4}-{h4}-{h12}"),
    ("twilio-key", "SK{h32}"),
    ("twilio-auth-token", "TWILIO_AUTH_TOKEN={h32}"),
    ("slack-token", "xoxb-{d12}-{d13}-{A24}"),
    ("slack-app-token", "xapp-1-A{U10}-{d13}-{h64}"),
    ("slack-webhook", "https://hooks.slack.com/services/T{U10}/B{U10}/{A24}"),
    ("discord-webhook", "https://discord.com/api/webhooks/{d18}/{W68}"),
    ("discord-token", "DISCORD_BOT_TOKEN=M{A25}.{A6}.{A38}"),
    (
        "teams-webhook",
        "https://lamp.webhook.office.com/webhookb2/{h8}-{h4}-{h4}-{h4}-{h12}@{h8}-{h4}-{h4}-{h4}-{h12}/IncomingWebhook/{h32}/{h8}-{h4}-{h4}-{h4}-{h12}",
    ),
    ("telegram-token", "{d10}:AA{W33}"),
    ("linear-key", "lin_api_{A40}"),
    ("figma-token", "figd_{W40}"),
    ("dropbox-token", "sl.{W140}"),
    ("hubspot-token", "pat-na1-{h8}-{h4}-{h4}-{h4}-{h12}"),
    ("typeform-token", "tfp_{A44}"),
    ("asana-token", "ASANA_TOKEN=1/{d16}:{h32}"),
    ("okta-token", "OKTA_API_TOKEN=00{A40}"),
    ("facebook-token", "EAAC{A160}"),
    ("twitter-bearer-token", "AAAAAAAAAAAAAAAAAAAAA{A90}"),
    ("stripe-key", "sk_live_{A24}"),
    ("stripe-webhook-secret", "whsec_{A32}"),
    ("shopify-token", "shpat_{h32}"),
    ("square-token", "sq0atp-{W22}"),
    ("paypal-token", "access_token$production${l16}${h32}"),
    ("plaid-token", "access-production-{h8}-{h4}-{h4}-{h4}-{h12}"),
    ("razorpay-key", "rzp_live_{A14}"),
    ("flutterwave-key", "FLWSECK-{h32}-X"),
    ("shippo-token", "shippo_live_{h40}"),
    ("easypost-key", "EZAK{A54}"),
    ("duffel-token", "duffel_live_{A43}"),
    ("woocommerce-key", "ck_{h40}"),
    (
        "private-key",
        "-----BEGIN OPENSSH PRIVATE KEY-----\n{B70}\n{B70}\n{B20}=\n-----END OPENSSH PRIVATE KEY-----",
    ),
    ("putty-key", "Private-Lines: 1\n{B48}\nPrivate-MAC: {h64}"),
    ("age-key", "AGE-SECRET-KEY-1{K58}"),
    ("json-web-token", "eyJhbGciOiJIUzI1NiJ9.eyJ{A60}.{W43}"),
    ("url-password", "postgres://keeper:{A14}@db.lamp.internal:5432/lighthouse"),
    ("user-argument", "curl -s -u keeper:{A12}7x https://lamp/api"),
    ("netrc-password", "machine lamp.internal login keeper password {A14}7"),
    ("authorization-header", "Authorization: Bearer {A32}"),
    ("password-argument", "mysql --user=keeper --password={A12}7x"),
    ("token-argument", "deploy --token {A30}"),
    ("assigned-password", "password: {A12}7x"),
    ("assigned-key", "api_key = \"{A32}\""),
    ("prefixed-key", "sk-{h32}"),
    ("jina-key", "jina_{h32}{A28}"),
    ("posthog-key", "phx_{A43}"),
    ("nvidia-key", "nvapi-{W64}"),
    ("firecrawl-key", "fc-{h32}"),
    ("fireworks-key", "fw_{A24}"),
    ("e2b-key", "e2b_{h40}"),
    ("apify-token", "apify_api_{A36}"),
    ("launchdarkly-key", "sdk-{h8}-{h4}-4{h3}-a{h3}-{h12}"),
    ("discord-session-token", "mfa.{W84}"),
    ("ngrok-token", "ngrok config add-authtoken 2{A26}_{A21}"),
    ("openshift-token", "sha256~{W43}"),
    ("kubernetes-client-key", "client-key-data: LS0{B120}"),
    ("registry-credentials", "\"auth\": \"a2VlcGVyOlVs{p1}{p1}V{p1}{p1}{p1}V{p1}{p1}{p1}V{p1}\""),
    ("assigned-secret", "SECRET_KEY = '{A9}#{A9}&{A9}!7'"),
    ("dsn-password", "keeper:{A12}7x@tcp(db.lamp.internal:3306)/lighthouse"),
    ("sshpass-password", "sshpass -p {A10} ssh keeper@lamp"),
    ("database-password", "mysql -h lamp -u keeper -p{A12} lighthouse"),
    ("command-password", "redis-cli -h lamp -a {A12} ping"),
    ("http-password", "curl -s -ukeeper:{A10} https://lamp/api"),
    ("wifi-password", "psk='{A12}7'"),
    ("element-password", "<password>{A12}7x</password>"),
    ("stated-password", "the password for the lamp is {A12}7x"),
    ("sql-password", "CREATE USER keeper WITH PASSWORD '{A12}7x';"),
    ("stated-pin", "my PIN is {d6}"),
    ("stated-phrase", "my passphrase is {w6} {w5} {w7} {w6}"),
];

/// Numbers that look random and are the same in every run.
#[derive(Clone)]
pub(super) struct Numbers(u64);

impl Numbers {
    pub(super) fn start(seed: u64) -> Numbers {
        Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 16) % limit as u64).expect("below a usize")
    }
}

/// Returns which characters a letter stands for.
fn alphabet(sort: char) -> String {
    let lower: String = ('a'..='z').collect();
    let upper = lower.to_uppercase();
    let digits: String = ('0'..='9').collect();
    match sort {
        'd' => digits,
        'w' => lower,
        // Digits of base64 that stand for letters.
        'p' => "STUVWX".to_owned(),
        'h' => format!("{digits}abcdef"),
        'H' => format!("{digits}ABCDEF"),
        'l' => format!("{lower}{digits}"),
        'L' => format!("{lower}{upper}"),
        'U' => format!("{upper}{digits}"),
        'T' => format!("{upper}234567"),
        'K' => "023456789ACDEFGHJKLMNPQRSTUVWXYZ".to_owned(),
        'A' => format!("{lower}{upper}{digits}"),
        'B' => format!("{lower}{upper}{digits}+/"),
        'W' => format!("{lower}{upper}{digits}_-"),
        sort => panic!("no characters of the sort {sort}"),
    }
}

/// Makes a sample.
pub(super) fn made(sample: &str, numbers: &mut Numbers) -> String {
    let mut text = String::new();
    let mut rest = sample;
    while let Some((before, after)) = rest.split_once('{') {
        let (part, after) = after.split_once('}').expect("a part ends");
        let (sort, count) = part.split_at(1);
        let alphabet: Vec<char> = alphabet(sort.chars().next().expect("a sort")).chars().collect();
        text.push_str(before);
        let count: usize = count.parse().expect("a number");
        text.extend((0..count).map(|_| alphabet[numbers.below(alphabet.len())]));
        rest = after;
    }
    text.push_str(rest);
    text
}
