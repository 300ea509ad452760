"""The network of TimeDiff: a diffusion process around a denoiser, both by name."""

from timediff.data.batch import Layout
from timediff.diffusion.process import Process
from timediff.generators.timediff.settings import TimeDiffSettings


def build_process(settings: TimeDiffSettings, layout: Layout) -> Process:
    return settings.diffusion.build(layout, settings.model.build)
