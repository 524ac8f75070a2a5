//! What a user types, one row for each command. The lines run in this order on one machine.

/// A command, with lines that use it.
pub(super) struct Row {
    pub(super) command: &'static str,
    /// Three mistakes. Each ends with 1 or 2 and names a cure.
    pub(super) errors: [&'static str; 3],
    /// Lines with good output.
    pub(super) good: &'static [&'static str],
}

const fn row(command: &'static str, errors: [&'static str; 3], good: &'static [&'static str]) -> Row {
    Row { command, errors, good }
}

/// A request to the server of the Model Context Protocol.
const INITIALIZE: &str = concat!(
    r#"printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","#,
    r#""capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' | haversack mcp | cut -c1-60"#
);

/// A server that is stopped as soon as it has named its address.
const SERVE: &str = concat!(
    "haversack serve --listen 127.0.0.1:0 >\"$HOME/served\" 2>&1 & until grep -qs http \"$HOME/served\"; do sleep 0.02; done; ",
    "kill $!; wait $! 2>/dev/null; sed 's/:[0-9][0-9]*/:PORT/' \"$HOME/served\""
);

pub(super) const ROWS: &[Row] = &[
    // Start
    row(
        "demo",
        ["haversack demo --fast", "haversack demo lighthouse", "haversack demo --keep yes"],
        &["haversack demo --json | head -n 1"],
    ),
    row(
        "init",
        ["haversack init ~/Drobox/haversack", "haversack init s3:/bucket", "haversack init"],
        &["haversack init --dry-run"],
    ),
    row(
        "status",
        ["haversack status --lines", "haversack status lighthouse", "haversack --home /dev/null status"],
        &["haversack status --line || true", "haversack status || true"],
    ),
    // Look
    row(
        "ls",
        ["haversack ls nowhere", "haversack ls --kind referense", "haversack ls --sort"],
        &["haversack ls", "haversack ls lighthouse", "haversack ls --kind reference", "haversack ls -R"],
    ),
    row(
        "view",
        ["haversack view nowhere.md", "haversack view lighthouse", "haversack view tide.md --lines 9:2"],
        &["haversack view tide.md", "haversack view lighthouse/tide.md --lines 7:"],
    ),
    row(
        "recall",
        ["haversack recall", "haversack recall tide --limit none", "haversack recall tide --within nowhere"],
        &[
            "haversack recall tide",
            "haversack recall tide --kind project --passages",
            "haversack recall zebra || true",
        ],
    ),
    row(
        "log",
        ["haversack log nowhere.md", "haversack log 99", "haversack log -n none"],
        &["haversack log -n 1", "haversack log 1", "haversack log ports.md", "haversack log"],
    ),
    row(
        "diff",
        ["haversack diff nowhere.md", "haversack diff 99", "haversack diff tide.md ports.md"],
        &["haversack diff", "haversack diff 1 tide.md"],
    ),
    row(
        "why",
        ["haversack why --limit none", "haversack why lighthouse", "haversack why --next --compacted"],
        &["haversack why", "haversack why --next"],
    ),
    row(
        "index",
        ["haversack index tidy", "haversack index --all", "haversack index --tidy ports.md"],
        &["haversack index", "haversack index --tidy"],
    ),
    row(
        "context",
        ["haversack context --budget none", "haversack context lighthouse", "haversack context --tokens 5"],
        &["haversack context --budget 2k 2>&1 | sed 's/AKIA.*/TOKEN/; s/About [0-9]*/About SOME/'"],
    ),
    // Fix
    row(
        "conflicts",
        ["haversack conflicts nowhere.md", "haversack conflicts --keep 1", "haversack conflicts a b"],
        &["haversack conflicts", "haversack conflicts tide.md"],
    ),
    row(
        "resolve",
        ["haversack resolve 9 --keep 1", "haversack resolve 1", "haversack resolve 1 --keep 3"],
        &["haversack resolve 1 --keep 1"],
    ),
    row(
        "undo",
        ["haversack undo", "haversack undo 99 --yes", "haversack undo nowhere.md --yes"],
        &["haversack undo --dry-run", "haversack undo --yes"],
    ),
    row(
        "restore",
        ["haversack restore", "haversack restore nowhere.md", "haversack restore tide.md --at 99"],
        &["haversack restore ports.md --at 1"],
    ),
    row(
        "allow",
        ["haversack allow", "haversack allow keys.md:1", "haversack allow keys.md"],
        &["haversack allow keys.md:7", "haversack allow --list | cut -c1-8"],
    ),
    // Write
    row(
        "new",
        ["haversack new referense lens", "haversack new reference", "haversack new reference ../tide"],
        &["haversack new reference lens"],
    ),
    row(
        "edit",
        ["haversack edit nowhere.md", "haversack edit", "haversack edit lighthouse"],
        &["haversack edit ports.md"],
    ),
    row(
        "create",
        ["haversack create tide.md x", "haversack create ../x.md x", "haversack create"],
        &["haversack create lamp.md 'every 12 s'", "haversack create 'notes/red lamp.md' x"],
    ),
    row(
        "str-replace",
        [
            "haversack str-replace lamp.md 99 1",
            "haversack str-replace nowhere.md 1 2",
            "haversack str-replace ports.md a b",
        ],
        &["haversack str-replace lamp.md 12 10"],
    ),
    row(
        "insert",
        [
            "haversack insert lamp.md 99 x",
            "haversack insert lamp.md first x",
            "haversack insert nowhere.md 0 x",
        ],
        &["haversack insert lamp.md 0 '# Lamp'"],
    ),
    row(
        "append",
        ["haversack append", "haversack append lighthouse x", "haversack append ../x.md x"],
        &["haversack append lamp.md 'white'"],
    ),
    row(
        "rename",
        ["haversack rename nowhere.md x.md", "haversack rename lamp.md tide.md", "haversack rename lamp.md"],
        &["haversack rename lamp.md light.md"],
    ),
    row(
        "delete",
        ["haversack delete nowhere.md", "haversack delete notes", "haversack delete"],
        &["haversack delete light.md", "haversack delete -r notes"],
    ),
    row(
        "check",
        ["haversack check nowhere.md", "haversack check --repair", "haversack check a b"],
        &["haversack check tide.md", "haversack check || true"],
    ),
    row(
        "kinds",
        ["haversack kinds show referense", "haversack kinds shwo", "haversack kinds --kind"],
        &["haversack kinds", "haversack kinds show reference"],
    ),
    row(
        "ontology",
        [
            "haversack ontology",
            "haversack ontology add-node-type",
            "haversack ontology add-connection-type Knows --from Keeper",
        ],
        &[
            "haversack ontology add-node-type Keeper",
            "haversack ontology add-connection-type Knows --from Keeper --to Keeper",
            "haversack ontology show",
            "haversack ontology check",
        ],
    ),
    row(
        "node",
        ["haversack node", "haversack node create Ship x", "haversack node show nowhere"],
        &[
            "haversack node create Keeper 'Climbs at dawn.' -p name=keeper | wc -l",
            "haversack node list | sed 's/^[^ ]*/ID/'",
            "haversack node search dawn | sed 's/^[^ ]*/ID/'",
        ],
    ),
    row(
        "connection",
        [
            "haversack connection",
            "haversack connection create Knows nobody nowhere",
            "haversack connection show nowhere",
        ],
        &[
            "haversack connection create Knows $(haversack node ensure Keeper) $(haversack node ensure Keeper) | wc -l",
            "haversack connection list | tr -s ' ' | sed 's/[a-z]*_[0-9a-z]*_[0-9a-f]*/ID/g'",
        ],
    ),
    row(
        "graph",
        ["haversack graph", "haversack graph neighbours nowhere", "haversack graph draw --format png"],
        &[
            "haversack graph neighbours keeper",
            "haversack graph neighbours ports",
            "haversack graph draw --around ports --format mermaid",
            "haversack graph export",
        ],
    ),
    row(
        "event",
        [
            "haversack event hello",
            "haversack event hello --sender me --direction up",
            "haversack event --sender me --direction inbound",
        ],
        &[
            "haversack event 'asked about the tide' --sender user --direction inbound 2>&1 | sed 's/[0-9-]\\{10\\}/DAY/'",
        ],
    ),
    row(
        "summary",
        ["haversack summary --day soon", "haversack summary lighthouse", "haversack summary --yesterday"],
        &["haversack summary 2>&1 | sed 's/[0-9-]\\{10\\}/DAY/g; s/[0-9][0-9]:[0-9][0-9]/TIME/'"],
    ),
    row(
        "digest",
        ["haversack digest --transcript ~/nowhere", "haversack digest now", "haversack digest --sesion 1"],
        &["haversack digest"],
    ),
    row(
        "commitments",
        ["haversack commitments", "haversack commitments deliver lamp", "haversack commitments add"],
        &[
            "haversack commitments list",
            "haversack commitments add 'paint the lamp' 2>&1 | sed 's/c-[0-9a-z]*/ID/'",
            "haversack commitments deliver paint",
            "haversack commitments list | sed 's/c-[0-9a-z]*/ID/; s/[0-9-]\\{10\\}/DAY/'",
        ],
    ),
    row(
        "carry",
        ["haversack carry", "haversack carry consume 9", "haversack carry add"],
        &[
            "haversack carry add 'ask about the lamp'",
            "haversack carry list | sed 's/[0-9-]\\{10\\}/DAY/'",
            "haversack carry consume 1",
            "haversack carry list",
        ],
    ),
    row(
        "tidy",
        ["haversack tidy lighthouse", "haversack tidy --accept 9", "haversack tidy --archive nowhere"],
        &["haversack tidy --dry-run", "haversack tidy --log", "haversack tidy --review"],
    ),
    row(
        "prune",
        [
            "haversack prune",
            "haversack prune --older-than 90 --kind session_digest",
            "haversack prune --older-than 90d --kind referense",
        ],
        &["haversack prune --older-than 90d --kind session_digest"],
    ),
    row(
        "page",
        ["haversack page", "haversack page --static ~/.dropbox/info.json", "haversack page memory.html"],
        &["haversack page --static ~/memory.html"],
    ),
    row(
        "open",
        ["haversack open lighthouse", "haversack open --port many", "haversack open --idle soon"],
        &["haversack open --no-browser --idle 1s 2>&1 | sed 's/http:.*/ADDRESS/'"],
    ),
    row(
        "export",
        ["haversack export", "haversack export ~/.dropbox/info.json", "haversack export ~/m.tar.zst nowhere"],
        &["haversack export ~/memory.tar.zst 2>&1 | sed 's/[0-9]* bytes/SIZE/'"],
    ),
    row(
        "import",
        ["haversack import", "haversack import ~/nowhere.tar.zst", "haversack import ~/memory.html"],
        &["haversack import ~/memory.tar.zst"],
    ),
    // Connect machines
    row(
        "sync",
        ["haversack sync --mine nowhere.md", "haversack sync tide.md", "haversack sync --mane"],
        &["haversack sync", "haversack sync --full"],
    ),
    row(
        "push",
        ["haversack push nowhere.md", "haversack push a b", "haversack push --force"],
        &["haversack push"],
    ),
    row(
        "pull",
        ["haversack pull tide.md", "haversack pull --within soon", "haversack pull --force"],
        &["haversack pull"],
    ),
    row(
        "join",
        ["haversack join", "haversack join ~/Dropbox/other --yes", "haversack join ftp://host/x --yes"],
        &["haversack join ~/Dropbox/haversack --yes || true"],
    ),
    row(
        "remote",
        ["haversack remote", "haversack remote tset", "haversack remote add s3://elsewhere"],
        &["haversack remote list", "haversack remote test"],
    ),
    row(
        "devices",
        ["haversack devices remove tablet", "haversack devices remove laptop", "haversack devices add x"],
        &["haversack devices", "haversack devices remove desktop"],
    ),
    row(
        "mount",
        ["haversack mount", "haversack mount add ~/nowhere notes/x", "haversack mount remove ~/nowhere"],
        &["haversack mount list"],
    ),
    row(
        "mirror",
        ["haversack mirror now", "haversack mirror --full", "haversack mirror --json"],
        &["haversack mirror"],
    ),
    row(
        "migrate",
        [
            "haversack migrate ~/nowhere ~/copy",
            "haversack migrate ~/Dropbox",
            "haversack migrate ~/laptop-code ~/copy",
        ],
        &["haversack migrate ~/laptop-claude/skills ~/copy --dry-run"],
    ),
    row(
        "provision",
        ["haversack provision", "haversack provision aws", "haversack provision azure"],
        &["haversack provision azure --help | head -n 1"],
    ),
    // Connect agents
    row(
        "setup",
        ["haversack setup", "haversack setup claude-cod", "haversack setup codex --remov"],
        &["haversack setup claude-code --diff", "haversack setup cursor", "haversack setup claude-code"],
    ),
    row(
        "project",
        ["haversack project", "haversack project bind ~/nowhere", "haversack project name . ''"],
        &["haversack project list", "haversack project bind"],
    ),
    // Maintain
    row(
        "doctor",
        [
            "haversack doctor now",
            "haversack doctor --repair",
            "haversack --config lock-wait-seconds=soon doctor",
        ],
        &["haversack doctor | grep -v 'private\\|chmod' | sed 's/[0-9]* KB/SIZE/; s/[0-9]* bytes/SIZE/'"],
    ),
    row(
        "config",
        [
            "haversack config",
            "haversack config set lock-wait 1",
            "haversack config set lock-wait-seconds soon",
        ],
        &[
            "haversack config set lock-wait-seconds 5",
            "haversack config list 2>/dev/null | grep seconds | tr -s ' '",
            "haversack config unset lock-wait-seconds",
        ],
    ),
    row(
        "schedule",
        ["haversack schedule windows", "haversack schedule --daily", "haversack schedule cron systemd"],
        &["haversack schedule cron | sed \"s#'[^']*/haversack'#PROGRAM#\""],
    ),
    row(
        "model",
        ["haversack model", "haversack model fetch", "haversack model import"],
        &["haversack model show", "haversack model remove"],
    ),
    row(
        "backends",
        ["haversack backends s3", "haversack backends --all", "haversack backends a b"],
        &["haversack backends"],
    ),
    row(
        "debug",
        ["haversack debug", "haversack debug stat", "haversack debug log ~/nowhere"],
        &["haversack debug state \"$HAVERSACK_HOME/state/default\" | head -n 1 | cut -c1-8"],
    ),
    row(
        "completions",
        ["haversack completions", "haversack completions sh", "haversack completions bash zsh"],
        &["haversack completions bash | head -n 2"],
    ),
    row(
        "help",
        ["haversack help statsu", "haversack help frobnicate", "haversack help config sett"],
        &["haversack help"],
    ),
    row(
        "version",
        ["haversack version now", "haversack version --verbos", "haversack version --short"],
        &["haversack version"],
    ),
    // These may leave a sync in the background, which the lines above would meet.
    row(
        "hook",
        ["haversack hook", "haversack hook --event", "haversack hook a b c"],
        &["printf '{}' | haversack hook SessionEnd"],
    ),
    row(
        "background",
        ["haversack background now", "haversack background --once", "haversack background --json"],
        &["haversack background"],
    ),
    row(
        "memory-tool",
        [
            "haversack memory-tool view",
            "haversack memory-tool --json",
            "haversack --config view=1 memory-tool",
        ],
        &[
            "printf '{\"command\":\"create\",\"path\":\"/memories/tool.md\",\"file_text\":\"x\"}\\n' | haversack memory-tool",
        ],
    ),
    row("mcp", ["haversack mcp now", "haversack mcp --http", "haversack mcp --stdio"], &[INITIALIZE]),
    row(
        "serve",
        ["haversack serve --listen here", "haversack serve --listen 0.0.0.0:0", "haversack serve now"],
        &[SERVE],
    ),
    row(
        "uninstall",
        ["haversack uninstall --dry-runs", "haversack uninstall claude-code", "haversack uninstall --force"],
        &["haversack uninstall --dry-run 2>&1 | grep program", "haversack uninstall --yes"],
    ),
];
