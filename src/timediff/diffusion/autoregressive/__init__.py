"""Absorbing diffusion in the order of time: each step given those before it, classes and values together."""
