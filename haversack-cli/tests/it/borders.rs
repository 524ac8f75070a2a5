//! Borders: nothing crosses a line that the user did not draw.
//!
//! Hostile repositories, memory that must stay on this machine, and hostile writers in the remote, each through the faces that a user or
//! an agent has: hooks, MCP, the memory tool, commands and the background process. `docs/threats.md` lists the lines and their tests.

mod bucket;
mod local;
mod repositories;
