//! Checks a store: each finding has a verdict and, if something is wrong, a cure.

use std::fmt;

use haversack_store::{Backend, BackendExt, Bytes, Condition, ErrorKind, Locator, Odd, Result};

use crate::error::with_causes;
use crate::sync::Scope;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// All is well.
    Ok,
    /// It works, and something should be looked at.
    Warn,
    /// It does not work.
    Fail,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Ok => "OK",
            Verdict::Warn => "WARN",
            Verdict::Fail => "FAIL",
        })
    }
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The subject of the check, in one word.
    pub subject: &'static str,
    /// How bad it is.
    pub verdict: Verdict,
    /// The result.
    pub detail: String,
    /// The cure, if one is needed.
    pub cure: Option<String>,
}

impl Finding {
    /// Returns the finding that all is well.
    pub fn ok(subject: &'static str, detail: impl Into<String>) -> Finding {
        Finding { subject, verdict: Verdict::Ok, detail: detail.into(), cure: None }
    }

    /// Returns a finding that should be looked at.
    pub fn warn(subject: &'static str, detail: impl Into<String>, cure: impl Into<String>) -> Finding {
        Finding { subject, verdict: Verdict::Warn, detail: detail.into(), cure: Some(cure.into()) }
    }

    /// Returns the finding that something does not work.
    pub fn fail(subject: &'static str, detail: impl Into<String>, cure: impl Into<String>) -> Finding {
        Finding { subject, verdict: Verdict::Fail, detail: detail.into(), cure: Some(cure.into()) }
    }
}

/// The number of odd names that a finding lists.
const SHOWN_ODD: usize = 3;

/// Checks a store: its contents, and whether its backend keeps the promises that everything relies on.
pub async fn check_store(backend: &dyn Backend) -> Vec<Finding> {
    check_memory(backend, &[(backend, &Scope::default())]).await
}

/// Checks a store whose files are in several backends, each with the part of the store that it holds.
pub async fn check_memory(backend: &dyn Backend, places: &[(&dyn Backend, &Scope)]) -> Vec<Finding> {
    vec![check_promises(backend).await, check_files(places).await, check_kept(backend).await]
}

/// Tries the promises that a second writer depends on, with an object of our own.
async fn check_promises(backend: &dyn Backend) -> Finding {
    const SUBJECT: &str = "writes";
    let probe = Locator::reserved(".haversack/probe").expect("one of ours");
    let broken = |what: &str| {
        let cure = "Do not keep a memory there: a second writer would lose changes";
        Finding::fail(SUBJECT, format!("the storage {what}"), cure)
    };
    let tried: Result<Option<Finding>> = async {
        backend.delete(&probe, Condition::Any).await?;
        let first = backend.write(&probe, Bytes::from_static(b"first"), Condition::Absent).await?;
        if !is_conflict(backend.write(&probe, Bytes::from_static(b"twice"), Condition::Absent).await)? {
            return Ok(Some(broken("creates an object twice")));
        }
        let matches = Condition::Matches(first.version);
        let _second = backend.write(&probe, Bytes::from_static(b"second"), matches.clone()).await?;
        if !is_conflict(backend.write(&probe, Bytes::from_static(b"stale"), matches).await)? {
            return Ok(Some(broken("overwrites an object although the condition forbids it")));
        }
        if &backend.read(&probe).await?.bytes[..] != b"second" {
            return Ok(Some(broken("does not return the written content")));
        }
        backend.delete(&probe, Condition::Any).await?;
        Ok(None)
    }
    .await;
    match tried {
        Ok(None) => Finding::ok(SUBJECT, "created, replaced, compared and deleted a test object"),
        Ok(Some(finding)) => finding,
        Err(error) => {
            let cure = match error.kind() {
                ErrorKind::Full => "Make space on the disk",
                ErrorKind::Denied => "Give this user write access to the directory",
                ErrorKind::Busy => "See which process holds it, or try again",
                _ => "See the cause",
            };
            Finding::fail(SUBJECT, with_causes(&error), cure)
        }
    }
}

fn is_conflict<T>(result: Result<T>) -> Result<bool> {
    match result {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == ErrorKind::Conflict => Ok(true),
        Err(error) => Err(error),
    }
}

