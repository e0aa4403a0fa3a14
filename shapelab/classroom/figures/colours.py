"""The colours of every picture: prefill is blue, decode orange, overhead grey. They are safe for colour-blind readers."""

import seaborn as sns

_PALETTE = sns.color_palette("colorblind").as_hex()
PREFILL, DECODE, OVERHEAD = _PALETTE[0], _PALETTE[1], _PALETTE[7]
OTHERS = (*_PALETTE[2:7], *_PALETTE[8:])  # for lines that are no phase
INK, FAINT = "#333333", "#d9d9d9"
EXPLAINED_BY_NONE = {"facecolor": "white", "edgecolor": FAINT, "hatch": "///"}
