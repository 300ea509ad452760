"""Accelerations: the same networks, computed faster. Whoever trains or samples applies them; networks know of none.

Triton's kernels are tried where there is a GPU and Triton; where a kernel cannot be built PyTorch's own way goes on.
"""
