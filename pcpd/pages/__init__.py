"""The words: what a page is, how it is read and edited. Pure: no I/O, no clock, no environment, no SQL."""
