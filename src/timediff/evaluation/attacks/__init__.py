"""Attacks: what someone who has a synthetic cohort, or a run folder too, can find out of the training stays."""
