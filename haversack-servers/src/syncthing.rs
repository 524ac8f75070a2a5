//! Syncthing: two daemons that replicate a folder to each other, over loopback only.
//!
//! Discovery, relays, NAT traversal, reports and upgrades are switched off. Each daemon has a directory, a REST API with a key, and one
//! address that the other daemon knows.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::process::{Process, Start, free_ports};
use crate::{fresh_name, http, tools};

/// The name of the folder that both daemons share.
const FOLDER: &str = "memory";

/// The interval at which both daemons are asked if they are done.
const GLANCE: Duration = Duration::from_millis(100);

/// A running Syncthing; it is ended when this is dropped.
pub struct Syncthing {
    process: Process,
    device: String,
    /// The other daemon.
    peer: String,
    api: Api,
}

/// The address and the key of a daemon.
#[derive(Clone)]
struct Api {
    url: String,
    key: String,
}

impl Api {
    /// Asks a daemon; the error says that it does not answer or what it answered instead.
    fn ask(&self, method: &str, path: &str) -> Result<String, String> {
        let answer =
            http::send(method, &format!("{}/rest/{path}", self.url), &[("X-API-Key", &self.key)], b"")?;
        match answer.status {
            200 => Ok(answer.text()),
            status => Err(format!("{path}: {status} {}", answer.text())),
        }
    }
}

/// A daemon that has keys and has not been started.
struct Prepared {
    directory: tempfile::TempDir,
    device: String,
    port: u16,
    api: Api,
}

impl Syncthing {
    /// Starts two daemons that replicate two folders to each other; `None` if Syncthing is not installed.
    ///
    /// # Panics
    ///
    /// If one does not start.
    pub fn pair(folders: [&Path; 2]) -> Option<[Syncthing; 2]> {
        let program = tools::program_or_skip("syncthing", "cargo xtask tools")?;
        let prepared = [(); 2].map(|()| Prepared::new(&program));
        for (daemon, folder) in prepared.iter().zip(folders) {
            std::fs::create_dir_all(folder.join(".stfolder")).expect("a folder can be made");
            let config = config(folder, daemon, &prepared);
            std::fs::write(daemon.directory.path().join("config.xml"), config)
                .expect("its directory takes files");
        }
        let devices = [prepared[1].device.clone(), prepared[0].device.clone()];
        let mut peers = devices.into_iter();
        Some(prepared.map(|Prepared { directory, device, api, .. }| {
            let home = format!("--home={}", directory.path().display());
            let arguments = ["serve", &home, "--no-browser", "--no-upgrade", "--logflags=0"];
            let start = Start {
                name: "syncthing",
                program: program.clone(),
                arguments: arguments.map(Into::into).to_vec(),
                // Without this a first process only watches a second one, which would outlive a kill of the first.
                variables: vec![("STMONITORED", "yes".to_owned())],
                litter: Vec::new(),
            };
            let (process, ()) =
                Process::start(start, directory, listens(&api)).unwrap_or_else(|why| panic!("{why}"));
            Syncthing { process, device, peer: peers.next().expect("there are two"), api }
        }))
    }

    /// Returns its version, as it says it.
    ///
    /// # Panics
    ///
    /// If it does not answer.
    pub fn version(&self) -> String {
        let answer = self.api.ask("GET", "system/version").unwrap_or_else(|why| panic!("{why}"));
        field(&answer, "version").unwrap_or_default()
    }

    /// Returns its process id, if it runs.
    pub fn id(&self) -> Option<u32> {
        self.process.id()
    }

    /// Ends it, as `kill -9` does.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it once more, if it does not run.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start(&mut self) {
        if self.id().is_none() {
            self.process.restart(listens(&self.api)).unwrap_or_else(|why| panic!("{why}"));
        }
    }

    /// Lets it look at its folder now, and waits until it has.
    pub fn scan(&self) -> Result<(), String> {
        self.api.ask("POST", &format!("db/scan?folder={FOLDER}")).map(drop)
    }

    /// Returns true if it has everything that it knows of, and knows the same of the other daemon; the error says what is open.
    fn is_done(&self) -> Result<(), String> {
        let status = self.api.ask("GET", &format!("db/status?folder={FOLDER}"))?;
        let other = self.api.ask("GET", &format!("db/completion?folder={FOLDER}&device={}", self.peer))?;
        let connections = self.api.ask("GET", "system/connections")?;
        let is = |answer: &str, name: &str, wanted: &str| field(answer, name).as_deref() == Some(wanted);
        let is_done = is(&status, "state", "idle")
            && is(&status, "needTotalItems", "0")
            && is(&other, "needItems", "0")
            && is(&other, "needDeletes", "0")
            && connections.contains("\"connected\": true");
        if is_done {
            Ok(())
        } else {
            Err(format!("{} is not done: {status} {other} {connections}", self.device))
        }
    }
}

