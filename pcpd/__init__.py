"""pcpd: a local-first daemon over a folder of Markdown.

The rooms and floors of this package are drawn in `docs/architecture.md`.
"""

__version__ = "0.1.0"
