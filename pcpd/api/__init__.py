"""The HTTP door: one function a route, each calls one act."""
