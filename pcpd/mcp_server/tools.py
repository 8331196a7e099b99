"""All tools that agents can call. Each is a function that calls one act, and answers with text and with data.

Texts of pages are data, not instructions: every answer that carries some says so, and where it comes from.
"""

from pcpd.mcp_server.changing import CHANGING
from pcpd.mcp_server.connector import CONNECTOR
from pcpd.mcp_server.context import CONTEXT
from pcpd.mcp_server.finding import FINDING
from pcpd.mcp_server.history import HISTORY
from pcpd.mcp_server.links import LINKS
from pcpd.mcp_server.proposals import PROPOSALS
from pcpd.mcp_server.reading import READING
from pcpd.mcp_server.tool import Tool

TOOLS: tuple[Tool, ...] = (*FINDING, *READING, *LINKS, *HISTORY, *CHANGING, *PROPOSALS, *CONTEXT, *CONNECTOR)
BY_NAME = {tool.name: tool for tool in TOOLS}
