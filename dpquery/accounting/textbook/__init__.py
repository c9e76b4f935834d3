"""The textbook's accounting, to compare with: floats to nearest, so no result here is a promise unless its name ends in _up.

No room that answers or charges imports this one. What the ledger may use, and in part does, is proved in `dpquery.accounting`; the others hold for
parameters fixed before the first answer, or for laws that dpquery does not draw from. Each function says which, under `Ledger`.
"""
