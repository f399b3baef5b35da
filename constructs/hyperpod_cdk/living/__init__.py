"""The running cluster: how AWS differs from the files and the last deployment, and the state of its nodes."""
