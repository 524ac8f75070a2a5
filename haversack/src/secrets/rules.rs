//! The patterns of secrets: one rule for each sort, exact rules before general ones.

use std::fmt;

/// The pattern of one sort of secret.
#[derive(PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// Its name in records and commands.
    pub id: &'static str,
    /// The name of such a secret for people, with its article.
    pub name: &'static str,
    /// Words of which one is in every such secret or directly before it; case does not matter.
    pub(super) keywords: &'static [&'static str],
    /// How it is written. If there is a group, the secret is that.
    pub(super) pattern: &'static str,
    /// The start of the pattern.
    pub(super) start: Start,
    /// The number of bytes after the word that are searched.
    pub(super) reach: usize,
    /// The least entropy of each byte, in tenths of a bit.
    pub(super) entropy: u32,
    /// Its further checks.
    pub(super) form: Form,
    /// If set, the pattern is tried only if something that introduces a value follows the word within so many bytes.
    pub(super) separator_within: Option<usize>,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rule({})", self.id)
    }
}

/// The start of a pattern, relative to the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// With the word, which is not the end of a longer one.
    Word,
    /// With the word, whatever is before it.
    Within,
    /// At most so many bytes before it.
    Before(usize),
}

/// The checks of a secret besides its pattern and its entropy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// It has a form of its own, which nothing else has.
    Token,
    /// It has letters and digits, and little else tells it from a name.
    Mixed,
    /// Any value of something that is called a key, a token or a secret.
    Key,
    /// Any value of something that is called a password.
    Password,
    /// The password in an address.
    Address,
    /// Random text behind something that announces a secret.
    Random,
    /// The password in the arguments of a command.
    Argument,
    /// The base64 of a user's name and password.
    Credentials,
    /// A number of a few digits.
    Pin,
    /// Several words with spaces between them.
    Phrase,
}

/// The default number of bytes that a pattern searches.
const REACH: usize = 256;

/// The number of bytes for a pattern whose secret has many lines, or no bound.
pub(super) const FAR: usize = 8 * 1024;

/// The least entropy unless a rule says more; random hexadecimal digits have 3.0 and more.
const ENTROPY: u32 = 28;

const fn token(
    id: &'static str,
    name: &'static str,
    keywords: &'static [&'static str],
    pattern: &'static str,
) -> Rule {
    let (start, reach, entropy, form) = (Start::Word, REACH, ENTROPY, Form::Token);
    Rule { id, name, keywords, pattern, start, reach, entropy, form, separator_within: None }
}

impl Rule {
    const fn within(self) -> Rule {
        Rule { start: Start::Within, ..self }
    }

    const fn before(self, bytes: usize) -> Rule {
        Rule { start: Start::Before(bytes), ..self }
    }

    /// Its secret has no bound; what may be in it is unbroken, so that from inside of it nothing else can be found.
    const fn far(self) -> Rule {
        Rule { reach: FAR, ..self }
    }

    /// A colon, an equals sign or a verb follows the word within so many bytes. That is seen faster than the pattern can be tried.
    const fn separator_within(self, bytes: usize) -> Rule {
        Rule { separator_within: Some(bytes), ..self }
    }

    const fn form(self, form: Form) -> Rule {
        // Invented values are short.
        let entropy = match form {
            Form::Address | Form::Password | Form::Argument | Form::Credentials => 20,
            Form::Pin => 8,
            Form::Token | Form::Mixed | Form::Key | Form::Random | Form::Phrase => self.entropy,
        };
        Rule { form, entropy, ..self }
    }
}

/// The text between a name and its value, in settings, code, JSON (also inside of JSON), Markdown and prose.
macro_rules! between {
    () => {
        r#"[\\"'`*\])]{0,4}[ \t]{0,8}(?::=|=>|==?|:|\||is[ \t])[ \t*]{0,8}[\\"'`]{0,4}"#
    };
}

/// A name and its value.
macro_rules! named {
    ($name:literal, $value:literal) => {
        concat!("(?i:", $name, ")", between!(), "(", $value, ")")
    };
}

/// A value whose name begins with that of a service and says that it is secret.
macro_rules! of_service {
    ($service:literal, $value:literal) => {
        concat!(
            "(?i:(?:",
            $service,
            r")[A-Za-z0-9_ .\-]{0,20}?(?:key|token|secret|auth|api|pat|password|credential)[A-Za-z0-9_ .\-]{0,12}?)",
            between!(),
            "(",
            $value,
            ")"
        )
    };
}

