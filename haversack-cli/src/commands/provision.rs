//! `haversack provision azure`: a storage account, a container and what it takes to use them, made through the Azure CLI.
//!
//! The steps are planned first, without a request. The dry run prints the plan as a shell script. Only missing parts
//! are created, so an interrupted run can be repeated.

mod az;
mod plan;
mod role;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use haversack::clock::Clock;
use haversack::store::block_on;
use haversack::store::cloud::AgentIdentity;
use haversack::store::cloud::agent_identity::{
    AgentSettings, Certificate, DEFAULT_AUTHORITY, HOP_TIMEOUT, PrivateKey, STORAGE_SCOPE,
};
use haversack_system::SystemClock;

use self::az::Az;
use self::plan::{CONTAINER, Call, ENDPOINT, For, Options, Source, Step, TENANT, Values};
use self::role::NotYet;
use crate::error::CommandError;
use crate::remote::refuse_local;
use crate::settings::{Settings, flags};
use crate::ui::Ui;

/// The cost of a month, as a text: a price list in the program would soon be wrong.
const COST: &str = "\
About the cost: 1 MB of memory, 200 writes and 50 session starts a day come to less than $0.10 a month: storage $0.00002, writes $0.06 \
to $0.08, reads about $0.02. Prices differ by region and change: https://azure.microsoft.com/pricing/details/storage/blobs/";

/// Make a storage that the devices of this memory can meet at
#[derive(Debug, Args)]
#[command(mut_subcommands(flags::accept))]
pub(crate) struct ProvisionArgs {
    #[command(subcommand)]
    cloud: Cloud,

    /// Make nothing: memory stays on this machine
    #[arg(long, global = true)]
    keep_memory_local: bool,
}

#[derive(Debug, Subcommand)]
enum Cloud {
    Azure(Box<AzureArgs>),
}

/// Make a container on Azure, through the Azure CLI (az)
///
/// Creates what is missing and changes nothing else: a resource group, a storage account with versions and undelete, a container, and the
/// role to use that container, for the signed-in user or for an agent user. An agent also gets the permission on Azure Storage that
/// signing in asks for. Running it again is safe. Prints the settings that name the container.
#[derive(Debug, Args)]
struct AzureArgs {
    /// Print the commands as a shell script, and run none of them
    #[arg(long)]
    dry_run: bool,

    /// The agent user that the container is for, by object id; the signed-in user of az if left out
    #[arg(long, value_name = "OID", requires = "agent_id", value_parser = plan::id)]
    agent_user: Option<String>,

    /// The agent identity that acts for the agent user, by object id
    #[arg(long, value_name = "OID", requires = "agent_user", value_parser = plan::id)]
    agent_id: Option<String>,

    /// The resource group; made if it is not there
    #[arg(long, value_name = "NAME", default_value = "haversack", value_parser = plan::resource_group)]
    resource_group: String,

    /// The region of the storage
    #[arg(long, value_name = "REGION", default_value = "eastus", value_parser = plan::location)]
    location: String,

    /// The storage account; a name derived from the tenant if left out
    #[arg(long, value_name = "NAME", value_parser = plan::account)]
    account: Option<String>,

    /// The container; agent-OID if left out
    #[arg(long, value_name = "NAME", value_parser = plan::container)]
    container: Option<String>,

    /// The subscription, by name or id; the one az is set to if left out
    #[arg(long, value_name = "SUBSCRIPTION")]
    subscription: Option<String>,

    /// The agent's blueprint, by application id: with it the role is tried as the agent
    #[arg(long, value_name = "APP_ID", requires_all = ["agent_user", "certificate", "key"], value_parser = plan::id)]
    blueprint: Option<String>,

    /// The certificate of the blueprint, a PEM file
    #[arg(long, value_name = "FILE", requires = "blueprint")]
    certificate: Option<PathBuf>,

    /// The certificate's private key, a PEM file that only you can read
    #[arg(long, value_name = "FILE", requires = "blueprint")]
    key: Option<PathBuf>,

    /// The sign-in authority, if it is not Azure's public cloud
    #[arg(long, value_name = "URL", default_value = DEFAULT_AUTHORITY)]
    authority: String,

    /// The most seconds to wait for the role to work
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(..=3600))]
    wait: u64,

    /// The Azure CLI, if it is not on the PATH
    #[arg(long, value_name = "PROGRAM", default_value = az::DEFAULT)]
    az: String,
}

