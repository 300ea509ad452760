"""TimeDiff: diffusion of vital signs, missingness, static values and outcome together."""
