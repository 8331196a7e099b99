"""Random grants, principals and pages, small enough to meet often."""

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from pcpd.policy.decide import Facts, Principal
from pcpd.policy.grants import CATEGORIES, RIGHTS, Access, Grant

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
PARTITIONS = ("personal", "work", "home")
NAMES = ("agent:a", "agent:a/2", "agent:b")
SENSITIVITIES = ("normal", "sensitive")


def _some(words: tuple[str, ...]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(words), max_size=3, unique=True).map(tuple)


grants = st.builds(
    Grant,
    principal=st.sampled_from(NAMES),
    partitions=_some(PARTITIONS),
    categories=_some(CATEGORIES),
    rights=st.lists(st.sampled_from(["read", "review", *RIGHTS]), max_size=3, unique=True).map(tuple),
    sensitivity=st.sampled_from(SENSITIVITIES),
    until=st.none() | st.sampled_from([NOW - timedelta(seconds=1), NOW, NOW + timedelta(seconds=1)]),
)
accesses = st.lists(grants, max_size=6).map(lambda found: Access(tuple(found)))
principals = st.one_of(
    st.sampled_from(NAMES).map(Principal), st.just(Principal("human:sam", is_controller=True))
)
ALL_FACTS = tuple(
    Facts("a/page", partition, category, sensitivity, hidden)
    for partition in PARTITIONS
    for category in CATEGORIES
    for sensitivity in SENSITIVITIES
    for hidden in (False, True)
)
facts = st.sampled_from(ALL_FACTS)
