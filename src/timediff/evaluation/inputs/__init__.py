"""What classifiers and neighbours see of a stay."""
