"""What baselines share: stays as real columns, adversarial losses, next-step models, and how they are sampled."""
