"""dpquery: differentially private SQL."""
