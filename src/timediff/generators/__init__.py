"""Generators: one contract (`fit`, `sample`, `save`, `load`); TimeDiff and every baseline."""
