"""What will be computed, as frozen data. Nothing here reads a schema, SQL text or data."""
