"""Discriminative and predictive scores: of all methods, of the ablation, of λ, and of the neural CDE."""

from timediff.reproduction.experiments.base import Arm, Experiment, Number
from timediff.reproduction.methods import ABLATION, CDE, EVERY, LAMBDAS, TIMEDIFF

MEASURES = ("discriminative", "predictive")
NUMBERS = (
    Number("discriminative", "score", "discriminative", "discriminative score", "paper"),
    Number("predictive", "error", "predictive", "predictive score"),
)
UNSTATED = "The paper does not say how many updates it trains; ours are those of each preset. "
BASELINES = (
    "Baselines are ours in PyTorch with the published settings; docs/baselines.md lists what differs from their code. "
)

SCORES = Experiment(
    "scores", "Discriminative and predictive scores", "Table 1",
    UNSTATED + BASELINES + "Stays are split by patient, which the paper does not say.",
    (Arm(EVERY, MEASURES),), NUMBERS, "scores", real="floor",
)  # fmt: skip
ABLATED = Experiment(
    "ablation", "Missing indicators by multinomial or Gaussian diffusion", "Table 4", UNSTATED.strip(),
    (Arm((TIMEDIFF, *ABLATION), MEASURES, records_only=True),), NUMBERS, "ablation",
)  # fmt: skip
LAMBDA = Experiment(
    "lambda", "Effect of λ", "Table 12 and Figure 37", UNSTATED + "The maps of Figure 37 are in the experiment tsne.",
    (Arm(LAMBDAS, MEASURES, records_only=True),), NUMBERS, "lambda", real="floor",
)  # fmt: skip
NEURAL_CDE = Experiment(
    "cde", "The neural CDE as denoiser", "Supplement, on the neural controlled differential equation",
    "The paper reports no number, only that the cost is high. Its own row is beside that of the RNN.",
    (Arm((TIMEDIFF, CDE), MEASURES, records_only=True),), NUMBERS,
)  # fmt: skip
