//! The steps, in order, as calls of the Azure CLI: planned without a request.
//!
//! A value that is known only after a call has a name. A later call contains it as `${NAME}`, like in a shell.

use std::collections::BTreeMap;

use ring::digest::{SHA256, digest};

/// The names of what is learned on the way.
pub(super) const SUBSCRIPTION: &str = "SUBSCRIPTION";
pub(super) const TENANT: &str = "TENANT";
pub(super) const OWNER: &str = "OWNER";
pub(super) const ACCOUNT: &str = "ACCOUNT";
pub(super) const CONTAINER: &str = "CONTAINER";
pub(super) const STORAGE: &str = "STORAGE";
pub(super) const NOW: &str = "NOW";
pub(super) const ENDPOINT: &str = "ENDPOINT";

/// "Storage Blob Data Contributor", by the id it has in every tenant.
const ROLE: &str = "ba92f5b4-2d11-453d-a403-e96b0029c9fe";

/// Azure Storage, by the application id it has in every tenant.
const AZURE_STORAGE: &str = "e406a681-f3d4-42a8-90b6-c2b029497af1";

/// Not the beta, which refuses grants.
const GRAPH: &str = "https://graph.microsoft.com/v1.0";

/// The days in which a deleted object can be restored.
const RETENTION_DAYS: &str = "14";

/// The beginning of an account's name, if the user names none.
const ACCOUNT_PREFIX: &str = "haversack";

/// The number of digits of the tenant's hash in it.
const ACCOUNT_DIGITS: usize = 12;

/// The user's options.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) owner: For,
    pub(super) resource_group: String,
    pub(super) location: String,
    pub(super) account: Option<String>,
    pub(super) container: Option<String>,
    pub(super) subscription: Option<String>,
}

/// Whose the container is.
#[derive(Clone, Debug)]
pub(super) enum For {
    WhoeverIsSignedIn,
    Agent { user: String, agent: String },
}

/// The values that are known so far.
pub(super) type Values = BTreeMap<&'static str, String>;

/// One call of the Azure CLI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) arguments: Vec<String>,
}

/// One thing to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Finds something out.
    Learn { name: &'static str, source: Source },
    /// Makes something that is not there; asked for first, because making it again would change it or fail.
    Ensure { what: &'static str, keep: Option<&'static str>, look: Call, make: Call },
    /// Does something that may be done twice.
    Do { doing: &'static str, what: &'static str, call: Call },
    /// Waits until the role works; `None` if az has no way to tell.
    Await(Option<Call>),
}

impl Step {
    /// Returns what is there after it.
    pub(super) fn makes(&self) -> Option<&'static str> {
        match self {
            Step::Ensure { what, .. } | Step::Do { what, .. } => Some(what),
            Step::Learn { .. } | Step::Await(_) => None,
        }
    }
}

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The options, or what was learned before.
    Said(String),
    /// The clock.
    Time,
    /// The account's name, from the tenant.
    AccountOf { tenant: String },
    /// The Azure CLI.
    Asked(Call),
}

