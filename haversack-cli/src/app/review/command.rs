//! The user's own command that proposes memories: a model's command line, a script. It gets the material on its standard input, one JSON object to a line,
//! and prints proposals, one JSON object to a line. It has a minute, and may print 256 KB.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use haversack::proposal::Said;

/// The time that the command has.
const TIME: Duration = Duration::from_secs(60);

/// The most bytes that it prints.
const MAX_OUTPUT_BYTES: u64 = 256 * 1024;

/// The most bytes of material that it gets: the newest lines.
const MAX_INPUT_BYTES: usize = 512 * 1024;

/// Runs a command on the material and returns what it printed. The error says why there is nothing.
pub(super) fn run(command: &str, said: &[Said]) -> Result<Vec<u8>, String> {
    run_for(command, &material(said), TIME)
}

/// Returns the newest lines of the material, as JSON.
fn material(said: &[Said]) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = Vec::new();
    let mut size = 0;
    let mut newest: Vec<&Said> = said.iter().collect();
    newest.sort_by(|one, other| other.day.cmp(&one.day));
    for one in newest {
        let mut line = serde_json::to_vec(one).unwrap_or_default();
        line.push(b'\n');
        size += line.len();
        if size > MAX_INPUT_BYTES {
            break;
        }
        lines.push(line);
    }
    lines.reverse();
    lines.concat()
}

fn run_for(command: &str, material: &[u8], time: Duration) -> Result<Vec<u8>, String> {
    let mut shell = if cfg!(windows) { Command::new("cmd") } else { Command::new("sh") };
    shell.arg(if cfg!(windows) { "/C" } else { "-c" }).arg(command);
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    // A group of its own, so that the command ends with everything that it started.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut shell, 0);
    let mut child = shell.spawn().map_err(|error| format!("could not be started ({error})"))?;
    let (mut input, output) = match (child.stdin.take(), child.stdout.take()) {
        (Some(input), Some(output)) => (input, output),
        _ => return Err("could not be started".to_owned()),
    };
    let material = material.to_vec();
    // A command that reads nothing closes its input: that is no failure.
    drop(std::thread::Builder::new().spawn(move || input.write_all(&material)));
    let (send, receive) = mpsc::channel();
    let reader = std::thread::Builder::new().spawn(move || {
        let mut bytes = Vec::new();
        let read = output.take(MAX_OUTPUT_BYTES + 1).read_to_end(&mut bytes);
        drop(send.send(read.map(|_| bytes)));
    });
    reader.map_err(|error| format!("could not be read ({error})"))?;
    let read = receive.recv_timeout(time);
    let is_too_long = matches!(&read, Ok(Ok(bytes)) if bytes.len() as u64 > MAX_OUTPUT_BYTES);
    if is_too_long || read.is_err() {
        end(&mut child);
        let seconds = time.as_secs();
        let why = if is_too_long {
            format!("printed more than {MAX_OUTPUT_BYTES} bytes")
        } else {
            format!("took longer than {seconds} s")
        };
        return Err(why);
    }
    let bytes = match read {
        Ok(Ok(bytes)) => bytes,
        _ => return Err("could not be read".to_owned()),
    };
    end_of(&mut child, time)?;
    Ok(bytes)
}

/// Waits for a command that closed its output.
fn end_of(child: &mut Child, time: Duration) -> Result<(), String> {
    let deadline = std::time::Instant::now() + time;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("failed ({status})")),
            Ok(None) if std::time::Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) | Err(_) => {
                end(child);
                return Err("did not end".to_owned());
            }
        }
    }
}

/// Ends a command, with everything that it started.
fn end(child: &mut Child) {
    #[cfg(unix)]
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    drop(child.kill());
    drop(child.wait());
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(300);
    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn command_gets_the_material_and_its_output_is_read() {
        assert_eq!(run_for("cat", b"a line\n", LONG).expect("it ran"), b"a line\n");
        assert_eq!(run_for("echo found", &vec![b'x'; 400_000], LONG).expect("it reads nothing"), b"found\n");
    }

    #[test]
    fn command_that_hangs_fails_or_prints_too_much_is_ended() {
        assert!(run_for("sleep 1000", b"", SHORT).expect_err("it hangs").starts_with("took longer"));
        assert!(
            run_for("exec >&-; sleep 1000", b"", SHORT).expect_err("it hangs").starts_with("did not end")
        );
        assert!(run_for("yes", b"", LONG).expect_err("it never ends").starts_with("printed more"));
        assert!(run_for("exit 3", b"", LONG).expect_err("it fails").starts_with("failed"));
    }
}
