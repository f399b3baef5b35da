"""First contact with a real account: what of it is otherwise than this project takes AWS to be."""
