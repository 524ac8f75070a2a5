//! The systems that users install the program on, with their names in each registry.

/// A system and a processor.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Rust's name.
    pub(crate) triple: &'static str,
    /// Node's names of the system and the processor.
    pub(crate) node: (&'static str, &'static str),
    /// The tags of a wheel.
    pub(crate) wheel: &'static str,
    /// Debian's name of the processor; `None` if the system is not Debian's.
    pub(crate) debian: Option<&'static str>,
    /// True if `cargo xtask dist` builds it when no target is named.
    pub(crate) is_default: bool,
}

/// Every system.
pub(crate) const TARGETS: [Target; 5] = [
    Target {
        triple: "x86_64-unknown-linux-musl",
        node: ("linux", "x64"),
        wheel: "manylinux_2_17_x86_64.musllinux_1_1_x86_64",
        debian: Some("amd64"),
        is_default: true,
    },
    Target {
        triple: "aarch64-unknown-linux-musl",
        node: ("linux", "arm64"),
        wheel: "manylinux_2_17_aarch64.musllinux_1_1_aarch64",
        debian: Some("arm64"),
        is_default: true,
    },
    Target {
        triple: "x86_64-pc-windows-gnu",
        node: ("win32", "x64"),
        wheel: "win_amd64",
        debian: None,
        is_default: false,
    },
    Target {
        triple: "aarch64-apple-darwin",
        node: ("darwin", "arm64"),
        wheel: "macosx_11_0_arm64",
        debian: None,
        is_default: false,
    },
    Target {
        triple: "x86_64-apple-darwin",
        node: ("darwin", "x64"),
        wheel: "macosx_11_0_x86_64",
        debian: None,
        is_default: false,
    },
];

impl Target {
    /// Returns the name of the program.
    pub(crate) fn program(&self) -> &'static str {
        if self.node.0 == "win32" { "haversack.exe" } else { "haversack" }
    }

    /// Returns the name of Node's package with the program.
    pub(crate) fn node_package(&self) -> String {
        format!("@haversack/{}-{}", self.node.0, self.node.1)
    }

    /// Returns true if this machine runs the program.
    pub(crate) fn runs_here(&self) -> bool {
        let system = match self.node.0 {
            "win32" => "windows",
            "darwin" => "macos",
            other => other,
        };
        system == std::env::consts::OS && self.triple.starts_with(std::env::consts::ARCH)
    }
}

/// Returns a target by Rust's name.
pub(super) fn named(triple: &str) -> Result<&'static Target, String> {
    TARGETS.iter().find(|target| target.triple == triple).ok_or_else(|| {
        let known: Vec<_> = TARGETS.iter().map(|target| target.triple).collect();
        format!("dist: there is no target {triple}; the targets are {}", known.join(", "))
    })
}
