"""Protocols, metrics and results: how close synthetic stays are to real ones."""
