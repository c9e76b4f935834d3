"""The noise line: the only room in which an exact value becomes a noisy one."""
