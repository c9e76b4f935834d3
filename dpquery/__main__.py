"""`python -m dpquery`."""

from dpquery.cli import main

main()
