"""The MCP door: one function a tool, each calls one act."""
