"""First contact with a real account: where AWS differs from the assumptions of this project."""
