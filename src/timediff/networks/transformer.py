"""A causal transformer: the blocks of GPT-2 (Radford et al. 2019), whose keys and values can be kept while sampling."""

from torch import Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention

Cache = list[tuple[Tensor, Tensor]]  # of each block its keys and values, (B, heads, steps, width / heads)

STD = 0.02  # of initial weights, as in GPT-2


class Block(nn.Module):
    """Attention and an MLP, each after a layer norm and around a skip connection."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)
        for linear in (self.qkv, self.projection, self.wide, self.narrow):
            nn.init.normal_(linear.weight, std=STD)
            nn.init.zeros_(linear.bias)

    def split(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of x (B, L, width), each (B, heads, L, width / heads)."""
        q, k, v = self.qkv(self.norm_1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return q, k, v

    def merge(self, x: Tensor, attended: Tensor) -> Tensor:
        """x after what was attended to, (B, heads, L, width / heads), and after the MLP."""
        x = x + self.dropout(self.projection(attended.transpose(1, 2).flatten(-2)))
        y: Tensor = x + self.dropout(self.narrow(gelu(self.wide(self.norm_2(x)), approximate="tanh")))
        return y

    def forward(self, x: Tensor) -> Tensor:
        return self.merge(x, scaled_dot_product_attention(*self.split(x), is_causal=True))


class CausalTransformer(nn.Module):
    """(B, L, width) → (B, L, width); what comes out at a step depends on that step and those before it."""

    def __init__(self, width: int, layers: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.width, self.heads = width, heads
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        y: Tensor = self.norm(x)
        return y

    def empty_cache(self, like: Tensor, length: int) -> Cache:
        """For as many rows as `like` has, and series of `length` steps."""
        shape = (len(like), self.heads, length, self.width // self.heads)
        return [(like.new_zeros(shape), like.new_zeros(shape)) for _ in self.blocks]

    def step(self, x: Tensor, cache: Cache, at: int) -> Tensor:
        """What `forward` gives at step `at`, from that step x (B, width) and the cache, to which x is added."""
        x = x[:, None]
        for block, (keys, values) in zip(self.blocks, cache, strict=True):
            assert isinstance(block, Block)
            q, keys[:, :, at : at + 1], values[:, :, at : at + 1] = block.split(x)
            x = block.merge(x, scaled_dot_product_attention(q, keys[:, :, : at + 1], values[:, :, : at + 1]))
        y: Tensor = self.norm(x)[:, 0]
        return y
