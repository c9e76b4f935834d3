"""What answers look like: for machines (wire), for people (text) and for notebooks (html)."""