/// Returns everything that is to be done, in order.
pub(super) fn plan(options: &Options) -> Vec<Step> {
    let Options { owner, resource_group: group, location, .. } = options;
    let subscription = known(SUBSCRIPTION);
    let account = known(ACCOUNT);
    let container = known(CONTAINER);
    let of_account = format!(
        "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Storage/storageAccounts/{account}"
    );
    let scope = format!("{of_account}/blobServices/default/containers/{container}");
    let in_subscription = ["--subscription", &subscription];

    let mut steps = learn_names(options);
    steps.push(Step::Ensure {
        what: "the resource group",
        keep: None,
        look: call(&["group", "list"])
            .and(&["--query", &format!("[?name=='{group}'].id | [0]")])
            .and(&["--output", "tsv"])
            .and(&in_subscription),
        make: call(&["group", "create"])
            .and(&["--name", group, "--location", location])
            .and(&["--output", "none"])
            .and(&in_subscription),
    });
    steps.push(Step::Ensure {
        what: "the storage account",
        keep: None,
        look: call(&["storage", "account", "list"])
            .and(&["--resource-group", group])
            .and(&["--query", &format!("[?name=='{account}'].id | [0]")])
            .and(&["--output", "tsv"])
            .and(&in_subscription),
        make: call(&["storage", "account", "create"])
            .and(&["--name", &account, "--resource-group", group, "--location", location])
            .and(&["--sku", "Standard_LRS", "--kind", "StorageV2", "--access-tier", "Hot"])
            .and(&["--min-tls-version", "TLS1_2", "--https-only", "true"])
            .and(&["--allow-blob-public-access", "false", "--allow-shared-key-access", "false"])
            .and(&["--output", "none"])
            .and(&in_subscription),
    });
    steps.push(Step::Do {
        doing: "Keeping versions and deleted files for 14 days",
        what: "versions and undelete",
        call: call(&["storage", "account", "blob-service-properties", "update"])
            .and(&["--account-name", &account, "--resource-group", group])
            .and(&["--enable-versioning", "true"])
            .and(&["--enable-delete-retention", "true", "--delete-retention-days", RETENTION_DAYS])
            .and(&["--enable-container-delete-retention", "true"])
            .and(&["--container-delete-retention-days", RETENTION_DAYS])
            .and(&["--output", "none"])
            .and(&in_subscription),
    });
    steps.push(Step::Do {
        doing: "Making the container",
        what: "the container",
        // Through the management plane, which needs no role on the data.
        call: call(&["storage", "container-rm", "create"])
            .and(&["--storage-account", &account, "--resource-group", group, "--name", &container])
            .and(&["--output", "none"])
            .and(&in_subscription),
    });
    let owner_id = known(OWNER);
    steps.push(Step::Ensure {
        what: "the role on the container",
        keep: None,
        look: call(&["role", "assignment", "list"])
            .and(&["--assignee-object-id", &owner_id, "--role", ROLE, "--scope", &scope])
            .and(&["--fill-principal-name", "false"])
            .and(&["--query", "[0].id", "--output", "tsv"])
            .and(&in_subscription),
        make: call(&["role", "assignment", "create"])
            .and(&["--assignee-object-id", &owner_id, "--assignee-principal-type", "User"])
            .and(&["--role", ROLE, "--scope", &scope])
            .and(&["--output", "none"])
            .and(&in_subscription),
    });
    if let For::Agent { agent, .. } = owner {
        steps.extend(grant(agent, &owner_id));
    }
    steps.push(Step::Learn {
        name: ENDPOINT,
        source: Source::Asked(
            call(&["storage", "account", "show"])
                .and(&["--name", &account, "--resource-group", group])
                .and(&["--query", "primaryEndpoints.blob", "--output", "tsv"])
                .and(&in_subscription),
        ),
    });
    steps.push(Step::Await(match owner {
        For::Agent { .. } => None,
        For::WhoeverIsSignedIn => Some(
            call(&["storage", "blob", "list"])
                .and(&["--container-name", &container, "--account-name", &account])
                .and(&["--auth-mode", "login", "--num-results", "1", "--output", "none"])
                .and(&in_subscription),
        ),
    }));
    steps
}

/// Returns how the names come about that everything else is called by.
fn learn_names(options: &Options) -> Vec<Step> {
    let mut of_subscription = call(&["account", "show"]);
    if let Some(subscription) = &options.subscription {
        of_subscription = of_subscription.and(&["--subscription", subscription]);
    }
    let asked =
        |query: &str| Source::Asked(of_subscription.clone().and(&["--query", query, "--output", "tsv"]));
    let owner = match &options.owner {
        For::Agent { user, .. } => Source::Said(user.to_lowercase()),
        For::WhoeverIsSignedIn => {
            Source::Asked(call(&["ad", "signed-in-user", "show"]).and(&["--query", "id", "--output", "tsv"]))
        }
    };
    let account = match &options.account {
        Some(account) => Source::Said(account.clone()),
        None => Source::AccountOf { tenant: known(TENANT) },
    };
    let container = options.container.clone().unwrap_or_else(|| format!("agent-{}", known(OWNER)));
    vec![
        Step::Learn { name: SUBSCRIPTION, source: asked("id") },
        Step::Learn { name: TENANT, source: asked("tenantId") },
        Step::Learn { name: OWNER, source: owner },
        Step::Learn { name: ACCOUNT, source: account },
        Step::Learn { name: CONTAINER, source: Source::Said(container) },
    ]
}