/// Lets two daemons look at their folders, and waits until each has everything of the other; the error says what was open in the end.
pub fn settle(daemons: &[Syncthing; 2], patience: Duration) -> Result<(), String> {
    let deadline = Instant::now() + patience;
    loop {
        let scanned = daemons.iter().try_for_each(Syncthing::scan);
        // Twice: what one has just got, the other may not know yet.
        let found = scanned.and_then(|()| daemons.iter().chain(daemons).try_for_each(Syncthing::is_done));
        match found {
            Ok(()) => return Ok(()),
            Err(open) if Instant::now() > deadline => return Err(open),
            Err(_) => std::thread::sleep(GLANCE),
        }
    }
}

impl Prepared {
    /// Makes keys for a daemon.
    fn new(program: &Path) -> Prepared {
        let directory = Process::directory("syncthing");
        let run = |arguments: &[&str]| {
            let mut command = Command::new(program);
            command.args(arguments).arg(format!("--home={}", directory.path().display()));
            command.env_clear().env("HOME", directory.path()).env("PATH", "/usr/local/bin:/usr/bin:/bin");
            let output = command.output().expect("syncthing starts");
            let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            assert!(output.status.success(), "syncthing {arguments:?}: {said}");
            said
        };
        run(&["generate", "--no-default-folder"]);
        let device = run(&["--device-id"]);
        let [port, api] = free_ports();
        let api = Api { url: format!("http://127.0.0.1:{api}"), key: fresh_name("key") };
        Prepared { directory, device, port, api }
    }
}

/// Returns what waits until a daemon answers.
fn listens(api: &Api) -> impl FnMut(&str) -> Option<()> + use<> {
    let api = api.clone();
    move |_| api.ask("GET", "system/ping").ok().map(drop)
}

/// Returns the configuration of one of two daemons.
fn config(folder: &Path, daemon: &Prepared, both: &[Prepared; 2]) -> String {
    let devices: String = both
        .iter()
        .map(|Prepared { device, port, .. }| {
            format!("<device id=\"{device}\" name=\"{port}\" compression=\"never\"><address>tcp://127.0.0.1:{port}</address></device>\n")
        })
        .collect();
    let shared: String =
        both.iter().map(|other| format!("<device id=\"{}\"></device>", other.device)).collect();
    let (path, port) = (folder.display(), daemon.port);
    let (api, key) = (daemon.api.url.trim_start_matches("http://"), &daemon.api.key);
    format!(
        r#"<configuration version="36">
<folder id="{FOLDER}" label="{FOLDER}" path="{path}" type="sendreceive" rescanIntervalS="5" fsWatcherEnabled="true" fsWatcherDelayS="1" ignorePerms="false" autoNormalize="true">
<filesystemType>basic</filesystemType>{shared}<minDiskFree unit="%">0</minDiskFree><maxConflicts>-1</maxConflicts><markerName>.stfolder</markerName>
</folder>
{devices}<gui enabled="true" tls="false"><address>{api}</address><apikey>{key}</apikey></gui>
<options>
<listenAddress>tcp://127.0.0.1:{port}</listenAddress>
<globalAnnounceEnabled>false</globalAnnounceEnabled>
<localAnnounceEnabled>false</localAnnounceEnabled>
<relaysEnabled>false</relaysEnabled>
<natEnabled>false</natEnabled>
<stunKeepaliveStartS>0</stunKeepaliveStartS>
<urAccepted>-1</urAccepted>
<crashReportingEnabled>false</crashReportingEnabled>
<autoUpgradeIntervalH>0</autoUpgradeIntervalH>
<startBrowser>false</startBrowser>
<reconnectionIntervalS>1</reconnectionIntervalS>
<progressUpdateIntervalS>-1</progressUpdateIntervalS>
<setLowPriority>false</setLowPriority>
<minHomeDiskFree unit="%">0</minHomeDiskFree>
</options>
</configuration>
"#
    )
}

/// Returns a number or a text of an answer by its name, wherever it stands.
fn field(answer: &str, name: &str) -> Option<String> {
    let (_, after) = answer.split_once(&format!("\"{name}\":"))?;
    let value = after.split([',', '\n', '}']).next()?;
    Some(value.trim().trim_matches('"').to_owned())
}
