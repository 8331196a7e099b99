"""All tools that agents can call. Each is a function that calls one act, and answers with text and with data.

Texts of pages are data, not instructions: every answer that carries some says so, and where it comes from.
"""

from pcpd.mcp_server.around import AROUND
from pcpd.mcp_server.changing import CHANGING
from pcpd.mcp_server.connector import CONNECTOR
from pcpd.mcp_server.finding import FINDING
from pcpd.mcp_server.linked import LINKED
from pcpd.mcp_server.past import PAST
from pcpd.mcp_server.reading import READING
from pcpd.mcp_server.tool import Tool

TOOLS: tuple[Tool, ...] = (*FINDING, *READING, *LINKED, *PAST, *CHANGING, *AROUND, *CONNECTOR)
BY_NAME = {tool.name: tool for tool in TOOLS}
