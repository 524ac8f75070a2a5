//! The environment variables that Haversack reads, all of them.
//!
//! Any other variable with our prefix is warned of: a mistyped name would otherwise do nothing in silence.

/// The beginning of our variables' names.
pub(crate) const PREFIX: &str = "HAVERSACK_";

/// The directory that Haversack keeps everything in; `--home` wins over it.
pub(crate) const HOME: &str = "HAVERSACK_HOME";

/// The seconds that a write waits for another process.
pub(crate) const LOCK_WAIT_SECONDS: &str = "HAVERSACK_LOCK_WAIT_SECONDS";

/// The longest input line that `haversack memory-tool` takes, in bytes.
pub(crate) const MEMORY_TOOL_LINE_BYTES: &str = "HAVERSACK_MEMORY_TOOL_LINE_BYTES";

/// The characters of a text in one view of the memory tool.
pub(crate) const MEMORY_TOOL_VIEW_CHARACTERS: &str = "HAVERSACK_MEMORY_TOOL_VIEW_CHARACTERS";

/// The address of an Azure account, for a remote that was not added.
pub(crate) const BLOB_ENDPOINT: &str = "HAVERSACK_BLOB_ENDPOINT";

/// The container in it.
pub(crate) const BLOB_CONTAINER: &str = "HAVERSACK_BLOB_CONTAINER";

/// Keeps memory on this machine, even if there is a remote.
pub(crate) const KEEP_MEMORY_LOCAL: &str = "HAVERSACK_KEEP_MEMORY_LOCAL";

/// The seconds that a cloud may be silent.
pub(crate) const CLOUD_WAIT_SECONDS: &str = "HAVERSACK_CLOUD_WAIT_SECONDS";

/// The time that a hook may search for passages, in milliseconds.
pub(crate) const RECALL_HOOK_MILLISECONDS: &str = "HAVERSACK_RECALL_HOOK_MILLISECONDS";

/// Projects whose memory stays on this machine, with commas between them.
pub(crate) const PROJECTS_EXCLUDE: &str = "HAVERSACK_PROJECTS_EXCLUDE";

/// The most files of other machines in one sync.
pub(crate) const RECEIVE_FILES: &str = "HAVERSACK_RECEIVE_FILES";

/// The most megabytes of them.
pub(crate) const RECEIVE_MEGABYTES: &str = "HAVERSACK_RECEIVE_MEGABYTES";

/// The time zone in which days are counted.
pub(crate) const TIME_ZONE: &str = "HAVERSACK_TIME_ZONE";

/// The most tokens of memory that a hook gives to a session.
pub(crate) const CONTEXT_TOKENS: &str = "HAVERSACK_CONTEXT_TOKENS";

/// `true`: the end of a session writes its digest.
pub(crate) const DIGEST_AUTO: &str = "HAVERSACK_DIGEST_AUTO";
/// Tells if old memory is rolled up once a day, in the background.
pub(crate) const TIDY_AUTO: &str = "HAVERSACK_TIDY_AUTO";

/// A command that proposes memories.
pub(crate) const TIDY_COMMAND: &str = "HAVERSACK_TIDY_COMMAND";

/// The beginnings of the variables of the clouds' own tools, and the variable with further trusted certificates.
pub(crate) const CLOUD_PREFIXES: [&str; 7] = [
    "AZURE_",
    "AWS_",
    "GOOGLE_",
    "STORAGE_EMULATOR_",
    "SSL_CERT_FILE",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
];

/// The agent, for the history.
pub(crate) const AGENT: &str = "HAVERSACK_AGENT";

/// The session of the agent, for the history.
pub(crate) const SESSION: &str = "HAVERSACK_SESSION";

/// `off`: hooks leave the remote alone, and nothing is started in the background.
pub(crate) const SYNC: &str = "HAVERSACK_SYNC";

/// Claude Code's directory; its own variable.
pub(crate) const CLAUDE_CONFIG_DIR: &str = "CLAUDE_CONFIG_DIR";

/// Claude Code's name for the project's directory; its own variable.
pub(crate) const CLAUDE_CODE_PROJECT_DIR_NAME: &str = "CLAUDE_CODE_PROJECT_DIR_NAME";

/// The directory that a session of Claude Code started in; Claude Code's own variable.
pub(crate) const CLAUDE_PROJECT_DIR: &str = "CLAUDE_PROJECT_DIR";

/// How Claude Code was started; Claude Code's own variable.
pub(crate) const CLAUDE_CODE_ENTRYPOINT: &str = "CLAUDE_CODE_ENTRYPOINT";

/// Codex's directory; its own variable.
pub(crate) const CODEX_HOME: &str = "CODEX_HOME";

/// The program that the packages for Python and TypeScript start; the binary ignores it.
pub(crate) const PROGRAM: &str = "HAVERSACK_PROGRAM";

/// The name of the shell that asks for completions; the scripts of `haversack completions` set it.
pub(crate) const COMPLETE: &str = "HAVERSACK_COMPLETE";

/// Makes the project's own tests run longer; the binary takes no notice of it.
pub(crate) const SOAK: &str = "HAVERSACK_SOAK";

/// Windows' directory for programs' local data; its own variable.
pub(crate) const LOCALAPPDATA: &str = "LOCALAPPDATA";

/// The width of the terminal in characters; by default, the terminal is asked.
pub(crate) const COLUMNS: &str = "COLUMNS";

/// The editor of the user, before [`EDITOR`]; a variable of all programs.
pub(crate) const VISUAL: &str = "VISUAL";

/// The editor of the user; a variable of all programs.
pub(crate) const EDITOR: &str = "EDITOR";

/// The pager of the user; a variable of all programs.
pub(crate) const PAGER: &str = "PAGER";

/// Any text in it: no colours; a variable of all programs.
pub(crate) const NO_COLOR: &str = "NO_COLOR";

/// The sort of the terminal; a variable of all programs.
pub(crate) const TERM: &str = "TERM";

/// The time zone of the system; a variable of all programs.
pub(crate) const TZ: &str = "TZ";

/// The variables that set nothing, each with what it is for.
pub(crate) const NOT_SETTINGS: &[(&str, &str)] = &[
    (AGENT, "The agent's name: the history shows the changes that a sync sends under this name"),
    (SESSION, "Which session of the agent is at work: `haversack undo --session` finds it by this name"),
    (SYNC, "`off`: hooks leave the remote alone, and start nothing in the background"),
    (
        PROGRAM,
        "Which `haversack` the packages for Python and TypeScript start; `haversack` itself takes no notice of it",
    ),
    (COMPLETE, "Which shell asks for completions; the scripts that `haversack completions` prints set it"),
    (SOAK, "Makes the project's own tests run longer; `haversack` itself takes no notice of it"),
];
