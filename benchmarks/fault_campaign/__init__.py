"""Damaged inputs, odd command lines and kills for every command, and what must hold whatever comes in."""
