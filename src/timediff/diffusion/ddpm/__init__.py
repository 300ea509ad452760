"""The paper's mixed diffusion: Gaussian for continuous channels, multinomial for discrete ones. t counts from 0."""