/// Returns how an agent identity gets the permission to act on Azure Storage for its user, without which it is not signed in.
fn grant(agent: &str, user: &str) -> [Step; 3] {
    let storage = known(STORAGE);
    let body = format!(
        "{{\"clientId\":\"{agent}\",\"consentType\":\"Principal\",\"principalId\":\"{user}\",\"resourceId\":\"{storage}\",\
         \"scope\":\"user_impersonation\",\"startTime\":\"{}\"}}",
        known(NOW)
    );
    let theirs = format!(
        "value[?principalId=='{user}' && resourceId=='{storage}' && contains(scope, 'user_impersonation')].id | [0]"
    );
    [
        Step::Ensure {
            what: "the entry of Azure Storage in the directory",
            keep: Some(STORAGE),
            look: call(&["ad", "sp", "list"])
                .and(&["--filter", &format!("appId eq '{AZURE_STORAGE}'")])
                .and(&["--query", "[0].id", "--output", "tsv"]),
            make: call(&["ad", "sp", "create"])
                .and(&["--id", AZURE_STORAGE])
                .and(&["--query", "id", "--output", "tsv"]),
        },
        Step::Learn { name: NOW, source: Source::Time },
        Step::Ensure {
            what: "the agent's permission on Azure Storage",
            keep: None,
            look: call(&["rest", "--method", "get"])
                .and(&["--url", &format!("{GRAPH}/servicePrincipals/{agent}/oauth2PermissionGrants")])
                .and(&["--query", &theirs, "--output", "tsv"]),
            make: call(&["rest", "--method", "post"])
                .and(&["--url", &format!("{GRAPH}/oauth2PermissionGrants")])
                .and(&["--headers", "Content-Type=application/json", "--body", &body, "--output", "none"]),
        },
    ]
}

fn call(words: &[&str]) -> Call {
    Call { arguments: Vec::new() }.and(words)
}

impl Call {
    fn and(mut self, words: &[&str]) -> Call {
        self.arguments.extend(words.iter().map(|word| (*word).to_owned()));
        self
    }
}

fn known(name: &str) -> String {
    format!("${{{name}}}")
}

/// Returns a text with everything that is known in its place.
pub(super) fn filled(text: &str, values: &Values) -> String {
    values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&known(name), value))
}

/// Returns what is known by a name; nothing if it is not.
pub(super) fn value<'v>(values: &'v Values, name: &str) -> &'v str {
    values.get(name).map_or("", String::as_str)
}

/// Returns a value as it is used, or nothing if it is not what it should be: what az prints goes into other calls.
pub(super) fn believed(name: &str, value: &str) -> Option<String> {
    let value = value.trim();
    match name {
        SUBSCRIPTION | TENANT | OWNER | STORAGE => id(value).ok(),
        ACCOUNT => account(value).ok(),
        CONTAINER => container(value).ok(),
        ENDPOINT => {
            let is_address =
                value.starts_with("https://") && !value.chars().any(|c| c.is_whitespace() || c.is_control());
            is_address.then(|| value.trim_end_matches('/').to_owned())
        }
        _ => Some(value.to_owned()),
    }
}

/// Returns what a name stands for.
pub(super) fn meaning(name: &str) -> &'static str {
    match name {
        SUBSCRIPTION => "the id of a subscription",
        TENANT => "the id of a tenant",
        OWNER => "the object id of a user",
        ACCOUNT => "the name of a storage account",
        CONTAINER => "the name of a container",
        STORAGE => "the object id of Azure Storage",
        ENDPOINT => "the address of the storage",
        _ => "what was asked for",
    }
}

/// Returns the settings that name the container.
pub(super) fn results(values: &Values) -> [String; 2] {
    [
        format!("HAVERSACK_BLOB_ENDPOINT={}", value(values, ENDPOINT)),
        format!("HAVERSACK_BLOB_CONTAINER={}", value(values, CONTAINER)),
    ]
}

