"""Devices, CUDA graphs, keyed randomness, progress and files. Knows no medicine and no model."""
