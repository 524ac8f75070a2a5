//! `haversack provision azure`, against a stand-in for the Azure CLI that keeps what it was told and remembers what it made.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use insta::assert_snapshot;

use crate::environment::TestEnv;

const USER: &str = "44444444-aaaa-4bbb-8ccc-000000000004";
const AGENT: &str = "33333333-aaaa-4bbb-8ccc-000000000003";

/// Only what the shell itself can do: the environment has no PATH.
const STAND_IN: &str = r#"#!/bin/sh
dir='DIRECTORY'
{ for word; do printf '<%s>' "$word"; done; echo; } >> "$dir/calls"
if [ -e "$dir/fails" ]; then
  read -r start < "$dir/fails"
  case "$*" in "$start"*)
    while read -r line; do printf '%s\n' "$line" >&2; done < "$dir/complaint"
    exit 1;;
  esac
fi
there() { if [ -e "$dir/made-$1" ]; then echo "$2"; fi; }
make() { : > "$dir/made-$1"; }
case "$*" in
  "account show"*"--query id "*) echo 55555555-aaaa-4bbb-8ccc-000000000005;;
  "account show"*"--query tenantId "*) echo 11111111-aaaa-4bbb-8ccc-000000000001;;
  "ad signed-in-user show"*) echo 66666666-aaaa-4bbb-8ccc-000000000006;;
  "group list"*) there group /subscriptions/x;;
  "group create"*) make group;;
  "storage account list"*) there account /subscriptions/x;;
  "storage account create"*) make account;;
  "storage account blob-service-properties update"*) ;;
  "storage container-rm create"*) ;;
  "role assignment list"*) there role /subscriptions/x;;
  "role assignment create"*) make role;;
  "ad sp list"*) there storage 77777777-aaaa-4bbb-8ccc-000000000007;;
  "ad sp create"*) make storage; echo 77777777-aaaa-4bbb-8ccc-000000000007;;
  "rest --method get"*) there grant a-grant;;
  "rest --method post"*) make grant;;
  "storage account show"*) echo https://haversackcf7bbee31fb8.blob.core.windows.net/;;
  "storage blob list"*)
    if [ -e "$dir/slow" ] && [ ! -e "$dir/tried" ]; then
      : > "$dir/tried"
      echo 'ERROR: You do not have the required permissions' >&2
      exit 1
    fi;;
  *) echo "ERROR: '$*' is misspelled or not recognized by the system." >&2; exit 2;;
esac
"#;

/// A machine with a stand-in for az.
struct Desk {
    env: TestEnv,
}

impl Desk {
    fn new() -> Desk {
        let desk = Desk { env: TestEnv::new() };
        std::fs::create_dir(desk.path("")).expect("made");
        let text = STAND_IN.replace("DIRECTORY", &desk.path("").display().to_string());
        std::fs::write(desk.path("az.text"), text).expect("written");
        // By another process: a file that was open for writing here may still be so in a child of another test, and is busy then.
        let mut copy = desk.env.program("sh");
        copy.args(["-c", "cp az/az.text az/az && chmod 755 az/az"]).env("PATH", "/usr/bin:/bin");
        assert!(copy.status().expect("a shell").success());
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.env.path("az").join(name)
    }

    fn run(&self, arguments: &[&str]) -> String {
        let az = self.path("az").display().to_string();
        let all = [&["provision", "azure", "--az", &az][..], arguments].concat();
        self.env.run(&all)
    }

    /// Lets the calls fail that start so.
    fn fails(&self, start: &str, complaint: &str) {
        std::fs::write(self.path("fails"), format!("{start}\n")).expect("written");
        std::fs::write(self.path("complaint"), format!("{complaint}\n")).expect("written");
    }

    fn works(&self) {
        std::fs::remove_file(self.path("fails")).expect("removed");
    }

    /// Returns what was called since the last time, times made the same.
    fn calls(&self) -> Vec<String> {
        let calls = std::fs::read_to_string(self.path("calls")).unwrap_or_default();
        drop(std::fs::remove_file(self.path("calls")));
        calls.lines().map(without_time).collect()
    }
}

