"""EHR-M-GAN (Li, Cairns, Li and Zhu 2023)."""
