//! The faces that other programs use: hooks of agents, the memory tool, and the Model Context Protocol over stdio and HTTP.

pub(crate) mod hooks;
pub(crate) mod http;
pub(crate) mod mcp;
pub(crate) mod memory_tool;
pub(crate) mod page;
pub(crate) mod server_memory;
