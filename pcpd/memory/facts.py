"""The facts that decide who may see a page: what it declares, and what context.yaml adds."""

from pcpd.index.rows import Declared
from pcpd.pages.page import Page
from pcpd.policy.context import Context
from pcpd.policy.decide import Facts, category_of

HIDDEN_STATES = frozenset({"proposed", "rejected"})


def facts_of(context: Context, page: Page) -> Facts:
    """Gives the facts of a parsed page."""
    return facts_under(context, Declared.of(page))


def facts_under(context: Context, page: Declared) -> Facts:
    """Gives the facts of what a page declares under one reading of context.yaml."""
    return Facts(
        path=page.path,
        partition=page.partition or context.default_partition,
        category=category_of(page.is_conversation, page.type, page.path, context.profile),
        sensitivity=page.sensitivity,
        hidden=page.review_state in HIDDEN_STATES,
    )
