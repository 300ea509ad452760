"""How losses went in training, as a figure for a notebook."""

from collections.abc import Mapping, Sequence
from typing import Any

from timediff.errors import TimeDiffError
from timediff.report.page import require_plotly

NO_LOSSES = ("step", "lr", "stays_per_second", "total")  # "total" is the sum of what each optimizer step minimises
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # for colour-blind readers too


def history_figure(history: Sequence[Mapping[str, float]]) -> Any:
    """A line a loss, against updates; losses of held-out stays are dashed."""
    require_plotly()
    import plotly.graph_objects as go

    if not history:
        raise TimeDiffError("there are no losses to draw: this generator has none, or it was trained without a log.")
    names = list(dict.fromkeys(name for record in history for name in record))
    losses = [name for name in names if name not in NO_LOSSES] or ["total"]
    figure = go.Figure()
    for number, name in enumerate(losses):
        known = [record for record in history if name in record]
        figure.add_scatter(
            x=[record["step"] for record in known], y=[record[name] for record in known], name=name.replace("_", " "),
            line={"color": COLOURS[number % len(COLOURS)], "dash": "dash" if name.startswith("held_out") else "solid"},
        )  # fmt: skip
    figure.update_layout(
        template="plotly_white", xaxis_title="updates", yaxis_title="loss", height=380, margin={"t": 30, "r": 20}
    )
    return figure
