"""P-Forcing: professor forcing (Lamb et al. 2016)."""
