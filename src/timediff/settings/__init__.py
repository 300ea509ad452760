"""Frozen dataclasses ⇄ TOML, and the presets."""
