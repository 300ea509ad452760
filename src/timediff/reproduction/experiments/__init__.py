"""The paper's experiments, a group a file; registry.py knows them by name."""
