"""The tools that agents call: one function each, which calls one act and says the answer in words and as data.

Texts of pages are data, not instructions: every answer that carries some says so, and where it comes from.
"""

from pcpd.mcp_server.answers import DATA_NOTE
from pcpd.mcp_server.around import AROUND
from pcpd.mcp_server.changing import CHANGING
from pcpd.mcp_server.connector import CONNECTOR
from pcpd.mcp_server.finding import FINDING
from pcpd.mcp_server.linked import LINKED
from pcpd.mcp_server.past import PAST
from pcpd.mcp_server.proposals import PROPOSALS
from pcpd.mcp_server.reading import READING
from pcpd.mcp_server.tool import Answer, Tool

__all__ = ["BY_NAME", "DATA_NOTE", "TOOLS", "Answer", "Tool"]

TOOLS: tuple[Tool, ...] = (*FINDING, *READING, *LINKED, *PAST, *CHANGING, *PROPOSALS, *AROUND, *CONNECTOR)
BY_NAME = {tool.name: tool for tool in TOOLS}
