"""The benchmark: our figures beside the limit of the same machine, measured in the same run.

One module a subject; each gives rows. Figures are reported, never judged by a test.
"""
