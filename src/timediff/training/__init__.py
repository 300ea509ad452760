"""The training loop, its averages and its checkpoints. Knows neither medicine nor plots."""
