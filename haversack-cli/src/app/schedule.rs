//! Entries for the schedulers of the system: tidy once a day, and a sync now and then for machines on which no agent runs.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::CommandError;
use crate::settings::{Settings, shown};

/// The line above our lines in a crontab, and the one below.
const BEGIN: &str = "# haversack: begin";
const END: &str = "# haversack: end";

/// A scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scheduler {
    Cron,
    Systemd,
    Launchd,
}

/// A file for a scheduler; its name is relative to the user's home directory.
pub(crate) struct ScheduleFile {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// A job: its name, the command, the time between two runs in minutes.
struct Job {
    name: &'static str,
    arguments: &'static [&'static str],
    minutes: u32,
}

const JOBS: [Job; 2] = [
    Job { name: "haversack-tidy", arguments: &["tidy"], minutes: 24 * 60 },
    Job { name: "haversack-sync", arguments: &["sync", "--when-due"], minutes: 15 },
];

/// Returns the scheduler that this system has.
pub(crate) fn usual() -> Scheduler {
    match (cfg!(target_os = "macos"), Path::new("/run/systemd/system").is_dir()) {
        (true, _) => Scheduler::Launchd,
        (false, true) => Scheduler::Systemd,
        (false, false) => Scheduler::Cron,
    }
}

/// Returns the words of a job's command line.
fn command(program: &Path, home: &Path, job: &Job) -> Vec<String> {
    let words = [program.display().to_string(), "--home".to_owned(), home.display().to_string()];
    words.into_iter().chain(job.arguments.iter().map(|word| (*word).to_owned())).collect()
}

/// Returns the lines for a crontab.
fn crontab(program: &Path, home: &Path) -> String {
    let lines = JOBS.iter().map(|job| {
        let when = if job.minutes >= 24 * 60 {
            "17 4 * * *".to_owned()
        } else {
            format!("*/{} * * * *", job.minutes)
        };
        // A percent sign ends the command in a crontab.
        let words: Vec<String> = command(program, home, job)
            .iter()
            .map(|word| format!("'{}'", word.replace('\'', "'\\''").replace('%', "\\%")))
            .collect();
        format!("{when} {} >/dev/null 2>&1\n", words.join(" "))
    });
    format!("{BEGIN}\n{}{END}\n", lines.collect::<String>())
}

fn unit(program: &Path, home: &Path, job: &Job) -> [ScheduleFile; 2] {
    let quoted = |word: &String| {
        format!(
            "\"{}\"",
            word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$")
        )
    };
    let words: Vec<String> = command(program, home, job).iter().map(quoted).collect();
    let about = format!("Haversack: {}", job.arguments.join(" "));
    let when = match job.minutes >= 24 * 60 {
        true => "OnCalendar=daily\nRandomizedDelaySec=1h\nPersistent=true".to_owned(),
        false => format!("OnBootSec=5min\nOnUnitActiveSec={}min", job.minutes),
    };
    let file = |ending: &str, text: String| ScheduleFile {
        name: format!(".config/systemd/user/{}.{ending}", job.name),
        text,
    };
    [
        file(
            "service",
            format!(
                "[Unit]\nDescription={about}\n\n[Service]\nType=oneshot\nExecStart={}\n",
                words.join(" ")
            ),
        ),
        file(
            "timer",
            format!("[Unit]\nDescription={about}\n\n[Timer]\n{when}\n\n[Install]\nWantedBy=timers.target\n"),
        ),
    ]
}

fn agent(program: &Path, home: &Path, job: &Job) -> ScheduleFile {
    let escaped = |word: &String| word.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let words: String = command(program, home, job)
        .iter()
        .map(|word| format!("    <string>{}</string>\n", escaped(word)))
        .collect();
    let label = format!("dev.{}", job.name.replace('-', "."));
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\">\n<dict>\n  <key>Label</key>\n  <string>{label}</string>\n  <key>ProgramArguments</key>\n  <array>\n{words}  </array>\n  \
         <key>StartInterval</key>\n  <integer>{}</integer>\n</dict>\n</plist>\n",
        job.minutes * 60
    );
    ScheduleFile { name: format!("Library/LaunchAgents/{label}.plist"), text }
}

/// Returns the files of a scheduler. A crontab is not a file of the user's home: it has no name.
pub(crate) fn files(settings: &Settings, scheduler: Scheduler) -> Result<Vec<ScheduleFile>, CommandError> {
    let program = std::env::current_exe()?;
    let home = std::path::absolute(&settings.home)?;
    Ok(match scheduler {
        Scheduler::Cron => vec![ScheduleFile { name: String::new(), text: crontab(&program, &home) }],
        Scheduler::Systemd => JOBS.iter().flat_map(|job| unit(&program, &home, job)).collect(),
        Scheduler::Launchd => JOBS.iter().map(|job| agent(&program, &home, job)).collect(),
    })
}

