"""The numbered SQL files of the ledger, applied in order by `pcpd.sqlite.migrate`."""
