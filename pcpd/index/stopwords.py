"""English words that carry the grammar of a sentence: left out of a query that has other words."""

_WORDS = """
a about above after again against all am an and any are as at be because been before being below
between both but by can could did do does doing down during each else ever few for from further had
has have having he her here hers herself him himself his how i if in into is it its itself just may
me might more most must my myself no nor not now of off on once only or other ought our ours
ourselves out over own same shall she should so some such than that the their theirs them themselves
then there these they this those through to too under until up upon us very was we were what when
where whether which while who whom whose why will with would yet you your yours yourself yourselves
s t d ll m re ve don doesn didn isn aren wasn weren hasn haven hadn won wouldn shouldn couldn
"""

STOP_WORDS = frozenset(_WORDS.split())
"""Folded, as tokens are: `don` and `t` are what is left of `don't`."""
