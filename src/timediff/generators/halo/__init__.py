"""HALO: a hierarchical autoregressive language model of visits and codes (Theodorou et al. 2023)."""
