"""Areas, bootstraps, neighbours, groups: what several metrics count with."""
