"""What is promised: the schema file."""
