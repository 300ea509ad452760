"""A sampler of the cascade: the midpoint method, with two calls a noise level but for the last."""

from torch import Tensor

from timediff.diffusion.cascade.solvers import Denoise, second_order
from timediff.diffusion.process import NoiseSource


@second_order
def midpoint(denoise: Denoise, x: Tensor, sigmas: Tensor, noise: NoiseSource) -> Tensor:
    for i in range(len(sigmas) - 1):
        sigma, after = sigmas[i : i + 1], sigmas[i + 1 : i + 2]
        slope = (x - denoise(x, sigma)) / sigma.to(x.dtype)
        if i < len(sigmas) - 2:  # at σ = 0 the first slope is exact
            middle = (sigma * after).sqrt()
            x_middle = x + (middle - sigma).to(x.dtype) * slope
            slope = (x_middle - denoise(x_middle, middle)) / middle.to(x.dtype)
        x = x + (after - sigma).to(x.dtype) * slope
    return x
