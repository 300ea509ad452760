"""Latent forcing: an autoencoder, and a Gaussian autoregression of its latent steps, refined adversarially."""