/// Returns a name that no other tenant's account has.
pub(super) fn account_of(tenant: &str) -> String {
    let hash = digest(&SHA256, tenant.as_bytes());
    let digits: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{ACCOUNT_PREFIX}{}", &digits[..ACCOUNT_DIGITS])
}

/// Takes an id: `8-4-4-4-12` hexadecimal digits.
pub(super) fn id(text: &str) -> Result<String, String> {
    let groups: Vec<&str> = text.split('-').collect();
    let has_form = groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups.iter().all(|group| group.chars().all(|c| c.is_ascii_hexdigit()));
    has_form.then(|| text.to_lowercase()).ok_or_else(|| "an id is 8-4-4-4-12 hexadecimal digits".to_owned())
}

/// Takes the name of a storage account.
pub(super) fn account(text: &str) -> Result<String, String> {
    let has_form =
        (3..=24).contains(&text.len()) && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let rule = "a storage account has 3 to 24 small letters and digits";
    has_form.then(|| text.to_owned()).ok_or_else(|| rule.to_owned())
}

/// Takes the name of a container.
pub(super) fn container(text: &str) -> Result<String, String> {
    let has_form = (3..=63).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && !text.starts_with('-')
        && !text.ends_with('-')
        && !text.contains("--");
    let rule = "a container has 3 to 63 small letters, digits and single dashes inside";
    has_form.then(|| text.to_owned()).ok_or_else(|| rule.to_owned())
}

/// Takes the name of a resource group; Azure allows more letters, which a query would have to quote.
pub(super) fn resource_group(text: &str) -> Result<String, String> {
    let has_form = (1..=90).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.()".contains(c))
        && !text.starts_with('-')
        && !text.ends_with('.');
    let rule = "a resource group has up to 90 letters, digits, and -_.() inside";
    has_form.then(|| text.to_owned()).ok_or_else(|| rule.to_owned())
}

/// Takes the name of a region.
pub(super) fn location(text: &str) -> Result<String, String> {
    let has_form = !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let rule = "a region is one word such as westeurope: az account list-locations --output table";
    has_form.then(|| text.to_owned()).ok_or_else(|| rule.to_owned())
}

/// Returns the plan as a shell script that does the same.
pub(super) fn script(program: &str, steps: &[Step]) -> String {
    let shown = |call: &Call| {
        let words = call.arguments.iter().map(|word| quoted(word));
        std::iter::once(quoted(program)).chain(words).collect::<Vec<_>>().join(" ")
    };
    let mut lines = vec!["set -eu".to_owned()];
    for step in steps {
        match step {
            Step::Learn { name, source } => lines.push(match source {
                Source::Said(value) => format!("{name}={}", quoted(value)),
                Source::Time => format!("{name}=$(date -u +%Y-%m-%dT%H:%M:%SZ)"),
                Source::AccountOf { tenant } => format!(
                    "{name}={ACCOUNT_PREFIX}$(printf %s {} | sha256sum | cut -c 1-{ACCOUNT_DIGITS})",
                    quoted(tenant)
                ),
                Source::Asked(call) => format!("{name}=$({})", shown(call)),
            }),
            Step::Do { call, .. } => lines.push(shown(call)),
            Step::Ensure { keep: None, look, make, .. } => {
                lines.push(format!("[ -n \"$({})\" ] ||\n  {}", shown(look), shown(make)));
            }
            Step::Ensure { keep: Some(name), look, make, .. } => {
                lines.push(format!("{name}=$({})", shown(look)));
                lines.push(format!("[ -n \"${{{name}}}\" ] ||\n  {name}=$({})", shown(make)));
            }
            Step::Await(Some(call)) => lines.push(format!("until {}; do sleep 15; done", shown(call))),
            Step::Await(None) => {}
        }
    }
    lines.push(format!("echo \"HAVERSACK_BLOB_ENDPOINT=${{{ENDPOINT}%/}}\""));
    lines.push(format!("echo \"HAVERSACK_BLOB_CONTAINER=${{{CONTAINER}}}\""));
    lines.join("\n") + "\n"
}

