"""Faults to plant in cohorts."""
