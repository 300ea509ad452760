"""T-Forcing: teacher forcing (Williams and Zipser 1989; Graves 2013)."""
