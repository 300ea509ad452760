"""Cohort → the forms that other tools read."""
