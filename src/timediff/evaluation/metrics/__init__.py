"""The metrics, one file each. `timediff.evaluation.registry` knows where they are."""