fn without_time(call: &str) -> String {
    let mark = "\"startTime\":\"";
    match call.find(mark) {
        Some(at) => {
            let (before, time) = call.split_at(at + mark.len());
            let (time, after) = time.split_at(20);
            assert!(time.starts_with("20") && time.ends_with('Z') && time.contains('T'), "{time}");
            format!("{before}TIME{after}")
        }
        None => call.to_owned(),
    }
}

fn agent() -> [&'static str; 4] {
    ["--agent-user", USER, "--agent-id", AGENT]
}

#[test]
fn a_dry_run_is_a_script() {
    let env = TestEnv::new();
    // Nothing is run: there is nothing to run.
    assert_snapshot!(env.run(&["provision", "azure", "--dry-run", "--az", "no-such-az"]), @r#"
    exit 0
    --- stdout
    set -eu
    SUBSCRIPTION=$(no-such-az account show --query id --output tsv)
    TENANT=$(no-such-az account show --query tenantId --output tsv)
    OWNER=$(no-such-az ad signed-in-user show --query id --output tsv)
    ACCOUNT=haversack$(printf %s "${TENANT}" | sha256sum | cut -c 1-12)
    CONTAINER="agent-${OWNER}"
    [ -n "$(no-such-az group list --query '[?name=='\''haversack'\''].id | [0]' --output tsv --subscription "${SUBSCRIPTION}")" ] ||
      no-such-az group create --name haversack --location eastus --output none --subscription "${SUBSCRIPTION}"
    [ -n "$(no-such-az storage account list --resource-group haversack --query "[?name=='${ACCOUNT}'].id | [0]" --output tsv --subscription "${SUBSCRIPTION}")" ] ||
      no-such-az storage account create --name "${ACCOUNT}" --resource-group haversack --location eastus --sku Standard_LRS --kind StorageV2 --access-tier Hot --min-tls-version TLS1_2 --https-only true --allow-blob-public-access false --allow-shared-key-access false --output none --subscription "${SUBSCRIPTION}"
    no-such-az storage account blob-service-properties update --account-name "${ACCOUNT}" --resource-group haversack --enable-versioning true --enable-delete-retention true --delete-retention-days 14 --enable-container-delete-retention true --container-delete-retention-days 14 --output none --subscription "${SUBSCRIPTION}"
    no-such-az storage container-rm create --storage-account "${ACCOUNT}" --resource-group haversack --name "${CONTAINER}" --output none --subscription "${SUBSCRIPTION}"
    [ -n "$(no-such-az role assignment list --assignee-object-id "${OWNER}" --role ba92f5b4-2d11-453d-a403-e96b0029c9fe --scope "/subscriptions/${SUBSCRIPTION}/resourceGroups/haversack/providers/Microsoft.Storage/storageAccounts/${ACCOUNT}/blobServices/default/containers/${CONTAINER}" --fill-principal-name false --query '[0].id' --output tsv --subscription "${SUBSCRIPTION}")" ] ||
      no-such-az role assignment create --assignee-object-id "${OWNER}" --assignee-principal-type User --role ba92f5b4-2d11-453d-a403-e96b0029c9fe --scope "/subscriptions/${SUBSCRIPTION}/resourceGroups/haversack/providers/Microsoft.Storage/storageAccounts/${ACCOUNT}/blobServices/default/containers/${CONTAINER}" --output none --subscription "${SUBSCRIPTION}"
    ENDPOINT=$(no-such-az storage account show --name "${ACCOUNT}" --resource-group haversack --query primaryEndpoints.blob --output tsv --subscription "${SUBSCRIPTION}")
    until no-such-az storage blob list --container-name "${CONTAINER}" --account-name "${ACCOUNT}" --auth-mode login --num-results 1 --output none --subscription "${SUBSCRIPTION}"; do sleep 15; done
    echo "HAVERSACK_BLOB_ENDPOINT=${ENDPOINT%/}"
    echo "HAVERSACK_BLOB_CONTAINER=${CONTAINER}"
    --- stderr
    About the cost: 1 MB of memory, 200 writes and 50 session starts a day come to less than $0.10 a month: storage $0.00002, writes $0.06 to $0.08, reads about $0.02. Prices differ by region and change: https://azure.microsoft.com/pricing/details/storage/blobs/
    "#);
}

#[test]
fn a_dry_run_for_an_agent() {
    let env = TestEnv::new();
    let all =
        [&["provision", "azure", "--dry-run", "--subscription", "Pay as you go"][..], &agent()].concat();
    let all = [&all[..], &["--account", "lighthouse1", "--container", "notes", "--location", "westeurope"]]
        .concat();
    assert_snapshot!(env.run(&all), @r#"
    exit 0
    --- stdout
    set -eu
    SUBSCRIPTION=$(az account show --subscription 'Pay as you go' --query id --output tsv)
    TENANT=$(az account show --subscription 'Pay as you go' --query tenantId --output tsv)
    OWNER=44444444-aaaa-4bbb-8ccc-000000000004
    ACCOUNT=lighthouse1
    CONTAINER=notes
    [ -n "$(az group list --query '[?name=='\''haversack'\''].id | [0]' --output tsv --subscription "${SUBSCRIPTION}")" ] ||
      az group create --name haversack --location westeurope --output none --subscription "${SUBSCRIPTION}"
    [ -n "$(az storage account list --resource-group haversack --query "[?name=='${ACCOUNT}'].id | [0]" --output tsv --subscription "${SUBSCRIPTION}")" ] ||
      az storage account create --name "${ACCOUNT}" --resource-group haversack --location westeurope --sku Standard_LRS --kind StorageV2 --access-tier Hot --min-tls-version TLS1_2 --https-only true --allow-blob-public-access false --allow-shared-key-access false --output none --subscription "${SUBSCRIPTION}"
    az storage account blob-service-properties update --account-name "${ACCOUNT}" --resource-group haversack --enable-versioning true --enable-delete-retention true --delete-retention-days 14 --enable-container-delete-retention true --container-delete-retention-days 14 --output none --subscription "${SUBSCRIPTION}"
    az storage container-rm create --storage-account "${ACCOUNT}" --resource-group haversack --name "${CONTAINER}" --output none --subscription "${SUBSCRIPTION}"
    [ -n "$(az role assignment list --assignee-object-id "${OWNER}" --role ba92f5b4-2d11-453d-a403-e96b0029c9fe --scope "/subscriptions/${SUBSCRIPTION}/resourceGroups/haversack/providers/Microsoft.Storage/storageAccounts/${ACCOUNT}/blobServices/default/containers/${CONTAINER}" --fill-principal-name false --query '[0].id' --output tsv --subscription "${SUBSCRIPTION}")" ] ||
      az role assignment create --assignee-object-id "${OWNER}" --assignee-principal-type User --role ba92f5b4-2d11-453d-a403-e96b0029c9fe --scope "/subscriptions/${SUBSCRIPTION}/resourceGroups/haversack/providers/Microsoft.Storage/storageAccounts/${ACCOUNT}/blobServices/default/containers/${CONTAINER}" --output none --subscription "${SUBSCRIPTION}"
    STORAGE=$(az ad sp list --filter 'appId eq '\''e406a681-f3d4-42a8-90b6-c2b029497af1'\''' --query '[0].id' --output tsv)
    [ -n "${STORAGE}" ] ||
      STORAGE=$(az ad sp create --id e406a681-f3d4-42a8-90b6-c2b029497af1 --query id --output tsv)
    NOW=$(date -u +%Y-%m-%dT%H:%M:%SZ)
    [ -n "$(az rest --method get --url https://graph.microsoft.com/v1.0/servicePrincipals/33333333-aaaa-4bbb-8ccc-000000000003/oauth2PermissionGrants --query "value[?principalId=='${OWNER}' && resourceId=='${STORAGE}' && contains(scope, 'user_impersonation')].id | [0]" --output tsv)" ] ||
      az rest --method post --url https://graph.microsoft.com/v1.0/oauth2PermissionGrants --headers Content-Type=application/json --body "{\"clientId\":\"33333333-aaaa-4bbb-8ccc-000000000003\",\"consentType\":\"Principal\",\"principalId\":\"${OWNER}\",\"resourceId\":\"${STORAGE}\",\"scope\":\"user_impersonation\",\"startTime\":\"${NOW}\"}" --output none
    ENDPOINT=$(az storage account show --name "${ACCOUNT}" --resource-group haversack --query primaryEndpoints.blob --output tsv --subscription "${SUBSCRIPTION}")
    echo "HAVERSACK_BLOB_ENDPOINT=${ENDPOINT%/}"
    echo "HAVERSACK_BLOB_CONTAINER=${CONTAINER}"
    --- stderr
    About the cost: 1 MB of memory, 200 writes and 50 session starts a day come to less than $0.10 a month: storage $0.00002, writes $0.06 to $0.08, reads about $0.02. Prices differ by region and change: https://azure.microsoft.com/pricing/details/storage/blobs/
    "#);
}

#[test]
fn a_container_for_whoever_is_signed_in() {
    let desk = Desk::new();
    assert_snapshot!(desk.run(&[]), @r#"
    exit 0
    --- stdout
    HAVERSACK_BLOB_ENDPOINT=https://haversackcf7bbee31fb8.blob.core.windows.net
    HAVERSACK_BLOB_CONTAINER=agent-66666666-aaaa-4bbb-8ccc-000000000006
    --- stderr
    Making the resource group …
    Making the storage account …
    Keeping versions and deleted files for 14 days …
    Making the container …
    Making the role on the container …
    Trying the role; a new one works after some minutes …
    About the cost: 1 MB of memory, 200 writes and 50 session starts a day come to less than $0.10 a month: storage $0.00002, writes $0.06 to $0.08, reads about $0.02. Prices differ by region and change: https://azure.microsoft.com/pricing/details/storage/blobs/
    Meet there: haversack remote add https://haversackcf7bbee31fb8.blob.core.windows.net/agent-66666666-aaaa-4bbb-8ccc-000000000006
    "#);
}

#[test]
fn a_container_for_an_agent() {
    let desk = Desk::new();
    assert_snapshot!(desk.run(&agent()), @r#"
    exit 0
    --- stdout
    HAVERSACK_BLOB_ENDPOINT=https://haversackcf7bbee31fb8.blob.core.windows.net
    HAVERSACK_BLOB_CONTAINER=agent-44444444-aaaa-4bbb-8ccc-000000000004
    --- stderr
    Making the resource group …
    Making the storage account …
    Keeping versions and deleted files for 14 days …
    Making the container …
    Making the role on the container …
    Making the entry of Azure Storage in the directory …
    Making the agent's permission on Azure Storage …
    The storage learns of a new role within ten minutes. It was not tried: that takes --blueprint, --certificate and --key.
    About the cost: 1 MB of memory, 200 writes and 50 session starts a day come to less than $0.10 a month: storage $0.00002, writes $0.06 to $0.08, reads about $0.02. Prices differ by region and change: https://azure.microsoft.com/pricing/details/storage/blobs/
    Meet there: haversack remote add https://haversackcf7bbee31fb8.blob.core.windows.net/agent-44444444-aaaa-4bbb-8ccc-000000000004
    "#);
    assert_snapshot!(desk.calls().join("\n"), @r#"
    <account><show><--query><id><--output><tsv>
    <account><show><--query><tenantId><--output><tsv>
    <group><list><--query><[?name=='haversack'].id | [0]><--output><tsv><--subscription><55555555-aaaa-4bbb-8ccc-000000000005>
    <group><create><--name><haversack><--location><eastus><--output><none><--subscription><55555555-aaaa-4bbb-8ccc-000000000005>
    <storage><account><list><--resource-group><haversack><--query><[?name=='haversackcf7bbee31fb8'].id | [0]><--output><tsv><--subscription><55555555-aaaa-4bbb-8ccc-000000000005>
    <storage><account><create><--name><haversackcf7bbee31fb8><--resource-group><haversack><--location><eastus><--sku><Standard_LRS><--kind><StorageV2><--access-tier><Hot><--min-tls-version><TLS1_2><--https-only><true><--allow-blob-public-access><false><--allow-shared-key-access><false><--output><none><--subscription><55555555-aaaa-4bbb-8ccc-000000000005>
    <storage><account><blob-service-properties><update><--account-name><haversackcf7bbee31fb8><--resource-group><haversack><--enable-versioning><true><--enable-delete-retention><true><--delete-retention-days><14><--enable-container-delete-retention><true><--container-delete-retention-days><14><--output><none><--subscription><55555555-aaaa-4bbb-8ccc-000000000005>
    <storage><container-rm><create><--storage-account><haversackcf7bbee31fb8><--resource-group><haversack><--name><agent-44444444-aaaa-4bbb-8ccc-000000000004><--output><none><--subscription><55555555-aaaa-4bbb-8ccc-000000000005>
    <role><assignment><list><--assignee-object-id><44444444-aaaa-4bbb-8ccc-000000000004><--role><ba92f5b4-2d11-453d-a403-e96b0029c9fe><--scope></subscriptions/55555555-aaaa-4bbb-8ccc-000000000005/resourceGroups/haversack/providers/Microsoft.Storage/storageAccounts/haversackcf7bbee31fb8/blobServices/default/containers/agent-44444444-aaaa-4bbb-8ccc-000000000004><--fill-principal-name><false><--query><[0].id><--output><tsv><--subscription><55555555-aaaa-4bbb-8ccc-000000000005>
    <role><assignment><create><--assignee-object-id><44444444-aaaa-4bbb-8ccc-000000000004><--assignee-principal-type><User><--role><ba92f5b4-2d11-453d-a403-e96b0029c9fe><--scope></subscriptions/55555555-aaaa-4bbb-8ccc-000000000005/resourceGroups/haversack/providers/Microsoft.Storage/storageAccounts/haversackcf7bbee31fb8/blobServices/default/containers/agent-44444444-aaaa-4bbb-8ccc-000000000004><--output><none><--subscription><55555555-aaaa-4bbb-8ccc-000000000005>
    <ad><sp><list><--filter><appId eq 'e406a681-f3d4-42a8-90b6-c2b029497af1'><--query><[0].id><--output><tsv>
    <ad><sp><create><--id><e406a681-f3d4-42a8-90b6-c2b029497af1><--query><id><--output><tsv>
    <rest><--method><get><--url><https://graph.microsoft.com/v1.0/servicePrincipals/33333333-aaaa-4bbb-8ccc-000000000003/oauth2PermissionGrants><--query><value[?principalId=='44444444-aaaa-4bbb-8ccc-000000000004' && resourceId=='77777777-aaaa-4bbb-8ccc-000000000007' && contains(scope, 'user_impersonation')].id | [0]><--output><tsv>
    <rest><--method><post><--url><https://graph.microsoft.com/v1.0/oauth2PermissionGrants><--headers><Content-Type=application/json><--body><{"clientId":"33333333-aaaa-4bbb-8ccc-000000000003","consentType":"Principal","principalId":"44444444-aaaa-4bbb-8ccc-000000000004","resourceId":"77777777-aaaa-4bbb-8ccc-000000000007","scope":"user_impersonation","startTime":"TIME"}><--output><none>
    <storage><account><show><--name><haversackcf7bbee31fb8><--resource-group><haversack><--query><primaryEndpoints.blob><--output><tsv><--subscription><55555555-aaaa-4bbb-8ccc-000000000005>
    "#);
}

#[test]
fn what_is_there_is_left() {
    let desk = Desk::new();
    let first = desk.run(&agent());
    assert!(first.starts_with("exit 0"), "{first}");
    assert_eq!(
        desk.calls().iter().filter(|call| call.contains("create>") || call.contains("<post>")).count(),
        6
    );
    let second = desk.run(&agent());
    assert!(second.starts_with("exit 0"), "{second}");
    let made: Vec<String> =
        desk.calls().into_iter().filter(|call| call.contains("create>") || call.contains("<post>")).collect();
    assert_eq!(made.len(), 1, "only the container, which may be made twice: {made:?}");
    assert!(made[0].starts_with("<storage><container-rm><create>"), "{made:?}");
    let printed = |text: &str| text.split("--- stderr").next().map(str::to_owned);
    assert_eq!(printed(&first), printed(&second));
}

#[cfg(target_os = "linux")]
#[test]
fn the_script_does_what_the_program_does() {
    for options in [&[][..], &agent()] {
        let (by_program, by_script) = (Desk::new(), Desk::new());
        for round in 0..2 {
            let printed = by_program.run(options);
            let script = by_script.run(&[options, &["--dry-run"]].concat());
            let script = script.split("--- stdout\n").nth(1).and_then(|rest| rest.split("--- stderr").next());
            let base = by_script.env.path("").parent().expect("a directory").display().to_string();
            let script = script.expect("a script").replace("BASE", &base);
            let mut shell = by_script.env.program("sh");
            shell.args(["-c", &script]).env("PATH", "/usr/bin:/bin").stdin(Stdio::null());
            let output = shell.output().expect("a shell");
            let said = String::from_utf8(output.stdout).expect("text");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            assert!(printed.contains(&format!("--- stdout\n{said}--- stderr")), "{printed}\n{said}");
            let calls = by_program.calls();
            assert!(calls.len() > 9, "{calls:?}");
            assert_eq!(calls, by_script.calls(), "round {round}");
        }
    }
}

#[test]
fn a_role_that_works_later_is_waited_for() {
    let desk = Desk::new();
    std::fs::write(desk.path("slow"), "").expect("written");
    let shown = desk.run(&[]);
    assert!(shown.starts_with("exit 0"), "{shown}");
    assert!(shown.contains("Not yet; trying again in 1 s …"), "{shown}");
    assert_eq!(desk.calls().iter().filter(|call| call.starts_with("<storage><blob><list>")).count(), 2);
}

#[test]
fn a_role_that_never_works() {
    let desk = Desk::new();
    desk.fails("storage blob list", "ERROR: You do not have the required permissions");
    assert_snapshot!(desk.run(&["--wait", "0"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Making the resource group …
    Making the storage account …
    Keeping versions and deleted files for 14 days …
    Making the container …
    Making the role on the container …
    Trying the role; a new one works after some minutes …
    Error: the role does not work, after 0 seconds
    Caused by: You do not have the required permissions
    Hint: Wait some minutes. The parts created so far stay (the resource group, the storage account, versions and undelete, the container, the role on the container); running the same command again is safe
    "#);
}

#[test]
fn az_is_missing() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["provision", "azure"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: the Azure CLI is not here: az
    Caused by: No such file or directory (os error 2)
    Hint: Install it (https://learn.microsoft.com/cli/azure/install-azure-cli), then: az login; or give its path with --az. Nothing was made yet; running the same command again is safe
    "#);
}

#[test]
fn nothing_is_made_where_memory_stays_on_this_machine() {
    let desk = Desk::new();
    assert_snapshot!(desk.run(&["--config", "keep-memory-local=true"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: memory is kept on this machine (keep-memory-local): nothing was sent, and nothing was asked
    Hint: If it may leave, unset HAVERSACK_KEEP_MEMORY_LOCAL and keep-memory-local in config.toml
    "#);
    let told = desk.run(&["--keep-memory-local"]);
    assert!(told.starts_with("exit 1\n") && told.contains("memory is kept on this machine"), "{told}");
    assert!(desk.calls().is_empty());
}

#[test]
fn az_is_not_signed_in() {
    let desk = Desk::new();
    desk.fails("account show", "ERROR: Please run 'az login' to setup account.");
    assert_snapshot!(desk.run(&[]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: az is not signed in
    Caused by: Please run 'az login' to setup account.
    Hint: Sign in: az login. Nothing was made yet; running the same command again is safe
    "#);
}

#[test]
fn a_call_that_fails_can_be_run_again() {
    let desk = Desk::new();
    desk.fails(
        "storage account create",
        "WARNING: a new version is there\nERROR: (StorageAccountAlreadyTaken) The storage account named haversackcf7bbee31fb8 is already taken.",
    );
    assert_snapshot!(desk.run(&agent()), @r#"
    exit 1
    --- stdout
    --- stderr
    Making the resource group …
    Making the storage account …
    Error: this did not work: az storage account create
    Caused by: (StorageAccountAlreadyTaken) The storage account named haversackcf7bbee31fb8 is already taken.
    Hint: Another customer uses that name, or it is in another resource group. Name yours with --account or --resource-group. The parts created so far stay (the resource group); running the same command again is safe
    "#);
    let _ = desk.calls();
    desk.works();
    assert!(desk.run(&agent()).starts_with("exit 0"));
    assert!(!desk.calls().iter().any(|call| call.starts_with("<group><create>")));
}

#[test]
fn every_call_can_fail() {
    let starts = [
        "account show",
        "group list",
        "group create",
        "storage account list",
        "storage account create",
        "storage account blob-service-properties update",
        "storage container-rm create",
        "role assignment list",
        "role assignment create",
        "ad sp list",
        "ad sp create",
        "rest --method get",
        "rest --method post",
        "storage account show",
    ];
    let desk = Desk::new();
    for start in starts {
        desk.fails(start, "ERROR: (AuthorizationFailed) The client does not have authorization.");
        let shown = desk.run(&agent());
        assert!(shown.starts_with("exit 1\n--- stdout\n--- stderr\n"), "{start}: {shown}");
        let named = start.split(" --").next().expect("words");
        assert!(shown.contains(&format!("Error: this did not work: az {named}")), "{start}: {shown}");
        assert!(shown.contains("Caused by: (AuthorizationFailed) The client"), "{start}: {shown}");
        assert!(shown.contains("running the same command again is safe"), "{start}: {shown}");
    }
    desk.works();
    assert!(desk.run(&agent()).starts_with("exit 0"), "after all of that");
}

#[test]
fn what_az_prints_is_not_trusted() {
    let desk = Desk::new();
    let script = std::fs::read_to_string(desk.path("az.text")).expect("text");
    let lying = script.replace("echo 55555555-aaaa-4bbb-8ccc-000000000005", "echo 'hello; rm'");
    std::fs::write(desk.path("az.text"), lying).expect("written");
    let mut copy = desk.env.program("sh");
    copy.args(["-c", "cp az/az.text az/az"]).env("PATH", "/usr/bin:/bin");
    assert!(copy.status().expect("a shell").success());
    let shown = desk.run(&agent());
    assert!(shown.contains("Error: az answered something else than the id of a subscription"), "{shown}");
    assert_eq!(desk.calls().len(), 1);
}

#[test]
fn names_that_azure_would_refuse() {
    let cases: &[(&[&str], &str)] = &[
        (&["--account", "My-Account"], "3 to 24 small letters and digits"),
        (&["--container", "a--b"], "3 to 63 small letters"),
        (&["--resource-group", "it's"], "a resource group has"),
        (&["--location", "West Europe"], "a region is one word"),
        (&["--agent-user", "me@example.org", "--agent-id", AGENT], "8-4-4-4-12"),
        (&["--agent-user", USER], "--agent-id <OID>"),
        (&["--agent-id", AGENT], "--agent-user <OID>"),
        (&["--blueprint", AGENT], "--certificate <FILE>"),
    ];
    let desk = Desk::new();
    for (arguments, words) in cases {
        let shown = desk.run(arguments);
        assert!(shown.starts_with("exit 2"), "{arguments:?}: {shown}");
        assert!(shown.contains(words), "{arguments:?}: {shown}");
    }
    assert!(desk.calls().is_empty());
}

/// Returns the options by which the role is tried as the agent, with a key file of that mode.
fn as_agent(desk: &Desk, mode: u32) -> Vec<String> {
    use std::os::unix::fs::PermissionsExt;
    let fixtures =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../haversack-store/tests/fixtures/agent-identity");
    let key = desk.path("key.pem");
    let _ = std::fs::copy(fixtures.join("test-only-rsa.pkcs8.pem"), &key).expect("copied");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).expect("set");
    let certificate = fixtures.join("test-only-certificate.pem").display().to_string();
    let named = ["--blueprint", AGENT, "--certificate", &certificate, "--key", "az/key.pem"];
    agent().iter().chain(&named).map(|word| (*word).to_owned()).collect()
}

#[test]
fn a_key_that_others_can_read_is_refused_before_anything_is_made() {
    let desk = Desk::new();
    let options = as_agent(&desk, 0o644);
    let shown = desk.run(&options.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(
        shown.starts_with("exit 1\n--- stdout\n--- stderr\nError: could not read az/key.pem: "),
        "{shown}"
    );
    assert!(shown.contains("run: chmod 600 az/key.pem"), "{shown}");
    assert!(desk.calls().is_empty());
}

#[test]
fn the_role_is_tried_as_the_agent() {
    let desk = Desk::new();
    let mut options = as_agent(&desk, 0o600);
    // No server listens there: the first hop fails.
    options.extend(["--authority", "http://127.0.0.1:1", "--wait", "0"].map(str::to_owned));
    let shown = desk.run(&options.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(shown.starts_with("exit 1\n--- stdout\n--- stderr\n"), "{shown}");
    assert!(shown.contains("Error: the role does not work, after 0 seconds"), "{shown}");
    assert!(shown.contains("could not sign in at http://127.0.0.1:1: hop 1 of 3 (blueprint)"), "{shown}");
}

/// Returns every call of the plan as its words before the first option, and its options.
fn options_of(script: &str) -> Vec<(Vec<String>, Vec<String>)> {
    let mut calls = Vec::new();
    let script = script.split("--- stderr").next().unwrap_or_default();
    for piece in script.split("az ").skip(1) {
        let words = piece.split([' ', '\n', ')']).take_while(|word| *word != "||" && *word != "]");
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let path = words.iter().take_while(|word| !word.starts_with("--")).map(|word| (*word).to_owned());
        let options = words.iter().filter(|word| word.starts_with("--")).map(|word| (*word).to_owned());
        calls.push((path.collect(), options.collect()));
    }
    calls
}

/// Takes many seconds where az is installed: it is slow to start.
#[test]
#[expect(
    clippy::disallowed_macros,
    clippy::print_stderr,
    reason = "a skipped test must be visible in its output"
)]
fn every_option_is_one_that_az_has() {
    let env = TestEnv::new();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut version = env.program("az");
    version.arg("version").env("PATH", &path).stdin(Stdio::null());
    if !version.output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: az is not installed");
        return;
    }
    let plans = [
        env.run(&["provision", "azure", "--dry-run", "--subscription", "x"]),
        env.run(&[&["provision", "azure", "--dry-run"][..], &agent()].concat()),
    ];
    let mut calls: Vec<_> = plans.iter().flat_map(|script| options_of(script)).collect();
    calls.sort();
    calls.dedup();
    assert!(calls.len() >= 14, "{calls:?}");
    for (words, options) in calls {
        let mut help = env.program("az");
        help.args(&words).arg("--help").env("PATH", &path).stdin(Stdio::null());
        let output = help.output().expect("az runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && !options.is_empty(), "az {}: {text}", words.join(" "));
        for option in options {
            // A line that tells what an option is for, not an example that uses it.
            let told = text.lines().filter_map(|line| line.trim_start().split_once(" : "));
            let is_there = told.flat_map(|(names, _)| names.split_whitespace()).any(|name| name == option);
            assert!(is_there, "az {} has no {option}:\n{text}", words.join(" "));
        }
    }
}