/// Every rule. Where two find something in one place, the earlier one counts.
pub(super) const RULES: &[Rule] = &[
    // Clouds.
    token("aws-access-key", "an AWS access key", &["akia", "asia", "abia", "acca"],
        "(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}"),
    token("aws-secret-key", "an AWS secret key",
        &["secret_access_key", "secretaccesskey", "secret access key", "aws_secret", "secret-access-key"],
        named!("secret[_ -]?access[_ -]?key|aws_secret(?:_key)?", "[A-Za-z0-9/+]{40}")).within(),
    token("aws-session-token", "an AWS session token", &["session_token", "sessiontoken"],
        named!("session_?token", "[A-Za-z0-9/+=]{100,}")).within().far(),
    token("aws-bedrock-key", "an Amazon Bedrock key", &["absk"], "ABSK[A-Za-z0-9+/]{109,}={0,2}").far(),
    token("azure-storage-key", "an Azure storage key", &["accountkey"],
        named!("accountkey", "[A-Za-z0-9+/]{86}==")).within(),
    token("azure-storage-account-key", "an Azure storage key",
        &["storage_key", "storage-key", "storage key", "storagekey", "account_key", "account-key", "account key", "azure_storage", "azurestorage"],
        named!(r"(?:azure_?storage|storage|account)[A-Za-z0-9_ .\-]{0,24}?key[12]?", "[A-Za-z0-9+/]{86}==")).within(),
    token("azure-marked-storage-key", "an Azure storage key", &["+ast"],
        r"[A-Za-z0-9+/]{76}\+ASt[A-Za-z0-9+/]{5}[AQgw]==").before(76),
    token("azure-shared-access-key", "an Azure shared access key", &["sharedaccesskey"],
        named!("sharedaccesskey", "[A-Za-z0-9+/]{43}=")).within(),
    token("azure-shared-access-signature", "an Azure shared access signature", &["sig="],
        "(?i:sig)=([A-Za-z0-9%+/]{43,}(?:=|%3[Dd]))"),
    token("azure-client-secret", "an Azure client secret", &["q~"],
        r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.\-]{31,34}").before(4),
    token("azure-devops-token", "an Azure DevOps token", &["azdo"],
        "[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}").before(76),
    token("azure-ai-key", "an Azure AI key", &["jqqj99"], "[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{26}").before(52),
    token("azure-function-key", "an Azure Functions key", &["azfu"],
        r"[A-Za-z0-9_\-]{44}AzFu[A-Za-z0-9_\-]{5}[AQgw]==").before(44),
    token("azure-registry-key", "an Azure container registry key", &["+acr"],
        r"[A-Za-z0-9+/]{42}\+ACR[A-D][A-Za-z0-9]{5}").before(42),
    token("azure-search-key", "an Azure search key", &["azse"],
        "[A-Za-z0-9]{42}AzSe[A-D][A-Za-z0-9]{5}").before(42),
    token("azure-cache-key", "an Azure cache key", &["azca"],
        "[A-Za-z0-9]{33}AzCa[A-P][A-Za-z0-9]{5}=").before(33),
    token("gcp-service-account-key", "a Google service account key",
        &[r#""private_key""#, r#""private_key\""#],
        r#""private_key\\?"[ \t]{0,4}:[ \t]{0,4}\\?"-----BEGIN (?:RSA )?PRIVATE KEY-----(?:\\{1,2}n)([A-Za-z0-9+/=\\]{64,})"#).within().far(),
    token("gcp-api-key", "a Google API key", &["aiza"], r"AIza[A-Za-z0-9_\-]{35}"),
    token("google-oauth-secret", "a Google OAuth client secret", &["gocspx-"], r"GOCSPX-[A-Za-z0-9_\-]{28}"),
    token("google-access-token", "a Google access token", &["ya29."], r"ya29\.[A-Za-z0-9_\-]{30,}").far(),
    token("google-refresh-token", "a Google refresh token", &["1//0"], r"1//0[A-Za-z0-9_\-]{40,}"),
    token("firebase-server-key", "a Firebase server key", &[":apa91b"],
        r"AAAA[A-Za-z0-9_\-]{7}:APA91b[A-Za-z0-9_\-]{134}").before(11),
    token("alibaba-access-key", "an Alibaba Cloud access key", &["ltai"], "LTAI[A-Za-z0-9]{20}"),
    token("tencent-secret-id", "a Tencent Cloud secret id", &["akid"], "AKID[A-Za-z0-9]{32}"),
    token("digitalocean-token", "a DigitalOcean token", &["dop_v1_", "doo_v1_", "dor_v1_"],
        "do[opr]_v1_[0-9a-f]{64}"),
    token("heroku-key", "a Heroku key", &["hrku-"], r"HRKU-[A-Za-z0-9_\-]{36,}"),
    token("heroku-api-key", "a Heroku API key", &["heroku"],
        of_service!("heroku", "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")).within(),
    token("cloudflare-token", "a Cloudflare API token", &["cloudflare", "cf_api", "cf_token"],
        of_service!("cloudflare|cf_", r"[A-Za-z0-9_\-]{40}")).within().form(Form::Mixed),
    token("cloudflare-global-key", "a Cloudflare global key", &["cloudflare", "cf_api", "cf_key"],
        of_service!("cloudflare|cf_", "[0-9a-f]{37}")).within(),
    token("cloudflare-origin-key", "a Cloudflare origin key", &["v1.0-"],
        r"v1\.0-[0-9a-f]{24}-[0-9a-f]{146}"),
    token("fastly-token", "a Fastly token", &["fastly"],
        of_service!("fastly", r"[A-Za-z0-9_\-]{32}")).within().form(Form::Mixed),
    token("netlify-token", "a Netlify token", &["nfp_", "nfc_", "nfo_", "nfu_"], "nf[pcou]_[A-Za-z0-9]{36}"),
    token("vercel-token", "a Vercel token", &["vercel"],
        of_service!("vercel", "[A-Za-z0-9]{24}")).within().form(Form::Mixed),
    token("fly-token", "a Fly.io token", &["fo1_", "fm1_", "fm1a_", "fm1r_", "fm2_"],
        r"f(?:o1|m1|m1a|m1r|m2)_[A-Za-z0-9_\-+/=]{43,}").far(),
    token("render-key", "a Render key", &["rnd_"], "rnd_[A-Za-z0-9]{32}"),
    token("linode-token", "a Linode token", &["linode"], of_service!("linode", "[0-9a-f]{64}")).within(),
    token("supabase-token", "a Supabase token", &["sbp_"], "sbp_[0-9a-f]{40}"),
    token("supabase-secret-key", "a Supabase secret key", &["sb_secret_"], r"sb_secret_[A-Za-z0-9_\-]{31,}"),
    token("planetscale-token", "a PlanetScale secret", &["pscale_"],
        r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_=.\-]{32,}"),
    token("neon-key", "a Neon key", &["napi_"], "napi_[a-z0-9]{64}"),
    token("tailscale-key", "a Tailscale key", &["tskey-"],
        "tskey-(?:auth-|api-|client-|scim-|webhook-)?[A-Za-z0-9]{10,}-?[A-Za-z0-9]{10,}"),
    // Code and packages.
    token("github-token", "a GitHub token", &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"],
        "gh[pousr]_[A-Za-z0-9]{36,}"),
    token("github-fine-grained-token", "a GitHub token", &["github_pat_"], "github_pat_[A-Za-z0-9_]{82}"),
    token("gitlab-token", "a GitLab token", &["glpat-"], r"glpat-[A-Za-z0-9_\-.]{20,}"),
    token("gitlab-pipeline-token", "a GitLab trigger token", &["glptt-"], "glptt-[0-9a-f]{40}"),
    token("gitlab-service-token", "a GitLab token",
        &["gldt-", "glrt-", "glft-", "glsoat-", "glimt-", "glagent-", "gloas-", "glcbt-"],
        r"gl(?:dt|rt|ft|soat|imt|agent|oas|cbt)-[A-Za-z0-9_\-.]{20,}"),
    token("gitlab-runner-token", "a GitLab runner token", &["gr1348941"], r"GR1348941[A-Za-z0-9_\-]{20}"),
    token("bitbucket-app-password", "a Bitbucket app password", &["atbb"], "ATBB[A-Za-z0-9]{32}"),
    token("atlassian-token", "an Atlassian token", &["atatt3", "atctt3"],
        r"AT[AC]TT3[A-Za-z0-9_\-=]{100,}").far(),
    token("npm-token", "an npm token", &["npm_"], "npm_[A-Za-z0-9]{36}"),
    token("npmrc-token", "an npm registry token", &["_authtoken"],
        named!("_authtoken", r"[A-Za-z0-9_\-+/=.]{20,}")).within(),
    token("pypi-token", "a PyPI token", &["pypi-age"], r"pypi-AgE[A-Za-z0-9_\-]{60,}").far(),
    token("crates-io-token", "a crates.io token", &["cio"], "cio[A-Za-z0-9]{32}"),
    token("rubygems-key", "a RubyGems key", &["rubygems_"], "rubygems_[0-9a-f]{48}"),
    token("nuget-key", "a NuGet key", &["oy2"], "oy2[a-z0-9]{43}"),
    token("clojars-token", "a Clojars token", &["clojars_"], "CLOJARS_[a-z0-9]{60}"),
    token("docker-token", "a Docker token", &["dckr_pat_", "dckr_oat_"], r"dckr_[po]at_[A-Za-z0-9_\-]{27,}"),
    token("artifactory-key", "an Artifactory key", &["akcp"], "AKCp[A-Za-z0-9]{69}"),
    token("sourcegraph-token", "a Sourcegraph token", &["sgp_"],
        "sgp_(?:[0-9a-fA-F]{16}_|local_)?[0-9a-fA-F]{40}"),
    token("circleci-token", "a CircleCI token", &["ccipat_", "ccipp_"],
        "CCIP(?:AT|P)_[A-Za-z0-9]{16,}_[0-9a-f]{40}"),
    token("buildkite-token", "a Buildkite token", &["bkua_"], "bkua_[0-9a-f]{40}"),
    token("sonar-token", "a SonarQube token", &["sqp_", "squ_", "sqa_"], "sq[pua]_[0-9a-f]{40}"),
    token("codecov-token", "a Codecov token", &["codecov"],
        of_service!("codecov", "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")).within(),
    token("snyk-token", "a Snyk token", &["snyk"],
        of_service!("snyk", "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")).within(),
    token("postman-key", "a Postman key", &["pmak-"], "PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    token("vault-token", "a Vault token", &["hvs.", "hvb.", "hvr."], r"hv[sbr]\.[A-Za-z0-9_\-]{24,}").far(),
    token("terraform-token", "a Terraform token", &[".atlasv1."],
        r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_\-=]{60,}").before(14),
    token("pulumi-token", "a Pulumi token", &["pul-"], "pul-[0-9a-f]{40}"),
    token("prefect-key", "a Prefect key", &["pnu_"], "pnu_[A-Za-z0-9]{36}"),
    token("doppler-token", "a Doppler token",
        &["dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."],
        r"dp\.(?:pt|ct|sa|scim|audit|st(?:\.[a-z0-9_\-]{2,35})?)\.[A-Za-z0-9]{40,44}"),
    token("1password-token", "a 1Password service token", &["ops_ey"],
        r"ops_eyJ[A-Za-z0-9+/=_\-]{200,}").far(),
    token("1password-secret-key", "a 1Password secret key", &["a3-"],
        "A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}"),
    token("infracost-key", "an Infracost key", &["ico-"], "ico-[A-Za-z0-9]{32}"),
    // Models and data.
    token("openai-key", "an OpenAI key", &["t3blbkfj"],
        r"sk-[A-Za-z0-9_\-]{16,120}T3BlbkFJ[A-Za-z0-9_\-]{16,}").before(128),
    token("anthropic-key", "an Anthropic key", &["sk-ant-"],
        r"sk-ant-[a-z]{2,10}[0-9]{2}-[A-Za-z0-9_\-]{60,}"),
    token("huggingface-token", "a Hugging Face token", &["hf_", "api_org_"], "(?:hf_|api_org_)[A-Za-z0-9]{34}"),
    token("replicate-token", "a Replicate token", &["r8_"], "r8_[A-Za-z0-9]{37}"),
    token("groq-key", "a Groq key", &["gsk_"], "gsk_[A-Za-z0-9]{52}"),
    token("xai-key", "an xAI key", &["xai-"], r"xai-[A-Za-z0-9_\-]{70,}"),
    token("perplexity-key", "a Perplexity key", &["pplx-"], "pplx-[A-Za-z0-9]{48}"),
    token("openrouter-key", "an OpenRouter key", &["sk-or-"], "sk-or-v1-[0-9a-f]{64}"),
    token("deepseek-key", "a DeepSeek key", &["deepseek"],
        of_service!("deepseek", "sk-[0-9a-f]{32}")).within(),
    token("elevenlabs-key", "an ElevenLabs key", &["sk_"], "sk_[0-9a-f]{48}"),
    token("cerebras-key", "a Cerebras key", &["csk-"], "csk-[a-z0-9]{48}"),
    token("tavily-key", "a Tavily key", &["tvly-"], "tvly-(?:dev-|prod-)?[A-Za-z0-9]{32}"),
    token("pinecone-key", "a Pinecone key", &["pcsk_"], "pcsk_[A-Za-z0-9_]{60,}"),
    token("langsmith-key", "a LangSmith key", &["lsv2_"], "lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
    token("langfuse-key", "a Langfuse key", &["sk-lf-"],
        "sk-lf-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    token("wandb-key", "a Weights & Biases key", &["wandb"], of_service!("wandb", "[0-9a-f]{40}")).within(),
    token("mistral-key", "a Mistral key", &["mistral"],
        of_service!("mistral", "[A-Za-z0-9]{32}")).within().form(Form::Mixed),
    token("cohere-key", "a Cohere key", &["cohere", "co_api_key"],
        of_service!("cohere|co_", "[A-Za-z0-9]{40}")).within().form(Form::Mixed),
    token("databricks-token", "a Databricks token", &["dapi"], "dapi[0-9a-f]{32}(?:-[0-9])?"),
    token("airtable-token", "an Airtable token", &["pat"], r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    token("notion-token", "a Notion token", &["ntn_"], "ntn_[A-Za-z0-9]{40,}"),
    token("notion-secret", "a Notion secret", &["secret_"], "secret_[A-Za-z0-9]{43}"),
    token("algolia-key", "an Algolia key", &["algolia"], of_service!("algolia", "[0-9a-f]{32}")).within(),
    token("mapbox-token", "a Mapbox secret token", &["sk.ey"],
        r"sk\.eyJ[A-Za-z0-9_\-]{40,}\.[A-Za-z0-9_\-]{20,}"),
    token("contentful-token", "a Contentful token", &["cfpat-"], r"CFPAT-[A-Za-z0-9_\-]{43}"),
    // Watching and mail.
    token("datadog-key", "a Datadog key", &["datadog", "dd_api_key", "dd_app_key"],
        of_service!("datadog|dd_", "[0-9a-f]{32}(?:[0-9a-f]{8})?")).within(),
    token("newrelic-user-key", "a New Relic key", &["nrak-"], "NRAK-[A-Z0-9]{27}"),
    token("newrelic-license-key", "a New Relic licence key", &["nral"], "[0-9a-f]{36}NRAL").before(36),
    token("newrelic-browser-key", "a New Relic browser key", &["nrjs-"], "NRJS-[0-9a-f]{19}"),
    token("sentry-token", "a Sentry token", &["sntrys_", "sntryu_"],
        "(?:sntryu_[0-9a-f]{64}|sntrys_eyJ[A-Za-z0-9+/=_]{60,})").far(),
    token("grafana-token", "a Grafana token", &["glsa_"], "glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}"),
    token("grafana-cloud-token", "a Grafana Cloud token", &["glc_ey"], "glc_eyJ[A-Za-z0-9+/=]{40,}").far(),
    token("dynatrace-token", "a Dynatrace token", &["dt0c01.", "dt0s01.", "dt0s16."],
        r"dt0[cs][01][1-9]\.[A-Z0-9]{8,24}\.[A-Z0-9]{64}"),
    token("honeycomb-key", "a Honeycomb key", &["hcaik_", "hcxik_"], "hc[a-z]ik_[A-Za-z0-9]{58}"),
    token("pagerduty-key", "a PagerDuty key", &["pagerduty"],
        of_service!("pagerduty", r"[A-Za-z0-9_\-+]{20}")).within().form(Form::Mixed),
    token("sendgrid-key", "a SendGrid key", &["sg."], r"SG\.[A-Za-z0-9_\-]{22}\.[A-Za-z0-9_\-]{43}"),
    token("mailgun-key", "a Mailgun key", &["key-"], "key-[0-9a-f]{32}"),
    token("mailgun-sending-key", "a Mailgun key", &["mailgun"],
        of_service!("mailgun", "[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}")).within(),
    token("mailchimp-key", "a Mailchimp key", &["-us"], "[0-9a-f]{32}-us[0-9]{1,2}").before(32),
    token("brevo-key", "a Brevo key", &["xkeysib-", "xsmtpsib-"],
        "x(?:key|smtp)sib-[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    token("resend-key", "a Resend key", &["re_"], "re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}"),
    token("postmark-token", "a Postmark token", &["postmark"],
        of_service!("postmark", "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")).within(),
    token("twilio-key", "a Twilio key", &["sk"], "SK[0-9a-f]{32}"),
    token("twilio-auth-token", "a Twilio auth token", &["twilio"],
        of_service!("twilio", "[0-9a-f]{32}")).within(),
    // Talk and work.
    token("slack-token", "a Slack token",
        &["xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxc-", "xoxd-", "xoxe-", "xoxe."],
        r"xox[abprscde][-.][A-Za-z0-9%\-]{24,}").far(),
    token("slack-app-token", "a Slack app token", &["xapp-"], "xapp-[0-9]-[A-Z0-9]+-[0-9]+-[0-9a-f]{32,}"),
    token("slack-webhook", "a Slack webhook", &["hooks.slack.com"],
        r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{40,})"),
    token("discord-webhook", "a Discord webhook", &["/api/webhooks/", "/api/v"],
        r"/api/(?:v[0-9]{1,2}/)?webhooks/[0-9]{17,20}/([A-Za-z0-9_\-]{60,})").within(),
    token("discord-token", "a Discord token", &["discord"],
        of_service!("discord", r"[MNO][A-Za-z0-9_\-]{23,27}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27,40}")).within(),
    token("teams-webhook", "a Teams webhook", &["webhook.office.com"],
        r"webhook\.office\.com/webhookb2/[0-9a-f@\-]{36,80}/IncomingWebhook/([0-9a-f]{32}/[0-9a-f\-]{36})").within(),
    token("telegram-token", "a Telegram bot token", &[":aa"],
        r"(?:bot)?([0-9]{8,10}:AA[A-Za-z0-9_\-]{33})").before(13),
    token("linear-key", "a Linear key", &["lin_api_", "lin_oauth_"], "lin_(?:api|oauth)_[A-Za-z0-9]{40,}"),
    token("figma-token", "a Figma token", &["figd_"], r"figd_[A-Za-z0-9_\-]{38,}"),
    token("dropbox-token", "a Dropbox token", &["sl."], r"sl\.(?:u\.)?[A-Za-z0-9_\-]{120,}").far(),
    token("hubspot-token", "a HubSpot token", &["pat-na", "pat-eu"],
        "pat-(?:na|eu)[0-9]-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    token("typeform-token", "a Typeform token", &["tfp_"], r"tfp_[A-Za-z0-9_\-.]{40,}"),
    token("asana-token", "an Asana token", &["asana"],
        of_service!("asana", "[0-9]/[0-9]{16}(?:/[0-9]{16})?:[0-9a-f]{32}|[0-9a-z]{32}")).within().form(Form::Mixed),
    token("okta-token", "an Okta token", &["okta"],
        of_service!("okta", r"00[A-Za-z0-9_\-]{40}")).within().form(Form::Mixed),
    token("facebook-token", "a Facebook token", &["eaac", "eaam", "eaab"], "EAA[MCB][A-Za-z0-9]{80,}").far(),
    token("twitter-bearer-token", "an X bearer token", &["aaaaaaaaaaaaaaaaaaaa"],
        "A{20,22}[A-Za-z0-9%]{80,}"),
    // Money and shops.
    token("stripe-key", "a Stripe key",
        &["sk_live_", "sk_test_", "rk_live_", "rk_test_", "sk_prod_", "rk_prod_"],
        "[sr]k_(?:live|test|prod)_[A-Za-z0-9]{16,}"),
    token("stripe-webhook-secret", "a webhook secret", &["whsec_"], "whsec_[A-Za-z0-9+/=]{32,}"),
    token("shopify-token", "a Shopify token", &["shpat_", "shpca_", "shppa_", "shpss_"],
        "shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    token("square-token", "a Square token", &["sq0atp-", "sq0csp-", "eaaa"],
        r"(?:sq0atp-[A-Za-z0-9_\-]{22}|sq0csp-[A-Za-z0-9_\-]{43}|EAAA[A-Za-z0-9_\-]{60})"),
    token("paypal-token", "a PayPal token", &["access_token$"],
        r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}"),
    token("plaid-token", "a Plaid token", &["access-sandbox-", "access-development-", "access-production-"],
        "access-(?:sandbox|development|production)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    token("razorpay-key", "a Razorpay key", &["rzp_live_", "rzp_test_"], "rzp_(?:live|test)_[A-Za-z0-9]{14}"),
    token("flutterwave-key", "a Flutterwave key", &["flwseck"], "FLWSECK(?:_TEST)?-[0-9a-zA-Z]{32,}-X"),
    token("shippo-token", "a Shippo token", &["shippo_live_", "shippo_test_"],
        "shippo_(?:live|test)_[0-9a-f]{40}"),
    token("easypost-key", "an EasyPost key", &["ezak", "eztk"], "EZ[AT]K[A-Za-z0-9]{54}"),
    token("duffel-token", "a Duffel token", &["duffel_"], r"duffel_(?:live|test)_[A-Za-z0-9_\-=]{43}"),
    token("woocommerce-key", "a WooCommerce key", &["ck_", "cs_"], "c[ks]_[0-9a-f]{40}"),
    // Keys of any maker.
    token("private-key", "a private key", &["-----begin"],
        r#"-----BEGIN[ A-Z0-9]{0,30}PRIVATE KEY(?: BLOCK)?-----(?:\s|\\{1,2}[nr]|[>|"'+,])*(?:[A-Za-z\-]{4,12}: [^\n\\]{0,80}(?:\s|\\{1,2}[nr]|[>|"'+,])+){0,4}([A-Za-z0-9+/=]{32,}[A-Za-z0-9+/=\s\\>|"',]*)"#).within().far(),
    token("putty-key", "a PuTTY private key", &["private-lines:"],
        r"(?i:private-lines): [0-9]+(?:\s|\\{1,2}[nr])+([A-Za-z0-9+/=\s\\]{32,})").within().far(),
    token("age-key", "an age secret key", &["age-secret-key-1"], "AGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58}"),
    token("json-web-token", "a signed web token", &["eyj"],
        r"eyJ[A-Za-z0-9_\-]{10,}\.eyJ[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{16,}").far(),
    token("url-password", "an address with a password", &["://"],
        r#"://[^\s/:@"'`<>()\[\]]{0,64}:([^\s/@"'`<>()\[\]]{4,128})@[A-Za-z0-9\[][A-Za-z0-9.\-]*"#).within().form(Form::Address),
    token("user-argument", "a password in a command", &[" -u ", "--user ", "--user="],
        r#"(?: -u|--user)[ =]["']?[^\s:"']{1,64}:([^\s\x1b\\"']{6,128})"#).within().form(Form::Password),
    token("netrc-password", "a password of a machine", &["machine "],
        r"machine[ \t]+[^\s]{1,80}\s+login[ \t]+[^\s]{1,80}\s+password[ \t]+([^\s\x1b\\]{6,128})").form(Form::Password),
    token("authorization-header", "an authorization header", &["authorization"],
        r#"(?i:authorization)[\\"'`*]{0,4}[ \t]{0,8}[:=,][ \t]{0,8}[\\"'`]{0,4}(?i:basic|bearer|token|apikey)[ \t]+([A-Za-z0-9_\-+/=.~]{16,})"#).within().form(Form::Key),
    token("password-argument", "a password in a command", &["--password", "--passwd", "--passphrase"],
        r#"--pass(?:word|wd|phrase)[ =]["']?([^\s\x1b"'`<>\\|]{6,128})"#).within().form(Form::Password),
    token("token-argument", "a token in a command",
        &["--token", "--api-key", "--secret", "--access-token", "--auth-token"],
        r#"--(?:token|api-key|secret|access-token|auth-token)[ =]["']?([A-Za-z0-9_\-+/=.~]{16,})"#).within().form(Form::Key),
    token("assigned-password", "a password",
        &["password", "passwort", "passwd", "passphrase", "pwd", "pass_", "_pass"],
        named!("passwor[dt]|passwd|passphrase|pwd|_pass|pass_(?:word|phrase)", r#"[^\s\x1b"'`<>\\|,;]{6,128}"#)).within().form(Form::Password).separator_within(40),
    token("assigned-key", "a key or token", &["key", "secret", "token"],
        named!("(?:key|secret|token)(?:[_ -]?(?:value|key))?", r"[A-Za-z0-9_\-+/=.~]{16,}")).within().form(Form::Key).separator_within(40),
    // New rules come last: an earlier place would change the fingerprints of secrets that the rules above find already.
    token("prefixed-key", "an API key", &["sk-"],
        r"sk-(?:[A-Za-z0-9]{32,}|[a-z]{2,10}-[A-Za-z0-9_\-]{32,})").form(Form::Random),
    token("jina-key", "a Jina key", &["jina_"], "jina_[A-Za-z0-9]{50,}").form(Form::Random),
    token("posthog-key", "a PostHog personal key", &["phx_"], "phx_[A-Za-z0-9]{40,}").form(Form::Random),
    token("nvidia-key", "an NVIDIA key", &["nvapi-"], r"nvapi-[A-Za-z0-9_\-]{60,}").form(Form::Random),
    token("firecrawl-key", "a Firecrawl key", &["fc-"], "fc-[0-9a-f]{32}"),
    token("fireworks-key", "a Fireworks key", &["fw_"], "fw_[A-Za-z0-9]{22,24}").form(Form::Random),
    token("e2b-key", "an E2B key", &["e2b_"], "e2b_[0-9a-f]{40}"),
    token("apify-token", "an Apify token", &["apify_api_"], "apify_api_[A-Za-z0-9]{30,}"),
    token("launchdarkly-key", "a LaunchDarkly key", &["sdk-", "api-"],
        "(?:sdk|api)-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"),
    token("discord-session-token", "a Discord token", &["mfa."], r"mfa\.[A-Za-z0-9_\-]{80,}"),
    token("ngrok-token", "an ngrok token", &["authtoken"],
        r#"(?i:authtoken)[\\"'`:= \t]{1,6}([0-9][A-Za-z0-9]{24,30}_[A-Za-z0-9]{18,26})"#).within().form(Form::Random),
    token("openshift-token", "an OpenShift token", &["sha256~"], r"sha256~[A-Za-z0-9_\-]{43}"),
    token("kubernetes-client-key", "a Kubernetes client key", &["client-key-data"],
        r#"client-key-data[\\"']{0,3}[ \t]{0,4}[:=][ \t]{0,4}[\\"']{0,3}([A-Za-z0-9+/]{40,}={0,2})"#).far(),
    token("registry-credentials", "a login of a registry", &["auth\"", "auth\\\"", "auth:", "auth=", "auth ="],
        r#"auth[\\"']{0,3}[ \t]{0,4}[:=][ \t]{0,4}[\\"']{0,3}([A-Za-z0-9+/]{10,}={0,2})"#).within().form(Form::Credentials),
    token("assigned-secret", "a secret",
        &["secret", "app_key", "signing_key", "signing-key", "encryption_key", "encryption-key", "encryptionkey",
            "private_key", "privatekey", "master_key", "master-key"],
        concat!(
            r"(?i:secret[_ -]?(?:key)?(?:[_-]?base)?|app_key|(?:signing|encryption|private|master)[_-]?key)",
            between!(), r#"(?:b["']|r["']|base64:)?"#, r#"([^\s\x1b"'`<>\\]{16,256})"#)).within().form(Form::Random),
    token("dsn-password", "an address with a password", &["@tcp(", "@unix("],
        r#"[^\s:@/"'`=|]{1,64}:([^\s@/"'`]{4,128})@(?:tcp|unix)"#).before(200).form(Form::Argument),
    token("sshpass-password", "a password in a command", &["sshpass"],
        r#"sshpass[ \t]+(?:-v[ \t]+)?-p[ \t]*["']?([^\s\x1b"'`\\]{4,128})"#).form(Form::Argument),
    token("database-password", "a password in a command", &["mysql", "mariadb"],
        r#"(?:mysql|mariadb)[a-z\-]{0,12}[ \t](?:[^\n|;]{0,160}?[ \t])?-p["']?([^\s\x1b"'`\\]{4,128})"#).form(Form::Argument),
    token("command-password", "a password in a command",
        &["redis-cli", "mongo", "docker login", "podman login", "registry login", "ldapsearch", "ldapmodify", "ldapadd", "sqlcmd", "unzip"],
        r#"(?:redis-cli[ \t](?:[^\n|;]{0,120}?[ \t])?-a|(?:mongo[a-z]{0,8}|(?:docker|podman|registry) login)[ \t](?:[^\n|;]{0,120}?[ \t])?-p|ldap[a-z]{3,6}[ \t][^\n|;]{0,120}?[ \t]-w|(?:sqlcmd|unzip)[ \t](?:[^\n|;]{0,120}?[ \t])?-P)[ \t]+["']?([^\s\x1b"'`\\|;<>]{4,128})"#).form(Form::Argument),
    token("http-password", "a password in a command", &["curl ", "wget ", "httpie "],
        r#"(?:curl|wget|httpie)[ \t](?:[^\n|;]{0,160}?[ \t])?(?:-u|--user|-a|--auth)[ =]?["']?[^\s:"'$`]{1,64}:([^\s\x1b"'`\\]{4,128})"#).form(Form::Argument),
    token("wifi-password", "a Wi-Fi password", &["psk"],
        r#"(?i:psk)[ \t]{0,4}[:=][ \t]{0,4}["']([^\s\x1b"'`<>\\|,;]{8,63})["']"#).form(Form::Password),
    token("element-password", "a password", &["password>", "passwd>", "pwd>", "passphrase>"],
        r#"(?i:password|passwd|pwd|passphrase)>([^\s\x1b<>"'`]{6,128})<"#).within().form(Form::Password),
    token("stated-password", "a password",
        &["password", "passwort", "kennwort", "passwd", "passcode", "passphrase", "pwd", "pass:", "pass=", "pass =", "pass is", "pw:", "pw =", "pw is"],
        concat!(
            r#"(?i:pass=|(?:password|passwort|kennwort|passwd|passcode|passphrase|pwd|pass|pw)(?:[ \t(]+[A-Za-z'()_.\-\x80-\xff]{1,20}){0,6}?[\\"'`*)]{0,4}"#,
            r#"(?:[ \t]{0,4}(?::|=>?|->|"#, "\u{2192}", r#")|[ \t](?:is|was|ist|to|now|lautet)(?:[ \t](?:now|(?:re)?set to|changed to|still))?)[ \t*]{1,8})[\\"'`]{0,4}([^\s\x1b"'`<>\\|,;]{6,128})"#)).form(Form::Password).separator_within(180),
    token("sql-password", "a password", &["password '", "identified by '", "password \"", "identified by \""],
        r#"(?i:password|identified by)[ \t]{1,4}['"]([^\s\x1b"'`\\]{6,128})['"]"#).within().form(Form::Password),
    token("stated-pin", "a PIN", &["pin is", "pin:", "pin =", "pin code", "pin-code", "pin for", "pin of", "pin to", "pin was"],
        r#"(?:PIN|[Pp]in(?:[ -]code| is))(?:[ -](?i:code|number))?(?:[ \t](?:for|of|to)[ \t][A-Za-z ]{2,30}?)?(?:[ \t]{0,2}[:=]|[ \t](?:is|was))?[ \t]{1,2}["'`*]{0,2}([0-9]{4,8})"#).form(Form::Pin),
    token("stated-phrase", "a passphrase", &["passphrase", "seed phrase", "recovery phrase", "backup phrase", "mnemonic"],
        r#"(?i:passphrase|(?:seed|recovery|backup) phrase|mnemonic)(?:[ \t]+(?:for|of|to)[ \t][A-Za-z ]{2,30}?)?[\\"'`*]{0,4}(?:[ \t](?:is|was)|[ \t]{0,2}[:=])[ \t*]{1,4}[\\"'`]{0,3}([a-z]{3,10}(?: [a-z]{3,10}){3,23})"#).within().form(Form::Phrase),
];
