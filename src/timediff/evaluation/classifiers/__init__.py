"""Classifiers that metrics train."""
