"""Who may knock: Host, Origin, token and size, the same for every door."""
