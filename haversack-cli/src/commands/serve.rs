//! `haversack serve`: the memory for clients of the Model Context Protocol over HTTP.

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use haversack::ids::Ids;
use haversack_system::RandomIds;

use crate::error::CommandError;
use crate::records::private;
use crate::serve::http::{self, Gate, PATH};
use crate::serve::mcp::tool_handler::{FactsScope, ToolHandler};
use crate::serve::mcp::{Server, new_session, runtime};
use crate::settings::{Settings, shown};
use crate::ui::Ui;

/// The shortest token that is taken.
const MIN_TOKEN_CHARACTERS: usize = 16;

/// Serve the memory over the Model Context Protocol on HTTP, to this machine
///
/// Every request needs the token that only you can read: `Authorization: Bearer …`. Prints the address once it listens.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The address to listen on; port 0 for any free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7830")]
    listen: SocketAddr,

    /// Accept connections from other machines. They are not encrypted: put a proxy with TLS in front
    #[arg(long)]
    beyond_loopback: bool,

    /// A file with the token; made if it is not there, unless other machines are let in
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Another host name of this server
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,

    /// A site whose pages may connect, for example https://app.example
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
}

pub(crate) fn cmd_serve(
    ui: &mut Ui,
    settings: &Settings,
    args: &ServeArgs,
) -> Result<ExitCode, CommandError> {
    let is_loopback = http::is_loopback(&args.listen);
    if !is_loopback && (!args.beyond_loopback || args.token_file.is_none()) {
        return Err(CommandError::user(
            format!("{} can be reached from other machines, so nothing was opened", args.listen),
            "Listen on 127.0.0.1, or say that it is meant: --beyond-loopback --token-file FILE",
        ));
    }
    let default = settings.home.join("state").join("serve").join("token");
    let file = args.token_file.clone().unwrap_or(default);
    let token = token(&file, is_loopback)?;
    let handler = ToolHandler::new(settings, FactsScope::NoProject);
    let mut hosts = args.allow_host.clone();
    if !is_loopback && !args.listen.ip().is_unspecified() {
        hosts.push(match args.listen {
            SocketAddr::V4(address) => address.ip().to_string(),
            SocketAddr::V6(address) => format!("[{}]", address.ip()),
        });
    }
    let gate = Gate::new(&token, hosts, args.allow_origin.clone());
    let session = new_session();
    let (served, named) = (handler.clone(), settings.writer.clone());
    let server = move || Server::new(served.clone(), named.clone(), session.clone());
    runtime()?.block_on(async {
        let listener = http::listen(args.listen).map_err(|error| CommandError {
            source: Some(error.into()),
            ..CommandError::user(
                format!("{} cannot be listened on", args.listen),
                "Choose another port: haversack serve --listen 127.0.0.1:0",
            )
        })?;
        let address = listener.local_addr().map_err(CommandError::from)?;
        ui.note(format!("The token is in {}", shown(&file)));
        ui.line(format!("http://{address}{PATH}"))?;
        http::serve(listener, gate, server, stopped()).await;
        Ok::<(), CommandError>(())
    })?;
    handler.scheduler().end();
    Ok(ExitCode::SUCCESS)
}

/// Waits until the process is asked to end.
pub(super) async fn stopped() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminated) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = terminated.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    drop(tokio::signal::ctrl_c().await);
}

/// Returns the token in a file that only the user can read, and creates it if needed.
fn token(file: &Path, may_make: bool) -> Result<String, CommandError> {
    let failed = |error: std::io::Error| CommandError {
        source: Some(error.into()),
        ..CommandError::user(
            format!("could not read or create the token in {}", shown(file)),
            "Give this user access to it",
        )
    };
    if may_make && !file.exists() {
        let random = [RandomIds.next(), RandomIds.next()].concat();
        let token: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        match private::create_new(file) {
            Ok(mut made) => made.write_all(format!("{token}\n").as_bytes()).map_err(failed)?,
            // Another server was faster.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(error)),
        }
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(file).map_err(failed)?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(CommandError::user(
                format!("{} can be read by others, so it is no secret", shown(file)),
                format!("chmod 600 {}, or delete it: a new one is made", shown(file)),
            ));
        }
    }
    let token = fs::read_to_string(file).map_err(failed)?.trim().to_owned();
    if token.chars().count() < MIN_TOKEN_CHARACTERS || token.contains(char::is_whitespace) {
        return Err(CommandError::user(
            format!("the token in {} is too short, or more than one word", shown(file)),
            format!(
                "A token is one line of at least {MIN_TOKEN_CHARACTERS} characters. Delete the file: a new one is made"
            ),
        ));
    }
    Ok(token)
}
