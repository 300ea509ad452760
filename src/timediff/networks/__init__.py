"""Denoisers: networks that know nothing of training or data."""