async fn check_files(places: &[(&dyn Backend, &Scope)]) -> Finding {
    let (mut files, mut bytes, mut odd) = (0, 0, Vec::new());
    for (backend, scope) in places {
        let mut page = match backend.scan_all(&Locator::root()).await {
            Ok(page) => page,
            Err(error) => return Finding::fail("files", with_causes(&error), "See the cause"),
        };
        page.infos.retain(|info| scope.contains(&info.locator));
        odd.append(&mut page.odd);
        for info in page.infos {
            files += 1;
            bytes += info.size_bytes;
            match backend.read(&info.locator).await {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => odd.push(Odd {
                    at: Some(info.locator.clone()),
                    shown: info.locator.to_string(),
                    why: format!("it cannot be read: {}", error.message()),
                }),
            }
        }
    }
    judge_files(files, bytes, &odd)
}

fn judge_files(files: usize, bytes: u64, odd: &[Odd]) -> Finding {
    let found = format!("{files} {}, {bytes} bytes", if files == 1 { "file" } else { "files" });
    if odd.is_empty() {
        return Finding::ok("files", found);
    }
    let shown: Vec<String> =
        odd.iter().take(SHOWN_ODD).map(|odd| format!("{}: {}", odd.shown, odd.why)).collect();
    let more = match odd.len().saturating_sub(SHOWN_ODD) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let detail = format!("{found}; odd: {}{more}", shown.join("; "));
    Finding::warn(
        "files",
        detail,
        "Rename or remove these files, or make them readable. Haversack does not touch them",
    )
}

async fn check_kept(backend: &dyn Backend) -> Finding {
    let shelf = Locator::reserved(".haversack/kept").expect("one of ours");
    match backend.list_all(&shelf).await {
        Ok(kept) if kept.is_empty() => Finding::ok("kept", "no text of another program waits to be merged"),
        Ok(kept) => {
            let first = &kept[0];
            let detail = format!(
                "{} saved by another program while Haversack wrote, kept aside; the first is {first}",
                if kept.len() == 1 { "1 text was".to_owned() } else { format!("{} texts were", kept.len()) },
            );
            Finding::warn("kept", detail, "Copy the parts that you need from there, then delete it")
        }
        Err(error) => Finding::fail("kept", with_causes(&error), "See the cause"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use haversack_store::{Fault, Faulty, InMemory};

    use super::*;

    fn verdicts(backend: &dyn Backend) -> Vec<(&'static str, Verdict)> {
        let findings = futures_lite::future::block_on(check_store(backend));
        findings.into_iter().map(|finding| (finding.subject, finding.verdict)).collect()
    }

    #[test]
    fn a_sound_store_is_ok_and_left_as_it_was() {
        let backend = InMemory::new();
        assert_eq!(
            verdicts(&backend),
            [("writes", Verdict::Ok), ("files", Verdict::Ok), ("kept", Verdict::Ok)]
        );
        let own = Locator::reserved(".haversack").expect("ours");
        let left = futures_lite::future::block_on(backend.list_all(&own)).expect("scanned");
        assert_eq!(left, []);
    }

    #[test]
    fn a_storage_that_lies_or_fails_is_a_failure() {
        let full = Faulty::new(Arc::new(InMemory::new()));
        full.plan([Fault::None, Fault::Refused(ErrorKind::Full)]);
        assert_eq!(verdicts(&full)[0], ("writes", Verdict::Fail));
        // A create whose answer comes back as a success the second time is one that ignores its condition.
        let lying = Faulty::new(Arc::new(InMemory::new()));
        lying.plan([Fault::None, Fault::AnswerLost]);
        assert_eq!(verdicts(&lying)[0], ("writes", Verdict::Fail));
    }

    #[test]
    fn odd_names_are_spelled_out_up_to_a_limit() {
        let odd: Vec<Odd> = (0..5)
            .map(|n| Odd { at: None, shown: format!("n{n}"), why: "it is a link".to_owned() })
            .collect();
        let finding = judge_files(1, 10, &odd);
        assert_eq!(finding.verdict, Verdict::Warn);
        assert_eq!(
            finding.detail,
            "1 file, 10 bytes; odd: n0: it is a link; n1: it is a link; n2: it is a link; and 2 more"
        );
    }

    #[test]
    fn kept_texts_are_reported() {
        let backend = InMemory::new();
        let kept = Locator::reserved(".haversack/kept/0123456789abcdef/notes.md").expect("ours");
        let text = Bytes::from_static(b"an editor's text");
        let _ = futures_lite::future::block_on(backend.write(&kept, text, Condition::Any)).expect("written");
        assert_eq!(verdicts(&backend)[2], ("kept", Verdict::Warn));
    }
}