/// Returns the commands that switch the written files on, and off.
pub(crate) fn switches(scheduler: Scheduler) -> [&'static str; 2] {
    match scheduler {
        Scheduler::Cron => ["", ""],
        Scheduler::Systemd => [
            "systemctl --user daemon-reload && systemctl --user enable --now haversack-tidy.timer haversack-sync.timer",
            "systemctl --user disable --now haversack-tidy.timer haversack-sync.timer",
        ],
        Scheduler::Launchd => [
            "launchctl load ~/Library/LaunchAgents/dev.haversack.tidy.plist ~/Library/LaunchAgents/dev.haversack.sync.plist",
            "launchctl unload ~/Library/LaunchAgents/dev.haversack.tidy.plist ~/Library/LaunchAgents/dev.haversack.sync.plist",
        ],
    }
}

/// Tells if entries are written or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Install {
    Write,
    Remove,
}

/// Writes the entries of a scheduler, or removes them. Returns the places.
pub(crate) fn install(
    settings: &Settings,
    scheduler: Scheduler,
    install: Install,
) -> Result<Vec<String>, CommandError> {
    let files = files(settings, scheduler)?;
    if scheduler == Scheduler::Cron {
        let ours = files.first().map(|file| file.text.as_str()).unwrap_or_default();
        change_crontab(if install == Install::Write { ours } else { "" })?;
        return Ok(vec!["the crontab".to_owned()]);
    }
    let user = etcetera::home_dir().map_err(|error| CommandError::ours(error.to_string()))?;
    let mut places = Vec::new();
    for ScheduleFile { name, text } in files {
        let place: PathBuf = user.join(name);
        match install {
            Install::Write => {
                if let Some(directory) = place.parent() {
                    std::fs::create_dir_all(directory)?;
                }
                std::fs::write(&place, text)?;
                places.push(shown(&place));
            }
            Install::Remove => match std::fs::remove_file(&place) {
                Ok(()) => places.push(shown(&place)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            },
        }
    }
    Ok(places)
}

/// Replaces our lines in the user's crontab; all other lines stay.
fn change_crontab(ours: &str) -> Result<(), CommandError> {
    let missing = |error: std::io::Error| {
        CommandError::user(
            format!("crontab could not be started ({error})"),
            "Add the lines by hand: haversack schedule cron",
        )
    };
    let listed = Command::new("crontab").arg("-l").stderr(Stdio::null()).output().map_err(missing)?;
    // A user without a crontab has an empty one.
    let before = if listed.status.success() {
        String::from_utf8_lossy(&listed.stdout).into_owned()
    } else {
        String::new()
    };
    let text = with_ours(&before, ours);
    let mut child = Command::new("crontab").arg("-").stdin(Stdio::piped()).spawn().map_err(missing)?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(text.as_bytes())?;
    }
    match child.wait()?.success() {
        true => Ok(()),
        false => {
            Err(CommandError::user("crontab refused the lines", "Add them by hand: haversack schedule cron"))
        }
    }
}

/// Returns a crontab with our lines in place of those that it has.
fn with_ours(crontab: &str, ours: &str) -> String {
    let mut text = String::new();
    let mut is_ours = false;
    for line in crontab.lines() {
        is_ours |= line == BEGIN;
        if !is_ours {
            text.push_str(line);
            text.push('\n');
        }
        is_ours &= line != END;
    }
    text + ours
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crontab_keeps_the_lines_of_the_user() {
        let ours = crontab(Path::new("/usr/bin/haver'sack"), Path::new("/home/a b/100%"));
        assert_eq!(
            ours,
            "# haversack: begin\n\
             17 4 * * * '/usr/bin/haver'\\''sack' '--home' '/home/a b/100\\%' 'tidy' >/dev/null 2>&1\n\
             */15 * * * * '/usr/bin/haver'\\''sack' '--home' '/home/a b/100\\%' 'sync' '--when-due' >/dev/null 2>&1\n\
             # haversack: end\n"
        );
        let users = "MAILTO=me\n0 1 * * * backup\n";
        let both = with_ours(users, &ours);
        assert_eq!(both, format!("{users}{ours}"));
        assert_eq!(with_ours(&both, &ours), both);
        assert_eq!(with_ours(&both, ""), users);
    }

    #[test]
    fn units_and_agents_quote_paths() {
        let (program, home) = (Path::new("/opt/a b/haversack"), Path::new("/home/50%/<x>"));
        let [service, timer] = unit(program, home, &JOBS[0]);
        assert!(
            service
                .text
                .contains("ExecStart=\"/opt/a b/haversack\" \"--home\" \"/home/50%%/<x>\" \"tidy\"\n"),
            "{}",
            service.text
        );
        assert!(timer.text.contains("Persistent=true"));
        let agent = agent(program, home, &JOBS[1]);
        assert!(agent.text.contains("<string>/home/50%/&lt;x&gt;</string>"), "{}", agent.text);
        assert_eq!(agent.name, "Library/LaunchAgents/dev.haversack.sync.plist");
    }
}
