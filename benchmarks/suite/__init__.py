"""The benchmark suite: dpquery beside plain DuckDB, the floor of any exact bounding, and peers in environments of their own."""
