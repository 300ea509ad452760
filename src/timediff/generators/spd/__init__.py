"""Stochastic process diffusion (Biloš et al. 2023): diffusion whose noise is a process over the time of the series."""
