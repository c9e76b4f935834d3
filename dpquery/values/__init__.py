"""What leaves the engine (exact) and what may leave dpquery (noisy): two types, so that they are never mistaken."""