/// Returns a word as a shell takes it; what is learned on the way stays open.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    if !word.contains("${") {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut quoted = String::from('"');
    let mut rest = word.chars().peekable();
    while let Some(letter) = rest.next() {
        let stays = letter == '$' && rest.peek() == Some(&'{');
        if matches!(letter, '"' | '\\' | '`' | '$') && !stays {
            quoted.push('\\');
        }
        quoted.push(letter);
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    const OID: &str = "44444444-aaaa-4bbb-8ccc-000000000004";

    #[test]
    fn names_have_rules() {
        assert_eq!(id("E406A681-F3D4-42A8-90B6-C2B029497AF1").as_deref(), Ok(AZURE_STORAGE));
        assert!(id("e406a681").is_err() && id("").is_err() && id("$(id)").is_err());
        for name in ["abc", "haversack0123456789ab", &"a".repeat(24)] {
            assert!(account(name).is_ok(), "{name}");
        }
        for name in ["ab", "Abc", "a-b", "a b", &"a".repeat(25), "ä12"] {
            assert!(account(name).is_err(), "{name}");
        }
        for name in ["abc", "agent-44444444-aaaa-4bbb-8ccc-000000000004", "a-b"] {
            assert!(container(name).is_ok(), "{name}");
        }
        for name in ["ab", "-ab", "ab-", "a--b", "A-b", "a_b", &"a".repeat(64)] {
            assert!(container(name).is_err(), "{name}");
        }
        assert!(resource_group("my-rg_1.(x)").is_ok());
        for name in ["", "a b", "a.", "a'b", "-rg", "a\"", "$(x)"] {
            assert!(resource_group(name).is_err(), "{name}");
        }
        assert!(location("westeurope").is_ok() && location("eastus2").is_ok());
        assert!(location("West Europe").is_err() && location("--x").is_err());
    }

    #[test]
    fn an_account_is_named_after_its_tenant() {
        // Told by sha256sum.
        assert_eq!(account_of("11111111-aaaa-4bbb-8ccc-000000000001"), "haversackcf7bbee31fb8");
        assert!(account(&account_of(OID)).is_ok());
    }

    #[test]
    fn words_for_a_shell() {
        assert_eq!(quoted("--name"), "--name");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("$filter"), "'$filter'");
        assert_eq!(quoted("a ${NOW} $b \"c\" `d` \\"), "\"a ${NOW} \\$b \\\"c\\\" \\`d\\` \\\\\"");
    }

    #[test]
    fn what_az_prints_is_looked_at() {
        assert_eq!(believed(OWNER, &format!("{OID}\n")).as_deref(), Some(OID));
        assert_eq!(believed(OWNER, "WARNING: old"), None);
        assert_eq!(
            believed(ENDPOINT, "https://a.blob.example/\r\n").as_deref(),
            Some("https://a.blob.example")
        );
        assert_eq!(believed(ENDPOINT, "http://a.blob.example/"), None);
        assert_eq!(believed(ENDPOINT, "https://a.blob.example/\nHAVERSACK_X=1"), None);
    }

    #[test]
    fn a_call_has_no_name_left_when_it_is_made() {
        let options = Options {
            owner: For::Agent { user: OID.to_owned(), agent: OID.to_owned() },
            resource_group: "rg".to_owned(),
            location: "eastus".to_owned(),
            account: None,
            container: None,
            subscription: Some("Pay as you go".to_owned()),
        };
        let mut values = Values::new();
        for step in plan(&options) {
            let (name, calls) = match &step {
                Step::Learn { name, source: Source::Asked(call) } => (Some(*name), vec![call]),
                Step::Learn { name, .. } => (Some(*name), Vec::new()),
                Step::Ensure { keep, look, make, .. } => (*keep, vec![look, make]),
                Step::Do { call, .. } => (None, vec![call]),
                Step::Await(call) => (None, call.iter().collect()),
            };
            for argument in calls.iter().flat_map(|call| &call.arguments) {
                assert!(!filled(argument, &values).contains("${"), "{argument}");
            }
            if let Some(name) = name {
                let _ = values.insert(name, "x".to_owned());
            }
        }
        assert_eq!(values.len(), 8, "{values:?}");
    }
}