pub(crate) fn cmd_provision(
    ui: &mut Ui,
    settings: &Settings,
    args: &ProvisionArgs,
) -> Result<ExitCode, CommandError> {
    let mut settings = settings.clone();
    settings.keep_local |= args.keep_memory_local;
    let Cloud::Azure(args) = &args.cloud;
    let options = options(args);
    let steps = plan::plan(&options);
    if args.dry_run {
        ui.bytes(plan::script(&args.az, &steps).as_bytes())?;
        ui.note(COST);
        return Ok(ExitCode::SUCCESS);
    }
    refuse_local(&settings)?;
    // Find mistakes before anything is created.
    drop(identity(args, "organizations")?);
    let az = Az::new(&args.az);
    let mut values = Values::new();
    let mut done = Vec::new();
    for step in &steps {
        carry_out(ui, &az, args, step, &mut values).map_err(|error| told(error, &done))?;
        done.extend(step.makes());
    }
    ui.note(COST);
    let address = format!("{}/{}", plan::value(&values, ENDPOINT), plan::value(&values, CONTAINER));
    ui.note(format!("Meet there: haversack remote add {address}"));
    for line in plan::results(&values) {
        ui.line(line)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn options(args: &AzureArgs) -> Options {
    let owner = match (&args.agent_user, &args.agent_id) {
        (Some(user), Some(agent)) => For::Agent { user: user.clone(), agent: agent.clone() },
        _ => For::WhoeverIsSignedIn,
    };
    Options {
        owner,
        resource_group: args.resource_group.clone(),
        location: args.location.clone(),
        account: args.account.clone(),
        container: args.container.clone(),
        subscription: args.subscription.clone(),
    }
}

/// Returns the agent, if all that it takes to be it was named.
fn identity(args: &AzureArgs, tenant: &str) -> Result<Option<AgentIdentity>, CommandError> {
    let (Some(user), Some(agent), Some(blueprint), Some(certificate), Some(key)) =
        (&args.agent_user, &args.agent_id, &args.blueprint, &args.certificate, &args.key)
    else {
        return Ok(None);
    };
    let identity = AgentIdentity::new(AgentSettings {
        tenant: tenant.to_owned(),
        blueprint_app_id: blueprint.clone(),
        agent_id: agent.clone(),
        agent_user_id: user.clone(),
        certificate: Certificate::File(certificate.clone()),
        private_key: PrivateKey::File(key.clone()),
        authority: args.authority.clone(),
        scope: STORAGE_SCOPE.to_owned(),
        hop_timeout: HOP_TIMEOUT,
    })?;
    Ok(Some(identity))
}

/// Does one step.
fn carry_out(
    ui: &mut Ui,
    az: &Az,
    args: &AzureArgs,
    step: &Step,
    values: &mut Values,
) -> Result<(), CommandError> {
    match step {
        Step::Learn { name, source } => {
            let value = match source {
                Source::Said(value) => plan::filled(value, values),
                Source::Time => now(),
                Source::AccountOf { tenant } => plan::account_of(&plan::filled(tenant, values)),
                Source::Asked(call) => az.ask(call, values)?,
            };
            learn(values, name, value)
        }
        Step::Do { doing, call, .. } => {
            ui.note(format!("{doing} …"));
            az.run(call, values)
        }
        Step::Ensure { what, keep, look, make } => {
            let mut found = az.ask_if_there(look, values)?;
            match &found {
                Some(_) => ui.note(format!("There already: {what}")),
                None => {
                    ui.note(format!("Making {what} …"));
                    found = make_missing(az, make, *keep, values)?;
                }
            }
            match (keep, found) {
                (Some(name), Some(value)) => learn(values, name, value),
                _ => Ok(()),
            }
        }
        Step::Await(call) => {
            let limit = Duration::from_secs(args.wait);
            let mut say = |text: &str| ui.note(text);
            match (identity(args, plan::value(values, TENANT))?, call) {
                (Some(identity), _) => role::wait(limit, &mut say, &mut std::thread::sleep, &mut || {
                    as_agent(&identity, values).map_err(NotYet::from)
                }),
                (None, Some(call)) => role::wait(limit, &mut say, &mut std::thread::sleep, &mut || {
                    az.run(call, values).map_err(NotYet::from)
                }),
                (None, None) => {
                    ui.note(
                        "The storage learns of a new role within ten minutes. It was not tried: that takes --blueprint, \
                         --certificate and --key.",
                    );
                    Ok(())
                }
            }
        }
    }
}

fn make_missing(
    az: &Az,
    make: &Call,
    keep: Option<&'static str>,
    values: &Values,
) -> Result<Option<String>, CommandError> {
    match keep {
        Some(_) => az.ask(make, values).map(Some),
        None => az.run(make, values).map(|()| None),
    }
}

/// Lists the container as the agent.
fn as_agent(identity: &AgentIdentity, values: &Values) -> haversack::store::Result<()> {
    let endpoint = plan::value(values, ENDPOINT);
    block_on(identity.try_container(endpoint, plan::value(values, CONTAINER)))
}

/// Keeps a value that was learned, if it can be one.
fn learn(values: &mut Values, name: &'static str, value: String) -> Result<(), CommandError> {
    let value = plan::believed(name, &value).ok_or_else(|| {
        CommandError::user(
            format!("az answered something else than {}", plan::meaning(name)),
            "See the commands: haversack provision azure --dry-run",
        )
    })?;
    drop(values.insert(name, value));
    Ok(())
}

/// Returns the time of day as Graph takes it.
fn now() -> String {
    let milliseconds = SystemClock.now().0;
    let now = jiff::Timestamp::from_millisecond(milliseconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Adds to an error what was already made, and that nothing of it is lost.
fn told(error: CommandError, done: &[&'static str]) -> CommandError {
    let so_far = match done {
        [] => "Nothing was made yet".to_owned(),
        made => format!("The parts created so far stay ({})", made.join(", ")),
    };
    let rest = format!("{so_far}; running the same command again is safe");
    let hint = match &error.hint {
        Some(hint) => format!("{hint}. {rest}"),
        None => rest,
    };
    CommandError { hint: Some(hint), ..error }
}
