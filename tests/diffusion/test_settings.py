"""Diffusion processes by name, and what goes with each."""

import pytest

from helpers.denoisers import no_network
from timediff.data.batch import Layout
from timediff.diffusion.cascade.process import Cascade
from timediff.diffusion.ddpm.gaussian_classes import GaussianClasses, Rounding, Softmax
from timediff.diffusion.ddpm.process import MixedDiffusion
from timediff.diffusion.settings import PROCESSES, CascadeSettings, DDPMSettings, ProcessSettings

LAYOUT = Layout.of(2, (2, 3), (True, False))


def test_processes_have_names_and_edm_is_still_known():
    assert PROCESSES("ddpm") is DDPMSettings
    assert PROCESSES("cascade") is ProcessSettings.choose("edm") is CascadeSettings


def test_settings_build_the_process_that_they_describe():
    ddpm = DDPMSettings(steps=30, lambda_=0.5).build(LAYOUT, no_network)
    assert type(ddpm) is MixedDiffusion
    assert (ddpm.steps, ddpm.lambda_, ddpm.layout) == (30, 0.5, LAYOUT)
    cascade = CascadeSettings(lambda_=2.0, joint=False).build(LAYOUT, no_network)
    assert isinstance(cascade, Cascade)
    assert (cascade.lambda_, cascade.layout) == (2.0, LAYOUT)
    assert not cascade.step_head.allowed.any()


@pytest.mark.parametrize(("discrete", "numbers"), [("rounding", Rounding), ("softmax", Softmax)])
def test_classes_can_be_diffused_as_numbers(discrete, numbers):
    process = DDPMSettings(steps=30, discrete=discrete).build(LAYOUT, no_network)
    assert isinstance(process, GaussianClasses)
    assert isinstance(process.numbers, numbers)
    assert process.steps == 30
    assert DDPMSettings(discrete=discrete).default_width(1, LAYOUT) == 4 * (2 + process.numbers.width)


@pytest.mark.parametrize(("stays", "width"), [(1, 64), (1999, 64), (2000, 256)])
def test_a_network_without_a_width_gets_one(stays, width):
    assert CascadeSettings().default_width(stays, LAYOUT) == width
    assert DDPMSettings().default_width(stays, LAYOUT) == 4 * (2 + 2 + 3)


@pytest.mark.parametrize(
    ("settings", "given", "said"),
    [
        (DDPMSettings(), ("ddim", 50, "bounds"), []),
        (CascadeSettings(), ("heun", None, "quantile"), []),
        (DDPMSettings(), ("heun", None, "training"), ["sampling.sampler is 'heun'"]),
        (CascadeSettings(), ("ddim", None, "quantile"), ["sampling.sampler is 'ddim'"]),
        (DDPMSettings(), ("ddim", None, "quantile"), ["codec.scale is 'quantile'"]),
        (CascadeSettings(lambda_=-1.0), ("euler", None, "bounds"), ["codec.scale is 'bounds'", "diffusion.lambda"]),
        (DDPMSettings(steps=10), ("ddim", 11, "bounds"), ["sampling.steps is 11; expected at most"]),
        (DDPMSettings(steps=0, lambda_=-1.0), ("ddim", None, "bounds"), ["diffusion.steps", "diffusion.lambda"]),
    ],
)
def test_what_does_not_go_together_is_said(settings, given, said):
    found = settings.problems(*given)
    assert len(found) == len(said)
    assert all(one.startswith(start) for one, start in zip(found, said, strict=True))
