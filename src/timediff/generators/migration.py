"""Run folders of earlier versions: their generators, settings and weights under the names of today."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

TIMEGAN_AS_PUBLISHED = 4  # the first format in which timegan is the published method
CASCADE_PARTS = {"rnn": "denoiser", "cells": "step_head", "stay": "static_head"}


def generator_of_today(generator: str, format: int) -> str:
    """What was called timegan before had become another method, and is called latent-forcing now."""
    return "latent-forcing" if generator == "timegan" and format < TIMEGAN_AS_PUBLISHED else generator


def settings_as_written(table: dict[str, Any], generator: str) -> dict[str, Any]:
    """With what an earlier version did not write down, since there was no choice yet."""
    if generator != "timediff":
        return table
    training, diffusion = table.setdefault("training", {}), table.setdefault("diffusion", {})
    if isinstance(training, dict):
        training.setdefault("ema_every", 1)
    if isinstance(diffusion, dict) and diffusion.get("process", "ddpm") == "ddpm":
        diffusion.setdefault("class_input", "one-hot")
    return table


def settings_of_format_1(table: dict[str, Any], generator: str) -> dict[str, Any]:
    """Of 0.1.0: two processes shared one table, and some settings had other names."""
    if generator != "timediff":
        adversarial = table.get("adversarial")
        if isinstance(adversarial, dict) and "smooth" in adversarial:
            adversarial["gradient_penalty"] = adversarial.pop("smooth")
        return table
    diffusion, model = table.setdefault("diffusion", {}), table.setdefault("model", {})
    if not isinstance(diffusion, dict) or not isinstance(model, dict):
        return table  # which is then refused as settings
    joint = diffusion.pop("cells", "joint") == "joint"
    if diffusion.get("process") == "edm":
        diffusion["process"], diffusion["joint"] = "cascade", joint
        diffusion.pop("steps", None)
        diffusion.pop("schedule", None)
    if "early" in model:
        model["noise_level_input"] = model.pop("early")
    return table


def weights_of_format_1(weights: Mapping[str, Tensor], generator: str, settings: Any) -> dict[str, Tensor]:
    """Of 0.1.0: the paper's network was not yet part of its process, and the cascade's parts had other names."""
    if generator != "timediff":
        return dict(weights)
    if settings.diffusion.process == "ddpm":
        return {f"denoiser.{name}": value for name, value in weights.items()}
    renamed = {}
    for name, value in weights.items():
        part, _, rest = name.partition(".")
        renamed[f"{CASCADE_PARTS.get(part, part)}.{rest}"] = value
    return renamed
