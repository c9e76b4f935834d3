"""Prices and their arithmetic: exact fractions, rounded towards more privacy loss."""
