"""Numbers before and after: nodes and accelerators, addresses, quotas, US dollars, minutes."""
