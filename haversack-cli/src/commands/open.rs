//! `haversack open`: the memory in the browser.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use haversack::ids::Timestamp;
use serde::{Deserialize, Serialize};

use super::serve::stopped;
use crate::error::CommandError;
use crate::records::{self, Weight, private};
use crate::serve::http;
use crate::serve::mcp::runtime;
use crate::serve::page::PageServer;
use crate::settings::{Resolved, Settings};
use crate::ui::Ui;
use crate::ui::moments::parse_span;

/// See, search and mend the memory in your browser
///
/// Serves a page to this machine only, and opens it. It ends by itself when you have not used it for a while.
#[derive(Debug, Args)]
pub(crate) struct OpenArgs {
    /// Print the address, and open no browser
    #[arg(long)]
    no_browser: bool,

    /// The port; 0 is any that is free
    #[arg(long, default_value_t = 0, value_parser = parse_port)]
    port: u16,

    /// The page ends after this time without use, as 30min or 2h
    #[arg(long, value_name = "TIME", default_value = "30min", value_parser = parse_span)]
    idle: i64,
}

/// The last visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Visit {
    time: Timestamp,
}

fn directory(settings: &Settings) -> PathBuf {
    settings.home.join("state").join("page")
}

fn parse_port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| "it is not a port: a number from 0 to 65535".to_owned())
}

pub(crate) fn cmd_open(ui: &mut Ui, resolved: &Resolved, args: &OpenArgs) -> Result<ExitCode, CommandError> {
    let settings = &resolved.settings;
    let visits = directory(settings).join("visit.toml");
    let last_visit: Option<Visit> = records::read(&visits, "").ok().flatten();
    let entrance = directory(settings).join(format!("open-{}.html", std::process::id()));
    let idle = Duration::from_millis(args.idle.unsigned_abs());
    runtime()?.block_on(async {
        let listener =
            http::listen(SocketAddr::from(([127, 0, 0, 1], args.port))).map_err(|error| CommandError {
                source: Some(error.into()),
                ..CommandError::user(
                    format!("port {} cannot be listened on", args.port),
                    "Choose another port, or none: haversack open",
                )
            })?;
        let address = listener.local_addr().map_err(CommandError::from)?;
        let server = Arc::new(PageServer::new(resolved, address, last_visit.map(|visit| visit.time)));
        ui.line(server.new_entrance())?;
        let is_opened = !args.no_browser && open_browser(&entrance, &server.new_entrance());
        ui.note(match is_opened {
            true => {
                "Opened the page in your browser. If it did not open, use the address above; it works once."
            }
            false => "Open the address above in your browser; it works once.",
        });
        ui.note("The page ends when it is not used for a while, or with Ctrl-C.");
        server.serve(listener, idle, stopped()).await;
        Ok::<(), CommandError>(())
    })?;
    // A file that is left over opens nothing: its code is of this process.
    drop(std::fs::remove_file(&entrance));
    if settings.home.is_dir() {
        records::write(&visits, &Visit { time: settings.now() }, Weight::Light)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens a browser with a file that leads to the address: true if a program to do so was started.
///
/// Arguments of a program can be seen by every user of the machine, and the address opens the page. So the browser gets a file that only this user
/// can read.
fn open_browser(entrance: &Path, address: &str) -> bool {
    let document = format!(
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\"><title>Haversack</title>\
         <meta http-equiv=\"refresh\" content=\"0;url={address}\"><p><a href=\"{address}\">Open the page</a>\n"
    );
    if private::write(entrance, document.as_bytes()).is_err() {
        return false;
    }
    let mut command = if cfg!(target_os = "macos") {
        Command::new("open")
    } else if cfg!(windows) {
        let mut command = Command::new("explorer");
        command.arg(entrance);
        return command.spawn().is_ok();
    } else {
        Command::new("xdg-open")
    };
    command.arg(entrance).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(mut child) => {
            // The opener ends at once, or stays as the browser itself; either way nobody waits for it.
            std::thread::spawn(move || drop(child.wait()));
            true
        }
        Err(_) => false,
    }
}
