"""The causal transformer: what comes out at a step knows nothing of later ones, however it is computed."""

import pytest
import torch

from timediff.networks.transformer import CausalTransformer


@pytest.fixture
def transformer() -> CausalTransformer:
    torch.manual_seed(0)
    made = CausalTransformer(12, layers=3, heads=2)
    for weight in made.parameters():
        torch.nn.init.normal_(weight, std=0.3)  # of initial weights nothing is far from the identity
    return made


@pytest.mark.parametrize("step", [0, 3, 6])
def test_a_later_step_changes_nothing_before_it(transformer: CausalTransformer, step: int) -> None:
    x = torch.randn(2, 7, 12)
    other = x.clone()
    other[:, step] += 1
    with torch.no_grad():
        changed = (transformer(x) != transformer(other)).any(dim=-1).any(dim=0)
    assert changed.tolist() == [at >= step for at in range(7)]


def test_kept_keys_and_values_give_what_the_whole_series_gives(transformer: CausalTransformer) -> None:
    x = torch.randn(2, 7, 12)
    with torch.no_grad():
        cache = transformer.empty_cache(x, 7)
        steps = torch.stack([transformer.step(x[:, at], cache, at) for at in range(7)], dim=1)
        assert torch.allclose(steps, transformer(x), atol=1e-5)
